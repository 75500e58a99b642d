"""Makes the scenarios of a replay: strategies times values of settings, and files that hold them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from planner.cluster.errors import FormatError, ReplayError, placed
from planner.cluster.files import check_spelling
from planner.cluster.releases import REFERENCE, RELEASES, ReleaseName
from planner.cluster.snapshot import Snapshot
from planner.explain.upgrade import before_upgrade, upgraded
from planner.formats.encoding import parse_json
from planner.history.days import read_day
from planner.history.manifest import complete_days
from planner.pulsar.shedding.registry import SHEDDERS, shedder_by_name
from planner.replay.spec import MOST_SCENARIOS, Job, grid
from planner.simulate.scenario import Scenario, scenario_from_json
from planner.simulate.strategies import WITH_A_STRATEGY, under_strategy
from planner.workspace.opening import bytes_of

_FORMAT: Final = "pulsar-bundle-planner scenarios"
_SHAPE: Final = "See docs/replay.md for the form of a grid."
_FIELDS: Final[Mapping[str, tuple[type, str]]] = {
    **dict.fromkeys(("strategies", "scenarios", "releases"), (list, "list")),
    "settings": (dict, "object of names and lists"),
    "with_base": (bool, "true or false"),
}
_MOST_NAME: Final = 120
_RELEASE: Final = 16
"""Room that the name of a release takes in that of a scenario."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Which scenarios to compare.

    Attributes:
        base: What all have in common.
        strategies: Shedding strategies by their class names; empty for the one in force.
        settings: Values to try, by the name of the setting.
        with_base: Whether the base itself is one of them, under the strategy in force.
        more: Further scenarios.
        releases: Releases of Pulsar that decide each scenario once more, beside the one that decides it anyway.
    """

    base: Scenario = field(default_factory=Scenario)
    strategies: tuple[str, ...] = ()
    settings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    with_base: bool = True
    more: tuple[Scenario, ...] = ()
    releases: tuple[ReleaseName, ...] = ()


def values_of(name: str, text: str) -> tuple[Any, ...]:
    """Read the values of a setting to try, with commas in between, each once.

    Raises:
        SettingError: There is no such setting, or it cannot have one of the values.
        ReplayError: There is none, or the setting is a list, which cannot be tried.
    """
    setting = REFERENCE.settings.get(name)
    if setting is None or setting.kind == "names":
        raise ReplayError("This setting cannot vary in a grid.", where=name[:100], remedy="Choose another setting.")
    values = tuple(dict.fromkeys(setting.parse(part.strip()) for part in text.split(",") if part.strip()))
    if not values:
        raise ReplayError("There are no values.", where=name, remedy="List values separated by commas.")
    return values


def first_snapshot(history: Path, cluster: str) -> Snapshot:
    """Return the first snapshot of a cluster in a history, without topics.

    Raises:
        FormatError: There is none, or it is damaged.
    """
    for day in complete_days(history, cluster):
        if day.damage is None:
            return next(read_day(day.path, topics=False))
    raise FormatError(
        f"The history has no cluster {cluster}.", where=history.name, remedy="Choose one of its clusters."
    )


def scenarios_of(wanted: Grid, snapshot: Snapshot) -> tuple[Scenario, ...]:
    """Return the scenarios of a grid, each with a name of its own, over the snapshot's settings and load manager.

    A setting that only other strategies read is not varied with a strategy, as every value would do the same.

    Raises:
        PlannerError: A name or value is wrong, or there are too many.
    """
    twice = [name for name in WITH_A_STRATEGY if name in wanted.settings] if wanted.strategies else []
    if twice:
        raise ReplayError(
            "A strategy sets this setting, so it cannot vary together with strategies.",
            where=", ".join(twice),
            remedy="Leave it out, or vary it without strategies.",
        )
    more = tuple(one.over(snapshot) for one in wanted.more)
    wanted = replace(wanted, base=wanted.base.over(snapshot), more=more)
    found: list[Scenario] = [replace(wanted.base, name=wanted.base.name or "as it is")] if wanted.with_base else []
    axes = [(strategy, read_with(strategy, wanted.settings)) for strategy in wanted.strategies]
    tried = [settings for _, settings in axes] or [dict(wanted.settings)]
    number = sum(math.prod(len(values) for values in settings.values()) for settings in tried if settings or axes)
    number = (number + len(wanted.more)) * (1 + len(wanted.releases))
    if number > MOST_SCENARIOS:
        raise ReplayError(
            f"The grid has {number:,} scenarios; the maximum is {MOST_SCENARIOS}.",
            where="strategies, settings, releases",
            remedy="Use fewer values or strategies.",
        )
    for strategy, settings in axes:
        row = under_strategy(wanted.base, snapshot.settings, snapshot.info.load_manager, strategy)
        for made in grid(row, settings):
            label = f"{row.name}, {made.name}" if settings else row.name
            found.append(replace(made, name=label[:_MOST_NAME]))
    if wanted.settings and not axes:
        found += grid(wanted.base, wanted.settings)
    found += wanted.more
    again = [
        replace(other, name=f"{one.name[: _MOST_NAME - _RELEASE]}, on {to}")
        for to in wanted.releases
        for one in found
        if (other := upgraded(before_upgrade(one, snapshot), snapshot, to)).pulsar_version != one.pulsar_version
    ]
    names: dict[str, Scenario] = {}
    for scenario in (*found, *again):
        if names.setdefault(scenario.name, scenario) != scenario:
            raise ReplayError(
                "Two scenarios of the grid have the same name.",
                where=scenario.name,
                remedy="Rename one of them, or use fewer values.",
            )
    return tuple(names.values())


def grids_of(
    files: Sequence[Path],
    base: Scenario | None,
    strategies: Sequence[str],
    settings: Sequence[str],
    releases: Sequence[ReleaseName] = (),
) -> list[Grid]:
    """Return the grids that the command line describes.

    Args:
        files: Files with grids, or with lists of scenarios.
        base: What all scenarios have in common, in place of the files' own; None for theirs.
        strategies: Shedding strategies of one more grid.
        settings: Its settings with the values to try, each as `name=value,value`.
        releases: Releases that decide each scenario once more.

    Raises:
        PlannerError: A file cannot be read, or a value is out of bounds.
    """
    found = [grid_from_json(bytes_of(str(path)), path.name) for path in files]
    if base is not None:
        found = [replace(read, base=base) for read in found]
    if strategies or settings or not found:
        parts = [text.partition("=") for text in settings]
        tried = {name: values_of(name, values) for name, _, values in parts}
        found.append(Grid(base=base or Scenario(), strategies=tuple(strategies), settings=tried))
    return [replace(read, releases=tuple(dict.fromkeys((*read.releases, *releases)))) for read in found]


def job_over(
    history: Path,
    grids: Sequence[Grid],
    clusters: Sequence[str] = (),
    first_day: str = "",
    last_day: str = "",
    **more: Any,
) -> Job:
    """Return a job that replays a history, or a part of it, under the scenarios of some grids.

    Args:
        history: Its root folder.
        grids: What is compared; a scenario that several have counts once.
        clusters: Clusters of it; all when there are none.
        first_day: First day, `yyyy-mm-dd` UTC; the first there is when empty.
        last_day: Last day, included; the last there is when empty.
        more: Other fields of the job.

    Raises:
        ReplayError: Two different scenarios have the same name, or that of the history is not UTF-8.
        FormatError: The history has no day of these clusters.
    """
    days = list(complete_days(history))
    wanted = tuple(clusters) or tuple(sorted({day.manifest.cluster for day in days}))
    covered = sorted(day.manifest.day for day in days if day.manifest.cluster in wanted)
    if not covered:
        raise FormatError(
            "The history has no complete day of these clusters.",
            where=str(history),
            remedy="Use a history that `python -m planner history` wrote.",
        )
    snapshot = first_snapshot(history, wanted[0])
    named: dict[str, Scenario] = {}
    for scenario in (one for wanted_grid in grids for one in scenarios_of(wanted_grid, snapshot)):
        if named.setdefault(scenario.name, scenario) != scenario:
            raise ReplayError("Two scenarios have the same name.", where=scenario.name, remedy="Rename one of them.")
    return Job(
        history=str(check_spelling(history)),
        clusters=wanted,
        first_day=first_day or covered[0],
        last_day=last_day or covered[-1],
        scenarios=tuple(named.values()),
        **more,
    )


def read_with(strategy: str, settings: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Return those of some settings that can matter under a strategy: its own, and those of none.

    Raises:
        SettingError: There is no such strategy.
    """
    mine = set(shedder_by_name(strategy).settings)
    owned = {name for shedder in SHEDDERS for name in shedder.settings}
    return {name: values for name, values in settings.items() if name in mine or name not in owned}


