"""Answers a question: what must move, the search, the programs of HiGHS, the bound, and splits where they help."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count as count_up

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array, frozen
from planner.cluster.errors import ScenarioError
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.relocation import moved
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.optimize.bound import SLACK, alone, at_rung, covers, ladder, room
from planner.optimize.counted import counted
from planner.optimize.far import lower_and_prove
from planner.optimize.leaving import MOST_BUNDLES, MOST_QUICKLY, leaving
from planner.optimize.plan import BOUNDS, Plan, lowest
from planner.optimize.question import COSTS, Model, Question, cost_text, model_of
from planner.optimize.search import (
    Step,
    even_out,
    lower_peak,
    order_moves,
    place_forced,
    place_repairs,
    send_home,
    settle,
    step_of,
    try_again,
    under,
    unfolded,
)
from planner.optimize.splits import Split, cut, topic_limit, with_splits
from planner.optimize.state import EPSILON, State
from planner.optimize.waves import waves_of
from planner.optimize.whole import MOST_CHOICES, adopt, kinds_of, solve_whole
from planner.simulate.assumptions import Assumptions
from planner.simulate.usage_model import UsageModel

_GOOD_ENOUGH_FACTOR = 1.002
"""Relative to the bound: a peak that is not worth more work."""
_BOUND_TOLERANCE_FACTOR = 1.0005
"""Relative to the bound: a peak at which the search stops."""
_BISECTIONS = 10
_SMALL_CLUSTER_CHOICES = 150
"""Kinds of bundles x brokers up to which the whole question is asked to the end."""
_MOST_NODES = 2_000
_NODES = 30
"""Nodes for each round of work in a larger cluster."""
_TRIED_MOVES = 500
"""Moves that each round of work tries again, by the largest number of bundles for which that holds."""
_USUAL_BUNDLES = 20_000
LEAVING = (
    "As long as a drained broker runs, placement would prefer it for some of its bundles. Stop it as soon as it is"
    " empty, before these bundles are unloaded again."
)
_MAX_FACTOR_FOR_LIMITS = 1.02
"""Times the highest usage that keeping every broker below its limit on the way may cost."""
_TRIES = 4
_NO_LIMIT = 2**31
_OF_WHOLE_BUNDLES = frozenset({"alone", "counted", "leaving", "whole"})
"""Bounds that a split of a bundle may lower."""
_SPLITS = 5
"""Most bundles to split where the question sets no number."""
_LEAST_GAIN_FACTOR = 1.02
"""A bundle is split if the bound with it is this many times the bound without it."""


@dataclass(eq=False)
class _Search:
    """A question while it is answered."""

    model: Model
    cancelled: Callable[[], bool]
    enough: float
    stopped: bool = False

    def should_stop(self) -> bool:
        """Say whether to stop."""
        self.stopped = self.stopped or self.cancelled()
        return self.stopped


def best_plan(snapshot: Snapshot, question: Question, *, cancelled: Callable[[], bool] = lambda: False) -> Plan:
    """Answer a question; where `cancelled` says now and then to stop, with the best plan so far.

    Returns:
        The best plan that was found. The same snapshot and question give the same plan, unless it is stopped.

    Raises:
        ScenarioError: The question makes no sense, or has no answer; the message says why.
    """
    ask = _Solver(question, cancelled)
    best, splits = ask.within_limits(snapshot), list[Split]()
    most = _SPLITS if question.splits is None else question.splits
    limit = snapshot.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    note = ""
    while best.complete and best.alone >= 0 and best.bound > best.without_it * _LEAST_GAIN_FACTOR:
        found = cut(best.at_start, best.alone, best.bound)
        if found is None:
            note = topic_limit(best.at_start, best.alone, best.bound, best.without_it)
            break
        if len(splits) >= most or (question.splits is None and best.bound <= limit):
            note = f"{found.bundle} sets the lower bound. Splitting it would allow {best.without_it * 100:.1f} %."
            break
        other = ask.within_limits(with_splits(snapshot, [*splits, found]))
        if other.peak > best.peak + EPSILON:
            break
        splits.append(found)
        best = other
    if not splits:
        return replace(best, notes=(*best.notes, note) if note else best.notes)
    usage = UsageModel.of(snapshot, snapshot.settings, Assumptions())
    return replace(
        best,
        snapshot=snapshot,
        splits=tuple(splits),
        notes=(*best.notes, note) if note else best.notes,
        usage_before=usage.usage(usage.served()),
    )


def peak_without_groups(plan: Plan, cancelled: Callable[[], bool] = lambda: False) -> float | None:
    """Return the result of the search without anti-affinity groups, in the unit of the bound.

    None where groups are not what keeps a plan from its bound: there is none, it is there, or the result is worse
    without them, as where they keep a bundle from being a repair.
    """
    policies = plan.snapshot.policies
    if not policies.anti_affinity_group or plan.gap_percent <= (_GOOD_ENOUGH_FACTOR - 1) * 100:
        return None
    free = replace(plan.snapshot, policies=replace(policies, anti_affinity_group={}))
    try:
        found = best_plan(free, plan.question, cancelled=cancelled).value
    except ScenarioError:
        return None
    return found if found <= plan.value + EPSILON else None


@dataclass(frozen=True, eq=False, slots=True)
class _Solver:
    """A question that may be asked of several clusters: those that splits lead to."""

    question: Question
    cancelled: Callable[[], bool]
    enough: float = 0.0
    """Peak below which nothing is looked for: what was found where more bundles could move."""

    def within_limits(self, snapshot: Snapshot) -> Plan:
        """Answer it so that no broker is above its limit on the way; bundles for which there is no such order stay.

        Where that costs much of what the plan brings, a broker may be above its limit for a wave, and is named.
        """
        first = found = self.solve(snapshot)
        ask, kept = self, dict(self.question.pins)
        for _ in range(_TRIES):
            stuck = {move.bundle for wave in waves_of(found, _NO_LIMIT) if wave.over for move in wave.moves}
            must = {move.bundle for move in found.moves if move.source in self.question.drain}
            free = stuck - must - kept.keys()
            if not free or not found.complete:
                break
            kept |= {move.bundle: move.source for move in found.moves if move.bundle in free}
            fewer = replace(self.question, pins=kept, rounds=min(self.question.rounds, 2))
            ask = replace(ask, question=fewer, enough=first.peak)
            try:
                found = ask.solve(snapshot)
            except ScenarioError:
                break
        if found is first or found.peak > first.peak * _MAX_FACTOR_FOR_LIMITS:
            return first
        stay = count(len(kept) - len(self.question.pins), "bundle")
        note = f"{stay} not moved, because moving them would temporarily overload a broker."
        bounds = {name: getattr(first, name) for name in BOUNDS}
        return replace(found, **bounds, notes=(*found.notes, note))

    def solve(self, snapshot: Snapshot, *, gone: bool = False, left: frozenset[int] = frozenset()) -> Plan:
        """Answer it without further splits; brokers to empty count as gone where nothing could leave them else.

        Bundles that nobody may take now stay where they are against their isolation policy.
        """
        model = model_of(snapshot, self.question, gone=gone, left=left)
        work = _Search(model, self.cancelled, self.enough)
        start = State(model)
        state = State(model)
        blocked = place_forced(state, work.should_stop)
        stay = frozenset(one for one in blocked if model.repairs[one])
        if model.repairs_in_part and not blocked:
            moves = state.moves()
            stay = frozenset(place_repairs(state, work.should_stop))
            state.restore(moves)
        if stay:
            return self.solve(snapshot, gone=gone, left=left | stay)
        if blocked and self.question.drain and not gone:
            try:
                found = self.solve(snapshot, gone=True)
            except ScenarioError:
                raise _no_broker_takes(model, blocked) from None
            return replace(found, notes=(*found.notes, LEAVING))
        if blocked:
            raise _no_broker_takes(model, blocked)
        if (state.spent > model.budgets + EPSILON).any():
            row = int(np.flatnonzero(state.spent > model.budgets + EPSILON)[0])
            raise ScenarioError(
                f"The required moves exceed the budget: {cost_text(COSTS[row], state.spent[row])} needed,"
                f" {cost_text(COSTS[row], model.budgets[row])} allowed.",
                remedy="Raise the budget.",
            )
        if self.question.under_percent is not None:
            return _cheapest(work, start, state)
        if ((model.forced & ~model.repairs).any() or self.question.drain) and not np.isfinite(model.budgets).any():
            # What must move is moved, and nothing else: the least harm.
            work.model = state.model = replace(model, question=replace(self.question, moves=len(state.order)))
        return _level(work, start, state)


def _no_broker_takes(model: Model, bundles: list[int]) -> ScenarioError:
    names = [model.snapshot.bundle_names[at] for at in bundles]
    first = bundles[0]
    space = int(model.snapshot.bundles.namespace[first])
    allowed = model.rules.static(space)
    if not allowed.any():
        why = "the placement filters exclude every broker for its namespace"
    elif not (allowed & model.takes).any():
        why = "every broker that its policies allow is drained, excluded or gone"
    elif model.rules.changes(space):
        why = "its anti-affinity group or the topic limit excludes every broker"
    else:
        why = f"no broker has room for its topics below loadBalancerBrokerMaxTopics ({model.rules.most_topics:,})"
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return ScenarioError(
        f"No broker can own {names[0]}{more}: {why}.", remedy="Change the policy, or drain fewer brokers."
    )


def _caps(model: Model, start: State) -> FloatArray:
    """Return up to where a broker may be filled: the limit of its load manager, or what it has now."""
    caps: FloatArray = np.maximum(model.limit, start.usage)
    return caps


def _level(work: _Search, start: State, state: State) -> Plan:
    """Find the lowest peak, then the lowest deviation."""
    model = work.model
    forced = state.moves()
    caps, steps = _caps(model, start), [step_of(state)]
    by_moves = not np.isfinite(model.budgets[1:]).any()
    off = int((model.forced & ~model.counts[model.owner]).sum())  # they lower no usage that counts
    rungs = ladder(model, start)
    floor, bundle, suits = alone(model)
    bounds = {"alone": floor, "room": room(model, start)}
    bounds["counted"] = counted(model, floor, state.peak())
    if by_moves:
        bounds["ladder"] = at_rung(rungs, float(model.budgets[0]) - off)
        goal = max(bounds.values()) * _BOUND_TOLERANCE_FACTOR
        lower_peak(state, caps, work.should_stop, steps, goal)
        _fill_higher(work, state, forced, steps, goal)
    else:
        bounds["ladder"] = at_rung(rungs, float(model.budgets[0]) - off) if np.isfinite(model.budgets[0]) else 0.0
        _lowest_within_budget(work, start, state, caps, bounds)
    _leaving(work, start, state, forced, bounds)
    whole = _whole(work, start, state, max(bounds.values()))
    if whole is not None:
        bounds["whole"] = whole
    bound = max(bounds.values())
    most = np.maximum(caps, state.usage)
    goal = max(bound * _GOOD_ENOUGH_FACTOR, work.enough)
    try_again(
        state,
        lambda: lower_peak(state, most, work.should_stop, goal=goal),
        state.peak,
        work.should_stop,
        forced,
        goal=goal,
        steps=_tried(model),
    )
    if state.peak() > work.enough + SLACK:
        bound = lower_and_prove(start, state, caps, bounds, work.should_stop)
    caps = np.maximum(caps, state.usage)
    _polish(state, state.peak, caps, work.should_stop, even_out)
    place_repairs(state, work.should_stop)
    curve = lowest(steps, () if forced else unfolded(state))
    found = _plan(work, start, state, min(bound, state.peak()), _why(model, bounds, bundle, suits), curve, rungs)
    without_it = max(value for name, value in bounds.items() if name not in _OF_WHOLE_BUNDLES)
    limiting = bundle if bounds["alone"] >= bound - SLACK else -1
    free = replace(model, question=replace(model.question, moves=None, topics=None, clients=None, bytes_per_s=None))
    anyway = max(bounds["alone"], bounds["counted"], room(free, start)) if np.isfinite(model.budgets).any() else bound
    return replace(found, alone=limiting, without_it=without_it, floor=min(anyway, found.peak), uncounted=off)


def _fill_higher(work: _Search, state: State, forced: list[tuple[int, int]], steps: list[Step], goal: float) -> None:
    """Where brokers above the limit are left, see whether others may be filled above it for a lower peak.

    In a large cluster, below the limit as well: no program finds there what fits only once other bundles have left.
    """
    peak, moves = state.peak(), state.moves()
    low_enough = 0.0 if int(work.model.movable.sum()) > MOST_BUNDLES else work.model.limit
    if peak <= max(low_enough, goal) or work.should_stop():
        return
    other: list[Step] = []
    state.restore(forced)
    other.append(step_of(state))
    lower_peak(state, np.full(len(state.usage), np.inf), work.should_stop, other, goal)
    if state.peak() < peak - SLACK:
        steps[:] = other
        return
    state.restore(moves)


def _lowest_within_budget(
    work: _Search, start: State, state: State, caps: FloatArray, bounds: dict[str, float]
) -> None:
    """Find the lowest usage that the budgets suffice to get under."""
    model = work.model
    finite = np.isfinite(model.budgets)
    weight = (model.cost[finite] / model.budgets[finite, np.newaxis]).sum(axis=0)
    low, high, forced = max(bounds.values()), state.peak(), state.moves()
    best = state.moves()
    for _ in range(_BISECTIONS):
        if high <= low * _GOOD_ENOUGH_FACTOR or work.should_stop():
            break
        middle = (low + high) / 2
        state.restore(forced)
        if under(state, middle, weight, caps, work.should_stop):
            high, best = state.peak(), state.moves()
        else:
            low = middle
    state.restore(best)
    for row in np.flatnonzero(finite[1:]).tolist():
        proven = _least_under(
            work, start, model.cost[row + 1], float(model.budgets[row + 1]), max(bounds.values()), high
        )
        bounds["cover"] = max(bounds.get("cover", 0.0), proven)


def _least_under(work: _Search, start: State, cost: FloatArray, budget: float, low: float, high: float) -> float:
    """Return a usage that a budget is proven not to get under."""
    for _ in range(_BISECTIONS):
        if high <= low * _GOOD_ENOUGH_FACTOR or work.should_stop():
            break
        middle = (low + high) / 2
        if covers(work.model, start, middle, cost)[0] > budget:
            low = middle
        else:
            high = middle
    return low


def _tried(model: Model) -> int:
    """Return how many moves are searched again for a better plan."""
    return round(model.question.rounds * max(_TRIED_MOVES * min(1.0, _USUAL_BUNDLES / max(len(model.owner), 1)), 1))


def _whole_cluster(model: Model) -> tuple[Int64Array, Int64Array, int]:
    """Return the bundles and brokers of a program about a whole cluster, and how many nodes it is worth.

    Shapes (movable bundles,) and (brokers that count or have such bundles,). No node where the cluster is large.
    """
    movable = np.flatnonzero(model.movable)
    brokers = np.flatnonzero(model.counts | np.isin(np.arange(len(model.counts)), model.owner[movable]))
    if len(movable) > MOST_CHOICES:
        return movable, brokers, 0
    choices = len(kinds_of(model, movable)) * len(brokers)
    if choices <= _SMALL_CLUSTER_CHOICES:
        return movable, brokers, _MOST_NODES
    return movable, brokers, _NODES * model.question.rounds if choices <= MOST_CHOICES else 0


def _whole(work: _Search, start: State, state: State, known: float) -> float | None:
    """Ask a small cluster as a whole; take the answer where it is better. Return its bound, None where it is not asked.

    The state is the plan so far, and is changed; a bound is known already.
    """
    model = work.model
    movable, brokers, nodes = _whole_cluster(model)
    if not nodes or work.should_stop() or state.peak() <= known * _BOUND_TOLERANCE_FACTOR:
        return None
    found = solve_whole(model, start, movable, brokers, nodes=nodes)
    if found.moves and found.value < state.peak() - SLACK:
        before, peak = state.moves(), state.peak()
        if not adopt(state, found.moves) or state.peak() > peak:
            state.restore(before)
    return found.bound


def _leaving(
    work: _Search, start: State, state: State, forced: list[tuple[int, int]], bounds: dict[str, float]
) -> None:
    """Ask what must leave as a whole; place what the answer names, and take that where it is better.

    The state is the plan so far, and is changed; the bounds get another one.
    """
    model, known, peak, moves = work.model, max(bounds.values()), state.peak(), state.moves()
    if int(model.movable.sum()) > MOST_QUICKLY or work.should_stop() or peak <= known * _GOOD_ENOUGH_FACTOR:
        return
    found = leaving(model, start, low=known, high=peak)
    bounds["leaving"] = found.bound
    state.restore(forced)
    caps = np.maximum(_caps(model, start), state.usage)
    goal = max(found.bound, known) * _BOUND_TOLERANCE_FACTOR
    _move_below(state, found.bundles, peak, caps)
    lower_peak(state, caps, work.should_stop, goal=goal)
    order_moves(state, moves)
    if state.peak() >= peak:
        state.restore(moves)


def _polish(
    state: State,
    worth: Callable[[], float],
    caps: FloatArray,
    should_stop: Callable[[], bool],
    *more: Callable[[State, FloatArray, Callable[[], bool]], None],
) -> None:
    """Give what moves better places, after what else may be done, as long as the answer stays as good."""
    moves, before = state.moves(), worth()
    for step in (*more, settle):
        step(state, caps, should_stop)
    order_moves(state, moves)
    if worth() > before + EPSILON:
        state.restore(moves)


def _move_below(state: State, bundles: Int64Array, target: float, caps: FloatArray) -> None:
    """Move bundles, the largest first, to where they fit best below a usage."""
    model = state.model
    for bundle in sorted(bundles.tolist(), key=lambda one: -float(model.usage.bundle[:, one].sum())):
        after = state.arriving(np.array([bundle]))[0]
        paid = (state.spent + model.cost[:, bundle] <= model.budgets + EPSILON).all()
        if paid and after.min() <= target + EPSILON and state.owner[bundle] == model.owner[bundle]:
            state.move(bundle, int(np.where(after <= np.minimum(caps, target) + EPSILON, after, np.inf).argmin()))


def _cheapest(work: _Search, start: State, state: State) -> Plan:
    """Find the least cost of being under a usage."""
    model, question = work.model, work.model.question
    target = float(question.under_percent or 0.0) / 100
    row = COSTS.index(question.cost)
    weight, caps = model.cost[row], _caps(model, start)
    floor, bundle, suits = alone(model)
    low = {"alone": floor, "room": room(model, start)}
    low["counted"] = counted(model, max(low.values()), state.peak())
    possible = max(low.values())
    if possible > target:
        why = _why(model, low, bundle, suits)
        raise ScenarioError(
            f"No plan brings every broker below {question.under_percent:g} %. {why}",
            remedy=f"Use {math.ceil(possible * 1000) / 10:g} % or more, or add brokers.",
        )
    forced, turns = state.moves(), count_up()
    by_moves = COSTS[row] == "moves"

    def worth() -> float:
        return float(state.spent[row]) if state.peak() <= target + EPSILON else math.inf

    def find() -> None:
        if by_moves and next(turns) % 4 > 1:
            lower_peak(state, caps, work.should_stop, goal=target)
        under(state, target, weight, caps, work.should_stop)
        send_home(state, target, weight)

    least, leaving = covers(model, start, target, weight)
    _move_below(state, leaving, target, caps)
    find()
    led, moves = worth(), state.moves()
    state.restore(forced)
    find()
    if led < worth():
        state.restore(moves)
    proven = max(room(model, start, under=target, weight=weight), least)
    movable, brokers, nodes = _whole_cluster(model)
    if nodes and state.spent[row] > proven:
        found = solve_whole(model, start, movable, brokers, under=target, weight=weight, nodes=nodes)
        proven = max(proven, found.bound)
        before, spent = state.moves(), worth()
        if found.moves and found.value < spent - EPSILON and adopt(state, found.moves) and worth() >= spent:
            state.restore(before)
    if COSTS[row] != "bytes_per_s" and math.isfinite(proven):
        proven = math.ceil(proven - 1e-3)
    try_again(state, find, worth, work.should_stop, forced, goal=proven, steps=_tried(model))
    if not math.isfinite(worth()):
        raise ScenarioError(
            f"No plan found that brings every broker below {question.under_percent:g} % within these budgets and"
            f" rules. The lower bound is {possible * 100:.1f} %.",
            remedy="Use a higher percentage or larger budgets.",
        )
    _polish(state, worth, caps, work.should_stop)
    place_repairs(state, work.should_stop)
    proven = min(max(proven, 0.0), float(state.spent[row]))
    return _plan(work, start, state, proven, _why(model, low, bundle, suits), [], np.zeros(0), possible)


def _why(model: Model, bounds: Mapping[str, float], bundle: int, suits: int) -> str:
    """Return why no plan gets below a bound."""
    first = " Bundles against their isolation policy use up the budgets."
    return f"{_limiting(model, bounds, bundle, suits)}{first if model.repairs_in_part else ''}"


def _limiting(model: Model, bounds: Mapping[str, float], bundle: int, suits: int) -> str:
    which = max(bounds, key=lambda name: bounds[name])
    value = f"{bounds[which] * 100:.1f} %"
    if which == "alone" and bundle >= 0:
        name, broker = model.snapshot.bundle_names[bundle], model.snapshot.brokers.name[suits]
        return f"{name} alone uses {value} of {broker}, the broker that suits it best."
    if which == "alone":
        return f"Bundles that cannot move already use {value} of their broker."
    within = "Within the budgets, all traffic" if np.isfinite(model.budgets).any() else "All traffic"
    said = {
        "room": f"{within}, spread as evenly as the policies allow, uses {value}, even if bundles could be divided"
        " freely.",
        "counted": f"Bundles are whole: below {value}, brokers have room for fewer of them than there are.",
        "ladder": f"With so few moves, the highest usage cannot fall below {value}, wherever the bundles go.",
        "leaving": f"With whole bundles{_order_or_budget(model)} the lower bound is {value}.",
    }
    return said.get(which, f"The exact mixed-integer program has no solution below {value}.")


def _order_or_budget(model: Model) -> str:
    """Return what else keeps plans from a lower peak than bundles that move whole."""
    if model.rules.group:
        return ", and the order that anti-affinity groups ask for,"
    return " and so few moves," if np.isfinite(model.budgets[0]) else ","


def _plan(
    work: _Search,
    start: State,
    state: State,
    bound: float,
    limit: str,
    steps: Sequence[Step],
    rungs: FloatArray,
    peak_bound: float | None = None,
) -> Plan:
    model, replayed, moves = work.model, State(work.model), []
    snapshot = model.snapshot
    names = snapshot.brokers.name
    for bundle, to in state.moves():
        source = int(replayed.owner[bundle])
        here, there = float(replayed.usage[source]), float(replayed.usage[to])
        room_points = (state.peak() - there) * 100
        lead = f"{names[source]} is at {here * 100:.1f} %"
        if bundle in model.pinned:
            lead = f"pinned to {names[to]}"
        elif model.repairs[bundle]:
            lead = f"repair: {names[source]} is against its isolation policy"
        elif model.forced[bundle]:
            lead = f"{names[source]} is drained"
        replayed.move(bundle, to)
        room = f"with room for {count(round(max(room_points, 0.0)), 'more point')}"
        if replayed.usage[to] > state.peak() + EPSILON:  # in exchange
            room = f"and ends at {state.usage[to] * 100:.1f} %, as other bundles leave it"
        why = f"{lead}; {names[to]} is at {there * 100:.1f} %, {room}"
        move = moved(snapshot, bundle, names[source], names[to], why)
        moves.append(replace(move, acceptable=(names[to],)))
    repairs = tuple(move.bundle for move in moves if model.repairs[snapshot.bundle_position[move.bundle]])
    left = int(model.repairs.sum()) - len(repairs)
    note = f"Left against their isolation policy: {count(left, 'bundle')}. The budgets do not suffice for all of them."
    return Plan(
        question=model.question,
        snapshot=snapshot,
        at_start=snapshot,
        moves=tuple(moves),
        usage_before=start.usage,
        usage_after=replayed.usage,
        counts=model.counts,
        spent=dict(zip(COSTS, replayed.spent.tolist(), strict=True)),
        peak=replayed.peak(),
        bound=bound,
        peak_bound=min(bound if peak_bound is None else peak_bound, replayed.peak()),
        demand_after=frozen(model.usage.own + replayed.served),
        limit=limit,
        frontier=tuple(steps),
        least=tuple(rungs.tolist()),
        complete=not work.stopped,
        notes=(note,) if left else (),
        repairs=repairs,
    )
