"""Failure pattern of machines with fewer cores than the others: the same work fills them first."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.cluster.arrays import FloatArray
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.tables import BrokerTable
from planner.explain.finding import Finding, Severity, listed
from planner.explain.gate_patterns import APART
from planner.explain.outcome import Outcome
from planner.explain.unlike import beyond_limits, few_cores
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
    limit = case.trace.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
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
