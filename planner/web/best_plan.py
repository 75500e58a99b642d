"""Best plans of the snapshot in view, each worked out once for all sessions, and the sentence other pages show."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count as count_up

import numpy as np
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.names import SHEDDING_INTERVAL_MINUTES
from planner.cluster.text import percent
from planner.explain.doubt import may_be_untrue
from planner.optimize.absorb import left_by, on_its_edits, surviving
from planner.optimize.answer import best_plan, peak_without_groups
from planner.optimize.offer import Offer, offer_of, with_alternative
from planner.optimize.plan import Plan, better_of, lowest
from planner.optimize.question import Question
from planner.optimize.search import Step
from planner.optimize.waves import WAVE_CLIENTS, Wave, scenario_of, waves_of
from planner.share.carry_out import headline
from planner.simulate.scenario import MOST_STEPS, Scenario
from planner.simulate.usage_model import settled
from planner.web import scenario_history, simulations, state, tasks
from planner.web.doubts import doubt
from planner.web.session import SessionValue
from planner.web.task import Progress, Report, Stopped, Work
from planner.web.tasks import ANSWERS, Newest

AT_ONCE_BUNDLES = 20_000
"""Most bundles for which a page prepares an answer ahead."""

USUAL = Question(splits=5)
"""The page's first question, except for the number of moves."""

_SETTLED = " settled"
"""End of the variant of a cluster after the cycles of a scenario."""
_FIRST_ROUNDS = 2
_PROVEN_PERCENT = 0.2
"""Gap to the bound from which on nothing better is looked for."""
_REPORT_EVERY = 200
_STOPPED: SessionValue[str] = SessionValue("best_plan_stopped", str)
_SEARCHED: SessionValue[frozenset[str]] = SessionValue("best_plan_searched", frozenset)
"""Keys of the searches that the page shows."""


def _key(view: state.Current, question: Question) -> str:
    return f"{view.digest}{view.variant}{question!r}"


def _edited(view: state.Current) -> str:
    return f"{view.variant} edited"


def _offered(plan: Plan, *, untrue: bool) -> str:
    return f"offer {plan.digest()}{plan.question!r}{' untrue' if untrue else ''}"


def _further(view: state.Current, question: Question) -> str:
    return f"further {_key(view, question)}"


def start_of(view: state.Current, *, after_cycles: bool = False) -> state.Current | None:
    """Return the view of the cluster that plans start from; None while it is computed, which is said.

    It is the snapshot, or with a scenario the snapshot with its edits: before the load balancer has run any cycle, or
    after those of the scenario.

    Raises:
        PlannerError: An edit does not fit the cluster.
    """
    if view.outcome is None:
        return view
    trace = view.outcome.trace
    if after_cycles:
        end = view.outcome.once("start of a plan", lambda: settled(trace))
        return replace(view, visible=end, variant=f"{view.variant}{_SETTLED}")
    variant = _edited(view)
    key, words = f"start {view.digest}{variant}", "Making the edits of the scenario"
    start = tasks.answer(key, lambda _, stopped: left_by(view.captured, trace.scenario, stopped), words)
    return None if start is None else replace(view, visible=start, variant=variant)


def first_of(view: state.Current, question: Question) -> Plan | None:
    """Return the answer that is found soon; None while it is looked for, which is said.

    Raises:
        PlannerError: It has none.
    """
    first = replace(question, rounds=_FIRST_ROUNDS)

    def look(_: Report, stopped: Stopped) -> Plan:
        return best_plan(view.snapshot, first, cancelled=stopped)

    return tasks.answer(_key(view, first), look, "Searching for the best plan")


def known(view: state.Current, question: Question) -> Plan | None:
    """Return the answer that was found by looking further; None before."""
    task = ANSWERS.find(_further(view, question))
    found: Plan | None = task.result if task is not None else None
    return found


def best_known(view: state.Current, question: Question) -> Plan | None:
    """Return the best answer that there is now: the one found by looking further, or the first; None before that.

    Raises:
        PlannerError: There is none.
    """
    return known(view, question) or first_of(view, question)


def offered_before(view: state.Current) -> Plan | None:
    """Return what the page opens with and offers, where a page has already worked it out; None otherwise."""
    start = view if view.outcome is None else replace(view, variant=_edited(view))
    frontier = _first_known(start, without_budget(USUAL))
    if frontier is None:
        return None
    question = replace(USUAL, moves=_usual_moves(start, USUAL, frontier))
    plan = known(start, question) or _first_known(start, question)
    task = None if plan is None else ANSWERS.find(_offered(plan, untrue=_is_untrue(start)))
    return task.result.plan if task is not None and task.result is not None else None


