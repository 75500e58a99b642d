"""What is to be known of a simulation before it runs: by what usage is measured, and what no snapshot tells."""

from typing import Final

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    DIRECT_MEMORY_RESOURCE_WEIGHT,
    MEMORY_RESOURCE_WEIGHT,
)
from planner.cluster.setting import conf_value
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.averages import DEFAULT_TRAFFIC
from planner.pulsar.load.usage import RESOURCE_WEIGHTS
from planner.pulsar.placement import modular

_WEIGHT: Final = "ResourceWeight"
"""How the names of weights end."""


def measured_by(captured: Settings, scenario: Settings) -> Settings:
    """Return the settings by which outcomes of a scenario are measured: those of the capture.

    Lower weights of the scenario count where the capture's show more than can be unloaded or than there is: memory,
    which no bundle takes along, and weights above 1.
    """
    memory = (MEMORY_RESOURCE_WEIGHT, DIRECT_MEMORY_RESOURCE_WEIGHT)
    least = {name: 0.0 if name in memory else 1.0 for name in (*memory, *RESOURCE_WEIGHTS)}
    lower = {name: max(scenario.number(name), floor) for name, floor in least.items()}
    return captured.changed(**{name: value for name, value in lower.items() if value < captured.number(name)})


def weighs_otherwise(config: Settings, measured: Settings) -> bool:
    """Say whether settings weigh resources otherwise than those by which outcomes are measured."""
    return any(name.endswith(_WEIGHT) for name in _changed(config, measured))


def measured_as_captured(config: Settings, captured: Settings) -> list[str]:
    """Return that usage is measured by the capture where other settings would do it otherwise: a sentence or none.

    Args:
        config: Settings of a scenario.
        captured: Settings of the capture.
    """
    measured = measured_by(captured, config)
    changed = _changed(config, measured)
    if not changed:
        return []
    values = ", ".join(f"{name} = {conf_value(config[name])}" for name in changed)
    limit = captured.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
    what = "the limit and the weights of the capture" if weighs_otherwise(config, measured) else "the captured limit"
    return [f"Usage is measured by {what} ({limit} %). {values} only changes what Pulsar decides."]


def measured_by_plans(config: Settings, captured: Settings) -> list[str]:
    """Return that best plans measure usage by the settings of a scenario, where that differs: a sentence or none.

    A plan is for the load balancer with these settings, which says whether it undoes the plan.

    Args:
        config: Settings of the scenario.
        captured: Settings of the capture.
    """
    values = ", ".join(
        f"{name} = {conf_value(config[name])}" for name in _changed(config, measured_by(captured, config))
    )
    return [f"Best plans measure usage as the scenario's load balancer does: {values}."] if values else []


def counted_for_itself(start: Snapshot, manager: LoadManager, config: Settings) -> list[str]:
    """Return what is to be known of bundles that nobody uses: which of them the leader counts no snapshot tells."""
    if manager is LoadManager.EXTENSIBLE or modular.configured_placement(config).measure != "msg_rate":
        return []
    unused = modular.unreported(start)
    rate = DEFAULT_TRAFFIC.msg_rate_in_per_s + DEFAULT_TRAFFIC.msg_rate_out_per_s
    text = (
        f"The leader, {start.info.leader}, owns bundles without topics ({len(unused):,}). "
        f"Pulsar's leader permanently counts those that it assigned to itself ({rate:.0f} msg/s each "
        "if no average is known), so it may place bundles differently."
    )
    return [text] if unused else []


def _changed(config: Settings, measured: Settings) -> list[str]:
    known = measured.release.settings
    return [
        name
        for name in sorted({*config.overrides, *measured.overrides})
        if name == BROKER_OVERLOADED_THRESHOLD_PERCENTAGE or name.endswith(_WEIGHT)
        if name in known and config[name] != measured[name]
    ]
