"""How far a plan has been carried out, by a later capture of the same cluster."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

from planner.cluster.errors import ScenarioError
from planner.cluster.ranges import format_range, parse_bundle
from planner.cluster.setting import conf_value
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import MS_PER_MIN
from planner.share.commands import changed_settings, final_moves, planned_splits, setting_changes
from planner.share.owners import Owners
from planner.simulate.trace import Trace

State: TypeAlias = Literal["done", "left", "elsewhere", "gone"]
"""What became of a step: as planned; not begun; neither as before nor as planned; what it is about is not there."""

STATES: Final[Mapping[State, str]] = {
    "done": "done",
    "left": "still to do",
    "elsewhere": "diverged",
    "gone": "gone",
}
"""The words for each."""

_SOME: Final = 3


@dataclass(frozen=True, slots=True)
class Followed:
    """What became of one step of a plan.

    Attributes:
        kind: What the step does.
        name: Setting or bundle.
        wanted: Value or broker of the plan; the new boundaries of a split.
        state: What became of it.
        found: What the later capture has in its place.
    """

    kind: Literal["setting", "split", "move"]
    name: str
    wanted: str
    state: State
    found: str


@dataclass(frozen=True)
class Following:
    """A plan beside a later capture.

    Attributes:
        steps: The steps in the order of the plan: settings, splits, moves.
        strayed: Bundles that the plan leaves alone and that another broker serves now: name, broker then, broker now.
        minutes: Time between the two captures, minutes.
    """

    steps: tuple[Followed, ...]
    strayed: tuple[tuple[str, str, str], ...]
    minutes: float

    @cached_property
    def counts(self) -> Mapping[State, int]:
        """Steps of each state."""
        return Counter(step.state for step in self.steps)

    @property
    def sentence(self) -> str:
        """The whole in a sentence."""
        if not self.steps:
            return "This plan has no step that a capture can show."
        if self.counts["done"] == len(self.steps):
            return f"The plan is complete: {count(len(self.steps), 'step')} done."
        parts = [f"{self.counts[state]:,} {words}" for state, words in STATES.items() if self.counts[state]]
        return f"Of {count(len(self.steps), 'step')}: {', '.join(parts)}."

    @property
    def advice(self) -> str:
        """What to do now; empty when nothing is to be done."""
        if self.counts["elsewhere"] or self.counts["gone"]:
            return (
                "The cluster has changed since this plan was made. Plan again from the later capture; "
                "the script of this plan skips bundles that have moved."
            )
        return "Run the script of the plan again: it skips the steps that are done." if self.counts["left"] else ""


def new_brokers(trace: Trace, later: Snapshot) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the brokers that a plan adds, by their names in it, and those that only the later capture has."""
    before = set(trace.start.brokers.name)
    added = tuple(name for name in trace.end.brokers.name if name not in before)
    return added, tuple(name for name in later.brokers.name if name not in before)


def real_names(pairs: Sequence[str]) -> dict[str, str]:
    """Read real broker ids by their names in a plan, each written as `NAME=ID`.

    Raises:
        ScenarioError: One has no `=`.
    """
    parts = [pair.partition("=") for pair in pairs]
    for name, sign, real in parts:
        if not (name and sign and real):
            raise ScenarioError(
                f"'{name}{sign}{real}' does not name a broker.",
                remedy="Write NAME-IN-THE-PLAN=ID, as in added-1:8080=b7:8080.",
            )
    return {name: real for name, _, real in parts}


def follow(trace: Trace, later: Snapshot, names: Mapping[str, str] | None = None) -> Following:
    """Compare a plan with a later capture.

    Args:
        trace: The simulation that the plan is made of.
        later: A capture of the same cluster, after `trace.start`.
        names: Real broker ids by the names of brokers that the plan adds, where these differ.

    Raises:
        ScenarioError: The later capture is of another cluster, or is not later.
    """
    minutes = (later.info.captured_at_ms - trace.start.info.captured_at_ms) / MS_PER_MIN
    if later.info.cluster != trace.start.info.cluster:
        raise ScenarioError(
            f"The plan is for the cluster {trace.start.info.cluster}, but the capture is of {later.info.cluster}.",
            remedy="Choose a capture of the same cluster.",
        )
    if minutes <= 0:
        raise ScenarioError(
            "The capture is not later than the one that the plan is based on.", remedy="Choose a later capture."
        )
    owners, real = Owners(later), dict(names or {})
    moves = {move.bundle: move for move in final_moves(trace)}
    steps: list[Followed] = []
    managers = later.info.load_manager, trace.scenario.load_manager_over(trace.start)
    missing = setting_changes(later.settings, trace.settings, managers)
    for name, (before, after) in changed_settings(trace).items():
        found = missing.get(name, (after, after))[0]
        state: State = "done" if name not in missing else "left" if found == before else "elsewhere"
        steps.append(Followed("setting", name, conf_value(after) or "not set", state, conf_value(found) or "not set"))
    steps += [_split(event.bundle, event.children, owners) for event in planned_splits(trace)]
    for move in moves.values():
        wanted = real.get(move.destination, move.destination)
        steps.append(_move(move.bundle, move.source, wanted, owners))
    return Following(tuple(steps), tuple(_strayed(trace, later, set(moves))), minutes)


def _split(bundle: str, children: tuple[str, ...], owners: Owners) -> Followed:
    namespace, low, _ = parse_bundle(bundle)
    cuts = sorted({parse_bundle(child)[1] for child in children} - {low})
    wanted = ", ".join(f"0x{cut:08x}" for cut in cuts)
    begins = set(owners.boundaries(namespace))
    if not begins:
        return Followed("split", bundle, wanted, "gone", "the namespace does not exist")
    made = [cut for cut in cuts if cut in begins]
    if len(made) == len(cuts):
        return Followed("split", bundle, wanted, "done", "split as planned")
    over = owners.over(bundle)
    whole = len(over) == 1
    parts = ", ".join(format_range(low, high) for low, high, _ in over[:_SOME])
    found = "not split" if whole else f"{len(over):,} parts: {parts}{', …' if len(over) > _SOME else ''}"
    return Followed("split", bundle, wanted, "left" if whole or made else "elsewhere", found)


def _move(bundle: str, source: str, wanted: str, owners: Owners) -> Followed:
    _, low, high = parse_bundle(bundle)
    over = owners.over(bundle)
    if not over:
        return Followed("move", bundle, wanted, "gone", "the namespace does not exist")
    brokers = sorted({broker for _, _, broker in over})
    found = ", ".join(broker or "no owner" for broker in brokers[:_SOME])
    uncut = len(over) == 1 and (over[0][0] < low or over[0][1] > high)
    if uncut:
        found = f"{found}, as part of {format_range(*over[0][:2])}"
    elif len(over) > 1:
        found = f"{found}, in {len(over):,} parts"
    state: State = "left" if brokers == [source] else "done" if brokers == [wanted] and not uncut else "elsewhere"
    return Followed("move", bundle, wanted, state, found)


def _strayed(trace: Trace, later: Snapshot, planned: set[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the bundles of both captures that the plan does not touch and that another broker serves."""
    start = trace.start
    before = dict(zip(start.bundle_names, start.bundles.owner.tolist(), strict=True))
    then, now = (*start.brokers.name, ""), (*later.brokers.name, "")
    for name, owner in zip(later.bundle_names, later.bundles.owner.tolist(), strict=True):
        if name in before and name not in planned and now[owner] != then[before[name]]:
            yield name, then[before[name]], now[owner]