def _first_known(view: state.Current, question: Question) -> Plan | None:
    task = ANSWERS.find(_key(view, replace(question, rounds=_FIRST_ROUNDS)))
    found: Plan | None = task.result if task is not None else None
    return found


def _search(view: state.Current, question: Question, first: Plan, words: str) -> Work[Plan]:
    def look(report: Report, stopped: Stopped) -> Plan:
        report(Progress(words=words), first)
        calls = count_up(1)

        def cancelled() -> bool:
            turn = next(calls)
            if turn % _REPORT_EVERY == 0:
                report(Progress(words=f"{words}: {turn:,} steps"))
            return stopped()

        return better_of(first, best_plan(view.snapshot, question, cancelled=cancelled))

    return look


def look_further(view: state.Current, questions: Sequence[Question], first: Plan) -> None:
    """Search for better plans while the first results are shown, unless the user stops it; then redraw the page."""
    found = [(one, best_known(view, one)) for one in questions if not known(view, one)]
    left = [(one, plan) for one, plan in found if plan is not None and plan.gap_percent > _PROVEN_PERCENT]
    keys = frozenset(_further(view, one) for one, _ in left)
    for key in _SEARCHED.get() - keys:
        ANSWERS.leave(tasks.watcher(), key)
    _SEARCHED.put(frozenset())
    if not left:
        return
    stopped = _STOPPED.get() == _key(view, questions[-1])
    words = f"First result: {percent(first.peak)}. Searching for a better plan"

    def head(text: str) -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(text)
            if st.button("Continue search" if stopped else "Stop search"):
                _STOPPED.put("" if stopped else _key(view, questions[-1]))
                for key in keys:
                    ANSWERS.leave(tasks.watcher(), key)
                st.rerun()

    if stopped:
        head("First result; search stopped.")
        return
    _SEARCHED.put(keys)
    asked = [
        ANSWERS.ask(_further(view, one), _search(view, one, plan, words), tasks.watcher(), ahead=True)
        for one, plan in left
    ]
    for one in asked:
        ANSWERS.wait(one)
        if one.error is not None:
            one.value()

    def draw() -> None:
        said = [one.state[0].words for one in asked if not one.finished.is_set()]
        head(next(filter(None, said), f"{words} …"))

    tasks.watch(ANSWERS, asked, draw)


def without_budget(question: Question) -> Question:
    """Return the question for the lowest peak, whatever it takes: its frontier has every number of moves."""
    free = replace(question, moves=None, topics=None, clients=None, bytes_per_s=None, under_percent=None)
    return replace(free, splits=0)


_CURVES: Newest[tuple[Step, ...]] = Newest(24)
"""The lowest known peak of each number of moves, by question."""


def frontier_with(view: state.Current, frontier: Plan, plan: Plan) -> Plan:
    """Return a plan without a budget with the best of all plans that were found for its question in its frontier."""
    curve = _CURVES.replace(
        _key(view, replace(frontier.question, rounds=0)),
        lambda known: lowest(known or (), frontier.frontier, plan.frontier),
    )
    return replace(frontier, frontier=curve)


def offer(view: state.Current, plan: Plan) -> Offer | None:
    """Return what is offered of a plan for the cluster in view; None while it is tried, which is said."""
    words, untrue = "Simulating what Pulsar makes of the plan", _is_untrue(view)

    def look(_: Report, stopped: Stopped) -> Offer:
        return offer_of(plan, untrue=untrue, cancelled=stopped)

    return tasks.answer(_offered(plan, untrue=untrue), look, words)


def _is_untrue(view: state.Current) -> bool:
    """Say whether no usage is true, without a simulation wherever that is plain."""
    return may_be_untrue(view.captured) and doubt(view).everywhere


def alternative(offered: Offer) -> Offer | None:
    """Return an offer with what is better to do instead; None while that is looked for, which is said."""
    if (offered.recommended and offered.stability.stable) or not offered.plan.moves:
        return offered
    words = "Looking for moves that last"
    key = f"alternative {offered.plan.digest()}{offered.plan.question!r}"
    return tasks.answer(key, lambda _, stopped: with_alternative(offered, stopped), words)


def ungrouped(view: state.Current, question: Question) -> float | None:
    """Return the result of the search without anti-affinity groups; None until the search has finished."""
    plan = known(view, question)
    if plan is None:
        return None
    words = "Measuring the effect of anti-affinity groups"
    key = f"ungrouped {plan.digest()}{question!r}"
    return tasks.answer(key, lambda _, stopped: peak_without_groups(plan, stopped), words)


@st.cache_resource(max_entries=24, show_spinner=False)
def waves(plan_digest: str, most_clients: int, _plan: Plan) -> Sequence[Wave]:
    """Return the waves of a plan."""
    del plan_digest
    return waves_of(_plan, most_clients)


