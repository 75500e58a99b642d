"""Names of the cluster in view, wherever they stand."""

from collections.abc import Callable

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from planner.web import names
from planner.web.widgets import _order, _rows_of, csv_bytes
from planner.workspace.samples import load_sample, samples

Page = Callable[..., AppTest]
STORY = next(sample for sample in samples() if sample.file == "story.zip")
BUNDLE = "acme/orders/0x6a439f54_0x6f182692"


def test_endings_are_domains_that_tell_no_brokers_apart() -> None:
    assert names.endings(["broker-1.prod.example:8080", "broker-2.prod.example:8080"]) == [".prod.example:8080"]
    assert names.endings(["a.one:80", "b.one:8080"]) == [".one:8080", ".one:80"]
    assert names.endings(["broker-1:8080", "broker-2:8080"]) == []
    assert names.endings(["a.one:8080", "a.two:8080"]) == []
    assert names.endings(["alone.example:8080"]) == []
    assert names.endings([f"b-{at}.zone-{at}:8080" for at in range(17)]) == []


def test_a_row_names_each_thing_once_by_its_full_name() -> None:
    found = names.named(load_sample(STORY), ["acme/orders", BUNDLE.rpartition("/")[2], "broker-03, broker-07", "cpu"])
    assert [(place.kind, place.name) for place in found] == [
        ("bundle", BUNDLE),
        ("broker", "broker-03.story.example:8080"),
        ("broker", "broker-07.story.example:8080"),
    ]


def test_a_namespace_alone_and_a_topic() -> None:
    found = names.named(load_sample(STORY), ["acme/orders", "persistent://acme/orders/topic-745", "nobody/knows"])
    assert [place.kind for place in found] == ["namespace", "topic"]


def test_tables_write_brokers_short_and_files_in_full(page: Page) -> None:
    test = page("overview", snapshot=STORY.digest[:12])
    (scores,) = [found.value for found in test.dataframe if "decided by" in found.value.columns]
    assert scores["broker"].tolist()[:2] == ["broker-14", "broker-10"]
    assert not any(".story.example" in str(text) for found in test.dataframe for text in found.value.to_numpy().flat)
    assert b"broker-14.story" in csv_bytes(pd.DataFrame({"broker": ["broker-14.story.example:8080"]}))


@pytest.mark.parametrize("name", ["overview", "what_if"])
def test_verdicts_and_titles_of_findings_write_brokers_short(page: Page, name: str) -> None:
    test = page(name, snapshot=STORY.digest[:12])
    said = [str(text.value) for text in [*test.markdown, *test.warning]] + [box.label for box in test.expander]
    assert any("broker-07 is above the threshold, but " in text for text in said)
    assert not [text for text in said if ".story.example" in text]


def test_a_long_namespace_does_not_hide_which_bundle_it_is(page: Page) -> None:
    page("overview", snapshot=STORY.digest[:12])
    long = f"tenant/{'a' * 80}-orders/{BUNDLE.rpartition('/')[2]}"
    found = names.shortened(pd.DataFrame({"bundle": [long, BUNDLE], "why": [long, BUNDLE]}))
    assert found["bundle"].tolist() == ["tenant/aaaa…a-orders/0x6a439f54_0x6f182692", BUNDLE]
    assert found["why"].tolist() == [long, BUNDLE]


def test_a_selection_lasts_as_long_as_the_rows_do() -> None:
    """What is told below a table is about a row that is still there."""
    rows = pd.DataFrame({"broker": ["a", "b"], "score": [1, 2]})
    assert _rows_of(rows) == _rows_of(rows.assign(score=[3, 4]))
    assert len({_rows_of(rows), _rows_of(rows[::-1]), _rows_of(rows[:1]), _rows_of(rows.assign(broker="c"))}) == 4


def test_the_answer_stands_behind_the_names_that_begin_a_row() -> None:
    events = pd.DataFrame(columns=["cycle", "what", "bundle", "from", "to", "MiB/s", "why"])
    assert _order(events) == ["cycle", "what", "bundle", "from", "to", "why", "MiB/s"]
    assert _order(pd.DataFrame(columns=["score", "why"])) == ["score", "why"]
    replayed = pd.DataFrame(columns=["cluster", "when (UTC)", "what", "from", "topics", "why"])
    assert _order(replayed) == ["cluster", "when (UTC)", "what", "from", "why", "topics"]
