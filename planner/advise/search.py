"""Searches settings beside a grid: proposes scenarios in rounds, from what earlier rounds came to.

Optuna proposes. `bayesian` is its tree-structured Parzen estimator over two objectives (balance and disruption): it
models which values the front has and which the rest, and draws where the former are likely. `random` draws anywhere.
Both are seeded: the same space, results and seed give the same proposals on every machine and with every runner.

Which settings are searched follows from the strategies (`Shedder.settings`), and how far from the settings catalogue.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState, create_trial

from planner.advise.advice import Advice, Configured
from planner.advise.advisor import advise
from planner.advise.material import rows_of
from planner.advise.objectives import OBJECTIVES, Question
from planner.cluster.errors import PlannerError, SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    BROKER_LOAD_DATA_TTL_IN_SECONDS,
    BROKER_MAX_TOPICS,
    DEBUG_MODE_ENABLED,
    FAILURE_DOMAINS_ENABLED,
    LOAD_PLACEMENT_STRATEGY,
    LOAD_SHEDDING_STRATEGY,
    PREFER_LATER_VERSIONS,
    SHEDDING_BUNDLES_WITH_POLICIES_ENABLED,
    SHEDDING_EXCLUDED_NAMESPACES,
)
from planner.cluster.releases import REFERENCE
from planner.cluster.settings import Settings
from planner.pulsar.manager.class_names import in_full
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.manager.pairing import placement_beside
from planner.pulsar.shedding.registry import SHEDDERS, has_shedder, shedder_by_name
from planner.replay.aggregate import DayRow
from planner.replay.kernel import ReplayTask, TaskResult
from planner.replay.spec import Job, tasks_of
from planner.simulate.scenario import Scenario

Method: TypeAlias = Literal["bayesian", "random"]
"""Methods that propose scenarios."""

Evaluate: TypeAlias = Callable[[Sequence[ReplayTask]], Iterable[TaskResult]]
"""Runs tasks: any runner of `planner.replay.runners` with its other arguments given."""

_SPAN: Final = 5.0
_HUNDRED: Final = 100
_STARTUP: Final = 10
_TRIES: Final = 20
_MOST: Final = 1_000
_MOST_NAME: Final = 120
_PERCENT_UNITS: Final = ("percentage points", "score points")

_YARDSTICKS: Final = frozenset(
    name for objective in OBJECTIVES for name in objective.yardstick if name.endswith("ResourceWeight")
)
# What no strategy is tuned with: who may be shed at all, how long data counts, how much is logged.
_NOT_TUNED: Final = frozenset(
    {
        SHEDDING_EXCLUDED_NAMESPACES,
        SHEDDING_BUNDLES_WITH_POLICIES_ENABLED,
        BROKER_MAX_TOPICS,
        PREFER_LATER_VERSIONS,
        FAILURE_DOMAINS_ENABLED,
        DEBUG_MODE_ENABLED,
        BROKER_LOAD_DATA_TTL_IN_SECONDS,
    }
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A setting that is searched.

    Attributes:
        name: Its `broker.conf` name.
        low: Least value tried; None for a switch, which is tried on and off.
        high: Greatest value tried.
    """

    name: str
    low: float | None
    high: float | None

    @property
    def distribution(self) -> BaseDistribution:
        """What Optuna draws from; over several sizes, small values as often as large ones."""
        if self.low is None or self.high is None:
            return CategoricalDistribution([False, True])
        wide = self.low > 0 and self.high / self.low > _SPAN
        if REFERENCE.settings[self.name].kind in {"int", "long"}:
            return IntDistribution(int(self.low), int(self.high), log=wide and self.low >= 1)
        return FloatDistribution(float(self.low), float(self.high), log=wide)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    """Where to search.

    Attributes:
        base: What all scenarios have in common.
        config: Settings in force where a scenario says nothing.
        own: The cluster's own settings.
        load_manager: The load manager that runs.
        shedders: Shedding strategies to choose among, by simple class name; at least one.
        parameters: What is searched; a setting that a strategy does not read is not searched with that one.
    """

    base: Scenario
    config: Settings
    own: Settings
    load_manager: LoadManager
    shedders: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    def parameters_of(self, shedder: str) -> tuple[Parameter, ...]:
        """Return what is searched with a strategy: settings that it reads, and those that no strategy reads alone."""
        owned = {name for one in SHEDDERS for name in one.settings}
        mine = set(shedder_by_name(shedder).settings)
        return tuple(one for one in self.parameters if one.name in mine or one.name not in owned)


