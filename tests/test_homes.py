"""What is known of one thing has one home: strategies, split algorithms and releases are named there and in registries.

Edits have `tests/app/simulate/test_edits.py`, pages `tests/app/pages`.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from planner.cluster.releases import RELEASES
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.registry import SHEDDERS
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS
from tests.test_messages import texts

ROOT = Path(__file__).parent.parent
FILES = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py")), *sorted((ROOT / "planner").rglob("*.py"))]
NAMES = sorted({one.name for one in (*SHEDDERS, *PLACEMENTS, *SPLIT_ALGORITHMS)})
NAMED = re.compile(r"(?<![\w.])(?:[\w.]*\.)?(" + "|".join(map(re.escape, NAMES)) + r")(?![\w])")
HOMES = ("planner/pulsar/shedding/", "planner/pulsar/placement/", "planner/pulsar/splitting/")
NUMBERED = [name for name in RELEASES if name[0].isdigit()]  # the one to come has a name that is any word
ALLOWED = {
    "planner/cluster/releases.py",  # the registry of releases
}


def named(path: Path) -> Iterator[str]:
    """Yield what a module names in its texts, docstrings apart; releases only where they say no span of a switch."""
    for text in texts(path):
        yield from NAMED.findall(text)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    spans = {id(span) for node in ast.walk(tree) if isinstance(node, ast.Call) for span in _spans(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in NUMBERED and id(node) not in spans:
            yield str(node.value)


def _spans(call: ast.Call) -> Iterator[ast.expr]:
    if isinstance(call.func, ast.Name) and call.func.id == "Switch":
        for keyword in call.keywords:
            if keyword.arg in {"since", "until", "backported"}:
                yield from getattr(keyword.value, "elts", [keyword.value])


def test_the_search_finds_names() -> None:
    assert "AvgShedder" in set(named(ROOT / "planner/pulsar/shedding/avg.py"))
    assert "4.2.4" in set(named(ROOT / "planner/cluster/releases.py"))


def test_names_are_known_at_home_only() -> None:
    places = {str(path.relative_to(ROOT)): path for path in FILES}
    elsewhere = [place for place in places if place not in ALLOWED and not place.startswith(HOMES)]
    assert [(place, name) for place in elsewhere for name in sorted(set(named(places[place])))] == []


def test_only_a_snapshot_and_its_tables_touch_what_they_have_worked_out() -> None:
    """Names and orders go on by `Snapshot.sharing` (bundles) and by the table of topics (its own order) alone."""
    homes = [ROOT / "planner" / "cluster" / name for name in ("snapshot.py", "tables.py")]
    assert [path for path in FILES if "__dict__" in path.read_text(encoding="utf-8")] == homes
