"""What messages send people to is there: pages, settings, commands."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from planner.cluster.releases import REFERENCE
from planner.cluster.settings import Settings

ROOT = Path(__file__).parent.parent
FILES = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py")), *sorted((ROOT / "planner").rglob("*.py"))]
PAGES = {path.stem.replace("_", " ") for path in (ROOT / "pages").glob("*.py")}
OF_THE_DOCUMENTATION = {"concepts", "html"}
COMMANDS = {path.stem for path in (ROOT / "planner" / "cli").glob("*.py")} - {"__init__"}

PAGE = re.compile(r"\bthe ([A-Z][a-z]+(?:[ -][a-z]+)?) page\b")
SETTING = re.compile(r"\b(?:loadBalancer|loadManager|dispatchThrottling|dispatcherMax|defaultNamespaceBundle)[A-Z]\w+")
CALL = re.compile(r"python -m planner (\w+)")


@cache
def texts(path: Path) -> tuple[str, ...]:
    """Return every text of a module that is no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docs = {id(b[0].value) for b in bodies if b and isinstance(b[0], ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs)
    return tuple(node.value for node in constants if isinstance(node.value, str))


def test_the_search_finds_pages_settings_and_commands() -> None:
    everything = "\n".join(text for path in FILES for text in texts(path))
    assert {"Snapshots", "What-if"} <= set(PAGE.findall(everything))
    assert len(set(SETTING.findall(everything))) > 50
    assert CALL.findall(everything)


def test_what_a_message_names_is_there() -> None:
    for text in (text for path in FILES for text in texts(path)):
        pages = {name.lower().replace("-", " ") for name in PAGE.findall(text)}
        assert pages <= PAGES | OF_THE_DOCUMENTATION, text
        # A name at the end of a text may go on in what is filled in there.
        unknown = {name for name in SETTING.findall(text) if name not in REFERENCE.settings and not text.endswith(name)}
        assert not unknown, text
        assert set(CALL.findall(text)) <= COMMANDS, text


def test_an_unknown_setting_is_answered_with_the_nearest_or_a_place_to_look() -> None:
    with pytest.raises(Exception, match="Did you mean loadBalancerEnabled"):
        Settings({"loadBalancerEnabeld": True})
    with pytest.raises(Exception, match="What-if page"):
        Settings({"xyz": True})


def test_throughput_is_told_in_one_unit() -> None:
    """Pulsar's limits are in MiB, so that all is: MB/s beside MiB/s makes one bundle have two loads."""
    assert not [(path.name, text) for path in FILES for text in texts(path) if re.search(r"\b[kMG]B/s", text)]
