"""Which bundles the load manager of a cluster splits by itself at its next check."""

from planner.cluster.decisions import SplitDecision
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import AUTO_BUNDLE_SPLIT_ENABLED, LOAD_BALANCER_ENABLED
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.splitting import automatic_extensible, automatic_modular


def next_splits(snapshot: Snapshot, config: Settings) -> SplitDecision:
    """Decide the next automatic splits as a leader (modular) or brokers (extensible) that have no counters yet."""
    if snapshot.info.load_manager is LoadManager.MODULAR:
        return automatic_modular.decide_cycle(snapshot, config)
    if not config.flag(LOAD_BALANCER_ENABLED) or not config.flag(AUTO_BUNDLE_SPLIT_ENABLED):
        return SplitDecision((), ())
    return automatic_extensible.decide_all(snapshot, {}, config)[1]
