"""Pages that show the same fact of a cluster show the same number."""

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from planner.web import state
from planner.workspace.samples import Sample, samples

Page = Callable[..., AppTest]
SAMPLES = [one for one in samples() if one.file in {"story.zip", "real-modular.json", "pip-364.json"}]
PAGES = ("overview", "failure_review", "brokers", "shedding", "what_if", "moves")


def figures(test: AppTest) -> dict[str, str]:
    return {one.label: one.value for one in test.metric}


def said(test: AppTest, words: str) -> str:
    """The one paragraph of a page that has some words."""
    (found,) = {str(part.value) for part in test.markdown if re.search(words, str(part.value))}
    return found


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_each_fact_is_one_number(page: Page, sample: Sample) -> None:
    state.add_sample(sample)
    shown = {name: page(name, snapshot=sample.digest[:12]) for name in PAGES}
    assert not any(test.exception for test in shown.values())
    told, review, played = (figures(shown[name]) for name in ("overview", "failure_review", "what_if"))

    assert told["Highest usage"] == review["Highest usage"]
    assert told["Headroom"] == review["Headroom"]
    frame = next(one.value for one in shown["brokers"].dataframe if "usage (%)" in one.value.columns)
    assert f"{frame['usage (%)'].max():.1f} %" == told["Highest usage"]

    losses = said(shown["failure_review"], "^\\*\\*Worst is the loss of").strip("*")
    assert losses in said(shown["overview"], "Worst is the loss of")

    first, following = (said(shown[name], r" sheds .* cycle\.\*\*$") for name in ("shedding", "overview"))
    assert first.replace("first cycle", "next cycle") == following
    shed = re.search(r" sheds (\d[\d,]*) bundle", following)
    assert told["Shed next cycle"] == (shed[1] if shed else "0")

    moves = figures(shown["moves"]).get("Disconnected topics", "0")
    assert moves == played["Disconnected topics"]
