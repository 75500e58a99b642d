"""Advises on the bundles of a few namespaces over the weeks of a history: one pure function for every runner.

The namespace is looked at in moments spread over the days. What is recommended is simulated at its busiest moment, and
held to all of them.
"""

import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import msgspec
import numpy as np

from planner.cluster.errors import PlannerError
from planner.cluster.names import NAMESPACE_MAXIMUM_BUNDLES
from planner.cluster.snapshot import Snapshot
from planner.explain.isolation import allowed_brokers
from planner.history.days import snapshot_at
from planner.namespaces.advice import BundleAdvice, bundle_advice, fewest_even, usual_counts
from planner.namespaces.counts import CountRow, count_row, count_rows
from planner.namespaces.cuts import cuts_hold
from planner.namespaces.population import Population, population_of
from planner.share.export import csv_text
from planner.weeks.growth import Rates, rates_at
from planner.weeks.outlook import outlook
from planner.weeks.spec import HORIZON_WEEKS


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekTask:
    """A few namespaces of a cluster, over the moments of a history.

    Attributes:
        task: Names it within a job.
        history: Root folder of the history.
        cluster: Which cluster of it.
        namespaces: Its namespaces to look at.
        moments: Folder of the day within the history, and time in ms since 1970, of each moment, in order.
        horizon_weeks: Weeks after the last moment to look at.
    """

    task: str
    history: str
    cluster: str
    namespaces: tuple[str, ...]
    moments: tuple[tuple[str, int], ...]
    horizon_weeks: int = HORIZON_WEEKS


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekRow:
    """Advice on the bundles of a namespace over weeks.

    Attributes:
        cluster: The cluster.
        namespace: The namespace.
        moments: Moments at which it had topics.
        first_ms: The first of them, ms since 1970.
        last_ms: The last of them.
        busiest_ms: When it had most messages; there everything was simulated.
        topics: Topics at the last moment.
        brokers: Brokers that its policies allow then.
        bundles: Bundles at the last moment.
        largest_percent: Share of its load in its heaviest bundle at the worst moment, in percent.
        placed_percent: Share of the broker with most of it at the worst moment, with the bundles of then and the
            best placement that is known, in percent.
        even_bundles: Fewest equal bundles that brokers can share about as evenly as the best number, at every moment.
        even_least: The least number that would do at a single moment.
        even_most: The most that a single moment asks for.
        recommended_bundles: What the namespace is to have if it is recreated, simulated at its busiest moment.
        new_cuts: Cuts that are recommended at the busiest moment; 0 where none is.
        cuts_hold: Moments at which the cuts bring at least half of what any cuts could.
        is_steady: Whether the cuts hold at all moments, so that they are worth it.
        growth_percent_per_week: By how much its traffic grows in a week, in percent; None where the history is too
            short to say.
        horizon_weeks: Weeks after the last moment that are looked at; 0 where growth is not known.
        split_due_weeks: In how many weeks the next automatic split is due; 0 is now, None is not up to the horizon.
        later_bundles: What is recommended at the horizon; None where growth is not known.
        is_lasting: Whether the advice at the busiest moment is still right at the horizon; None likewise.
        sentence: What to do, and why.
        outlook: What growth does to it.
    """

    cluster: str
    namespace: str
    moments: int
    first_ms: int
    last_ms: int
    busiest_ms: int
    topics: int
    brokers: int
    bundles: int
    largest_percent: float
    placed_percent: float
    even_bundles: int
    even_least: int
    even_most: int
    recommended_bundles: int
    new_cuts: int
    cuts_hold: int
    is_steady: bool
    growth_percent_per_week: float | None
    horizon_weeks: int
    split_due_weeks: int | None
    later_bundles: int | None
    is_lasting: bool | None
    sentence: str
    outlook: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekResult:
    """What a task came to.

    Attributes:
        task: The task.
        rows: A row for each namespace that had topics.
        seconds: How long it took.
        error: Why it failed, one sentence; empty when it did not.
    """

    task: str
    rows: tuple[WeekRow, ...]
    seconds: float
    error: str = ""


def advise_weeks(task: WeekTask) -> tuple[WeekRow, ...]:
    """Return a row for each namespace of a task that has topics at some moment.

    Raises:
        PlannerError: A moment cannot be read, or the cluster cannot be simulated.
    """
    found: dict[str, list[tuple[int, Population]]] = {name: [] for name in task.namespaces}
    last: Snapshot | None = None
    rates: list[Rates] = []
    for folder, at_ms in task.moments:
        last = snapshot_at(Path(task.history) / folder, at_ms)
        rates.append(rates_at(last, task.namespaces))
        for name, moments in found.items():
            try:
                moments.append((at_ms, population_of(last, name)))
            except PlannerError:  # it does not exist yet, or any more
                continue
    days = {at_ms: folder for folder, at_ms in task.moments}
    kept: dict[int, Snapshot] = {}
    rows = []
    for name, moments in found.items():
        if last is None or not moments or name not in last.namespaces:
            continue
        busiest_ms = max(moments, key=lambda one: float(one[1].msg_per_s.sum()))[0]
        if busiest_ms not in kept:
            kept = {busiest_ms: snapshot_at(Path(task.history) / days[busiest_ms], busiest_ms)}
        rows.append(_row(task, last, kept[busiest_ms], moments, rates))
    return tuple(rows)


