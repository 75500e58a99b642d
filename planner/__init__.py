"""What-if planner for Apache Pulsar broker load balancing.

Everything here is imported when it is first asked for; docs/notebook.md shows it at work.
"""

from importlib import import_module

from planner.cluster.version import VERSION

TYPE_CHECKING = (
    False  # the name that type checkers take for true; importing `typing` for it would cost more than the rest
)

if TYPE_CHECKING:
    from planner.cluster.errors import PlannerError
    from planner.cluster.snapshot import Snapshot
    from planner.doors.read import read_outputs
    from planner.explain.diagnosis import diagnose
    from planner.explain.outcome import Outcome
    from planner.namespaces.advice import bundle_advice
    from planner.notebook import (
        capture_cluster,
        compare,
        explain_decision,
        figure,
        forecast_splits,
        lint,
        load_snapshot,
        make_scenario,
        open_link,
        replay_history,
        run_scenario,
        to_arrow,
        to_pandas,
    )
    from planner.simulate.scenario import Scenario

__version__ = VERSION

__all__ = [
    "Outcome",
    "PlannerError",
    "Scenario",
    "Snapshot",
    "bundle_advice",
    "capture_cluster",
    "compare",
    "diagnose",
    "explain_decision",
    "figure",
    "forecast_splits",
    "lint",
    "load_snapshot",
    "make_scenario",
    "open_link",
    "read_outputs",
    "replay_history",
    "run_scenario",
    "to_arrow",
    "to_pandas",
]

_HOMES = {
    "Outcome": "explain.outcome",
    "PlannerError": "cluster.errors",
    "Scenario": "simulate.scenario",
    "Snapshot": "cluster.snapshot",
    "bundle_advice": "namespaces.advice",
    "diagnose": "explain.diagnosis",
    "read_outputs": "doors.read",
}


def __getattr__(name: str) -> object:
    """Import what is asked for.

    Raises:
        AttributeError: There is no such name.
    """
    if name not in __all__:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    found: object = getattr(import_module(f"planner.{_HOMES.get(name, 'notebook')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the names that are offered."""
    return sorted(__all__)
