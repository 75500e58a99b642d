"""The shedding strategies there are."""

import difflib

from planner.cluster.errors import SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_SHEDDING_STRATEGY
from planner.cluster.releases import Release
from planner.pulsar.shedding import avg, overload, threshold, transfer, uniform
from planner.pulsar.shedding.protocol import Shedder

SHEDDERS: tuple[Shedder, ...] = (
    threshold.SHEDDER,
    overload.SHEDDER,
    uniform.SHEDDER,
    avg.SHEDDER,
    transfer.SHEDDER,
)
"""Every strategy; the default of Pulsar 4.2.4 first."""


def default_shedder(load_manager: LoadManager) -> Shedder:
    """Return the strategy that a load manager runs when it is given none of its own."""
    return next(shedder for shedder in SHEDDERS if shedder.load_manager is load_manager)


def fallback_shedder(load_manager: LoadManager) -> Shedder:
    """Return the strategy that a load manager runs when it cannot load the class that it is given.

    Mirrors `ModularLoadManagerImpl.createLoadSheddingStrategy` up to 3.3 and
    `UnloadScheduler.createNamespaceUnloadStrategy`; what newer releases do is in `planner.pulsar.manager.class_names`.
    """
    return overload.SHEDDER if load_manager is LoadManager.MODULAR else default_shedder(load_manager)


def has_shedder(release: Release, shedder: Shedder) -> bool:
    """Return whether a release has a strategy."""
    absent = shedder.profile.absent
    return absent is None or not release.has(absent)


def offered_shedders(load_manager: LoadManager, release: Release) -> tuple[Shedder, ...]:
    """Return the strategies that a cluster can change to by its settings alone.

    A strategy of the other load manager takes a migration, and is not among them; nor is one that the release lacks.
    """
    return tuple(one for one in SHEDDERS if one.load_manager is load_manager and has_shedder(release, one))


def shedder_of_state(state: object) -> Shedder:
    """Return the strategy whose state something is.

    Raises:
        SettingError: It is none.
    """
    for shedder in SHEDDERS:
        if type(shedder.initial()) is type(state):
            return shedder
    raise SettingError(f"{type(state).__name__} is not the state of a shedding strategy.")


def shedder_by_name(name: str) -> Shedder:
    """Return a strategy by its simple or full Java class name.

    Raises:
        SettingError: There is no such strategy; the nearest is named.
    """
    simple = name.rsplit(".", 1)[-1]
    for shedder in SHEDDERS:
        if simple == shedder.name:
            return shedder
    near = difflib.get_close_matches(simple, [s.name for s in SHEDDERS], n=1, cutoff=0.0)
    raise SettingError(
        f"'{name}' is not a shedding strategy of Pulsar 4.2.4.",
        where=LOAD_SHEDDING_STRATEGY,
        remedy=f"Did you mean {near[0]}?",
    )
