"""What the documents say is what the code does."""

import re
import subprocess
import sys
from pathlib import Path

from tools import make_contracts
from tools.make_format_tables import PAGE, filled

ROOT = Path(__file__).parent.parent


def test_tables_of_columns_are_those_of_the_model() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "run tools/make_format_tables.py"


def test_tables_of_members_are_those_of_the_protocols() -> None:
    page = make_contracts.PAGE.read_text(encoding="utf-8")
    assert make_contracts.filled(page) == page, "run tools/make_contracts.py"


def test_links_of_the_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_files_that_documents_name_are_there() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\b(?:planner|pages|tests|benchmarks|tools)/[a-z_/0-9]+\.(?:py|csv|md)\b", text):
            assert (ROOT / target).exists(), f"{page.name}: {target}"


def test_readme_has_both_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for mark, last in (("run command", "streamlit run app.py"), ("test command", "pytest -n auto --dist loadgroup")):
        block = readme.split(f"<!-- {mark} -->")[1].split("```")[1]
        assert block.strip().endswith(last)


def test_what_failed_can_be_run_once_more(tmp_path: Path) -> None:
    """CI gives real clusters a second try, and developers use `--last-failed`."""
    (tmp_path / "test_two.py").write_text("def test_bad():\n    assert False\n\n\ndef test_good():\n    pass\n")
    config = str(ROOT / "pyproject.toml")
    command = [sys.executable, "-m", "pytest", "-c", config, "-p", "no:xdist", "-o", "cache_dir=cache", "test_two.py"]
    for more, counts in (((), "1 failed, 1 passed"), (("--last-failed",), "1 failed, 1 deselected")):
        done = subprocess.run(
            [*command, "--rootdir", str(tmp_path), *more],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert counts in done.stdout
