"""By what usage is measured: the limit and the weights of the capture, whatever a scenario makes of them."""

from typing import Final

from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.setting import conf_value
from planner.cluster.settings import Settings

_WEIGHT: Final = "ResourceWeight"
"""How the names of weights end."""


def weighs_otherwise(config: Settings, captured: Settings) -> bool:
    """Say whether settings weigh resources otherwise than those of the capture."""
    return any(name.endswith(_WEIGHT) for name in _changed(config, captured))


def measured_as_captured(config: Settings, captured: Settings) -> list[str]:
    """Return that usage is measured by the capture where other settings would do it otherwise: a sentence or none.

    Args:
        config: Settings of a scenario.
        captured: Settings of the capture.
    """
    changed = _changed(config, captured)
    if not changed:
        return []
    values = ", ".join(f"{name} = {conf_value(config[name])}" for name in changed)
    limit = captured.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
    what = "the limit and the weights of the capture" if weighs_otherwise(config, captured) else "the captured limit"
    return [f"Usage is measured by {what} ({limit} %). {values} only changes what Pulsar decides."]


def measured_by_plans(config: Settings, captured: Settings) -> list[str]:
    """Return that best plans measure usage by the settings of a scenario, where that differs: a sentence or none.

    A plan is for the load balancer with these settings, which says whether it undoes the plan.

    Args:
        config: Settings of the scenario.
        captured: Settings of the capture.
    """
    values = ", ".join(f"{name} = {conf_value(config[name])}" for name in _changed(config, captured))
    return [f"Best plans measure usage as the scenario's load balancer does: {values}."] if values else []


def _changed(config: Settings, captured: Settings) -> list[str]:
    known = captured.release.settings
    return [
        name
        for name in sorted({*config.overrides, *captured.overrides})
        if name == BROKER_OVERLOADED_THRESHOLD_PERCENTAGE or name.endswith(_WEIGHT)
        if name in known and config[name] != captured[name]
    ]
