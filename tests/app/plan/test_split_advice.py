"""Whether a split is worth it, and by which algorithm."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import make_topics
from planner.explain.split_advice import SplitAdvice, split_advice
from planner.pulsar.splitting.manual import Verdict
from tests.app.simulate.traces import MB, cluster

SPECIFIED = "specified_positions_divide"


def with_topics(snapshot: Snapshot, mib_per_s: Sequence[float], hashes: Sequence[int] = ()) -> Snapshot:
    """Topics of the first bundle, spread over its hashes; the bundle carries what they do."""
    low, high = int(snapshot.bundles.low[0]), int(snapshot.bundles.high[0])
    places = list(hashes) or np.linspace(low, high - 1, len(mib_per_s) + 2).astype(int)[1:-1].tolist()
    sizes = np.array(mib_per_s, dtype=np.float64) * MB
    topics = make_topics(
        np.array(places, dtype=np.uint32),
        name=pa.array([f"persistent://t/n/topic-{at}" for at in range(len(places))], pa.large_string()),
        bundle=np.zeros(len(places), np.int32),
        msg_throughput_in_bytes_per_s=sizes / 2,
        msg_throughput_out_bytes_per_s=sizes / 2,
        msg_rate_in_per_s=sizes / MB * 10,
        has_stats=True,
    )
    counts = snapshot.bundles.topics.copy()
    counts[:] = 0
    counts[0] = len(places)
    bundles = replace(snapshot.bundles, topics=counts)
    return replace(snapshot, topics=topics, bundles=bundles)


def advice(snapshot: Snapshot, **settings: int) -> SplitAdvice:
    return split_advice(snapshot, 0, snapshot.settings.changed(**settings))


def big(load_manager: LoadManager = LoadManager.MODULAR) -> Snapshot:
    """A broker with one bundle of 150 MiB/s and two small ones."""
    return cluster([0.9, 0.1], {0: (150.0, 10.0, 10.0), 1: (5.0,)}, load_manager=load_manager)


def test_a_bundle_above_a_limit_that_can_be_divided() -> None:
    found = advice(with_topics(big(), [25.0] * 6))
    assert found.verdict == "Worth it"
    assert "150 MiB/s (loadBalancerNamespaceBundleMaxBandwidthMbytes is 100)" in found.sentence
    assert found.best is not None
    assert found.best.largest == 0.5


def test_a_bundle_that_is_most_of_its_broker() -> None:
    found = advice(with_topics(big(), [25.0] * 6), **big_limits())
    assert (found.verdict, "88 % of the traffic of its broker" in found.sentence) == ("Worth it", True)


def big_limits() -> dict[str, int]:
    return {
        f"loadBalancerNamespaceBundleMax{what}": 10**6 for what in ("BandwidthMbytes", "MsgRate", "Topics", "Sessions")
    }


def test_a_small_bundle_needs_none() -> None:
    snapshot = cluster([0.5, 0.1], {0: (10.0, 40.0, 40.0), 1: (5.0,)})
    found = advice(with_topics(snapshot, [2.0] * 5), **big_limits())
    assert found.verdict == "No need"


@pytest.mark.parametrize("sizes", [[150.0], [140.0, 2.0, 3.0, 5.0]])
def test_one_topic_has_it_all(sizes: list[float]) -> None:
    found = advice(with_topics(big(), sizes))
    assert found.verdict == "Not worth it"
    assert "topic-0" in found.sentence
    assert "partitions" in found.sentence


def test_without_topics_nothing_is_known() -> None:
    found = advice(big())
    assert found.verdict == "Not known"
    assert "lists no topics" in found.sentence


def test_what_pulsar_refuses_stands_last_and_is_never_the_best() -> None:
    snapshot = with_topics(big(LoadManager.EXTENSIBLE), [25.0] * 6)
    found = advice(snapshot)
    verdicts = {option.algorithm: option.verdict for option in found.options}
    assert verdicts["flow_or_qps_equally_divide"] is Verdict.REFUSED
    assert found.options[-1].algorithm == "flow_or_qps_equally_divide"
    assert found.options[-1].why
    assert found.best is not None
    assert found.best.verdict is Verdict.SPLIT


@given(
    st.lists(
        st.tuples(st.integers(1, FULL_HIGH - 2), st.floats(0, 100)), min_size=2, max_size=12, unique_by=lambda t: t[0]
    )
)
def test_no_single_cut_is_better_than_the_one_proposed(topics: list[tuple[int, float]]) -> None:
    whole = cluster([0.9, 0.1], {0: (150.0,)})
    sizes = [size for _, size in topics]
    snapshot = with_topics(whole, sizes, [place for place, _ in topics])
    found = {option.algorithm: option for option in advice(snapshot).options}
    ordered = [size for _, size in sorted(topics)]
    total = sum(ordered)
    if total <= 0:
        assert all(np.isnan(option.largest) for option in found.values())
        return
    least = min(max(sum(ordered[:at]), sum(ordered[at:])) for at in range(1, len(ordered))) / total
    assert found[SPECIFIED].largest == pytest.approx(least)
    one_cut = [option.largest for option in found.values() if len(option.cuts) == 1]
    assert min(one_cut) >= least - 1e-9
