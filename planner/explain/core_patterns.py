"""Failure patterns of machines with other cores than most.

The same work fills those with few first; those that report many look idle, and get more work.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.cluster.arrays import FloatArray
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BrokerTable
from planner.cluster.text import count
from planner.explain.finding import Finding, Severity, listed
from planner.explain.held import APART
from planner.explain.outcome import Outcome
from planner.explain.unlike import beyond_limits, few_cores, many_cores
from planner.pulsar.load.usage import RESOURCES, deciding_resource, weighted_usage
from planner.simulate.edits.registry import MachineChange
from planner.simulate.usage_model import UsageModel, at_the_end

_CPU = RESOURCES.index("cpu")


def fewer_cores(case: Outcome) -> Iterator[Finding]:
    """A broker has at most half the cores of the others, and stands out by its CPU for no other reason."""
    table = case.trace.cycles[0].view.brokers
    few = few_cores(table)
    if few is None:
        return
    usage, with_usual = case.reported_usage[0], usage_with_usual_cores(case)
    place = {name: at for at, name in enumerate(case.series.brokers)}
    of_others = usage[[place[name] for name in few.others]]
    if not np.isfinite(of_others).any():
        return
    others = float(of_others[np.isfinite(of_others)].mean())
    limit = case.limit
    decides = deciding_resource(table, case.trace.settings, case.load_manager)
    beyond = beyond_limits(table)[_CPU]  # those are impossible measurements

    def stands_out(used: float) -> bool:
        return used > limit or used - others >= APART

    odd = [
        name
        for name in few.brokers
        if decides[table.position[name]] == RESOURCES[_CPU]
        and not beyond[table.position[name]]
        and stands_out(float(usage[place[name]]))
        and not stands_out(float(with_usual[place[name]]))
    ]
    if not odd:
        return
    odd.sort(key=lambda name: -usage[place[name]])
    first, most = odd[0], float(usage[place[odd[0]]])
    here = float(table.cpu_limit_percent[table.position[first]]) / 100
    same = f" The same holds for {listed(odd[1:])}." if len(odd) > 1 else ""
    severity: Severity = "high" if most > limit else "medium"
    yield Finding(
        code="fewer_cores",
        title=f"{first} has {_cores(here)}, the others {few.usual:g}",
        evidence=(
            f"{first} uses {most * 100:.0f} % of its CPU, brokers with {_cores(few.usual)} {others * 100:.0f} % on"
            f" average. With {few.usual:g}, it would use {with_usual[place[first]] * 100:.0f} %.{same}"
        ),
        remedy=(
            f"Give {_cores(few.usual)} to {listed(odd)}: check the CPU limit of the container and"
            " -XX:ActiveProcessorCount. If it is meant to be smaller, it has to carry less than the others."
        ),
        severity="low" if case.calm else severity,
        brokers=tuple(odd),
        settings=(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,) if most > limit else (),
        edits=(MachineChange(brokers=tuple(odd), cores=few.usual),),
    )


def more_cores(case: Outcome) -> Iterator[Finding]:
    """A broker reports at least twice the cores of the others and is no larger otherwise: its usage looks low."""
    table = case.trace.cycles[0].view.brokers
    many = many_cores(table)
    if many is None:
        return
    limit = case.limit
    now, end = (_share_of(many.usual, seen) for seen in (table, case.last.brokers))
    order = sorted(many.brokers, key=lambda name: -max(now[name], end.get(name, 0.0)))
    first, others = order[0], [now[name] for name in many.others]
    here = float(table.cpu_limit_percent[table.position[first]]) / 100
    mean, most = sum(others) / len(others), end.get(first, now[first])
    hides = max(now[first], most) > limit or most - max(end.get(name, 0.0) for name in many.others) >= APART
    counts = hides or only_cores_apart(case.trace.start, case.trace.settings)
    received = sum(move.destination == first for move in case.moves)
    gets = f" Of {count(len(case.moves), 'move')} in the simulation, {received:,} go there." if received else ""
    later = f", and {most * 100:.0f} % at the end" if round(most * 100) != round(now[first] * 100) else ""
    same = f" The same holds for {listed(order[1:])}." if len(order) > 1 else ""
    yield Finding(
        code="more_cores",
        title=f"{first} reports {_cores(here)}, the others {many.usual:g}",
        evidence=(
            f"Its network and memory are no larger. It uses {now[first] * many.usual / here * 100:.0f} % of its CPU,"
            f" brokers with {_cores(many.usual)} {mean * 100:.0f} % on average. If it has {many.usual:g} as well, it"
            f" really uses {now[first] * 100:.0f} %{later}.{gets}{same}"
        ),
        remedy=(
            f"Check how many cores {listed(order)} may use: a container without a CPU limit reports all cores of its"
            f" host. Set the limit, or -XX:ActiveProcessorCount={math.ceil(many.usual)}, and restart. If it has"
            f" {here:g} cores, nothing is wrong. Not tried: which of the two is true is not in the snapshot."
        ),
        severity="medium" if counts and not case.calm else "low",
        brokers=tuple(order),
    )


def only_cores_apart(snapshot: Snapshot, config: Settings) -> bool:
    """Say whether brokers are apart only because one reports many more cores than the others (see `more_cores`)."""
    table = snapshot.brokers
    many = many_cores(table)
    if many is None:
        return False
    limits = table.cpu_limit_percent.copy()
    limits[[table.position[name] for name in many.brokers]] = many.usual * 100
    there = table.registered & table.has_load_data
    seen, usual = (
        weighted_usage(one, config, snapshot.info.load_manager)[there]
        for one in (table, replace(table, cpu_limit_percent=limits))
    )
    return float(np.ptp(seen)) >= APART > float(np.ptp(usual))


def _share_of(cores: float, table: BrokerTable) -> dict[str, float]:
    """Return the CPU that each broker uses as a share of so many cores."""
    return {name: used / (cores * 100) for name, used in zip(table.name, table.cpu_usage_percent.tolist(), strict=True)}


def usage_with_usual_cores(case: Outcome) -> FloatArray:
    """Return the first reported usage, had no broker few cores; in the columns of `case.series`. Shape (brokers,)."""
    view = case.trace.cycles[0].view.brokers
    usage = weighted_usage(_with_usual_cores(view), case.trace.settings, case.load_manager)
    found: FloatArray = case.in_columns([usage])[0]
    return found


def balanced_with_usual_cores(case: Outcome) -> float:
    """Return `Standing.balanced_usage` at the end, had no broker few cores."""
    end = at_the_end(case.trace)
    end = end.with_columns(brokers=_with_usual_cores(end.brokers))
    return UsageModel.of(end, case.trace.settings, case.trace.scenario.assumptions).balanced_usage()


def _with_usual_cores(table: BrokerTable) -> BrokerTable:
    few = few_cores(table)
    if few is None:
        return table
    limits = table.cpu_limit_percent.copy()
    limits[[table.position[name] for name in few.brokers]] = few.usual * 100
    return replace(table, cpu_limit_percent=limits)


def _cores(number: float) -> str:
    return f"{number:g} CPU core{'' if number == 1 else 's'}"
