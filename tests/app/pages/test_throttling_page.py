"""The Throttling page: the chain, edits, the timeline, brokers, links."""

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.throttling import duration, rate_text
from planner.cluster.errors import SettingError
from planner.cluster.snapshot import DispatchRate
from planner.explain.cluster_patterns import throttled
from planner.explain.outcome import Outcome
from planner.pulsar.throttling.precedence import Level, Source
from planner.share.link import decode_link, encode_link
from planner.simulate.dispatch.caps import dispatch_caps, dispatched
from planner.simulate.edits.set_dispatch_rate import SetDispatchRate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.web import registry, state
from planner.web.throttling_form import read_edit, written_edit
from planner.workspace.samples import load_sample, samples
from tests.app.pages.conftest import unlike_samples

Page = Callable[..., AppTest]


def digest(file: str) -> str:
    return next(s.digest for s in samples() if s.file == file)[:12]


def shown(test: AppTest) -> str:
    parts = [*test.markdown, *test.caption, *test.warning, *test.error, *test.code, *test.info]
    return "\n".join(str(p.value) for p in parts)


def frame(test: AppTest, column: str) -> Any:
    return next(d.value for d in test.dataframe if column in d.value.columns)


def real(page: Page, **address: str) -> AppTest:
    return page("throttling", snapshot=digest("real-modular.json"), **address)


def test_limits_of_a_real_cluster_are_in_force(page: Page) -> None:
    test = real(page, topic="persistent://acme/orders/unknown")
    assert not test.exception
    assert not test.error
    text = shown(test)
    assert "**topic**: 5,000 messages and 8,388,608 bytes in 1 s, by the namespace policy" in text
    assert "**subscription**: 2,000 messages in 1 s" in text
    chain = frame(test, "why")
    assert chain["in force"].sum() == 2
    assert "does not list this topic" in text


def test_a_topic_with_a_limit_is_offered_first(page: Page) -> None:
    test = real(page)
    assert not test.exception
    chosen = str(test.selectbox[1].value)
    assert chosen.startswith(("persistent://acme/orders/", "persistent://acme/clicks/"))
    assert frame(test, "scenario")["scenario"].tolist() == ["Current", "Without limits"]


def test_consumers_of_a_cluster_in_balance_keep_up(page: Page) -> None:
    """Six consumers at 5,000 msg/s each were taken for too slow for 32,100 msg/s that they do consume."""
    test = page("throttling", snapshot=digest("story.zip"))
    assert not test.exception
    rows = frame(test, "scenario").set_index("scenario")
    assert rows["backlog"].tolist() == ["no backlog remains"] * len(rows)
    assert "This demand reaches no limit." in shown(test)
    slow = page("throttling", snapshot=digest("story.zip"), speed="5000")
    assert frame(slow, "scenario")["limited by"].tolist() == ["consumers"] * len(rows)
    assert "the consumers are slower than the publishers." in shown(slow)


def test_an_edit_of_a_link_wins_and_gives_the_command(page: Page) -> None:
    topic = "persistent://acme/orders/some"
    address = {"topic": topic, "limit-topic": "topic:10:-1:1:0", "publish": "100", "backlog": "3000", "batch": "3"}
    test = real(page, **address)
    assert not test.exception
    assert not test.error
    text = shown(test)
    assert f"pulsar-admin topicPolicies set-dispatch-rate {topic} --msg-dispatch-rate 10" in text
    rows = frame(test, "scenario").set_index("scenario")
    assert rows.index.tolist() == ["Current", "Edited", "Without limits"]
    assert rows.loc["Edited", "delivered msg/s"] == pytest.approx(10, abs=0.6)
    assert rows.loc["Edited", "backlog"].startswith("backlog grows")
    least, mean, most = rows.loc["Edited", ["minimum in 1 s (MiB/s)", "delivered MiB/s", "maximum in 1 s (MiB/s)"]]
    assert least < mean < most  # a batch of 3 lets more through, and then less
    assert "Limited by" in text
    assert rows.loc["Edited", "highest excess in 1 s (msg)"] == 20
    assert rows.loc["Current", "backlog"].startswith("backlog drains in")
    assert "Limited by topic (messages)" in text