@dataclass(frozen=True, slots=True)
class Trial:
    """What is known of a scenario.

    Attributes:
        scenario: What was replayed.
        costs: Its indices of balance and of disruption; None when it failed.
    """

    scenario: Scenario
    costs: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found.

    Attributes:
        scenarios: Everything that was replayed, in the order of its rounds.
        rows: What it came to.
        rounds: Names of the scenarios of each round; the first is what was given.
        errors: Why tasks failed, by task.
    """

    scenarios: tuple[Scenario, ...]
    rows: tuple[DayRow, ...]
    rounds: tuple[tuple[str, ...], ...]
    errors: Mapping[str, str]


def parameter(name: str, low: float | None = None, high: float | None = None) -> Parameter:
    """Return a setting to search, between bounds that the catalogue suggests where none are given.

    Suggested is a fifth of the default of Pulsar 4.2.4 to five times it, within what the setting accepts; percentages
    of a whole end at 100, fractions start at 0 and end at 1. A switch has no bounds.

    Raises:
        SettingError: There is no such setting, it is neither number nor switch, has no default to start from, or the
            bounds are not its own.
    """
    if name not in REFERENCE.settings:
        Settings({name: ""})
    setting = REFERENCE.settings[name]
    if setting.kind == "boolean":
        return Parameter(name, None, None)
    if setting.kind not in {"int", "long", "double"} or not isinstance(setting.default, int | float):
        raise SettingError(
            "Only numbers and switches can be searched.", where=name, remedy="To compare names, replay a grid."
        )
    least, most = _suggested(name, float(setting.default))
    least, most = (least if low is None else low), (most if high is None else high)
    if math.isnan(least) or math.isnan(most):
        raise SettingError(
            "The default of this setting does not imply a range.",
            where=name,
            remedy="Specify a lowest and a highest value.",
        )
    if setting.kind != "double":
        least, most = math.ceil(least), math.floor(most)
    for value in (least, most):
        setting.parse(value)
    if least >= most:
        raise SettingError("The lowest value must be below the highest.", where=name, remedy="Use a wider range.")
    return Parameter(name, least, most)


def _suggested(name: str, default: float) -> tuple[float, float]:
    setting = REFERENCE.settings[name]
    if setting.unit == "fraction":
        return 0.0, 1.0
    if default <= 0:
        return math.nan, math.nan
    least, most = default / _SPAN, default * _SPAN
    whole = setting.unit in _PERCENT_UNITS or (setting.unit == "percent" and name.endswith("Percentage"))
    if whole and default <= _HUNDRED:
        most = min(most, _HUNDRED)
    low = -math.inf if setting.minimum is None else setting.minimum
    high = math.inf if setting.maximum is None else setting.maximum
    return max(least, low, 1.0 if setting.kind != "double" else least), min(most, high)


def _tunable(name: str) -> bool:
    setting = REFERENCE.settings[name]
    if name in _YARDSTICKS or name in _NOT_TUNED:
        return False
    if setting.kind == "boolean":
        return True
    return isinstance(setting.default, int | float) and (setting.unit == "fraction" or setting.default > 0)


def space_of(
    base: Scenario,
    configured: Configured,
    shedders: Sequence[str] = (),
    parameters: Sequence[Parameter] = (),
) -> SearchSpace:
    """Return a space to search.

    Args:
        base: What all scenarios have in common.
        configured: How the cluster is set now.
        shedders: Strategies to choose among; the one that the scenario runs when empty.
        parameters: What to search; what these strategies are tuned with when empty: the numbers and switches that they
            read, but not the weights that usage itself is measured with.

    Raises:
        SettingError: A strategy is unknown, or not one of the load manager or of the release.
    """
    manager = LoadManager(base.load_manager) if base.load_manager else configured.load_manager
    config = configured.settings.changed(**in_full(base.settings))
    running = (effective_shedder(manager, config)[0].name,)
    names = tuple(dict.fromkeys(shedder_by_name(name).name for name in shedders or running))
    for name in names:
        if shedder_by_name(name).load_manager is not manager:
            raise SettingError(
                f"The {manager} load manager cannot run {name}.",
                where=LOAD_SHEDDING_STRATEGY,
                remedy="Choose other strategies.",
            )
        if not has_shedder(config.release, shedder_by_name(name)):
            raise SettingError(
                f"Pulsar {config.release.name} has no {name}.",
                where=LOAD_SHEDDING_STRATEGY,
                remedy="Choose other strategies.",
            )
    chosen = tuple(parameters) or tuple(
        parameter(name)
        for name in dict.fromkeys(name for shedder in names for name in shedder_by_name(shedder).settings)
        if _tunable(name) and name in config
    )
    return SearchSpace(
        base=base,
        config=config,
        own=configured.settings,
        load_manager=manager,
        shedders=names,
        parameters=chosen,
    )


def widened(space: SearchSpace, scenarios: Sequence[Scenario]) -> SearchSpace:
    """Return a space whose bounds also hold the values that were tried before, so that they can be learned from."""
    made = []
    for one in space.parameters:
        low, high = one.low, one.high
        for value in [space.config.changed(**tried.settings)[one.name] for tried in scenarios]:
            if low is not None and high is not None and isinstance(value, int | float):
                low, high = min(low, value), max(high, value)
        made.append(Parameter(one.name, low, high))
    return replace(space, parameters=tuple(made))


# Proposals


def _place_of(space: SearchSpace, scenario: Scenario) -> tuple[dict[str, Any], dict[str, BaseDistribution]] | None:
    """Return where in the space a scenario lies; None when it lies outside."""
    config = _values(space, scenario)
    shedder = _running(space, config)
    same = replace(scenario, name="", settings={}) == replace(space.base, name="", settings={})
    if not same or shedder not in space.shedders:
        return None
    given: dict[str, Any] = {}
    ranges: dict[str, BaseDistribution] = {}
    if len(space.shedders) > 1:
        given[LOAD_SHEDDING_STRATEGY], ranges[LOAD_SHEDDING_STRATEGY] = (
            shedder,
            CategoricalDistribution(list(space.shedders)),
        )
    for one in space.parameters_of(shedder):
        value = config[one.name]
        inside = one.low is None or (isinstance(value, int | float) and one.low <= value <= (one.high or 0))
        if not inside:
            return None
        given[one.name], ranges[one.name] = value, one.distribution
    return given, ranges


def _sampler(method: Method, seed: int, trials: Sequence[Trial]) -> optuna.samplers.BaseSampler:
    """Return what draws; its seed follows from the given one and from what is known, so that rounds differ."""
    known = json.dumps([seed, [one.scenario.name for one in trials]])
    mixed = int.from_bytes(hashlib.sha256(known.encode()).digest()[:4], "big")
    if method == "random":
        return optuna.samplers.RandomSampler(seed=mixed)
    return optuna.samplers.TPESampler(seed=mixed, n_startup_trials=_STARTUP)


def propose(
    space: SearchSpace, trials: Sequence[Trial], count: int, *, method: Method = "bayesian", seed: int = 0
) -> tuple[Scenario, ...]:
    """Return so many scenarios to replay next, none of which is known; trials outside the space are passed over.

    Returns:
        Fewer when the space has not so many more.

    Raises:
        SettingError: The number makes no sense.
    """
    if not 1 <= count <= _MOST:
        raise SettingError(f"Cannot propose {count} scenarios.", remedy=f"Use a number from 1 to {_MOST:,}.")
    study = _study(space, trials, _sampler(method, seed, trials))
    taken = {one.scenario.name for one in trials}
    known = {_values(space, one.scenario) for one in trials}
    found: list[Scenario] = []
    for _ in range(count * _TRIES):
        scenario = _draw(space, study.ask())
        if _values(space, scenario) in known:
            continue
        known.add(_values(space, scenario))
        number = len(trials) + len(found) + 1
        while f"try {number:03}" in taken:
            number += 1
        taken.add(f"try {number:03}")
        found.append(replace(scenario, name=f"try {number:03}"))
        if len(found) == count:
            break
    return tuple(found)


def _study(space: SearchSpace, trials: Sequence[Trial], sampler: optuna.samplers.BaseSampler) -> optuna.Study:
    """Return a study that knows what is known."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    for one in trials:
        place = _place_of(space, one.scenario)
        if place is None:
            continue
        if one.costs is None:
            study.add_trial(create_trial(state=TrialState.FAIL, params=place[0], distributions=place[1]))
        else:
            study.add_trial(create_trial(values=list(one.costs), params=place[0], distributions=place[1]))
    return study


