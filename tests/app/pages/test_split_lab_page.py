"""The Split lab: each algorithm, positions, refusals, links."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from pages.split_lab import read_positions
from planner.cluster.errors import SettingError
from planner.explain.split_advice import split_advice
from planner.pulsar.splitting.registry import split_algorithm
from planner.web import state
from planner.workspace.samples import load_sample, samples
from tests.app.pages.conftest import unlike_samples

Page = Callable[..., AppTest]


def digest(file: str) -> str:
    return next(s.digest for s in samples() if s.file == file)[:12]


def shown(test: AppTest) -> str:
    parts = [*test.markdown, *test.caption, *test.warning, *test.error, *test.code]
    return "\n".join(str(p.value) for p in parts)


CASES = [
    ("split-flow-or-qps.json", "", "0x00000000_0x1c800001"),
    ("split-topic-count.json", "", "0x00000000_0x4d000000"),
    ("split-range.json", "", "0x00000000_0x40000000"),
    ("split-range.json", "topic_count_equally_divide", "0x00000000_0x2e800000"),
]


@pytest.mark.parametrize(("file", "algorithm", "child"), CASES)
def test_children_are_those_of_the_algorithm(page: Page, file: str, algorithm: str, child: str) -> None:
    address = {"algorithm": algorithm} if algorithm else {}
    test = page("split_lab", snapshot=digest(file), bundle="0x00000000_0x80000000", **address)
    assert not test.exception
    assert not test.error
    frame = next(d.value for d in test.dataframe if "range" in d.value.columns)
    assert frame["range"].tolist()[1] == child
    assert frame["topics"].tolist()[0] == sum(frame["topics"].tolist()[1:]) == 6


def test_positions_of_a_link_and_of_the_form(page: Page) -> None:
    test = page(
        "split_lab",
        snapshot=digest("split-range.json"),
        bundle="0x00000000_0x80000000",
        algorithm="specified_positions_divide",
        positions="0x30000000",
    )
    assert "--split-boundaries 805306368" in shown(test)
    frame = next(d.value for d in test.dataframe if "range" in d.value.columns)
    assert frame["range"].tolist()[1:] == ["0x00000000_0x30000000", "0x30000000_0x80000000"]
    next(t for t in test.text_input if t.label == "Positions").set_value("nowhere").run()
    assert not test.exception
    assert "not a valid position in the hash space" in test.error[0].value


def test_refused_by_name_is_explained(page: Page) -> None:
    test = page(
        "split_lab",
        snapshot=digest("split-range.json"),
        bundle="0x00000000_0x80000000",
        algorithm="flow_or_qps_equally_divide",
    )
    assert "refuses the request" in shown(test)
    assert not test.exception


def test_a_limit_of_the_form_decides(page: Page) -> None:
    test = page("split_lab", snapshot=digest("split-flow-or-qps.json"), bundle="0x00000000_0x80000000")
    field = next(n for n in test.number_input if n.label.startswith("loadBalancerNamespaceBundleMaxMsgRate"))
    field.set_value(100_000).run()
    next(n for n in test.number_input if n.label.startswith("loadBalancerNamespaceBundleMaxBandwidth")).set_value(
        10_000
    ).run()
    assert "would not change, although the request succeeds" in shown(test)


def test_every_kind_of_sample_opens(page: Page) -> None:
    for sample in unlike_samples():
        test = page("split_lab", snapshot=sample.digest[:12])
        assert not test.exception, sample.file


def test_documented_examples_show_the_right_value(page: Page) -> None:
    test = page("split_lab", snapshot=digest("split-topic-count.json"), bundle="0x00000000_0x80000000")
    assert "the documentation says `0x50000000`; **Pulsar 4.2.4 splits at** `0x4d000000`" in shown(test)


@pytest.mark.parametrize(
    ("algorithm", "right"),
    [
        ("range_equally_divide", ["0x40000000"]),
        ("topic_count_equally_divide", ["0x4d000000"]),
        ("specified_positions_divide", ["0x33000000"]),
        (
            "flow_or_qps_equally_divide",
            ["0x1c800001 0x2e800001 0x48800001 0x67000001", "0x2e800001 0x67000001", "0x48800001"],
        ),
    ],
)
def test_examples_are_computed_as_the_release_does(algorithm: str, right: list[str]) -> None:
    found = split_algorithm(algorithm)
    assert [" ".join(f"0x{cut:08x}" for cut in one.computed(found)) for one in found.examples] == right
    assert all((one.documented == one.computed(found)) == (not one.why) for one in found.examples)


def test_a_word_stands_for_a_bundle(page: Page) -> None:
    test = page("split_lab", snapshot=digest("split-range.json"), bundle="LARGEST")
    assert "example/split/0x00000000_0x80000000 has 6 persistent topics, the most in its namespace" in shown(test)
    assert "--bundle-type LARGEST" in shown(test)


def test_height_of_the_topics_is_rate_or_throughput(page: Page) -> None:
    test = page("split_lab", snapshot=digest("split-range.json"), bundle="0x00000000_0x80000000", height="msg/s")
    assert not test.exception
    assert test.query_params["height"] == "msg/s"


def test_automatic_split_is_told_apart_from_the_request(page: Page) -> None:
    test = page("split_lab", snapshot=digest("split-range.json"), bundle="0x00000000_0x80000000")
    assert "**Automatic splits:** at the next check, Pulsar splits this bundle" in shown(test)
    field = next(n for n in test.number_input if n.label.startswith("loadBalancerNamespaceBundleMaxBandwidthMbytes"))
    field.set_value(1_000).run()
    assert "**Automatic splits:** at the next check, Pulsar does not split this bundle" in shown(test)
    assert "would be split (HTTP 204)" in shown(test)


@pytest.mark.parametrize("text", ["0xzz", "-1", "4294967296", "1 2 x", ",".join("1" * 300)])
def test_bad_positions_are_refused(text: str) -> None:
    with pytest.raises(SettingError):
        read_positions(text)


def test_positions_are_read_in_both_ways() -> None:
    assert read_positions(" 0x10, 16 17 ") == (16, 16, 17)
    assert read_positions("") == ()


def test_choices_one_after_the_other_all_count(page: Page) -> None:
    test = page("split_lab", snapshot=digest("split-topic-count.json"), bundle="0x00000000_0x80000000")
    for algorithm, said in (
        ("range_equally_divide", "cut at 0x40000000"),
        ("specified_positions_divide", "without a position"),
        ("topic_count_equally_divide", "cut at 0x4d000000"),
    ):
        next(s for s in test.selectbox if s.label == "Algorithm").set_value(algorithm).run()
        assert said in shown(test)
    for bundle in ("0x80000000_0xffffffff", "LARGEST", "0x00000000_0x80000000"):
        next(s for s in test.selectbox if s.label == "Bundle").set_value(bundle).run()
        assert test.query_params["bundle"] == bundle


def test_what_is_not_worth_it_is_never_recommended(page: Page) -> None:
    """Under *Not worth it*, it said to do this instead, with a command."""
    story = samples()[0]
    state.add_sample(story)
    snapshot = load_sample(story)
    config = snapshot.settings
    worst = sorted(range(len(snapshot.bundles)), key=lambda at: -snapshot.bundles.throughput_bytes_per_s()[at])[:40]
    vain = [at for at in worst if split_advice(snapshot, at, config).verdict == "Not worth it"]
    best = [at for at in vain if split_advice(snapshot, at, config).best is not None]
    assert best, "the story has bundles that can be split in vain"
    namespace, _, bundle = snapshot.bundle_names[best[0]].rpartition("/")
    for algorithm in ("range_equally_divide", "flow_or_qps_equally_divide", "topic_count_equally_divide"):
        test = page("split_lab", snapshot=story.digest[:12], namespace=namespace, bundle=bundle, algorithm=algorithm)
        assert not test.exception
        said = shown(test)
        assert "**Not worth it.**" in said
        assert "instead" not in said
        assert "No request is recommended: a split is not worth it." in said
        assert all("--split-boundaries" not in code.value for code in test.code)
