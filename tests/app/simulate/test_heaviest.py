"""Which bundles a modular leader writes to the metadata store where it may not write all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.tables import TRAFFIC_COLUMNS, make_bundles
from planner.simulate.leader_averages import TERMS, LeaderAverages

_LOAD = st.tuples(*(st.integers(0, 3) for _ in range(8)), st.booleans())


@given(st.lists(_LOAD, min_size=2, max_size=12), st.data())
def test_the_busiest_in_steps_and_of_equal_ones_the_last(loads: list[tuple[int, ...]], data: st.DataObject) -> None:
    among = np.array([bool(load[8]) for load in loads])
    most = data.draw(st.integers(1, max(1, int(among.sum()) - 1)))
    if most >= among.sum():
        return
    steps = (100.0, 100.0, 1e5, 1e5) * 2  # 100 msg/s, and 100 kB/s
    names = [term + name for term in TERMS for name in TRAFFIC_COLUMNS]
    columns = {name: [load[at] * steps[at] for load in loads] for at, name in enumerate(names)}
    size = len(loads)
    bundles = make_bundles(range(size), high=range(1, size + 1), namespace=[0] * size, **columns)

    def key(at: int) -> tuple[int, ...]:
        short, long = loads[at][:4], loads[at][4:8]
        return short[2], short[3], short[0] + short[1], long[2], long[3], long[0] + long[1], at

    chosen = LeaderAverages(bundles).heaviest(among, most)
    right = sorted(np.flatnonzero(among).tolist(), key=key, reverse=True)[:most]
    assert np.flatnonzero(chosen).tolist() == sorted(right)
