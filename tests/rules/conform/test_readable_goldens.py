"""Some recorded decisions as text: what a rule does can be read, and a change of it be seen in a difference.

`pytest tests/rules/conform/test_readable_goldens.py --rewrite` writes the texts anew. What Pulsar answered is checked
elsewhere, over all recordings; the texts hold what the planner answers.
"""

from pathlib import Path

import pytest

from planner.conform.kinds import kind_of
from planner.conform.reader import Vector, read_vectors
from tests.rules.conform.test_every_golden import files
from tests.rules.readable import readable

GOLDENS = Path(__file__).parent.parent.parent / "goldens"
FOLDERS = sorted({path.parent for path in files()}, key=lambda path: path.name)
PER_FOLDER = 3
ACTS = ("unload", "decisions", "selected", "candidates", "bundlesToSplit", "splitBoundaries")
MOST = 12_000
"""Characters of a recorded case that a person still reads."""


def chosen(folder: Path) -> list[Vector]:
    """Return small cases of a folder, those first in which most is decided."""
    every = [v for path in files() if path.parent == folder for v in read_vectors(path)]
    every.sort(key=lambda v: (len(str(v.input)), v.id))
    small = [v for v in every if len(str(v.input)) <= MOST] or every[:PER_FOLDER]
    different = {
        (str(v.input.get("algorithm")), str(v.input.get("strategy")), decided(v.expected)): v for v in reversed(small)
    }
    return sorted(different.values(), key=lambda v: (-decided(v.expected), v.id))[:PER_FOLDER]


def decided(expected: object) -> int:
    """Return how many parts of an answer say that something is done."""
    if isinstance(expected, list):
        return sum(map(decided, expected))
    if not isinstance(expected, dict):
        return 0
    return sum(bool(expected.get(name)) for name in ACTS) + sum(map(decided, expected.values()))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.name))
def test_decisions_read_as_before(folder: Path, request: pytest.FixtureRequest) -> None:
    vectors = chosen(folder)
    text = readable(vectors, [kind_of(vector).answer(vector.question()) for vector in vectors])
    golden = folder / "readable.txt"
    if request.config.getoption("--rewrite"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8"), "run with --rewrite and look at the difference"
