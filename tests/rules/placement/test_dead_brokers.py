"""What was promised to a broker that left is forgotten, and its bundles are served by others."""

from dataclasses import replace

import numpy as np

from planner.pulsar.placement.least_long_term_message_rate import Preallocated
from planner.pulsar.placement.modular import ModularMemory, least_loaded, with_active_brokers
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate


def test_a_promise_to_a_dead_broker_is_no_answer() -> None:
    cluster = generate(ClusterSpec(brokers=3, bundles=12, topics=24), seed=1)
    names, bundles = cluster.brokers.name, cluster.bundle_names
    kept = {bundles[1]: names[1]}
    memory = ModularMemory(
        Preallocated(), promised={bundles[0]: names[0], **kept}, preallocated={bundles[0]: names[0], **kept}
    )
    alive = cluster.brokers.registered & (np.arange(3) != 0)
    gone = cluster.with_columns(brokers=replace(cluster.brokers, registered=alive))
    after = with_active_brokers(memory, gone)
    assert after.promised == after.preallocated == kept
    selected = least_loaded(gone, bundles[0], after, cluster.settings, seed=0)[1].decision.selected
    assert selected in names[1:]
    assert with_active_brokers(memory, cluster) == memory