def _running(space: SearchSpace, config: Settings) -> str:
    """Return the strategy that runs under some settings."""
    return effective_shedder(shedder_by_name(space.shedders[0]).load_manager, config)[0].name


def _values(space: SearchSpace, scenario: Scenario) -> Settings:
    return space.config.changed(**in_full(scenario.settings))


def _draw(space: SearchSpace, trial: optuna.Trial) -> Scenario:
    settings: dict[str, str | int | float | bool] = dict(space.base.settings)
    shedder = space.shedders[0]
    if len(space.shedders) > 1:
        shedder = trial.suggest_categorical(LOAD_SHEDDING_STRATEGY, list(space.shedders))
        settings |= _with_placement(space, shedder)
    for one in space.parameters_of(shedder):
        settings[one.name] = _suggest(one, trial)
    return replace(space.base, settings=settings)


def _with_placement(space: SearchSpace, shedder: str) -> dict[str, str | int | float | bool]:
    """Return the strategy with the placement that it needs, where that is another one."""
    settings: dict[str, str | int | float | bool] = {LOAD_SHEDDING_STRATEGY: shedder}
    if space.load_manager is LoadManager.MODULAR:
        place = placement_beside(shedder_by_name(shedder), space.config, space.own)
        if place != space.config.text(LOAD_PLACEMENT_STRATEGY).rpartition(".")[2]:
            settings[LOAD_PLACEMENT_STRATEGY] = place
    return settings


