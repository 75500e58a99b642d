"""What a person changes about the scenario, on whichever page: strategies and settings, there and back."""

from dataclasses import replace
from typing import Any

from planner.cluster.errors import PlannerError
from planner.cluster.names import LOAD_PLACEMENT_STRATEGY, LOAD_SHEDDING_STRATEGY
from planner.cluster.releases import REFERENCE
from planner.cluster.setting import conf_value
from planner.cluster.settings import Settings
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.strategies import under_strategy
from planner.web import address, scenario_history, state
from planner.web.widgets import REFUSED, show_error

STRATEGIES = (LOAD_SHEDDING_STRATEGY, LOAD_PLACEMENT_STRATEGY)
"""Settings that name a strategy."""
SPLITS = "Automatic splits"
"""Other value of the part `strategy` of an address: the view of Hit counters beside the strategies."""


def take(view: state.Current, **changes: Any) -> None:
    """Change fields of the scenario; what is refused is said when the page is drawn."""
    try:
        scenario_history.change(view, replace(scenario_history.present(view), **changes))
    except PlannerError as error:
        REFUSED.put(error)


def put_setting(view: state.Current, name: str, value: Any) -> None:
    """Change one setting of the scenario."""
    plain = conf_value(value) if isinstance(value, tuple) or value is None else value
    take(view, settings={**scenario_history.present(view).settings, name: plain})


def drop_setting(view: state.Current, name: str) -> None:
    """Leave one setting as it is in the snapshot."""
    take(view, settings={n: value for n, value in scenario_history.present(view).settings.items() if n != name})


def set_setting(view: state.Current, name: str, given: Any) -> None:
    """Change one setting of the scenario, which drops what the snapshot has anyway."""
    if _is_own(view, name, given):
        drop_setting(view, name)
    else:
        put_setting(view, name, given)


def choose_shedder(view: state.Current, chosen: str) -> None:
    """Change the shedding strategy, with the load manager and the placement strategy that it needs."""
    own, manager = view.captured.settings, view.captured.info.load_manager
    found = under_strategy(scenario_history.present(view), own, manager, chosen)
    settings = {n: v for n, v in found.settings.items() if n not in STRATEGIES or not _is_own(view, n, v)}
    if not found.load_manager and chosen == effective_shedder(manager, own)[0].name:
        settings.pop(STRATEGIES[0], None)  # the snapshot may name another one, which this one replaces
    take(view, settings=settings, load_manager=found.load_manager)


def _is_own(view: state.Current, name: str, value: Any) -> bool:
    """Say whether the snapshot has a value anyway; strategies may be named with their package or without."""
    own = view.captured.settings[name]
    if name in STRATEGIES:
        return str(value).rpartition(".")[2] == str(own).rpartition(".")[2]
    return value in (own, conf_value(own))


def adopt_strategies(view: state.Current) -> None:
    """Take the strategies that an address of the planner's earlier versions names into the scenario."""
    asked = address.part("strategy")
    if asked and asked != SPLITS:
        if address.is_one_of("strategy", "Shedding strategy", [one.name for one in SHEDDERS]):
            choose_shedder(view, asked)
        address.put(strategy="")
    asked = address.part("placement")
    if asked:
        manager = scenario_history.present(view).load_manager_over(view.captured)
        offered = [one.name for one in PLACEMENTS if one.load_manager is manager]
        if address.is_one_of("placement", "Placement strategy", offered):
            set_setting(view, LOAD_PLACEMENT_STRATEGY, asked)
        address.put(placement="")


def adopt_settings(view: state.Current) -> None:
    """Take the settings that an address of the planner's earlier versions has by their names into the scenario."""
    for name, text in address.parts().items():
        if name not in REFERENCE.settings:
            continue
        try:
            value = REFERENCE.settings[name].parse(text)
            Settings({name: value})
        except PlannerError as error:
            show_error(error)
        else:
            set_setting(view, name, value)
        address.put(**{name: ""})
