"""Switches that are off although the strategy would act: what it would do if they were on."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.cluster.text import count
from planner.explain.finding import Finding, listed
from planner.explain.outcome import Outcome
from planner.explain.switched_off import switched_off
from planner.simulate.run import simulate


def shedding_off(case: Outcome) -> Iterator[Finding]:
    """Shedding was off when the cluster was captured and still is, and the strategy would shed if it were on."""
    trace = case.trace
    off = next((one for one in switched_off(trace.start) if one.stops_shedding), None)
    if off is None or trace.settings.flag(off.setting):
        return
    on = replace(trace.scenario, settings={**trace.scenario.settings, off.setting: True})
    cycles = simulate(trace.start, on).cycles
    sources = [unload.move.source for cycle in cycles for unload in cycle.unloads if unload.carried_out]
    if not sources:
        return
    named = tuple(dict.fromkeys(sources))
    yield Finding(
        code="shedding_off",
        title=f"{off.setting} is false, and {case.shedder} would shed",
        evidence=(
            f"Switched on, it would shed {count(len(sources), 'bundle')} in {count(len(cycles), 'cycle')}, from"
            f" {listed(named)}."
        ),
        remedy=f"{off.remedy.removesuffix('.')}.",
        severity="high" if float(np.nanmax(case.reported_usage[-1], initial=0.0)) > case.limit else "medium",
        brokers=named,
        settings=(off.setting,),
        changes={} if off.hold is not None else {off.setting: True},
    )