def test_an_edit_in_the_form_goes_into_the_address(page: Page) -> None:
    test = real(page, topic="persistent://acme/audit/some")
    place = next(s for s in test.selectbox if s.label == "Set the limit of the topic as")
    place.set_value("namespace policy").run()
    next(n for n in test.number_input if n.label == "Messages").set_value(77).run()
    assert not test.exception
    assert test.query_params["limit-topic"] == "namespace:77:-1:1:0"
    assert "pulsar-admin namespaces set-dispatch-rate acme/audit --msg-dispatch-rate 77" in shown(test)


def test_partitions_multiply_the_quota(page: Page) -> None:
    test = real(page, **{"topic": "persistent://acme/audit/p", "limit-topic": "topic:10:-1:1:0", "partitions": "4"})
    assert "for each of 4 partitions, 40 msg/s in total" in shown(test)


def test_settings_of_a_link_and_what_needs_a_restart(page: Page) -> None:
    switches = {"dispatchThrottlingOnNonBacklogConsumerEnabled": "False", "dispatchThrottlingForFilteredEntries": "x"}
    test = real(page, dispatchThrottlingRateInByte="1000", cacheEvictionByExpectedReadCount="False", **switches)
    assert not test.exception
    text = shown(test)
    assert "--config dispatchThrottlingRateInByte --value 1000" in text
    assert "cacheEvictionByExpectedReadCount=False" in text or "cacheEvictionByExpectedReadCount=false" in text
    off = real(page, dispatchThrottlingOnNonBacklogConsumerEnabled="False")
    assert "No subscription with consumers is throttled" in shown(off)


def test_brokers_add_up(page: Page) -> None:
    brokers = frame(real(page), "possible / bandwidth")
    assert len(brokers) == 3
    assert (brokers["topics with a limit"] <= brokers["topics"]).all()
    assert brokers["topics with a limit"].sum() > 0
    assert (brokers["possible / bandwidth"] > 0).all()


def test_documentation_is_played(page: Page) -> None:
    played = frame(real(page), "documented").set_index("example")
    assert played.loc["30 of 10 delivered", "delivered, second by second"] == "30, 0, 0, 30, 0, 0"
    assert played.loc["11 of 10 delivered", "limit remaining before"].startswith("10, 9")


BAD = [
    {"topic": "nothing"},
    {"publish": "many"},
    {"publish": "nan"},
    {"backlog": "-1"},
    {"limit-topic": "topic:1:1"},
    {"limit-topic": "global-named:1:1:1:0"},
    {"limit-topic": "topic:99999999999:1:1:0"},
    {"dispatcherMaxReadBatchSize": "0"},
    {"dispatchRateLimiterFactoryClassName": "com.example.Mine"},
]


@pytest.mark.parametrize("address", BAD)
def test_bad_links_are_said_so(page: Page, address: dict[str, str]) -> None:
    test = real(page, **address)
    assert not test.exception
    assert test.error or test.warning


def test_every_kind_of_sample_opens(page: Page) -> None:
    for sample in unlike_samples():
        test = page("throttling", snapshot=sample.digest[:12])
        assert not test.exception, sample.file
        assert not test.error, sample.file


