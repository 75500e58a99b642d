"""What is known of one thing has one home: strategies, split algorithms and releases are named there and in registries.

Edits have `tests/app/simulate/test_edits.py`, pages `tests/app/pages`.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from planner.cluster import errors, names
from planner.cluster.names import LOAD_MANAGER_CLASS_NAME
from planner.cluster.releases import RELEASES, release
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
    """Names and orders of bundles go on by `Snapshot.sharing`; two tables work out columns when somebody asks."""
    own = ("cluster/snapshot.py", "simulate/cut_topics.py", "simulate/late_bundles.py")
    homes = [ROOT / "planner" / name for name in own]
    assert [path for path in FILES if "__dict__" in path.read_text(encoding="utf-8")] == homes


UNIT = re.compile(
    r"_?([KMG]IB|[A-Z]+_PER_(NS|MS|S|MIN|MINUTE|HOUR|DAY|BYTE|KBIT|GBIT)|(HOUR|DAY)_S|(MIN|MINUTE|HOUR|DAY)_MS)"
)
FACTORS = ("2**20", "1 << 20", "2**30", "1 << 30", "60_000", "86_400_000")


def units_of(path: Path) -> Iterator[str]:
    """Yield the factors between units that a module defines by itself or writes as numbers."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            places = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for one in places if isinstance(one, ast.Name) and UNIT.fullmatch(one.id))
        if isinstance(node, ast.BinOp):
            written = {part.replace("_", "") for part in ast.unparse(node).split()}
            shown = ast.unparse(node).replace(" ", "")
            for factor in FACTORS:
                plain = factor.replace("_", "").replace(" ", "")
                if plain == shown or plain in written:
                    yield factor


def test_units_have_one_home(tmp_path: Path) -> None:
    """A factor between units is defined in `planner/cluster/units.py` alone."""
    home = ROOT / "planner/cluster/units.py"
    assert {"MIB", "MS_PER_MIN", "DAY_MS"} <= set(units_of(home))
    (odd := tmp_path / "odd.py").write_text(
        "_MS_PER_MIN: int = 60_000\nsize = rate / 2**20\nlast = now - minutes * 60_000"
    )
    assert {"_MS_PER_MIN", "2**20", "60_000"} <= set(units_of(odd))
    others = [path for path in FILES if path != home]
    assert [(path.name, sorted(set(units_of(path)))) for path in others if [*units_of(path)]] == []


FIELDS = (
    "planner/cluster/pulsar_json.py",  # a field of load reports with the name of a setting
    "planner/history/",  # recordings of the same
)
SETTINGS = {name for one in RELEASES for name in release(one).settings} | {LOAD_MANAGER_CLASS_NAME}


def settings_of(path: Path) -> Iterator[str]:
    """Yield every setting that a module spells as a text of its own; sentences may name them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    sentences = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in sentences and node.value in SETTINGS:
            yield str(node.value)


def test_each_name_of_a_setting_is_spelled_once() -> None:
    """A setting that several modules name is a constant of `planner/cluster/names.py`, any other one of its module."""
    home = ROOT / "planner/cluster/names.py"
    assert set(settings_of(home)) <= SETTINGS
    places = [path for path in FILES if not str(path.relative_to(ROOT)).startswith(FIELDS)]
    spelled = [(name, path.name) for path in places for name in settings_of(path)]
    counted = Counter(name for name, _ in spelled)
    assert [one for one in spelled if counted[one[0]] > 1] == []


NOT_TUNED = "planner/advise/search.py"
"""Lists what no search of settings tunes, whatever strategy reads it."""


def mentioned(path: Path) -> set[str]:
    """Return the settings that a module spells, mentions in a sentence or imports, docstrings apart."""
    imported = {
        str(getattr(names, alias.name))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == names.__name__
        for alias in node.names
    }
    return imported | {word for text in texts(path) for word in re.findall(r"\w+", text)} & SETTINGS


def own_settings() -> set[str]:
    """Return what shedding strategies alone read: no other rule of Pulsar does."""
    rules = sorted((ROOT / "planner/pulsar").rglob("*.py"))
    others = (path for path in rules if "shedding" not in path.parts)
    return {name for one in SHEDDERS for name in one.settings}.difference(*map(mentioned, others))


def test_settings_of_a_strategy_are_known_at_home_only() -> None:
    """Whoever needs a strategy's own settings asks its profile, as `explain` does what held it back."""
    own = own_settings()
    assert {"minUnloadMessage", "minUnloadMessageThroughput", "maxUnloadPercentage"} <= own
    assert own & mentioned(ROOT / "planner/pulsar/shedding/avg.py")
    places = {str(path.relative_to(ROOT)): path for path in FILES}
    elsewhere = [place for place in places if not place.startswith((*HOMES, NOT_TUNED, "planner/cluster/names.py"))]
    assert [(place, sorted(found)) for place in elsewhere if (found := own & mentioned(places[place]))] == []


def test_reasons_of_a_strategy_are_known_at_home_only() -> None:
    """No other room reads a strategy's reasons by their codes."""
    code = re.compile(r"(avg|overload|threshold|transfer|uniform)\.\w+")
    assert [*filter(code.fullmatch, texts(ROOT / "planner/pulsar/shedding/avg_reasons.py"))]
    elsewhere = [path for path in FILES if not str(path.relative_to(ROOT)).startswith(HOMES)]
    assert [(path.name, text) for path in elsewhere for text in texts(path) if code.fullmatch(text)] == []


CATCHING = ("Exception", "BaseException")


def test_errors_are_one_family() -> None:
    """What one module raises for another is a `PlannerError`; the tree of the family names it and its parent."""
    bases = {
        node.name: [ast.unparse(base) for base in node.bases]
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).endswith(("Error", *CATCHING)) for base in node.bases)
    }
    public = {name: of for name, of in bases.items() if not name.startswith("_")}
    assert [name for name, of in public.items() if name != "PlannerError" and {*of} & {*CATCHING}] == []
    drawn: dict[str, str] = {}
    above = ["PlannerError"]
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"((?:│   |    )*)[├└]── (\w+)", line):
            above = [*above[: len(found[1]) // 4 + 1], found[2]]
            drawn[found[2]] = above[-2]
    assert drawn == {name: of[0] for name, of in public.items() if name != "PlannerError"}
