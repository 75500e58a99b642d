"""What a remedy needs besides: another setting stands behind the one that it changes, so that nothing is shed still."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from planner.cluster.names import SHEDDING_EXCLUDED_NAMESPACES
from planner.cluster.setting import SettingValue, conf_value
from planner.explain.gate_patterns import with_room
from planner.explain.outcome import Outcome
from planner.pulsar.shedding.profile import Remedy, WouldShed
from planner.simulate.what_if import opening_of


def with_what_else(remedy: Remedy, case: Outcome, would_shed: WouldShed) -> Remedy:
    """Return a remedy with the further settings without which the last cycle sheds nothing.

    These go back to their defaults. Where no default is enough, a minimum or a switch gets the nearest value that is.
    Counters are taken as full: they fill up by themselves.

    Args:
        remedy: What makes the strategy compare or choose.
        case: The outcome.
        would_shed: Whether the last cycle sheds under other settings.
    """
    config, profile = case.trace.settings, case.profile
    counters = {
        name: profile.eager[name]
        for gate in profile.gates.values()
        if gate.passes and not gate.skips
        for name in gate.settings
        if name in profile.eager and name in config and name not in {*remedy.changes, *profile.moves_nothing}
    }

    def sheds(more: Mapping[str, SettingValue]) -> bool:
        return would_shed(config.changed(**{**counters, **remedy.changes, **more}))

    if not remedy.changes or not remedy.changes.keys() <= profile.bounds.keys() or sheds({}):
        return remedy
    every = (*profile.bounds, SHEDDING_EXCLUDED_NAMESPACES)
    others = [name for name in every if name in config and name not in {*remedy.changes, *counters}]
    usual = {name: value for name in others if (value := config.of(name).default) != config[name]}
    found = usual if usual and sheds(usual) else {}
    for name in list(found):
        if sheds(fewer := {one: value for one, value in found.items() if one != name}):
            found = fewer
    if not found:
        gates = {name for gate in profile.gates.values() for name in gate.settings}
        found = _nearest(case, {**counters, **remedy.changes}, [name for name in others if name in gates])
    if not found:
        return remedy
    said = " and ".join(
        f"{name} to {conf_value(value) or 'nothing'}{', its default' if value == config.of(name).default else ''}"
        for name, value in found.items()
    )
    words = f"{remedy.words} That alone sheds nothing: set {said} as well."
    return replace(remedy, words=words, changes={**remedy.changes, **found})


def _nearest(case: Outcome, given: Mapping[str, SettingValue], names: list[str]) -> dict[str, SettingValue]:
    """Return the one further setting with which the last cycle sheds from the busiest broker; nothing for none."""
    usage = case.reported_usage[-1]
    if not np.isfinite(usage).any():
        return {}
    busiest = case.series.brokers[int(np.nanargmax(usage))]
    change = opening_of(case.trace, len(case.trace.cycles) - 1, busiest, names, given)
    return {} if change is None else {change.setting: with_room(change, case)}
