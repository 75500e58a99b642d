"""Imports point one way, and each heavy library lives in one place."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner import __version__
from planner.cluster.version import VERSION

ROOT = Path(__file__).parent.parent

# Lowest first: a room may import itself and whatever stands before it.
LAYERS = (
    "cluster",
    "pulsar",
    "conform",
    "simulate",
    "optimize",
    "explain",
    "remedy",
    "namespaces",
    "share",
    "formats",
    "spark",
    "history",
    "doors",
    "capture",
    "shadow",
    "workspace",
    "replay",
    "weeks",
    "advise",
    "figures",
    "cli",
    "web",
    "notebook",
)

# The only packages that may import these.
HOMES = {
    "streamlit": {"web", "pages", "app"},
    "plotly": {"figures"},
    "matplotlib": {"figures"},
    "pyspark": {"spark", "history", "replay"},
    "duckdb": {"workspace", "replay"},
    "httpx": {"capture"},
    "requests": {"capture"},
    "urllib3": {"capture"},
    "kazoo": {"capture"},
    "oauthlib": {"capture"},
    "highspy": {"optimize"},
    "yaml": {"doors"},
}


def product_files() -> list[Path]:
    return [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py")), *sorted((ROOT / "planner").rglob("*.py"))]


def place_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    if parts[0] == "planner":
        return parts[1] if len(parts) > 2 else Path(parts[1]).stem
    return parts[0] if parts[0] == "pages" else "app"


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def wrong(path: Path) -> Iterator[str]:
    """Yield what a module may not import, and why."""
    place = place_of(path)
    for name in imported(path):
        parts = name.split(".")
        if place not in HOMES.get(parts[0], {place}):
            yield f"{path.relative_to(ROOT)} imports {name}; only {HOMES[parts[0]]} may"
        if parts[0] == "planner" and place in LAYERS and (len(parts) == 1 or parts[1] not in LAYERS):
            yield f"{path.relative_to(ROOT)} imports {name}: the face of the package, which imports every room"
        if parts[0] == "planner" and len(parts) > 1 and parts[1] in LAYERS and place in LAYERS:  # noqa: SIM102
            if LAYERS.index(parts[1]) > LAYERS.index(place):
                yield f"{path.relative_to(ROOT)} imports {name}, which lies above it"


def test_imports_point_down() -> None:
    assert [fault for path in product_files() for fault in wrong(path)] == []


def test_the_face_is_above_every_room(tmp_path: Path) -> None:
    """A name that is no room is one of the package itself, whose face imports all of them."""
    for line in ("from planner import __version__", "import planner", "from planner import Snapshot"):
        (place := tmp_path / "planner" / "capture").mkdir(parents=True, exist_ok=True)
        (place / "client.py").write_text(line)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(f"{__name__}.ROOT", tmp_path)
            (fault,) = wrong(place / "client.py")
        assert "the face of the package" in fault


def test_one_version() -> None:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert written == VERSION == __version__


def test_every_package_has_a_layer() -> None:
    packages = {p.name for p in (ROOT / "planner").iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert packages <= set(LAYERS)


def test_edits_know_only_what_they_ask_of_a_simulation() -> None:
    """No edit knows a simulation or a scenario, not even by type: they know the edits."""
    known = {path.stem for path in (ROOT / "planner/simulate/edits").glob("*.py")} - {"__init__"}
    waiting = [f"planner.simulate.edits.{name}" for name in sorted(known)]
    assert "planner.simulate.edits.running" in waiting
    reached: set[str] = set()
    while waiting:
        module = waiting.pop()
        path = ROOT / f"{module.replace('.', '/')}.py"
        if module in reached or not path.exists():
            continue
        reached.add(module)
        names = imported(path)
        waiting += [*names, *(name.rpartition(".")[0] for name in names)]
    above = {f"planner.simulate.{name}" for name in ("run", "scenario", "trace", "cluster")}
    assert reached & above == set()
