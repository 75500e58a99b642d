"""Chooses settings by evidence: a replay tried many, and this says which are worth having, and how sure that is.

Every scenario of the replay has a balance index and a disruption index (`planner.advise.objectives`). Those that no
other one beats are the Pareto front. One of them is recommended, by the knee of the front or by a weight; against the
current settings it shows what changes, day by day; along each setting, how far it can move; and chosen on the first
part of the days only, whether it would have held on the rest.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from planner.advise.advice import (
    ALIKE,
    Advice,
    Candidate,
    Configured,
    DayPair,
    Evidence,
    Holdout,
    MeasureChange,
    SettingRange,
    Step,
)
from planner.advise.choice import Field
from planner.advise.objectives import SIDES, Question, index_of, objective_by_name, references, value_of
from planner.advise.pareto import distance_to_front
from planner.cluster.arrays import FloatArray
from planner.cluster.errors import PlannerError, SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    LOAD_PLACEMENT_STRATEGY,
    LOAD_SHEDDING_STRATEGY,
    MEMORY_RESOURCE_WEIGHT,
)
from planner.cluster.releases import REFERENCE, release
from planner.cluster.setting import SettingValue
from planner.cluster.settings import Settings
from planner.cluster.text import count
from planner.explain.doubt import worst_of
from planner.pulsar.manager.class_names import in_full
from planner.pulsar.manager.cycle import effective_shedder
from planner.replay.aggregate import DayRow, aggregate, totals_of
from planner.simulate.judge import Result, judge
from planner.simulate.measures import MEASURES, Measure
from planner.simulate.scenario import Scenario
from planner.simulate.strategies import obstacle, with_obstacle

_SHOWN: Final = 300
_OVERLOAD: Final = "overloaded_broker_min"
_STRATEGIES = (LOAD_SHEDDING_STRATEGY, LOAD_PLACEMENT_STRATEGY)

Cells: TypeAlias = Mapping[str, Mapping[tuple[str, str], DayRow]]


# Candidates


def _cells(
    rows: Sequence[DayRow], scenarios: Sequence[Scenario]
) -> tuple[dict[str, dict[tuple[str, str], DayRow]], list[str]]:
    """Return the days of each scenario that has all of them, and notes on those that have not.

    Raises:
        PlannerError: A day of a scenario is there twice.
    """
    known = {scenario.name for scenario in scenarios}
    found: defaultdict[str, dict[tuple[str, str], DayRow]] = defaultdict(dict)
    for row in rows:
        if row.scenario not in known:
            continue
        if (row.cluster, row.day) in found[row.scenario]:
            raise PlannerError(
                f"Duplicate results of {row.cluster} on {row.day}.", where=row.scenario, remedy="Replay the job again."
            )
        found[row.scenario][row.cluster, row.day] = row
    every = {cell for cells in found.values() for cell in cells}
    notes = []
    for scenario in scenarios:
        missing = len(every) - len(found[scenario.name])
        if missing:
            notes.append(
                f"{scenario.name} is left out because {missing} of {count(len(every), 'cluster day')} are missing."
                " See the job's log."
            )
            del found[scenario.name]
    return dict(found), notes


def _indices(
    cells: Cells, question: Question, keep: Sequence[str] | None = None
) -> tuple[dict[str, dict[str, float | None]], FloatArray, list[str]]:
    """Return the measures of each candidate over some days, by default all, and both indices of each.

    Returns:
        Measures by candidate; shape (candidates, 2); names of the candidates that have no index.
    """
    wanted = None if keep is None else set(keep)
    totals = {
        name: totals_of([row for (_, day), row in sorted(mine.items()) if wanted is None or day in wanted])
        for name, mine in cells.items()
    }
    sides = [question.objectives(side) for side in SIDES]
    reference = references(list(totals.values()), [one for objectives in sides for one in objectives])
    indices = [[index_of(one, objectives, reference) for objectives in sides] for one in totals.values()]
    table = np.array(indices, dtype=np.float64).reshape(-1, len(sides))  # what has no index is NaN
    unknown = [name for name, row in zip(totals, table, strict=True) if not np.isfinite(row).all()]
    return totals, table, unknown


def comparable(
    question: Question, scenarios: Sequence[Scenario], configured: Mapping[str, Configured]
) -> tuple[Question, list[str]]:
    """Leave out objectives that scenarios measure with different yardsticks, such as other resource weights.

    Returns:
        The question with the objectives that are left, and a note on each other one.

    Raises:
        SettingError: A side has none left.
    """
    notes, left = [], {}
    for side in SIDES:
        kept = []
        for objective in question.objectives(side):
            values = {name: {_measured(one, name, configured) for one in scenarios} for name in objective.yardstick}
            differing = [name for name in objective.yardstick if len(values[name]) > 1]
            if differing:
                notes.append(
                    f"{objective.label} is ignored, because it depends on {differing[0]}, which differs between"
                    " scenarios."
                )
            else:
                kept.append(objective.name)
        left[side] = tuple(kept)
        if not kept:
            raise SettingError(
                f"The scenarios cannot be compared by these objectives of {side}. {' '.join(notes)}",
                remedy="Choose an objective that does not depend on such settings, for example the deviation of"
                " throughput.",
            )
    return replace(question, balance=left["balance"], disruption=left["disruption"]), notes


def _measured(scenario: Scenario, name: str, configured: Mapping[str, Configured]) -> SettingValue:
    """Return the value of a setting as far as it counts in measuring; heap memory does in one load manager only."""
    if name == MEMORY_RESOURCE_WEIGHT:
        managers = {str(one.load_manager) for one in configured.values()} or {str(LoadManager.MODULAR)}
        if str(LoadManager.EXTENSIBLE) not in ({scenario.load_manager} if scenario.load_manager else managers):
            return 0.0
    return _value(scenario, name, configured)


def _current(scenarios: Sequence[Scenario], configured: Mapping[str, Configured]) -> tuple[str, list[str]]:
    """Return the name of the scenario with the settings in force, and notes.

    What all scenarios suppose alike, edits or settings, is passed over: they can still be compared with one another.
    A scenario without edits comes before others.
    """
    shared = {
        name: value
        for name, value in (scenarios[0].settings.items() if scenarios else ())
        if all(name in one.settings and one.settings[name] == value for one in scenarios)
    }
    same = [one for one in scenarios if _unchanged(one, shared, configured)]
    same.sort(key=lambda scenario: len(scenario.edits))
    if not same:
        return "", ["The current settings were not replayed, so there is no comparison with them. Replay them as well."]
    assumed = {
        name: value
        for name, value in shared.items()
        if any(one.settings[name] != REFERENCE.settings[name].parse(value) for one in configured.values())
    }
    notes = [
        f"All scenarios assume {name} = {value}, including the current settings with which the others are compared."
        for name, value in assumed.items()
    ]
    return same[0].name, notes


def _unchanged(scenario: Scenario, shared: Mapping[str, object], configured: Mapping[str, Configured]) -> bool:
    """Tell whether a scenario runs every cluster as it is set now, apart from what all scenarios share."""
    own = {name: value for name, value in scenario.settings.items() if name not in shared}
    if not configured:
        return not own and not scenario.load_manager
    return all(
        one.settings.changed(**in_full(own)) == one.settings and scenario.load_manager in {"", str(one.load_manager)}
        for one in configured.values()
    )


def _by_settings_alone(
    scenarios: Sequence[Scenario], configured: Mapping[str, Configured]
) -> tuple[list[Scenario], list[str]]:
    """Leave out the scenarios that a cluster cannot change to by its settings alone, with a note on each.

    The settings in force stay, whatever they are.

    Raises:
        PlannerError: None is left.
    """
    against = {one.name: "" if _unchanged(one, {}, configured) else _obstacle(one, configured) for one in scenarios}
    kept = [one for one in scenarios if not against[one.name]]
    if scenarios and not kept:
        raise PlannerError(
            "The replay has no scenario that this cluster can change to by settings alone.",
            where=", ".join(with_obstacle(name, why) for name, why in against.items())[:_SHOWN],
            remedy="Replay again with strategies of the cluster's own load manager.",
        )
    return kept, [f"{with_obstacle(name, why)} is left out." for name, why in against.items() if why]


def _obstacle(scenario: Scenario, configured: Mapping[str, Configured]) -> str:
    """Return why a cluster cannot change to a scenario by its settings alone; empty when all can."""
    for one in configured.values():
        manager = LoadManager(scenario.load_manager) if scenario.load_manager else one.load_manager
        config = Settings({**one.settings.overrides, **in_full(scenario.settings)}, release(scenario.pulsar_version))
        why = obstacle(effective_shedder(manager, config)[0], one.load_manager, config.release)
        if why:
            return why
    return ""


def _order(scenarios: Sequence[Scenario], current: str) -> dict[str, tuple[int, int]]:
    return {one.name: (int(one.name != current), len(one.settings) + len(one.edits)) for one in scenarios}


def advise(
    rows: Sequence[DayRow],
    scenarios: Sequence[Scenario],
    question: Question | None = None,
    configured: Mapping[str, Configured] | None = None,
) -> Advice:
    """Return what a replay says about settings.

    Args:
        rows: What each scenario came to on each day of each cluster.
        scenarios: What was replayed; names are unique.
        question: What counts.
        configured: How each cluster is set now; without it the scenario that changes no setting is the current one.

    Raises:
        PlannerError: Nothing can be compared, or the question cannot be answered.
    """
    asked, known = question or Question(), dict(configured or {})
    asked.check()
    scenarios, notes = _by_settings_alone(scenarios, known)
    asked, of_yardsticks = comparable(asked, scenarios, known)
    notes += of_yardsticks
    cells, missing = _cells(rows, scenarios)
    notes += missing
    totals, table, unknown = _indices(cells, asked) if cells else ({}, np.zeros((0, 2)), [])
    if unknown:
        notes += [f"{name} is left out because an objective has no value." for name in unknown]
        cells = {name: mine for name, mine in cells.items() if name not in unknown}
        totals, table, _ = _indices(cells, asked)
    if not cells:
        raise PlannerError(
            "The replay has no scenario that can be compared.",
            remedy="See the job's log, then replay again without the failed scenarios.",
        )
    names = list(cells)
    compared = sorted((one for one in scenarios if one.name in cells), key=lambda one: names.index(one.name))
    current, about = _current(compared, known)
    notes += about
    limit, about = _limit_percent(compared, known)
    notes += [note for note in about if not of_yardsticks]
    order = _order(compared, current)
    field = _field(names, table, totals, limit, order)
    candidates = tuple(
        Candidate(
            scenario=one,
            totals=totals[one.name],
            balance=float(table[at, 0]),
            disruption=float(table[at, 1]),
            on_front=bool(field.front[at]),
            result=field.results[at] if field.results else None,
            more_overload=not field.least_overloaded[at],
        )
        for at, one in enumerate(compared)
    )
    chosen = field.choose(asked.weight, current)
    doubt = worst_of(one.doubt for one in known.values())
    notes += [doubt.sentence] if doubt.sentence and not doubt.everywhere else []
    return Advice(
        question=asked,
        candidates=candidates,
        current=current,
        knee=field.knee,
        chosen=chosen,
        evidence=_evidence(cells, asked, current, chosen) if current else None,
        sensitivity=_sensitivity(candidates, chosen, asked, known),
        holdout=_holdout(cells, asked, (current, chosen), order, limit),
        clusters=tuple(sorted({cluster for mine in cells.values() for cluster, _ in mine})),
        days=_days(cells),
        notes=(*notes, *_ignored_objectives(candidates, asked)),
        doubt=doubt,
    )


def _limit_percent(
    scenarios: Sequence[Scenario], configured: Mapping[str, Configured]
) -> tuple[float | None, list[str]]:
    """Return the limit above which brokers are overloaded; None, with a note, where scenarios measure differently.

    Of clusters with unlike limits, the highest one.
    """
    yardstick = objective_by_name("overload").yardstick
    differing = [name for name in yardstick if len({_measured(one, name, configured) for one in scenarios}) > 1]
    if differing:
        return None, [
            f"Overload is not compared, because it depends on {differing[0]}, which differs between scenarios."
        ]
    values = [one.settings.changed(**_own(scenarios[0])) for one in configured.values()]
    limits = [config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) for config in values]
    value = _value(scenarios[0], BROKER_OVERLOADED_THRESHOLD_PERCENTAGE, {})
    return float(max(limits, default=value if isinstance(value, int) else 0)), []


def _own(scenario: Scenario) -> dict[str, str | int | float | bool]:
    name = BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
    return {name: scenario.settings[name]} if name in scenario.settings else {}


def _field(
    names: Sequence[str],
    table: FloatArray,
    totals: Mapping[str, Mapping[str, float | None]],
    limit: float | None,
    order: Mapping[str, tuple[int, int]],
) -> Field:
    results = () if limit is None else tuple(Result.over_days(totals[name], limit) for name in names)
    return Field(tuple(names), table, results, order)


def _days(cells: Cells) -> tuple[str, ...]:
    return tuple(sorted({day for mine in cells.values() for _, day in mine}))


def _ignored_objectives(candidates: Sequence[Candidate], question: Question) -> list[str]:
    objectives = [one for side in SIDES for one in question.objectives(side)]
    empty = [o.label for o in objectives if not any(value_of(one.totals, o) for one in candidates)]
    return [f"{label} is ignored, because it is 0 with all settings." for label in empty]


# Evidence


def _evidence(cells: Cells, question: Question, current: str, chosen: str) -> Evidence:
    old, new = (totals_of(list(cells[name].values())) for name in (current, chosen))
    changes = [MeasureChange(m, old[m.name], new[m.name], _better(m, old[m.name], new[m.name])) for m in MEASURES]
    return Evidence(tuple(changes), _day_pairs(cells, question, current, chosen))


def _day_pairs(cells: Cells, question: Question, current: str, chosen: str) -> tuple[DayPair, ...]:
    """Return the indices of two candidates on every day of every cluster; 100 is the average over days and candidates.

    Days on which an objective is not known are left out.
    """
    sides = [question.objectives(side) for side in SIDES]
    needed = {measure for objectives in sides for one in objectives for measure in one.measures}
    daily = {
        name: {cell: {measure: aggregate([row], measure) for measure in needed} for cell, row in mine.items()}
        for name, mine in cells.items()
    }
    every = [one for objectives in sides for one in objectives]
    reference = references([one for mine in daily.values() for one in mine.values()], every)
    days = []
    for cluster, day in sorted(cells[chosen], key=lambda cell: (cell[1], cell[0])):
        (b_old, b_new), (d_old, d_new) = (
            [index_of(daily[name][cluster, day], objectives, reference) for name in (current, chosen)]
            for objectives in sides
        )
        if b_old is not None and b_new is not None and d_old is not None and d_new is not None:
            overload = [cells[name][cluster, day].measures.get(_OVERLOAD) or 0.0 for name in (current, chosen)]
            days.append(
                DayPair(
                    cluster=cluster,
                    day=day,
                    balance=(b_old, b_new),
                    disruption=(d_old, d_new),
                    overload=(overload[0], overload[1]),
                )
            )
    return tuple(days)


def _better(measure: Measure, old: float | None, new: float | None) -> bool | None:
    if not measure.better or old is None or new is None or math.isclose(old, new, rel_tol=ALIKE, abs_tol=ALIKE):
        return None
    return (new < old) is (measure.better == "lower")


# Sensitivity


def _value(scenario: Scenario, name: str, configured: Mapping[str, Configured]) -> SettingValue:
    """Return the value of a setting in a scenario; None when clusters differ where the scenario says nothing."""
    value: SettingValue
    if name in scenario.settings:
        value = REFERENCE.settings[name].parse(scenario.settings[name])
    else:
        values = {one.settings[name] for one in configured.values()} or {REFERENCE.settings[name].default}
        value = values.pop() if len(values) == 1 else None
    return value.rpartition(".")[2] if name in _STRATEGIES and isinstance(value, str) else value


def _sensitivity(
    candidates: Sequence[Candidate], chosen: str, question: Question, configured: Mapping[str, Configured]
) -> tuple[SettingRange, ...]:
    names = sorted({name for one in candidates for name in one.scenario.settings})
    values = {one.name: {name: _value(one.scenario, name, configured) for name in names} for one in candidates}
    varied = [name for name in names if len({repr(values[one.name][name]) for one in candidates}) > 1]
    mine = next(one for one in candidates if one.name == chosen)
    rest = _but_settings(mine.scenario)
    alike = [one for one in candidates if _but_settings(one.scenario) == rest]
    found = []
    for name in varied:
        line = [
            one
            for one in alike
            if all(values[one.name][other] == values[chosen][other] for other in varied if other != name)
            and (one.name == chosen or values[one.name][name] != values[chosen][name])
        ]
        steps = [_step(one, mine, values[one.name][name], question) for one in line]
        found.append(_range(name, values[chosen][name], steps))
    return tuple(found)


def _but_settings(scenario: Scenario) -> Scenario:
    return replace(scenario, name="", settings={})


def _step(one: Candidate, chosen: Candidate, value: SettingValue, question: Question) -> Step:
    loss = max(one.balance - chosen.balance, one.disruption - chosen.disruption, 0.0)
    return Step(
        value=value,
        name=one.name,
        balance=one.balance,
        disruption=one.disruption,
        on_front=one.on_front,
        loss_percent=loss,
        holds=one.on_front and loss <= question.loss_percent + ALIKE,
    )


def _range(name: str, chosen: SettingValue, steps: Sequence[Step]) -> SettingRange:
    numbers = isinstance(chosen, int | float) and not isinstance(chosen, bool)
    ordered = sorted(steps, key=lambda s: (s.value is None, s.value if numbers else str(s.value)))
    low = high = next(place for place, step in enumerate(ordered) if step.value == chosen)
    if numbers:
        while low > 0 and ordered[low - 1].holds:
            low -= 1
        while high + 1 < len(ordered) and ordered[high + 1].holds:
            high += 1
    return SettingRange(
        setting=name, chosen=chosen, steps=tuple(ordered), low=ordered[low].value, high=ordered[high].value
    )


# Holdout


def _holdout(
    cells: Cells,
    question: Question,
    known: tuple[str, str],
    order: Mapping[str, tuple[int, int]],
    limit: float | None,
) -> Holdout | None:
    """Choose on the first days, and judge on the rest what was chosen; None when there are not two days.

    `known` are the current settings and what is chosen on all days.
    """
    days, names, (current, overall) = _days(cells), list(cells), known
    if len(days) < 2:  # noqa: PLR2004 - one to choose on, one to judge on
        return None
    cut = min(max(round(question.first_share * len(days)), 1), len(days) - 1)
    totals, first, unknown = _indices(cells, question, days[:cut])
    totals_rest, rest, unknown_rest = _indices(cells, question, days[cut:])
    if unknown or unknown_rest:
        return None
    later = _field(names, rest, totals_rest, limit, order)
    chosen = _field(names, first, totals, limit, order).choose(question.weight, current)
    best = later.choose(question.weight, current)
    place = names.index(chosen)
    promised = kept = None
    if current and current != chosen:
        now = names.index(current)
        promised, kept = (
            (float(table[place, 0] - table[now, 0]), float(table[place, 1] - table[now, 1])) for table in (first, rest)
        )
    distance = distance_to_front(rest[place], rest[later.least_overloaded])
    against = (
        *_broken(promised, kept, distance, question),
        *_other_choice(later, chosen, best),
        *([f"All days together choose {overall} instead."] if overall not in {chosen, best} else []),
    )
    return Holdout(
        first_days=days[:cut],
        rest_days=days[cut:],
        chosen=chosen,
        best=best,
        distance=distance,
        promised=promised,
        kept=kept,
        holds=not against,
        reasons=against or tuple(_kept((chosen, best), promised, kept)),
        days=_day_pairs(cells, question, current, chosen) if current else (),
    )


def _other_choice(later: Field, chosen: str, best: str) -> Iterator[str]:
    """Return why the choice on the later days refutes the one on the first days: it is not as good by the judge."""
    if chosen == best:
        return
    at, there = later.names.index(chosen), later.names.index(best)
    verdict = judge(later.results[at], later.results[there]) if later.results else None
    if verdict is None:
        yield f"The choice on the remaining days alone is {best}."
    elif verdict.word not in {"same", "worse"}:
        yield f"The choice on the remaining days alone is {best}. {verdict.text}"


def _broken(
    promised: tuple[float, float] | None, kept: tuple[float, float] | None, distance: float, question: Question
) -> Iterator[str]:
    """Return why a choice does not hold: a side that was to become better became worse, or others are far better."""
    yield from (
        f"{label} is {-before:.1f} % better than with the current settings on the first days, but {after:.1f} % worse"
        " on the remaining days."
        for label, before, after in _pairs(promised, kept)
        if before < -ALIKE and after > question.loss_percent + ALIKE
    )
    if distance * 100 > question.loss_percent:
        yield (
            f"On the remaining days, other settings are at least {distance * 100:.1f} % better in both balance and"
            " disruption."
        )


def _pairs(promised: tuple[float, float] | None, kept: tuple[float, float] | None) -> list[tuple[str, float, float]]:
    """Return what was promised and kept of each side; nothing without current settings to compare with."""
    if promised is None or kept is None:
        return []
    return [("Balance", promised[0], kept[0]), ("Disruption", promised[1], kept[1])]


def _kept(
    names: tuple[str, str], promised: tuple[float, float] | None, kept: tuple[float, float] | None
) -> Iterator[str]:
    """Return what can be said for a choice that holds; `names` are the choices on the first days and on the rest."""
    yield "On the remaining days, no other setting is clearly better in both balance and disruption."
    for label, before, after in _pairs(promised, kept):
        if before < -ALIKE:
            lasts = f"{-after:.1f} % better" if after < -ALIKE else f"{after:.1f} % worse"
            yield (
                f"{label} is {-before:.1f} % better than with the current settings on the first days, and {lasts} on"
                " the remaining days."
            )
    if names[0] != names[1]:
        yield f"The choice on the remaining days alone is {names[1]}, which is as good there."