def grid_from_json(data: bytes, name: str) -> Grid:
    """Read a grid from the file named, whose fields are all optional but for the format; or a list of scenarios.

    Raises:
        PlannerError: It is none, or something in it is out of bounds.
    """
    content = parse_json(data, name)
    if isinstance(content, list):
        content = {"format": _FORMAT, "version": 1, "scenarios": content, "with_base": False}
    if not isinstance(content, dict) or content.get("format") != _FORMAT or content.get("version") != 1:
        raise FormatError(
            "This is not a grid of scenarios.",
            where=name,
            remedy=f'Write a list of scenarios, or an object with "format": "{_FORMAT}", "version": 1.',
        )
    with placed(name):
        return _grid(content)


def _grid(content: Mapping[str, Any]) -> Grid:
    for name, (kind, word) in _FIELDS.items():
        if not isinstance(content.get(name, kind()), kind):
            raise FormatError(f"This is not a valid {word}.", where=name, remedy=_SHAPE)
    settings, releases = content.get("settings", {}), tuple(content.get("releases", ()))
    if unlisted := [setting for setting, values in settings.items() if not isinstance(values, list)]:
        raise FormatError("This is not a list of values.", where=f"settings.{unlisted[0][:_MOST_NAME]}", remedy=_SHAPE)
    if unknown := [str(name)[:50] for name in releases if name not in RELEASES]:
        raise ReplayError(
            "This release of Pulsar is unknown.", where=unknown[0], remedy=f"Choose from {', '.join(RELEASES)}."
        )
    return Grid(
        base=scenario_from_json(content["base"]) if "base" in content else Scenario(),
        strategies=tuple(str(strategy) for strategy in content.get("strategies", ())),
        settings={
            setting: values_of(setting, ",".join(str(v).lower() if isinstance(v, bool) else str(v) for v in values))
            for setting, values in settings.items()
        },
        with_base=content.get("with_base", True),
        more=tuple(scenario_from_json(one) for one in content.get("scenarios", ())),
        releases=releases,
    )
