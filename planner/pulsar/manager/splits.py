"""Which bundles the load manager of a cluster splits by itself at its next check."""

from planner.cluster.decisions import SplitDecision
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import AUTO_BUNDLE_SPLIT_ENABLED, LOAD_BALANCER_ENABLED
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.splitting import automatic_extensible, automatic_modular


def splits_are_on(config: Settings) -> bool:
    """Say whether settings let a load manager split bundles by itself.

    Without `loadBalancerEnabled` no broker reports its load, so the leader of the modular one has nothing to split.
    """
    return config.flag(LOAD_BALANCER_ENABLED) and config.flag(AUTO_BUNDLE_SPLIT_ENABLED)


def splits_by_itself(snapshot: Snapshot, config: Settings) -> bool:
    """Say whether the load manager of a cluster splits bundles: it is on, and the modular one knows two brokers."""
    modular = snapshot.info.load_manager is LoadManager.MODULAR
    return splits_are_on(config) and not (modular and int(snapshot.brokers.has_load_data.sum()) < 2)  # noqa: PLR2004


def next_splits(snapshot: Snapshot, config: Settings) -> SplitDecision:
    """Decide the next automatic splits as a leader (modular) or brokers (extensible) that have no counters yet."""
    modular = snapshot.info.load_manager is LoadManager.MODULAR
    if modular and config.flag(LOAD_BALANCER_ENABLED):
        return automatic_modular.decide_cycle(snapshot, config)
    if modular or not splits_are_on(config):
        return SplitDecision((), ())
    return automatic_extensible.decide_all(snapshot, {}, config)[1]
