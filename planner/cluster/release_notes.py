"""What a person must know when a cluster is not decided by the rules of exactly its own release."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.cluster.names import LOAD_PLACEMENT_STRATEGY, LOAD_SHEDDING_STRATEGY
from planner.cluster.releases import NOT_RUN, RELEASES, Release, Switch, is_exact, is_newer, release
from planner.cluster.settings import Settings

_STRATEGIES = (LOAD_SHEDDING_STRATEGY, LOAD_PLACEMENT_STRATEGY)


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """The rules that not all releases have; `planner.pulsar.release_rules` lists them.

    Attributes:
        switches: Each of them, with the classes that follow it; none where it concerns all of them.
        absent: Which of them says that a release does not have a strategy, by the simple name of that.
        earlier: What is known of releases that are older than all known ones, by the release from which on it no longer
            applies.
    """

    switches: Mapping[Switch, tuple[type, ...]]
    absent: Mapping[str, Switch]
    earlier: Mapping[str, str]


def stands_in(version: str) -> str:
    """Return in words which release decides for a version that is not known exactly; empty for one that is."""
    own = release(version)
    if is_exact(version):
        return ""
    how = "the oldest release known" if _is_older(version) else "the nearest release known that is not newer"
    return f"{own.name}, {how}"


def _is_older(version: str) -> bool:
    """Say whether a version is older than every release that is known."""
    own = release(version)
    return own.name == RELEASES[0] and not is_newer(version, own.name)


def release_notes(version: str, config: Settings, rules: ReleaseRules) -> tuple[str, ...]:
    """Return what to say about a cluster and the release that decides for it; nothing when that is exactly its own.

    Args:
        version: Release that the cluster runs, as its snapshot names it.
        config: Settings in force, with the release that decides.
        rules: The rules that not all releases have.
    """
    decides, own = config.release, release(version)
    shown = f"Pulsar {version[:50]}" if version else "an unknown version of Pulsar"
    notes: list[str] = []
    if own != decides:
        notes += (
            f"The cluster runs {shown}. Decisions follow the rules and defaults of {decides.name}.",
            *_differences(own, decides, rules),
        )
    elif not is_exact(version):
        newer = RELEASES[RELEASES.index(own.name) + 1 :]
        notes.append(f"The cluster runs {shown}. Decisions follow the rules and defaults of {stands_in(version)}.")
        notes += (
            ("Any result may differ.", *(said for until, said in rules.earlier.items() if is_newer(until, version)))
            if _is_older(version)
            else [
                f"May no longer apply in {version[:50]}: {one}" for one in _differences(own, release(newer[0]), rules)
            ]
        )
    if decides.name in NOT_RUN:
        notes.append(f"{decides.name}: {NOT_RUN[decides.name]}")
    chosen = {config.text(name).rpartition(".")[2] for name in _STRATEGIES}
    for name, absent in rules.absent.items():
        if decides.has(absent) and name in chosen:
            notes.append(f"{decides.name}: {absent.meaning}")
    notes += ignored_note(config, config.without_effect)
    return tuple(notes)


def ignored_note(config: Settings, names: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence about those of some settings that are set and that the release does not have; none for none."""
    ignored = sorted(set(config.without_effect).intersection(names))
    return (f"These settings have no effect in Pulsar {config.release.name}: {', '.join(ignored)}.",) if ignored else ()


def _differences(one: Release, other: Release, known: ReleaseRules) -> list[str]:
    """Return a sentence about each thing that two releases do differently."""
    rules = [rule_sentence(switch, one, other) for switch in differing(one, other, known)]
    defaults = [
        f"{name} is {mine.default} by default in {one.name} and {other.settings[name].default} in {other.name}."
        for name, mine in one.settings.items()
        if name in other.settings and mine.default != other.settings[name].default
    ]
    return [*rules, *defaults]


def differing(one: Release, other: Release, rules: ReleaseRules) -> tuple[Switch, ...]:
    """Return the rules that one of two releases has and the other one has not."""
    return tuple(switch for switch in rules.switches if one.has(switch) != other.has(switch))


def rule_sentence(switch: Switch, one: Release, other: Release) -> str:
    """Say which of two releases has a rule that only one of them has."""
    return f"Only in {(one if one.has(switch) else other).name}: {switch.meaning}"
