"""The four split algorithms: the documented examples as the code computes them, and what always holds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import PulsarError, SettingError
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.releases import REFERENCE
from planner.cluster.settings import Settings
from planner.pulsar.splitting.protocol import SplitAnswer, SplitRequest
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS, default_split_algorithm, split_algorithm

MIB = 1024 * 1024

# The Concepts page: t1 to t6 in [0x00000000, 0x80000000), 100 to 600 msg/s and 10 to 60 MiB/s.
CONCEPTS_HASHES = [0x10000000, 0x15000000, 0x24000000, 0x39000000, 0x58000000, 0x76000000]
CONCEPTS_RATES = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
CONCEPTS_MIB = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]


def request(
    hashes: Sequence[int] | None,
    rates: Sequence[float] = (),
    mib: Sequence[float] = (),
    ends: tuple[int, int] = (0, 0x80000000),
    **extra: Any,
) -> SplitRequest:
    size = 0 if hashes is None else len(hashes)
    return SplitRequest(
        low=ends[0],
        high=ends[1],
        topic_hashes=None if hashes is None else np.array(hashes, dtype=np.int64),
        has_stats=np.ones(size, dtype=np.bool_) if len(rates) else np.zeros(size, dtype=np.bool_),
        msg_rate_per_s=np.array(rates or [0.0] * size),
        throughput_bytes_per_s=np.array(mib or [0.0] * size) * MIB,
        **extra,
    )


def ask(name: str, given: SplitRequest, **config: Any) -> SplitAnswer:
    return split_algorithm(name).boundaries(given, Settings(config))


def flow(rate: int, mib: int, given: SplitRequest | None = None, percent: int = 10) -> tuple[int, ...] | None:
    return ask(
        "flow_or_qps_equally_divide",
        given or request(CONCEPTS_HASHES, CONCEPTS_RATES, CONCEPTS_MIB),
        loadBalancerNamespaceBundleMaxMsgRate=rate,
        loadBalancerNamespaceBundleMaxBandwidthMbytes=mib,
        flowOrQpsDifferenceThresholdPercentage=percent,
    ).boundaries


class TestConceptsPage:
    """Its examples, with the page's own positions where they differ."""

    def test_range(self) -> None:
        assert ask("range_equally_divide", request(CONCEPTS_HASHES)).boundaries == (0x40000000,)  # as the page

    def test_topic_count(self) -> None:
        hashes = [0x10000000, 0x20000000, 0x35000000, 0x65000000, 0x70000000, 0x75000000]
        assert ask("topic_count_equally_divide", request(hashes)).boundaries == (0x4D000000,)  # page: 0x50000000

    def test_topic_count_of_the_blog(self) -> None:
        hashes = [0x00, 0x05, 0x10, 0x15, 0x20, 0x25]
        assert ask("topic_count_equally_divide", request(hashes, ends=(0, 0x30))).boundaries == (0x12,)

    def test_specified(self) -> None:
        answer = ask("specified_positions_divide", request([1, 2], ends=(0, 0x40000000), positions=(0x33000000,)))
        assert answer.boundaries == (0x33000000,)  # as the page

    def test_rate_decides(self) -> None:
        # Page: 0x19500000, 0x31500000, 0x48500000 and 0x67000000, as four splits one after the other.
        assert flow(450, 200) == (0x1C800001, 0x2E800001, 0x48800001, 0x67000001)

    def test_bandwidth_decides(self) -> None:
        assert flow(1900, 90) == (0x2E800001, 0x67000001)  # page: 0x31500000, 0x67000000

    def test_equal_to_the_limit_is_within_it(self) -> None:
        assert flow(1100, 110) == (0x48800001,)  # t5 and t6 have 1100 together; page: 0x48500000

    def test_ten_percent_on_top_are_let_pass(self) -> None:
        assert flow(1909, 1000) == (0x67000001,)  # 2100 is not below 2099.9
        assert flow(1910, 1000) is None  # 2100 < 2101


class TestRange:
    def test_last_bundle_ends_at_the_last_hash(self) -> None:
        assert ask("range_equally_divide", request([], ends=(0, FULL_HIGH))).boundaries == (0x7FFFFFFF,)
        assert ask("range_equally_divide", request([], ends=(0x80000000, FULL_HIGH))).boundaries == (0xBFFFFFFF,)

    def test_topics_do_not_matter(self) -> None:
        assert ask("range_equally_divide", request(None)).boundaries == (0x40000000,)