def _row(
    task: WeekTask,
    last: Snapshot,
    busiest: Snapshot,
    moments: Sequence[tuple[int, Population]],
    rates: Sequence[Rates],
) -> WeekRow:
    now = moments[-1][1]
    name = now.namespace
    brokers = max(len(allowed_brokers(last, name)), 1)
    maximum = last.settings.integer(NAMESPACE_MAXIMUM_BUNDLES)
    numbers = usual_counts(now, maximum)
    by_moment = [count_rows(one, numbers, brokers) for _, one in moments]
    today = [count_row(one, now.boundaries, brokers) for _, one in moments]
    even = [fewest_even(rows, maximum) for rows in by_moment]
    advice = bundle_advice(busiest, name)
    new = sorted(set(advice.cuts.new) - set(now.boundaries))  # some may have been made since
    asked = advice.cuts_help and bool(new)
    cuts = sorted({*advice.cuts.boundaries, *now.boundaries})
    hold = sum(cuts_hold(cuts, now.boundaries, one, brokers) for _, one in moments) if asked else 0
    steady = asked and hold == len(moments)
    ahead = outlook(advice, last, rates, task.horizon_weeks)
    return WeekRow(
        cluster=task.cluster,
        namespace=name,
        moments=len(moments),
        first_ms=moments[0][0],
        last_ms=moments[-1][0],
        busiest_ms=busiest.info.captured_at_ms,
        topics=len(now),
        brokers=brokers,
        bundles=len(now.boundaries) - 1,
        largest_percent=max(one.largest_share_percent for one in today),
        placed_percent=max(one.placed_percent for one in today),
        even_bundles=fewest_even(_worst(by_moment), maximum),
        even_least=min(even),
        even_most=max(even),
        recommended_bundles=advice.recommended,
        new_cuts=len(new) if asked else 0,
        cuts_hold=hold,
        is_steady=steady,
        growth_percent_per_week=ahead.growth_percent_per_week,
        horizon_weeks=ahead.horizon_weeks,
        split_due_weeks=ahead.split_due_weeks,
        later_bundles=ahead.later_bundles,
        is_lasting=ahead.is_lasting,
        sentence=_sentence(advice, hold, len(moments), asked=asked, steady=steady),
        outlook=ahead.text,
    )


def _worst(by_moment: Sequence[Sequence[CountRow]]) -> tuple[CountRow, ...]:
    """Return each number of bundles at the moment at which brokers share it least evenly."""
    shares = np.array([[row.placed_percent for row in rows] for rows in by_moment])
    worst = shares.max(axis=0).tolist()
    return tuple(replace(row, placed_percent=most) for row, most in zip(by_moment[0], worst, strict=True))


def _sentence(advice: BundleAdvice, hold: int, moments: int, *, asked: bool, steady: bool) -> str:
    """Return the verdict of the busiest moment, and whether it is one of all moments."""
    if advice.cuts_help and not asked:
        return "Keep its bundles: the cuts for its busiest moment have been made since."
    if not asked or steady:
        return advice.sentence
    return f"Keep its bundles: cuts for its busiest moment are worth it in only {hold:,} of {moments:,} moments."


def task_to_json(task: WeekTask) -> str:
    """Return a task as text."""
    return msgspec.json.encode(task).decode()


def result_from_json(data: bytes) -> WeekResult:
    """Return the result that `run_task` made bytes of."""
    return msgspec.json.decode(data, type=WeekResult)


def run_task(text: str) -> bytes:
    """Run the task in a text, and return its result as bytes; whatever goes wrong is in the result."""
    task = msgspec.json.decode(text, type=WeekTask)
    began, error = time.monotonic(), ""
    rows: tuple[WeekRow, ...] = ()
    try:
        rows = advise_weeks(task)
    except PlannerError as failed:
        error = f"{failed.where}: {failed.what}" if failed.where else failed.what
    except Exception as failed:  # noqa: BLE001 - one task must not end the others
        traceback.print_exc()
        error = f"{type(failed).__name__}: {str(failed)[:200]}"
    result = WeekResult(task=task.task, rows=rows, seconds=time.monotonic() - began, error=error)
    return msgspec.json.encode(result)


def week_document(rows: Sequence[WeekRow]) -> list[Mapping[str, object]]:
    """Return rows as JSON values, those that change something first, then the least even ones."""
    return [msgspec.to_builtins(row) for row in ranked(rows)]


def weeks_csv(rows: Sequence[WeekRow]) -> str:
    """Return rows as CSV, with the fields of `WeekRow` as columns; what is not known is empty."""
    names = [one.name for one in fields(WeekRow)]
    return csv_text(names, ([getattr(row, name) for name in names] for row in ranked(rows)))


def ranked(rows: Sequence[WeekRow]) -> list[WeekRow]:
    """Return rows in the order in which people look at them: what changes something first, then the least even."""
    return sorted(
        rows,
        key=lambda row: (not row.is_steady, -row.placed_percent * row.brokers, row.cluster, row.namespace),
    )