def _suggest(one: Parameter, trial: optuna.Trial) -> int | float | bool:
    match one.distribution:
        case IntDistribution(low=low, high=high, log=log):
            return trial.suggest_int(one.name, low, high, log=log)
        case FloatDistribution(low=low, high=high, log=log):
            drawn = trial.suggest_float(one.name, low, high, log=log)
            return min(max(float(f"{drawn:.3g}"), low), high)
        case _:
            return bool(trial.suggest_categorical(one.name, [False, True]))


def neighbours(space: SearchSpace, scenario: Scenario, known: Sequence[Scenario] = ()) -> tuple[Scenario, ...]:
    """Return scenarios that differ from one in one setting each, to see how far it can move.

    Each setting takes two steps to each side; a step goes a quarter of the way that is left to the bound. Scenarios
    that are known need no replay; their names are not used again.
    """
    config = _values(space, scenario)
    shedder = _running(space, config)
    seen = {config, *(_values(space, one) for one in known)}
    names = {one.name for one in known}
    found: list[Scenario] = []
    for one in space.parameters_of(shedder):
        for value in _beside(one, config[one.name]):
            moved = replace(scenario, settings={**scenario.settings, one.name: value})
            # What differs comes first, as names are cut.
            name = f"{one.name.removeprefix('loadBalancer')}={value} near {scenario.name}"[:_MOST_NAME]
            if _values(space, moved) not in seen and name not in names:
                seen.add(_values(space, moved))
                names.add(name)
                found.append(replace(moved, name=name))
    return tuple(found)


def _beside(one: Parameter, now: object) -> list[int | float | bool]:
    if one.low is None or one.high is None or isinstance(now, bool) or not isinstance(now, int | float):
        return [not now]
    whole = REFERENCE.settings[one.name].kind != "double"
    values: list[int | float | bool] = []
    for bound in (one.low, one.high):
        at = float(now)
        for _ in range(2):
            at += (bound - at) / 4
            values.append(round(at) if whole else float(f"{at:.3g}"))
    return values


# The loop


def trials_of(advice: Advice, scenarios: Sequence[Scenario]) -> tuple[Trial, ...]:
    """Return what an advice means to a search: the costs of what could be compared, and that the rest failed."""
    costs = {one.name: (one.balance, one.disruption) for one in advice.candidates}
    return tuple(Trial(scenario, costs.get(scenario.name)) for scenario in scenarios)


def _known(
    rows: Sequence[DayRow], scenarios: Sequence[Scenario], question: Question, configured: Mapping[str, Configured]
) -> tuple[Trial, ...]:
    try:
        advice = advise(rows, scenarios, question, configured)
    except PlannerError:
        return tuple(Trial(scenario, None) for scenario in scenarios)
    return trials_of(advice, scenarios)


def search(
    job: Job,
    space: SearchSpace,
    evaluate: Evaluate,
    *,
    rounds: int = 3,
    size: int = 8,
    method: Method = "bayesian",
    seed: int = 0,
    question: Question | None = None,
    configured: Mapping[str, Configured] | None = None,
) -> SearchResult:
    """Replay what is given, then round after round what is proposed from that.

    Args:
        job: History, clusters, days, and the scenarios to begin with; the current settings should be among them.
        space: Where to search.
        evaluate: Runs the tasks of a round.
        rounds: Rounds after what is given.
        size: Scenarios in each.
        method: How to search.
        seed: Decides the draws.
        question: What counts.
        configured: How each cluster is set now.

    Raises:
        PlannerError: The question cannot be answered, or the job cannot be run.
    """
    asked = question or Question()
    asked.check()
    scenarios: list[Scenario] = []
    rows: list[DayRow] = []
    errors: dict[str, str] = {}
    names: list[tuple[str, ...]] = []
    fresh: tuple[Scenario, ...] = job.scenarios
    for _ in range(rounds + 1):
        if not fresh:
            break
        tasks = tasks_of(replace(job, scenarios=fresh))
        results = list(evaluate(tasks))
        errors |= {result.task: result.error for result in results if result.error}
        rows += rows_of(tasks, results)
        scenarios += fresh
        names.append(tuple(one.name for one in fresh))
        if len(results) < len(tasks):
            break  # it was cancelled
        trials = _known(rows, scenarios, asked, configured or {})
        fresh = propose(space, trials, size, method=method, seed=seed) if len(names) <= rounds else ()
    return SearchResult(scenarios=tuple(scenarios), rows=tuple(rows), rounds=tuple(names), errors=errors)
