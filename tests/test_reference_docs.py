"""Every finding and every option of a command is in the docs."""

import ast
import re
from pathlib import Path

import pytest

from planner.__main__ import COMMANDS
from planner.explain.meanings import MEANINGS
from tools.make_command_docs import PAGE, PARTS, help_of, page

ROOT = Path(__file__).parent.parent
FINDINGS = ROOT / "docs" / "findings.md"
TEXT = re.compile(r"^\| `([a-z_]+)` \| (.+\.) \|$", re.MULTILINE)
ROW = re.compile(r"^\| `([a-z_]+)` \| .+\. \|$", re.MULTILINE)


def codes() -> set[str]:
    """Return the codes that the diagnosis and the linter give findings."""
    found: set[str] = set()
    explain = ROOT / "planner" / "explain"
    for path in (*explain.glob("*_patterns.py"), explain / "setting_rules.py", ROOT / "planner" / "doors" / "lint.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "code":
                found |= {str(one.value) for one in ast.walk(node.value) if isinstance(one, ast.Constant)}
    return found


def test_every_finding_has_a_row() -> None:
    documented = ROW.findall(FINDINGS.read_text(encoding="utf-8"))
    assert len(documented) == len(set(documented))
    assert set(documented) == codes()
    assert len(documented) > 15


def test_a_finding_means_the_same_in_the_docs_and_in_what_lint_prints() -> None:
    rows = TEXT.findall(FINDINGS.read_text(encoding="utf-8"))
    assert {code: text.replace("`", "") for code, text in rows} == MEANINGS


def test_the_page_of_commands_is_what_their_help_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run tools/make_command_docs.py"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_sentence(name: str) -> None:
    for words in [(name,), *((name, part) for part in PARTS.get(name, ()))]:
        lines = help_of(*words).splitlines()
        for at, line in enumerate(lines):
            if line.startswith("  -"):
                meaning = line[26:].strip() if line[24:26] == "  " else lines[at + 1].strip()
                assert len(meaning) > 5, f"{words}: {line}"
