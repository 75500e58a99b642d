"""The recipes of CONTRIBUTING.md are all there is to do: a thing is known at home and in its registry."""

import re
from pathlib import Path

import pytest

from planner.cluster.releases import RELEASES
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.registry import SHEDDERS
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS
from planner.simulate.edits.registry import EDITS

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = [*sorted((ROOT / "pages").glob("*.py")), *sorted((ROOT / "planner").rglob("*.py"))]


def recipe(title: str) -> list[str]:
    """Return the paths that a recipe names."""
    section = GUIDE.split(f"### Add {title}\n")[1].split("\n#")[0]
    return re.findall(r"^[0-9]+\. `([^`]+)`", section, re.MULTILINE)


def importers(module: str) -> set[str]:
    """Return the files of the product that import a module, by their paths."""
    package, _, name = module.rpartition(".")
    direct = re.compile(rf"from {re.escape(module)} import|import {re.escape(module)}\b")
    grouped = re.compile(rf"from {re.escape(package)} import (?:\([^)]*|[^(\n]*)\b{name}\b")
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES}
    return {path for path, text in texts.items() if direct.search(text) or grouped.search(text)}


ONE_EACH = [
    ("planner/pulsar/shedding/registry.py", [type(one).__module__ for one in SHEDDERS]),
    ("planner/pulsar/placement/registry.py", [type(one).__module__ for one in PLACEMENTS]),
    ("planner/pulsar/splitting/registry.py", [type(one).__module__ for one in SPLIT_ALGORITHMS]),
    ("planner/simulate/edits/registry.py", [one.__module__ for one in EDITS]),
    ("planner/capture/stores/registry.py", ["planner.capture.stores.zookeeper"]),
]
# The load managers of Pulsar know some of their strategies themselves, and so do the shapes of recorded vectors.
MIRRORS = ("planner/pulsar/", "planner/conform/")


@pytest.mark.parametrize(
    ("registry", "module"), [(registry, module) for registry, modules in ONE_EACH for module in modules]
)
def test_only_the_registry_knows_the_file(registry: str, module: str) -> None:
    known = importers(module)
    assert registry in known
    assert {path for path in known if path != registry and not path.startswith(MIRRORS)} == set()


@pytest.mark.parametrize(
    ("title", "count"),
    [
        ("a shedding strategy", 3),
        ("a placement strategy", 3),
        ("a split algorithm", 3),
        ("a kind of edit", 2),
        ("a page", 2),
        ("a release", 2),
        ("a metadata store", 2),
        ("a setting", 1),
        ("a finding", 3),
        ("a measure", 3),
        ("a column", 3),
        ("a command", 4),
        ("a format", 3),
        ("a kind of output", 3),
    ],
)
def test_a_recipe_touches_so_many_places(title: str, count: int) -> None:
    paths = recipe(title)
    assert len(paths) == count
    for path in paths:
        folder = ROOT / path.split("<", maxsplit=1)[0]
        assert folder.exists() or folder.parent.exists(), path
        if "<" not in path:
            assert (ROOT / path).exists(), path


def test_a_release_is_its_name_and_its_rows() -> None:
    assert recipe("a release") == ["planner/cluster/releases.py", "planner/cluster/settings.csv"]
    text = (ROOT / "planner/cluster/releases.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in text for name in RELEASES)
