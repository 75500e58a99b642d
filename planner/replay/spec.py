"""What a replay job is asked for: which history, which time, which scenarios, and how it is run."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, Final, get_args

from planner.cluster.errors import ReplayError, placed
from planner.cluster.settings import Settings
from planner.cluster.units import DAY_MS
from planner.formats.encoding import read_sealed, sealed_json
from planner.history.manifest import complete_days, day_start_ms
from planner.replay.kernel import ReplayTask
from planner.replay.runner import Runner
from planner.share.link import from_canonical
from planner.simulate.scenario import Scenario, scenario_to_json

MOST_SCENARIOS: Final = 500
"""Most scenarios of a job."""

MOST_TASKS: Final = 100_000
_MOST_NAME: Final = 100
_FILE: Final = "spec.json"
_FORMAT: Final = "pulsar-bundle-planner replay job"
_KINDS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("name", "history", "first_day", "last_day", "runner"), str),
    **dict.fromkeys(("days_per_task", "workers"), int),
    **dict.fromkeys(("clusters", "scenarios"), list),
}
_WORDS: Final[Mapping[type, str]] = {str: "text", int: "whole number", list: "list"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is asked for.

    Attributes:
        name: For people.
        history: Root folder of the history.
        clusters: Clusters of it.
        first_day: First day, `yyyy-mm-dd` UTC.
        last_day: Last day, included.
        days_per_task: Days that one task works through without a break; 0 for all of them. A task begins with who
            served what in the history at that moment, and with a leader that knows nothing.
        scenarios: What is compared; each has a name of its own.
        runner: Where it runs.
        workers: How many processes, or Spark's local cores, or tasks at once on a cluster; 0 for all there are.
    """

    name: str
    history: str
    clusters: tuple[str, ...]
    first_day: str
    last_day: str
    days_per_task: int = 1
    scenarios: tuple[Scenario, ...] = ()
    runner: Runner = "processes"
    workers: int = 0

    def check(self) -> None:
        """Refuse what cannot be run.

        Raises:
            PlannerError: Saying what is wrong with it.
        """
        names = [scenario.name for scenario in self.scenarios]
        if not self.scenarios or not self.clusters:
            raise ReplayError(
                "A replay needs a cluster and a scenario.", where=self.name, remedy="Choose at least one of each."
            )
        if len(names) > MOST_SCENARIOS:
            raise ReplayError(
                f"This replay has {len(names):,} scenarios; the maximum is {MOST_SCENARIOS}.",
                where="scenarios",
                remedy="Use fewer values or strategies, or submit several jobs.",
            )
        if len(set(names)) != len(names) or not all(names):
            raise ReplayError(
                "Two scenarios of a replay have the same name, or one has no name.",
                where="scenarios",
                remedy="Give each scenario its own name.",
            )
        if day_start_ms(self.last_day) < day_start_ms(self.first_day):
            raise ReplayError("The last day is before the first day.", where=self.last_day, remedy="Swap the two days.")
        if self.runner not in get_args(Runner) or self.days_per_task < 0 or self.workers < 0:
            raise ReplayError(
                "The options of this replay are not valid.",
                where="runner, workers, days_per_task",
                remedy="Use the runner local, processes or spark, and no negative numbers.",
            )
        for scenario in self.scenarios:
            Settings(scenario.settings)


def job_to_json(job: Job) -> str:
    """Return a job as text, the same for the same job."""
    content: dict[str, Any] = {field.name: getattr(job, field.name) for field in fields(job)}
    content["scenarios"] = [
        {**scenario_to_json(one), "pulsar_version": one.pulsar_version} for one in job.scenarios
    ]  # jobs of earlier versions left out the reference
    content |= {"format": _FORMAT, "version": 1}
    return sealed_json(content)


def job_from_json(text: bytes | str) -> Job:
    """Read a job.

    Raises:
        PlannerError: It is none, or cannot be run.
    """
    content = read_sealed(text, _FILE)
    with placed(_FILE):
        if content.pop("format", None) != _FORMAT or content.pop("version", None) != 1:
            raise _refused("format", f'A replay job of this version has "format": "{_FORMAT}" and "version": 1.')
        for name in sorted(content.keys() - _KINDS.keys()):
            raise _refused(name[:_MOST_NAME], "A replay job does not have this field.")
        for field in fields(Job):
            name, kind = field.name, _KINDS[field.name]
            if name not in content and field.default is MISSING:
                raise _refused(name, "The field is missing.")
            if name in content and type(content[name]) is not kind:
                raise _refused(name, f"This is not a valid {_WORDS[kind]}.")
        if not all(isinstance(name, str) for name in content["clusters"]):
            raise _refused("clusters", "This is not a list of names.")
        scenarios = []
        for number, given in enumerate(content.get("scenarios", ()), start=1):
            with placed(f"scenarios[{number}]"):
                scenarios.append(from_canonical(given))
        job = Job(**{**content, "clusters": tuple(content["clusters"]), "scenarios": tuple(scenarios)})
        job.check()
    return job


def _refused(field: str, what: str) -> ReplayError:
    return ReplayError(what, where=field, remedy="Correct the file, or submit the job again.")


def tasks_of(job: Job) -> list[ReplayTask]:
    """Return the tasks of a job: for each scenario, cluster and stretch of days one.

    Raises:
        ReplayError: The history has none of these days, or there would be too many tasks.
    """
    job.check()
    root = Path(job.history)
    first, last = day_start_ms(job.first_day), day_start_ms(job.last_day)
    tasks: list[ReplayTask] = []
    for cluster in job.clusters:
        days = [
            start for day in complete_days(root, cluster) if first <= (start := day_start_ms(day.manifest.day)) <= last
        ]
        for stretch in _stretches(sorted(days), job.days_per_task):
            for scenario in job.scenarios:
                name = f"{cluster}/{stretch[0] // DAY_MS}/{scenario.name}"
                span = {"start_ms": stretch[0], "end_ms": stretch[-1] + DAY_MS}
                tasks.append(ReplayTask(task=name, history=job.history, cluster=cluster, scenario=scenario, **span))
    if not tasks:
        raise ReplayError(
            "The history has none of these days.", where=root.name, remedy="Choose days that the history covers."
        )
    if len(tasks) > MOST_TASKS:
        raise ReplayError(
            f"This replay has {len(tasks):,} tasks; the maximum is {MOST_TASKS:,}.",
            where=root.name,
            remedy="Choose fewer scenarios, or more days per task.",
        )
    return tasks


def _stretches(days: Sequence[int], size: int) -> list[list[int]]:
    """Cut days into stretches of following days, at most so many in each."""
    found: list[list[int]] = []
    for day in days:
        if found and day - found[-1][-1] == DAY_MS and (size == 0 or len(found[-1]) < size):
            found[-1].append(day)
        else:
            found.append([day])
    return found


def grid(base: Scenario, settings: Mapping[str, Sequence[Any]]) -> tuple[Scenario, ...]:
    """Return a scenario for every combination of values of settings, over what all have in common, named after them.

    Raises:
        PlannerError: A name is unknown or a value out of bounds.
    """
    names = list(settings)
    made = []
    for number, values in enumerate(product(*settings.values()), start=1):
        chosen = dict(zip(names, values, strict=True))
        Settings({**base.settings, **chosen})
        label = ", ".join(f"{name.removeprefix('loadBalancer')}={value}" for name, value in chosen.items())
        label = label or base.name or "as it is"
        if len(label) > _MOST_NAME:
            label = f"{label[: _MOST_NAME - 6]} #{number}"
        made.append(replace(base, name=label, settings={**base.settings, **chosen}))
    return tuple(made)
