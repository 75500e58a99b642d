"""Whether a scenario is worse than doing nothing, at its end or on the way."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.cluster.errors import ScenarioError
from planner.cluster.names import AUTO_BUNDLE_SPLIT_ENABLED, SHEDDING_ENABLED
from planner.simulate.demand import demand
from planner.simulate.judge import Result, Verdict, judge, judge_overload
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, unchanged
from planner.simulate.trace import Trace

_STILL: Final = {SHEDDING_ENABLED: False, AUTO_BUNDLE_SPLIT_ENABLED: False}


@dataclass(frozen=True, slots=True)
class Gate:
    """A scenario beside doing nothing.

    Attributes:
        compared_with: What it is compared with: doing nothing, or for a scenario in which a person decided nothing the
            cluster without shedding and splits.
        nothing: The result of that, while what only happens (traffic, brokers that die) happens all the same.
        verdict: What the judge says of the scenario compared with that.
        objections: What speaks against it, one sentence each; none when nothing does.
        planned: Whether a person decided something in the scenario.
    """

    compared_with: str
    nothing: Result
    verdict: Verdict
    objections: tuple[str, ...]
    planned: bool

    @property
    def headline(self) -> str:
        """What is worse than what, as a sentence; empty where nothing speaks against it."""
        which = "This plan" if self.planned else "What Pulsar does by itself"
        return f"{which} is worse than {self.compared_with}." if self.objections else ""


def doing_nothing(trace: Trace) -> Scenario:
    """Return the scenario without what a person decided: settings and edits go, what only happens stays."""
    own = trace.scenario
    steps = tuple(step for step in own.steps if step.on and step.edit.happens)
    release = trace.start.settings.release.name
    return replace(
        unchanged(release, seed=own.seed, cycles=own.cycles), name="", steps=steps, assumptions=own.assumptions
    )


def changes_nothing(trace: Trace) -> bool:
    """Say whether a person decided nothing in a scenario."""
    own = trace.scenario
    bare = replace(own, name="", steps=tuple(step for step in own.steps if step.on))
    return bare == doing_nothing(trace)


def gate(trace: Trace, result: Result) -> Gate:
    """Judge a simulation against doing nothing, which is simulated.

    A scenario that empties a broker or recreates a namespace disconnects topics on purpose: only overload speaks
    against it.

    Args:
        trace: The simulation, of at least one cycle.
        result: Its result.
    """
    still = changes_nothing(trace)
    nothing = Result.of(_idle(trace, still=still))
    compared_with = "shedding and splits switched off" if still else "doing nothing"
    on_purpose = any(edit.emptied() or edit.recreated() for edit in trace.scenario.edits if not edit.happens)
    verdict = (judge_overload if on_purpose else judge)(nothing, result)
    if verdict.word != "worse":
        return Gate(compared_with, nothing, verdict, (), planned=not still)
    said = verdict.text.removeprefix("Worse: ")
    sentences = [f"{said[:1].upper()}{said[1:]}"]
    if way := _on_the_way(trace):
        sentences.append(way)
    return Gate(compared_with, nothing, verdict, tuple(sentences), planned=not still)


def _idle(trace: Trace, *, still: bool) -> Trace:
    idle = replace(doing_nothing(trace), settings=_STILL) if still else doing_nothing(trace)
    try:
        return simulate(trace.start, idle)
    except ScenarioError:  # it happens to what the person made first, such as a broker that was added
        return simulate(trace.start, idle.with_steps(*(s for s in idle.steps if not getattr(s.edit, "target", "-"))))


def _on_the_way(trace: Trace) -> str:
    """Name the broker that is highest above the limit after the first moves, and in which cycles; empty for none."""
    found = demand(trace)
    usage = found.usage
    if not usage.size or usage.max() <= found.limit:
        return ""
    at, broker = np.unravel_index(int(usage.argmax()), usage.shape)
    over = usage[:, broker] > found.limit
    first = last = int(at)
    while first > 0 and over[first - 1]:
        first -= 1
    while last + 1 < len(over) and over[last + 1]:
        last += 1
    ends = last + 1 == len(over)
    if first == last:
        when = "at the end" if ends else f"in cycle {first + 2}"
    else:
        when = f"from cycle {first + 2} to the end" if ends else f"in cycles {first + 2} to {last + 2}"
    on = found.brokers[int(broker)]
    return f"{on} is at {usage.max() * 100:.0f} % {when}; the limit is {found.limit * 100:.0f} %."
