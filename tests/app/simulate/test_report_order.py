"""The order of reported bundles that is kept up to date is the one that a snapshot works out."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster import Cluster
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

_DONE = ["split", "recut", "add", "move", "report", "join", "leave"]
_START = generate(ClusterSpec(brokers=3, bundles=90, topics=300, namespaces=2, ownership_skew=0.9), seed=4)


@given(st.lists(st.tuples(st.sampled_from(_DONE), st.integers(0, 10**6)), max_size=14))
def test_it_is_that_of_each_view(steps: list[tuple[str, int]]) -> None:
    cluster = Cluster(_START, Assumptions(), _START.info.load_manager, _START.settings)
    now = _START.info.captured_at_ms
    for what, number in steps:
        now += 60_000
        at = number % len(cluster.names)
        broker = number % len(cluster.brokers)
        low, high = int(cluster.traffic.low[at]), int(cluster.traffic.high[at])
        if what == "split" and high - low > 4:
            cluster.split(at, [(low + high) // 2])
        elif what == "recut":
            cluster.recut(_START.namespaces[number % 2], 1 + number % 40)
        elif what == "move":
            cluster.release(at)
            cluster.serve(at, broker)
        elif what == "add":
            cluster.add_namespace(f"added/{len(cluster.names)}-{now}", 1 + number % 20, _START.namespaces[0])
        elif what == "join":
            cluster.join([f"joined-{len(cluster.brokers)}:8080"], 4, 1, now)
        elif what == "leave":
            cluster.leave(broker)
        else:
            cluster.report(np.array([broker]), now)
        if number % 3:
            view = cluster.leader_view.view(now)
            assert "reported" in vars(view)
            np.testing.assert_array_equal(view.reported, replace(view).reported)
