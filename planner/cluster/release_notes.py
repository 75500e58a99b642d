"""What a person must know when a cluster is not decided by the rules of exactly its own release."""

from collections.abc import Mapping

from planner.cluster.internal_namespaces import MONITORS_REPORTED, SLA_OF_CLUSTER, SYSTEM_STAYS
from planner.cluster.names import LOAD_PLACEMENT_STRATEGY, LOAD_SHEDDING_STRATEGY
from planner.cluster.releases import NOT_RUN, RELEASES, Release, Switch, is_exact, is_newer, release
from planner.cluster.settings import Settings
from planner.cluster.topic_names import FOUR_PARTS
from planner.pulsar.load.top_bundles import IDLE_BUNDLES, ROUGH_ORDER
from planner.pulsar.load.usage import UNWEIGHTED
from planner.pulsar.placement.avg import BOUND_BY_NAME, PLANNED_DESTINATIONS, UNPAIRED, AvgPlacement
from planner.pulsar.placement.least_long_term_message_rate import LeastLongTermMessageRate
from planner.pulsar.shedding.avg import ABSENT, WHOLE_POINTS, AvgShedder
from planner.pulsar.shedding.overload import OverloadShedder
from planner.pulsar.shedding.threshold import ThresholdShedder
from planner.pulsar.shedding.transfer import ALONE, TransferShedder
from planner.pulsar.shedding.uniform import LARGER_FITS, ONE_PAIR, UniformLoadShedder
from planner.pulsar.throttling.async_token_bucket import OVERFLOWS

SWITCHES: Mapping[Switch, tuple[type, ...]] = {
    LARGER_FITS: (UniformLoadShedder,),
    ONE_PAIR: (UniformLoadShedder,),
    UNWEIGHTED: (OverloadShedder, LeastLongTermMessageRate),
    WHOLE_POINTS: (AvgShedder,),
    ABSENT: (AvgShedder, AvgPlacement),
    BOUND_BY_NAME: (AvgPlacement,),
    PLANNED_DESTINATIONS: (AvgShedder, AvgPlacement),
    UNPAIRED: (AvgPlacement,),
    SLA_OF_CLUSTER: (),
    SYSTEM_STAYS: (OverloadShedder, ThresholdShedder, UniformLoadShedder),
    MONITORS_REPORTED: (TransferShedder,),
    ALONE: (TransferShedder,),
    IDLE_BUNDLES: (TransferShedder,),
    ROUGH_ORDER: (TransferShedder,),
    OVERFLOWS: (),
    FOUR_PARTS: (),
}
"""Every rule that not all releases have, with the strategies that follow it; none where it concerns all of them."""

_STRATEGIES = (LOAD_SHEDDING_STRATEGY, LOAD_PLACEMENT_STRATEGY)


def release_notes(version: str, config: Settings) -> tuple[str, ...]:
    """Return what to say about a cluster and the release that decides for it; nothing when that is exactly its own.

    Args:
        version: Release that the cluster runs, as its snapshot names it.
        config: Settings in force, with the release that decides.
    """
    decides, own = config.release, release(version)
    shown = f"Pulsar {version[:50]}" if version else "an unknown version of Pulsar"
    notes: list[str] = []
    if own != decides:
        notes += (
            f"The cluster runs {shown}. Decisions follow the rules and defaults of {decides.name}.",
            *_differences(own, decides),
        )
    elif not is_exact(version):
        newer = RELEASES[RELEASES.index(own.name) + 1 :]
        oldest = own.name == RELEASES[0] and not is_newer(version, own.name)
        how = "the oldest release known" if oldest else "the nearest release known that is not newer"
        notes.append(f"The cluster runs {shown}. Decisions follow the rules and defaults of {own.name}, {how}.")
        notes += (
            ("Any result may differ.",)
            if oldest
            else [f"May no longer apply in {version[:50]}: {one}" for one in _differences(own, release(newer[0]))]
        )
    if decides.name in NOT_RUN:
        notes.append(f"{decides.name}: {NOT_RUN[decides.name]}")
    chosen = {config.text(name).rpartition(".")[2] for name in _STRATEGIES}
    if decides.has(ABSENT) and AvgShedder.name in chosen:
        notes.append(f"{decides.name}: {ABSENT.meaning}")
    if config.without_effect:
        notes.append(f"These settings have no effect in Pulsar {decides.name}: {', '.join(config.without_effect)}.")
    return tuple(notes)


def _differences(one: Release, other: Release) -> list[str]:
    """Return a sentence about each thing that two releases do differently."""
    rules = [rule_sentence(switch, one, other) for switch in differing(one, other)]
    defaults = [
        f"{name} is {mine.default} by default in {one.name} and {other.settings[name].default} in {other.name}."
        for name, mine in one.settings.items()
        if name in other.settings and mine.default != other.settings[name].default
    ]
    return [*rules, *defaults]


def differing(one: Release, other: Release) -> tuple[Switch, ...]:
    """Return the rules that one of two releases has and the other one has not."""
    return tuple(switch for switch in SWITCHES if one.has(switch) != other.has(switch))


def rule_sentence(switch: Switch, one: Release, other: Release) -> str:
    """Say which of two releases has a rule that only one of them has."""
    return f"Only in {(one if one.has(switch) else other).name}: {switch.meaning}"
