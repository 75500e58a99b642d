"""A cluster that does not exist yet holds together as a real one does."""

from dataclasses import replace

import numpy as np
import pytest

from planner.cluster.errors import FormatError, SettingError
from planner.cluster.hashing import topic_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import parse_bundle
from planner.cluster.snapshot import Snapshot
from planner.explain.captured_settings import settings_warning
from planner.formats.validate import TABLES, validate
from planner.simulate.planned import plan_cluster
from planner.simulate.planned_spec import PlannedCluster, PlannedTopics, names_of

DEVICES = PlannedTopics(pattern="persistent://iot/home/dev-%06d", count=2_000, subscriptions=2, bundles=32)
ALERTS = PlannedTopics(pattern="persistent://iot/alerts/a-%d", count=30, msg_rate_per_s=600.0, bundles=8)
SPEC = PlannedCluster(brokers=4, topics=(DEVICES, ALERTS))


def planned(**changes: object) -> Snapshot:
    return plan_cluster(replace(SPEC, **changes))  # type: ignore[arg-type]


def test_nobody_is_asked_to_capture_what_does_not_exist() -> None:
    assert not settings_warning(planned().info)


@pytest.mark.parametrize("manager", list(LoadManager))
def test_topics_bundles_and_brokers_hold_together(manager: LoadManager) -> None:
    snapshot = planned(load_manager=manager)
    validate(snapshot, {part: part for part in ("info", "policies", *TABLES)})
    names = snapshot.topics.name.to_pylist()
    assert len(names) == 2_030
    assert {"persistent://iot/home/dev-000000", "persistent://iot/alerts/a-29"} <= set(names)
    hashes = topic_hashes((name.encode() for name in names), len(names))
    for name, at, place in zip(names, hashes.tolist(), snapshot.topics.bundle.tolist(), strict=True):
        namespace, low, high = parse_bundle(snapshot.bundle_names[place])
        assert f"://{namespace}/" in name
        assert low <= at < high
    assert snapshot.topics.msg_rate_in_per_s.sum() == pytest.approx(10_600)
    assert snapshot.bundles.msg_rate_in_per_s.sum() == pytest.approx(10_600)
    assert snapshot.brokers.msg_rate_in_per_s.sum() == pytest.approx(10_600)
    assert snapshot.brokers.msg_rate_out_per_s.sum() == pytest.approx(20_600)


def test_bundles_are_placed_as_pulsar_places_them_on_empty_brokers() -> None:
    """By numbers, because nothing is known of their load: no broker has many more than another."""
    snapshot = planned()
    loaded = snapshot.bundles.topics > 0
    assert ((snapshot.bundles.owner >= 0) == loaded).all()
    numbers = np.bincount(snapshot.bundles.owner[loaded], minlength=4)
    assert numbers.max() - numbers.min() <= 1
    assert snapshot.bundles.has_stats.tolist() == loaded.tolist()


def test_it_is_called_planned_and_says_what_it_assumes() -> None:
    snapshot = planned()
    assert snapshot.info.source == "Planned"
    assert "not a real cluster" in snapshot.info.description
    assert "No broker was measured" in snapshot.info.warnings[0]
    assert all(name.startswith("planned-") for name in snapshot.brokers.name)


def test_traffic_beyond_the_machines_is_said() -> None:
    assert len(planned().info.warnings) == 1
    heavy = replace(DEVICES, msg_rate_per_s=5e6)
    snapshot = planned(topics=(heavy,))
    assert "The traffic needs more than 4 of 4 brokers can serve" in snapshot.info.warnings[1]
    assert (snapshot.brokers.cpu_usage_percent <= snapshot.brokers.cpu_limit_percent).all()


def test_rates_spread_as_described() -> None:
    shares = []
    for distribution in ("equal", "skewed", "few carry most"):
        rates = planned(topics=(replace(DEVICES, distribution=distribution),)).topics.msg_rate_in_per_s
        shares.append(np.sort(rates)[-20:].sum() / rates.sum())
    assert shares[0] == pytest.approx(0.01)
    assert shares[0] < shares[1] < shares[2]


def test_the_same_description_gives_the_same_cluster() -> None:
    one, two = plan_cluster(SPEC, 3), plan_cluster(SPEC, 3)
    assert np.array_equal(one.bundles.owner, two.bundles.owner)
    assert np.array_equal(one.topics.msg_rate_in_per_s, two.topics.msg_rate_in_per_s)


def test_patterns() -> None:
    assert names_of(replace(DEVICES, count=2)) == [f"persistent://iot/home/dev-00000{at}" for at in range(2)]
    assert names_of(replace(DEVICES, pattern="persistent://a/b/one", count=1)) == ["persistent://a/b/one"]
    for pattern in (
        "persistent://a/b/none",
        "persistent://a/b/%d-%d",
        "persistent://a/b/%s",
        "persistent://a/b/100%-%d",
        "persistent://a/b/t-%6d",
    ):
        with pytest.raises(SettingError, match="place for the number"):
            names_of(replace(DEVICES, pattern=pattern))
    with pytest.raises(FormatError, match="not a topic name"):
        planned(topics=(replace(DEVICES, pattern="dev-%d"),))
    with pytest.raises(SettingError, match="same topic"):
        planned(topics=(DEVICES, DEVICES))


def test_groups_of_one_namespace_have_one_number_of_bundles() -> None:
    """The larger number counted without a word."""
    more = replace(DEVICES, pattern="persistent://iot/home/more-%d")
    assert len(planned(topics=(DEVICES, more)).bundles) == DEVICES.bundles
    with pytest.raises(SettingError, match="Two groups of iot/home have 32 and 8 bundles"):
        planned(topics=(DEVICES, replace(more, bundles=8)))


@pytest.mark.parametrize(
    ("field", "value"),
    [("brokers", 0), ("cores", 0), ("nic_gbit_per_s", -1), ("topics", ()), ("cluster", "a b"), ("memory_gib", 0)],
)
def test_what_cannot_be_planned_is_rejected(field: str, value: object) -> None:
    with pytest.raises(SettingError):
        planned(**{field: value})
