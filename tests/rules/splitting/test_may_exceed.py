"""Which bundles a leader need not look at: those whose rates stay below every limit whatever is averaged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.settings import Settings
from planner.pulsar.splitting.limits import DIVISIBLE_TOPICS, SplitLoads, limits_of

rates = st.floats(0, 1e9) | st.sampled_from([30_000.0, 30_000.000001, np.nan, np.inf])


@given(st.integers(0, 2_000), st.integers(0, 2_000), rates, rates, st.sampled_from([0, 2_048, 100]))
def test_what_exceeds_a_limit_may_exceed_it(topics: int, sessions: int, rate: float, size: float, mib: int) -> None:
    config = Settings({"loadBalancerNamespaceBundleMaxBandwidthMbytes": mib})
    columns = (np.array([topics]), np.array([sessions]), np.array([rate]), np.array([size]))
    loads = SplitLoads(*columns, limits_of(config))
    if loads.exceeded()[0] and topics >= DIVISIBLE_TOPICS:
        assert loads.may_exceed(1e-9)[0]
    elif topics < DIVISIBLE_TOPICS:
        assert not loads.may_exceed(1e-9)[0]


def test_a_rate_just_below_its_limit_may_exceed_it() -> None:
    limits = limits_of(Settings({}))
    for below, expected in ((1e-10, True), (1e-6, False)):
        rate = np.array([limits[2] * (1 - below)])
        loads = SplitLoads(np.array([2]), np.array([0]), rate, np.zeros(1), limits)
        assert not loads.exceeded()[0]
        assert loads.may_exceed(1e-9)[0] == expected