def test_nothing_to_look_at(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.web.state.samples", lambda: ())
    monkeypatch.setattr("planner.web.page.samples", lambda: ())
    test = page("throttling")
    assert not test.exception
    assert "No snapshot yet" in shown(test)


def test_edits_are_written_and_read() -> None:
    for place in (Source.LOCAL_TOPIC, Source.GLOBAL_TOPIC, Source.NAMESPACE):
        rate = DispatchRate(5, 6, 7, relative_to_publish_rate=True)
        assert read_edit(written_edit(place, rate), Level.TOPIC) == (place, rate)
    with pytest.raises(SettingError):
        read_edit("named:1:1:1:0", Level.TOPIC)


def test_texts() -> None:
    assert [duration(s) for s in (9, 250, 11_100, 10**6)] == ["9 s", "4 min 10 s", "3 h 5 min", "11 days"]
    assert rate_text(None) == "not set"
    assert rate_text(DispatchRate(0, -1)) == "no limit"
    assert rate_text(DispatchRate(1, 2000, 3, relative_to_publish_rate=True)) == (
        "1 message and 2,000 bytes in 3 s, added to the publish rate"
    )


def test_limits_go_into_the_scenario(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(registry, "go", opened.append)
    test = real(page, **{"topic": "persistent://acme/audit/p", "limit-topic": "namespace:77:-1:1:0"})
    next(b for b in test.button if b.label == "Add to the scenario").click().run()
    assert not test.exception
    scenario = decode_link(test.query_params["scenario"]).scenario
    assert scenario is not None
    assert scenario.edits == (SetDispatchRate(target="acme/audit", msg_per_period=77),)
    assert opened == ["what_if"]


def test_every_subscription_asked_for_is_taken(page: Page) -> None:
    test = real(page)
    for name in ("audit", "billing", "copy"):
        next(box for box in test.text_input if box.label == "Subscription").set_value(name).run()
        assert test.query_params["subscription"] == name


def test_a_link_that_asks_for_long_work_waits_for_a_click(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.module("throttling"), "_ASKED_FROM_S", 0.5)
    test = real(page, topic="persistent://acme/orders/some", partitions="200", subscriptions="20", seconds="100")
    assert not test.exception
    assert "200 partitions with 20 subscriptions for 100 s, 2 times" in "".join(info.value for info in test.info)
    assert not [d for d in test.dataframe if "scenario" in d.value.columns]
    next(b for b in test.button if b.label == "Run").click().run(timeout=120)
    assert not test.exception
    assert frame(test, "scenario")["scenario"].tolist() == ["Current", "Without limits"]


def test_a_scenario_on_a_release_without_a_switch(page: Page) -> None:
    with_all = next(s.digest for s in samples() if s.file == "real-modular.json")
    test = real(page, scenario=encode_link(Scenario(pulsar_version="3.0.7"), with_all))
    assert not test.exception
    assert "cacheEvictionByExpectedReadCount" not in shown(test)


@pytest.fixture(scope="module")
def throttled_topic() -> str:
    """The topic that the finding about throttling names first on the story."""
    case = Outcome(simulate(load_sample(samples()[0]), Scenario()))
    (found,) = throttled(case)
    assert f"{found.topics[0]}: " in found.evidence
    return found.topics[0]


@pytest.mark.parametrize("way", ["by the link of the finding", "without a link"])
def test_it_opens_on_the_partition_that_the_finding_names(page: Page, throttled_topic: str, way: str) -> None:
    """It took the partitions as equal, supposed a backlog of two million, and said that no limit binds."""
    state.add_sample(samples()[0])
    test = page("throttling", snapshot=digest("story.zip"), **({"topic": throttled_topic} if "by" in way else {}))
    assert not test.exception
    topic = next(box for box in test.selectbox if box.label == "Topic")
    assert topic.value == throttled_topic
    snapshot = load_sample(samples()[0])
    row = snapshot.topics.name.to_pylist().index(throttled_topic)
    numbers = {one.label: one.value for one in test.number_input}
    assert numbers["Published (msg/s, all partitions)"] == pytest.approx(
        snapshot.topics.msg_rate_in_per_s[row], rel=1e-3
    )
    assert (numbers["Partitions"], numbers["Backlog (messages)"]) == (1, 0)
    said = shown(test).replace("\\", "")
    now = dispatched(snapshot, dispatch_caps(snapshot), row)
    assert f"**At its limit, or close to it:** {throttled_topic} dispatches {now}." in said
    assert "of the topic's messages" in said


def test_a_whole_topic_names_its_busiest_partition(page: Page, throttled_topic: str) -> None:
    state.add_sample(samples()[0])
    base = throttled_topic.partition("-partition-")[0]
    said = shown(page("throttling", snapshot=digest("story.zip"), topic=base)).replace("\\", "")
    assert f"{throttled_topic} has " in said
    assert "choose that partition for its own rates" in said
