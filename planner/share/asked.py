"""What a person asked for in a simulation, apart from what the load balancer does by itself.

A script holds shedding and automatic splits while it runs. So what is asked for is what the same edits come to while
both are held: drains, moves, splits, brokers that join, leave or restart, and settings. What only the load balancer
adds is a preview: it happens, or not, without anybody's command.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from planner.cluster.ranges import parse_bundle
from planner.cluster.relocation import Relocation
from planner.cluster.snapshot import Snapshot
from planner.cluster.switches import HELD_SWITCHES
from planner.cluster.text import count
from planner.explain.split_advice import split_advice
from planner.share.commands import changed_settings, commanded_moves, final_moves, planned_splits
from planner.simulate.event import Event
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.simulate.trace import Trace

NOT_WORTH_IT: Final = "Not worth it"


@dataclass(frozen=True, eq=False, slots=True)
class Asked:
    """A simulation divided into what was asked for and what the load balancer adds.

    Attributes:
        whole: The simulation, with everything that happens in it.
        trace: What was asked for, as a simulation with shedding and automatic splits held; its settings are those of
            the whole one.
        moves: Moves that only the load balancer makes, one for each bundle, from where it was to where it ends.
        splits: Splits that only the load balancer makes, in order.
    """

    whole: Trace
    trace: Trace
    moves: tuple[Relocation, ...]
    splits: tuple[Event, ...]

    @property
    def nothing(self) -> bool:
        """Whether nothing was asked for: no edit counts and no setting changes."""
        return not self.whole.scenario.edits and not changed_settings(self.whole)

    @property
    def sentence(self) -> str:
        """What is asked for and what is a preview, in one or two sentences."""
        moves, splits = len(commanded_moves(self.trace)), len(planned_splits(self.trace))
        wanted = [count(moves, "move")] if moves else []
        wanted += [count(splits, "split")] if splits else []
        settings = len(changed_settings(self.trace))
        wanted += [count(settings, "setting")] if settings else []
        said = f"You asked for {_listed(wanted)}." if wanted else "Your edits need no command that moves a bundle."
        if self.nothing:
            said = "You asked for nothing here: this scenario has no edits and no changed settings."
        own = [f"moves {count(len(self.moves), 'bundle')}"] if self.moves else []
        own += [f"makes {count(len(self.splits), 'split')}"] if self.splits else []
        return f"{said} Pulsar itself {_listed(own)}." if own else said

    @property
    def followed(self) -> Trace:
        """The simulation whose steps a later capture is compared with: those asked for, or all where none were."""
        return self.whole if self.nothing else self.trace

    def commanded(self, *, everything: bool) -> Trace:
        """Return the simulation whose steps a script carries out: what was asked for, or everything."""
        return self.whole if everything else self.trace


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def quiet(scenario: Scenario) -> Scenario:
    """Return a scenario in which shedding and automatic splits are held, as while a script runs."""
    return replace(scenario, settings={**scenario.settings, **dict.fromkeys(HELD_SWITCHES, False)})


def asked_of(whole: Trace, held: Trace | None = None) -> Asked:
    """Divide a simulation into what was asked for and what the load balancer adds.

    Args:
        whole: The simulation.
        held: The simulation of the `quiet` scenario over the same snapshot, where the caller has it; simulated here
            otherwise. Not needed for a scenario without edits.
    """
    if not whole.scenario.edits:
        trace = replace(whole, cycles=(), end=whole.start, end_demand=None)
    else:
        found = held or simulate(whole.start, quiet(replace(whole.scenario, cycles=max(len(whole.cycles), 1))))
        notes = tuple(dict.fromkeys((*whole.notes, *found.notes)))
        trace = replace(found, scenario=whole.scenario, settings=whole.settings, notes=notes)
    places = {(move.bundle, move.destination) for move in final_moves(trace)}
    cuts = {(event.bundle, event.children) for event in planned_splits(trace)}
    moves = tuple(one for one in final_moves(whole) if (one.bundle, one.destination) not in places)
    splits = tuple(one for one in planned_splits(whole) if (one.bundle, one.children) not in cuts)
    return Asked(whole, trace, moves, splits)


def advised_against(trace: Trace) -> dict[str, str]:
    """Return the splits of a plan that Split lab advises against: its sentence, by bundle.

    A child of a bundle that is not worth splitting is no better; one that the start does not have is judged as that
    bundle.
    """
    return dict(_advised_against(trace.start, planned_splits(trace), trace))


def _advised_against(start: Snapshot, splits: tuple[Event, ...], trace: Trace) -> Iterator[tuple[str, str]]:
    judged: dict[int, str] = {}
    for event in splits:
        row = _row_of(start, event.bundle)
        if row < 0:
            continue
        if row not in judged:
            advice = split_advice(start, row, trace.settings)
            judged[row] = advice.sentence if advice.verdict == NOT_WORTH_IT else ""
        if judged[row]:
            yield event.bundle, judged[row]


def _row_of(start: Snapshot, bundle: str) -> int:
    """Return the bundle of the start that a bundle is, or is cut from; -1 for none."""
    row = start.bundle_position.get(bundle, -1)
    if row >= 0:
        return row
    namespace, low, high = parse_bundle(bundle)
    place = start.namespaces.index(namespace) if namespace in start.namespaces else -1
    table = start.bundles
    over = (table.namespace == place) & (table.low <= low) & (table.high >= high)
    rows = over.nonzero()[0]
    return int(rows[0]) if len(rows) else -1
