"""What keeps a cluster from running on another release: names that it refuses, and classes that it cannot load."""

from collections.abc import Iterator
from typing import Final

from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_MANAGER_CLASS_NAME, LOAD_PLACEMENT_STRATEGY, LOAD_SHEDDING_STRATEGY
from planner.cluster.releases import Switch
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.topic_names import FOUR_PARTS, is_namespace_with_cluster
from planner.explain.finding import listed
from planner.pulsar.manager.class_names import REPLACED, STARTS_SIMPLE, class_name

_NEEDS_CLASS: Final[dict[str, Switch]] = {
    LOAD_SHEDDING_STRATEGY: REPLACED,
    LOAD_PLACEMENT_STRATEGY: STARTS_SIMPLE,
    LOAD_MANAGER_CLASS_NAME: STARTS_SIMPLE,
}
"""Settings that name a class, and the rule of releases that start without it."""


def namespaces_with_cluster(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the namespaces of users named `tenant/cluster/namespace`, which Pulsar served up to 4.1."""
    own = snapshot.settings.release
    return tuple(
        name
        for name in snapshot.namespaces
        if is_namespace_with_cluster(name) and not is_heartbeat_or_sla_namespace(name, own)
    )


def blockers(snapshot: Snapshot, now: Settings, then: Settings) -> Iterator[str]:
    """Yield what has to be changed before a cluster can run on another release, one sentence or two each."""
    old = namespaces_with_cluster(snapshot)
    if old and now.release.has(FOUR_PARTS) and not then.release.has(FOUR_PARTS):
        yield (
            f"{count(len(old), 'namespace')} of the form tenant/cluster/namespace ({listed(old)}): Pulsar"
            f" {then.release.name} refuses the names of {'its' if len(old) == 1 else 'their'} topics, so that no client"
            " reaches them. Move their data to a namespace tenant/namespace first."
        )
    for setting, without in _NEEDS_CLASS.items():
        if setting not in then or (
            setting == LOAD_PLACEMENT_STRATEGY and snapshot.info.load_manager is LoadManager.EXTENSIBLE
        ):
            continue
        given = class_name(setting, then.text(setting))
        extensible = setting == LOAD_SHEDDING_STRATEGY and snapshot.info.load_manager is LoadManager.EXTENSIBLE
        if given.kind == "missing" and given.given.strip() and not extensible and not then.release.has(without):
            yield (
                f"{setting} is {given.given}, a class that Pulsar cannot load: a broker of {then.release.name} does not"
                f" start with it. Set it to {given.like} first."
            )