class TestTopicCount:
    @pytest.mark.parametrize("hashes", [None, [], [7]])
    def test_fewer_than_two_topics(self, hashes: list[int] | None) -> None:
        assert ask("topic_count_equally_divide", request(hashes)).boundaries is None

    def test_odd_number_puts_the_smaller_half_left(self) -> None:
        (cut,) = ask("topic_count_equally_divide", request([50, 10, 30])).boundaries or ()
        assert cut == 20

    def test_colliding_topics_count_each(self) -> None:
        assert ask("topic_count_equally_divide", request([10, 10, 10, 40])).boundaries == (10,)

    @given(st.lists(st.integers(0, FULL_HIGH), min_size=2, max_size=40, unique=True))
    def test_parts_distinct_topics_evenly(self, hashes: list[int]) -> None:
        (cut,) = ask("topic_count_equally_divide", request(hashes, ends=(0, FULL_HIGH))).boundaries or ()
        left = sum(h < cut for h in hashes)
        # The middle of two neighbours is the lower one, which then goes right.
        assert left in {len(hashes) // 2, len(hashes) // 2 - 1}


class TestSpecifiedPositions:
    @pytest.mark.parametrize("force", [False, True])
    @pytest.mark.parametrize("positions", [None, ()])
    def test_positions_are_needed(self, positions: tuple[int, ...] | None, *, force: bool) -> None:
        with pytest.raises(PulsarError) as caught:
            ask("specified_positions_divide", request([1, 2], positions=positions, force=force))
        assert caught.value.exception == "IllegalArgumentException"

    def test_sorted_and_strictly_inside(self) -> None:
        answer = ask(
            "specified_positions_divide", request([1, 2], ends=(10, 20), positions=(19, 10, 11, 20, -3, 15, 15))
        )
        assert answer.boundaries == (11, 15, 15, 19)
        assert [reason.code.acts for reason in answer.reasons] == [False, False, True, True, True, True, False]

    def test_nothing_inside(self) -> None:
        assert ask("specified_positions_divide", request([1, 2], ends=(10, 20), positions=(10, 20))).boundaries is None

    def test_two_topics_unless_forced(self) -> None:
        for hashes in (None, [], [12]):
            assert ask("specified_positions_divide", request(hashes, positions=(15,))).boundaries is None
            assert ask("specified_positions_divide", request(hashes, positions=(15,), force=True)).boundaries == (15,)


class TestFlowOrQps:
    def test_unknown_or_idle_topics_do_not_count(self) -> None:
        assert flow(1, 1, request([10, 20])) is None
        assert flow(1, 1, request([10, 20, 30], [5.0, 0.0, 0.0], [1.0, 0.0, 0.0])) is None
        assert flow(1, 1, request([10, 20, 30], [5.0, 0.0, 5.0], [1.0, 0.0, 1.0])) == (21,)

    def test_neighbours_are_parted(self) -> None:
        assert flow(5, 100, request([10, 11], [4.0, 4.0], [0.0, 0.0])) == (11,)

    def test_a_topic_above_the_limit_stays_alone(self) -> None:
        assert flow(10, 100, request([10, 20, 30], [1.0, 500.0, 1.0], [0.0, 0.0, 0.0])) == (16, 26)

    def test_colliding_topics_carry_the_last_ones_traffic_twice(self) -> None:
        assert flow(10, 100, request([10, 10, 20], [1.0, 9.0, 1.0], [0.0, 0.0, 0.0]), percent=0) == (11,)
        assert flow(10, 100, request([10, 10, 20], [9.0, 1.0, 1.0], [0.0, 0.0, 0.0]), percent=0) == ()

    def test_bandwidth_limit_does_not_overflow(self) -> None:
        assert flow(10**6, 2048, request([10, 20], [1.0, 1.0], [1.0, 1.0])) is None

    @given(
        st.lists(
            st.tuples(st.integers(0, FULL_HIGH), st.floats(0, 1000), st.floats(0, 1000)),
            min_size=2,
            max_size=30,
            unique_by=lambda row: row[0],
        ),
        st.integers(1, 2000),
        st.integers(1, 2000),
    )
    def test_pieces_stay_within_the_limits(self, topics: list[tuple[int, float, float]], rate: int, mib: int) -> None:
        hashes, rates, throughputs = (list(column) for column in zip(*topics, strict=True))
        cuts = flow(rate, mib, request(hashes, rates, throughputs, ends=(0, FULL_HIGH)))
        if cuts is None:
            return
        assert list(cuts) == sorted(set(cuts))
        piece = np.searchsorted(cuts, hashes, side="right")
        for at in range(len(cuts) + 1):
            inside = np.flatnonzero((piece == at) & ((np.array(rates) > 0) | (np.array(throughputs) > 0)))
            assert len(inside)
            # One topic alone may exceed a limit; several never do, but for the rounding of their sum.
            if len(inside) > 1:
                assert sum(rates[i] for i in inside) <= rate * (1 + 1e-12)
                assert sum(throughputs[i] for i in inside) <= mib * (1 + 1e-12)


class TestRegistry:
    def test_names_are_those_pulsar_supports(self) -> None:
        names = tuple(algorithm.name for algorithm in SPLIT_ALGORITHMS)
        assert names == REFERENCE.settings["supportedNamespaceBundleSplitAlgorithms"].default

    def test_unknown_name_tells_the_nearest(self) -> None:
        with pytest.raises(SettingError, match="range_equally_divide"):
            split_algorithm("range-equally-devide")

    def test_unknown_default_falls_back(self) -> None:
        assert default_split_algorithm("none_such").name == "range_equally_divide"
        assert default_split_algorithm("topic_count_equally_divide").name == "topic_count_equally_divide"

    @pytest.mark.parametrize("algorithm", SPLIT_ALGORITHMS, ids=lambda a: a.name)
    def test_settings_are_real_and_summaries_written(self, algorithm: Any) -> None:
        assert set(algorithm.settings) <= set(REFERENCE.settings)
        assert algorithm.summary.endswith(".")
        assert algorithm.java_class.endswith("BundleSplitAlgorithm")

    @pytest.mark.parametrize("algorithm", SPLIT_ALGORITHMS, ids=lambda a: a.name)
    @given(
        st.lists(st.integers(0, FULL_HIGH), max_size=8) | st.none(),
        st.floats(0, 1e6),
        st.lists(st.integers(-5, FULL_HIGH + 5), min_size=1, max_size=3),
    )
    def test_every_answer_says_why(
        self, algorithm: Any, hashes: list[int] | None, rate: float, positions: list[int]
    ) -> None:
        size = len(hashes or ())
        given = request(hashes, [rate] * size, [rate] * size, ends=(0, FULL_HIGH), positions=tuple(positions))
        answer = algorithm.boundaries(given, Settings())
        assert answer.reasons
        assert all(reason.code.code.startswith(f"{algorithm.name}.") and reason.text for reason in answer.reasons)
        assert sum(reason.code.acts for reason in answer.reasons) == len(answer.boundaries or ())
