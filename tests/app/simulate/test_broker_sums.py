"""Sums by broker, of which only those are worked out again that changed."""

import numpy as np

from planner.simulate.load_model import BrokerSums, broker_sums


def test_sums_are_those_of_all_bundles_to_the_last_bit() -> None:
    draw = np.random.default_rng(3)
    load, owner = draw.random((5, 300)), draw.integers(-1, 8, 300)
    kept = BrokerSums(slice(1, 4))
    for step in range(30):
        owner = owner.copy()
        owner[draw.integers(0, 300, step % 4)] = draw.integers(-1, 8)
        if step % 10 == 9:
            load = draw.random((5, 300))
        brokers = 8 + step // 7
        expected = broker_sums(load[1:4], owner, brokers)
        assert kept.of(load, owner, brokers).tobytes() == expected.tobytes()
