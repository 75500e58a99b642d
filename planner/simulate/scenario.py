"""A scenario: what is changed about a cluster, and for how long its load balancer is then watched.

A scenario is data. It can be written down, put into a link, compared with another one, and gives the same plan wherever
it is run on the same snapshot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from planner.cluster.complaints import first_complaint
from planner.cluster.errors import HIDDEN, ScenarioError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import SHEDDING_INTERVAL_MINUTES
from planner.cluster.releases import REFERENCE, RELEASES, Release, ReleaseName, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.switches import HELD_SWITCHES
from planner.pulsar.manager.class_names import in_full
from planner.simulate.assumptions import Assumptions
from planner.simulate.edits.edit import Edit
from planner.simulate.edits.registry import AnyEdit
from planner.simulate.measuring import measured_as_captured, measured_by_plans

FORMAT_VERSION: Final = 1
"""Version of the written form; raised when an old reader could misunderstand a new scenario."""

MOST_STEPS: Final = 500
"""Most edits of a scenario."""


@dataclass(frozen=True, slots=True)
class Step:
    """One edit and whether it counts."""

    edit: AnyEdit
    on: bool = True


def _shows_what_it_says(name: str) -> str:
    if HIDDEN.search(name):
        raise PydanticCustomError(
            "hidden", "it contains control characters or characters that change the text direction"
        )
    return name


_NO_SETTINGS: Mapping[str, str | int | float | bool] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is changed, and what is watched.

    Attributes:
        name: For people.
        steps: The edits in their order. Those at the same moment are made in this order.
        settings: Settings that differ from the snapshot's, by their `broker.conf` names; in force from the start.
        load_manager: The load manager to run; empty for the snapshot's own.
        pulsar_version: Release whose rules and defaults decide; empty for the snapshot's own.
        seed: Decides where Pulsar draws at random, and when each broker reports.
        cycles: Shedding cycles to watch; the first is decided at the moment of the snapshot.
        assumptions: What no snapshot tells.
    """

    name: Annotated[str, Field(max_length=120), AfterValidator(_shows_what_it_says)] = ""
    steps: Annotated[tuple[Step, ...], Field(max_length=MOST_STEPS)] = ()
    settings: Mapping[str, str | int | float | bool] = field(default_factory=lambda: _NO_SETTINGS)
    load_manager: Literal["", "modular", "extensible"] = ""
    pulsar_version: ReleaseName | Literal[""] = ""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    cycles: Annotated[int, Field(ge=1, le=100_000)] = 30
    assumptions: Assumptions = field(default_factory=Assumptions)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that count."""
        return tuple(step.edit for step in self.steps if step.on)

    @property
    def last_edit_min(self) -> float:
        """Minute at which the last edit begins, 0 without any."""
        return max((getattr(edit, "at_min", 0.0) for edit in self.edits), default=0.0)

    def settings_at(self, settings: Settings, minutes: float) -> Settings:
        """Return the settings in force at a minute of the scenario: shedding and splits may be held."""
        spans = (edit.held_min() for edit in self.edits)
        held = any(span is not None and span[0] <= minutes < span[1] for span in spans)
        return settings.changed(**dict.fromkeys(HELD_SWITCHES, False)) if held else settings

    def settings_over(self, snapshot: Snapshot) -> Settings:
        """Return the settings in force: the scenario's over the snapshot's.

        A scenario may name a class of Pulsar by its simple name; a broker's settings may not.

        Raises:
            SettingError: A name is unknown or a value out of bounds.
        """
        return Settings({**snapshot.settings.overrides, **in_full(self.settings)}, self.release_over(snapshot))

    def end_min(self, snapshot: Snapshot) -> float:
        """Return the minute after the last cycle.

        Raises:
            SettingError: A name is unknown or a value out of bounds.
        """
        return float(self.cycles * max(self.settings_over(snapshot).integer(SHEDDING_INTERVAL_MINUTES), 1))

    def within(self, snapshot: Snapshot) -> "Scenario":
        """Return the scenario with the edits switched off that are due after its last cycle, as none of them is made.

        Raises:
            SettingError: A name is unknown or a value out of bounds.
        """
        late = self._late(snapshot)
        return self.with_steps(*(replace(s, on=s.on and s not in late) for s in self.steps)) if late else self

    def too_late(self, snapshot: Snapshot) -> list[str]:
        """Return which edits are due after the last cycle, as a sentence each.

        Raises:
            SettingError: A name is unknown or a value out of bounds.
        """
        after = (
            f"it is due after the last of {self.cycles:,} cycles" if self.cycles > 1 else "it is due after the cycle"
        )
        return [f"Not made, as {after}: {step.edit.phrase()}. Simulate more cycles." for step in self._late(snapshot)]

    def _late(self, snapshot: Snapshot) -> tuple[Step, ...]:
        if not self.last_edit_min:
            return ()
        end_min = self.end_min(snapshot)
        return tuple(step for step in self.steps if step.on and getattr(step.edit, "at_min", 0.0) >= end_min)

    def measured_as_captured(self, snapshot: Snapshot) -> list[str]:
        """Return that usage is measured by the capture where the settings differ in that: a sentence or none.

        Raises:
            SettingError: A name is unknown or a value out of bounds.
        """
        return measured_as_captured(self.settings_over(snapshot), snapshot.settings)

    def measured_by_plans(self, snapshot: Snapshot) -> list[str]:
        """Return that plans from here measure usage by the settings, where these differ in that: a sentence or none.

        Raises:
            SettingError: A name is unknown or a value out of bounds.
        """
        return measured_by_plans(self.settings_over(snapshot), snapshot.settings)

    def release_over(self, snapshot: Snapshot) -> Release:
        """Return the release that decides: every command, page and simulation asks here."""
        return release(self.pulsar_version or snapshot.info.pulsar_version)

    def over(self, snapshot: Snapshot) -> "Scenario":
        """Return the scenario with the release that decides over a snapshot."""
        return self.on_brokers_of(snapshot.info.pulsar_version)

    def on_brokers_of(self, version: str) -> "Scenario":
        """Return the scenario with the release that decides on brokers of a version."""
        return self if self.pulsar_version else replace(self, pulsar_version=release(version).name)

    def load_manager_over(self, snapshot: Snapshot) -> LoadManager:
        """Return the load manager that runs."""
        return LoadManager(self.load_manager) if self.load_manager else snapshot.info.load_manager

    def with_steps(self, *steps: Step) -> "Scenario":
        """Return the scenario with other edits."""
        return replace(self, steps=steps)


def unchanged(version: str, **fields: Any) -> Scenario:
    """Return a scenario that changes nothing: the release of the cluster, as its snapshot names it, decides."""
    return Scenario(pulsar_version=release(version).name, **fields)


_ADAPTER: TypeAdapter[Scenario] = TypeAdapter(Scenario)
_DEFAULT = Scenario()


def scenario_to_json(scenario: Scenario) -> dict[str, Any]:
    """Return the written form: only what differs from the defaults, and the format's version.

    It names the release, unless the scenario leaves it to its snapshot.
    """
    full: dict[str, Any] = _ADAPTER.dump_python(scenario, mode="json", exclude_defaults=True)
    if "steps" in full:
        full["steps"] = [
            {"edit": {"kind": step.edit.kind, **written["edit"]}, **({} if step.on else {"on": False})}
            for step, written in zip(scenario.steps, full["steps"], strict=True)
        ]
    if scenario.settings:
        full["settings"] = {name: scenario.settings[name] for name in sorted(scenario.settings)}
    return {"version": FORMAT_VERSION, **full}


def _check_release(version: object) -> None:
    """Raise where a scenario names a release by whose rules nothing can be decided; the nearest one is named."""
    if isinstance(version, str) and version and version not in RELEASES:
        raise ScenarioError(
            f"There are no rules of Pulsar {version[:20]!r} here.",
            where="pulsar_version",
            remedy=f"Write {release(version).name}, whose rules are the nearest, or leave it out.",
        )


def scenario_from_json(document: Any) -> Scenario:
    """Read a scenario that may come from anywhere; one that names no release leaves it to its snapshot.

    Raises:
        ScenarioError: It is no scenario, of another version, or a value is out of bounds; the place is named.
        SettingError: It changes a setting that Pulsar does not have, or to a value that it cannot have.
    """
    if not isinstance(document, dict):
        raise ScenarioError(
            "This is not a scenario.", where="scenario", remedy="Use a file or a link that the planner wrote."
        )
    content = dict(document)
    version = content.pop("version", None)
    if version != FORMAT_VERSION:
        newer = isinstance(version, int) and not isinstance(version, bool) and version > FORMAT_VERSION
        if version is None:
            what, remedy = "The scenario names no format version.", f'Add "version": {FORMAT_VERSION}.'
        else:
            what = f"The scenario has format version {str(version)[:20]!r}; this planner reads {FORMAT_VERSION}."
            as_text = str(version).strip() == str(FORMAT_VERSION)
            again = f'Write "version": {FORMAT_VERSION}, a number.' if as_text else "Create the scenario again."
            remedy = "Update the planner." if newer else again
        raise ScenarioError(what, where="version", remedy=remedy)
    _check_release(content.get("pulsar_version"))
    try:
        scenario = _ADAPTER.validate_python(content, extra="forbid")
    except ValidationError as error:
        first = first_complaint(error)
        raise ScenarioError(
            f"The scenario cannot be read: {first.text[:1].lower()}{first.text[1:]}",
            where=".".join(map(str, first.place))[:200] or "scenario",
            remedy=first.remedy or "Correct that field. A scenario that the planner exports shows the format.",
        ) from error
    Settings(scenario.settings, release(scenario.pulsar_version or REFERENCE.name))
    return scenario