def safe_of(view: state.Current) -> Plan | None:
    """Return few moves after which any loss of a broker is as mild as can be; None while they are looked for.

    Raises:
        PlannerError: There is no such plan.
    """

    def look(_: Report, stopped: Stopped) -> Plan:
        return surviving(view.snapshot, Question(splits=0), stopped)

    return tasks.answer(f"safe {view.digest}{view.variant}", look, "Trying plans of several sizes")


def usual_moves(view: state.Current, question: Question) -> int | None:
    """Return how many moves bring most; None while that is looked for, which is said.

    Raises:
        PlannerError: There is no plan.
    """
    first = first_of(view, without_budget(question))
    return None if first is None else _usual_moves(view, question, first)


def _usual_moves(view: state.Current, question: Question, first: Plan) -> int:
    last = (known(view, without_budget(question)) or first).frontier[-1:]
    return min([knee(first), *(max(step.moves, 1) for step in last)])


def usual(view: state.Current) -> Offer | None:
    """Return what the page opens with, for other pages; None while it is looked for, which is said.

    Raises:
        PlannerError: There is none.
    """
    start = start_of(view)
    moves = None if start is None else usual_moves(start, USUAL)
    plan = None if start is None or moves is None else best_known(start, replace(USUAL, moves=moves))
    return None if start is None or plan is None else offer(start, plan)


def as_scenario(view: state.Current, base: Scenario) -> tuple[Scenario, str] | None:
    """Return a scenario with the best plan first, as the page opens it, and its caution; None while it is looked for.

    It lasts as long as the scenario, so that it can be compared with others.

    Raises:
        PlannerError: There is no such plan.
    """
    if base != scenario_history.as_captured(view):  # the plan starts from its edits
        outcomes = simulations.run(view, base)
        if outcomes is None:
            return None
        view = view.after(outcomes[0])
    found = usual(view)
    if found is None:
        return None
    plan = found.plan
    some = waves(plan.digest(), WAVE_CLIENTS, plan)
    fits = len(some) + len(plan.splits) + len(base.steps) < MOST_STEPS
    moves = replace(scenario_of(plan, some if fits else (), held=False), name="Best plan")
    made = on_its_edits(view.captured, base, moves)
    every_min = max(base.settings_over(view.captured).integer(SHEDDING_INTERVAL_MINUTES), 1)
    return replace(made, cycles=max(base.cycles, int(made.last_edit_min // every_min) + 1)), found.caution


def opened(view: state.Current, plan: Plan, waves: Sequence[Wave]) -> Scenario:
    """Return a plan as a scenario, after the edits of the one that it starts from.

    Args:
        view: The cluster that the plan starts from, as `start_of` returns it.
        plan: The plan.
        waves: Its waves.

    Raises:
        ScenarioError: They have more edits than a scenario may have.
    """
    carried_out = scenario_of(plan, waves, held=False)
    if view.outcome is None:
        return carried_out
    settled_first = view.variant.endswith(_SETTLED)
    return on_its_edits(view.captured, view.outcome.trace.scenario, carried_out, after_cycles=settled_first)


def knee(frontier: Plan) -> int:
    """Return the number of moves after which further ones bring little: the farthest from the straight line."""
    moves = np.array([step.moves for step in frontier.frontier], dtype=np.float64)
    peaks = np.array([step.peak for step in frontier.frontier])
    if len(moves) < 3 or peaks[0] <= peaks[-1]:  # noqa: PLR2004 - a line has no knee
        return max(int(moves[-1]), 1) if len(moves) else 1
    along = (moves - moves[0]) / max(moves[-1] - moves[0], 1)
    fall = (peaks[0] - peaks) / (peaks[0] - peaks[-1])
    return max(int(moves[int((fall - along).argmax())]), 1)


def best_plan_sentence(view: state.Current) -> str:
    """Return what the page opens with, for other pages, or why they do not say it; empty while it is looked for."""
    if len(view.snapshot.bundles) > AT_ONCE_BUNDLES:
        return "For clusters of this size, the plan is computed on request."
    try:
        found = usual(view)
    except PlannerError as error:
        return str(error)
    if found is None:
        return ""
    if not found.plan.moves and _is_untrue(view):
        return doubt(view).instead_of("moves")
    proven = found.first.gap_percent <= _PROVEN_PERCENT or known(view, found.first.question) is not None
    more = "" if proven else " This is a first result; the page Best plan continues the search."
    why = f" {found.constraint.sentence}" if found.constraint is not None and not found.plan.moves else ""
    return f"{headline(found)}{why}{more}"
