"""Every story ends as it says. `--rewrite` writes what simulations say anew; `--plots FOLDER` draws each one."""

from pathlib import Path

import pytest

from planner.explain.diagnosis import diagnose
from planner.figures.simulation import heat_map
from planner.simulate.edits.registry import EDITS
from planner.simulate.measures import broker_series
from tests.stories.story import RULE, failures, read, told

FILES = sorted(Path(__file__).parent.glob("*.txt"))
PAINS = 15


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    story, above, below = read(path)
    assert story.expected, "a story expects something"
    trace = story.run()
    said = told(trace)
    if request.config.getoption("--rewrite"):
        path.write_text(f"{above}{RULE}\n{said}", encoding="utf-8")
        below = said
    folder = request.config.getoption("--plots")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        heat_map(broker_series(trace)).write_html(Path(folder) / f"{path.stem}.html")
    assert failures(story, trace) == []
    assert said == below


def test_there_are_stories_of_what_operators_know() -> None:
    assert len(FILES) >= 25
    assert len([path for path in FILES if path.stem.startswith("pain_")]) == PAINS
    assert all(path.read_text(encoding="utf-8").startswith("# ") for path in FILES)


def test_a_wrong_expectation_fails() -> None:
    story, _, _ = read(FILES[0])
    trace = story.run()
    known = {one.code for one in diagnose(trace)}
    story.expected = ["shed >= 1000000", "finding no_such_code", "settled", *[f"no finding {code}" for code in known]]
    wrong = failures(story, trace)
    assert len(wrong) >= 2 + len(known)


def test_most_kinds_of_edits_have_a_story() -> None:
    told_of = {step["edit"]["kind"] for path in FILES for step in read(path)[0].scenario["steps"]}
    assert len(told_of) >= len(EDITS) - 3, sorted(told_of)
