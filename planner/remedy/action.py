"""What an operator can do about a cluster, as data: settings, edits, and the restart that they need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from planner.cluster.setting import SettingValue, conf_value
from planner.cluster.settings import Settings
from planner.cluster.text import count, without_package
from planner.explain.finding import listed
from planner.simulate.edits.registry import AnyEdit, BrokersRestart, BundleSplit
from planner.simulate.scenario import Scenario, Step

Kind: TypeAlias = Literal[
    "strategy", "setting", "switch", "moves", "split", "brokers", "partitions", "machines", "policy"
]
"""Kinds of actions. Two of one kind are alternatives, not a pair."""

_RESTART_MIN: Final = 15.0
"""Minutes within which a rolling restart is simulated, so that all brokers are back within the usual 30 cycles."""
_EACH_MIN: Final = 1.5
"""Most minutes for one broker, two thirds of them down."""
_NAMED: Final = 2
"""Edits that are named at most."""
NEEDS_RESTART: Final = frozenset({"restart", "migration"})
"""`Setting.takes_effect` of the settings that running brokers do not apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to do.

    Attributes:
        kind: What kind of thing.
        words: What to do, as a short imperative.
        settings: Settings to change, with their values.
        edits: What else to do, from the first moment on.
        restart: Settings of those that brokers read only when they start, so that a rolling restart is a part of it.
    """

    kind: Kind
    words: str
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    edits: tuple[AnyEdit, ...] = ()
    restart: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from others, whatever its words."""
        return tuple(sorted((name, conf_value(value)) for name, value in self.settings.items())), self.edits

    def on(self, scenario: Scenario) -> Scenario:
        """Return a scenario with the action, without the restart that it needs."""
        settings = {**scenario.settings, **{name: _plain(value) for name, value in self.settings.items()}}
        return replace(scenario, settings=settings, steps=(*scenario.steps, *map(Step, self.edits)))

    def with_restart(self, scenario: Scenario, restart: BrokersRestart | None) -> Scenario:
        """Return a scenario with the action, and with a restart, if given, where it needs one."""
        changed = self.on(scenario)
        if restart is None or not self.restarts(scenario):
            return changed
        return changed.with_steps(*changed.steps, Step(restart))

    def restarts(self, scenario: Scenario) -> bool:
        """Say whether it needs a rolling restart that the scenario does not make anyway."""
        return bool(self.restart) and not any(isinstance(edit, BrokersRestart) for edit in scenario.edits)


def words_of(edits: Sequence[AnyEdit]) -> str:
    """Return edits as a short imperative that names the first ones; several splits by their number."""
    splits = [edit for edit in edits if isinstance(edit, BundleSplit)]
    if len(splits) == len(edits) > 1:
        spaces = listed(list(dict.fromkeys(one.bundle.rpartition("/")[0] for one in splits)))
        by = dict.fromkeys(one.algorithm for one in splits)
        return f"Make {count(len(splits), 'split')} in {spaces}{f' by {next(iter(by))}' if len(by) == 1 else ''}"
    words = "; ".join(edit.phrase() for edit in edits[:_NAMED])
    more = f" and {len(edits) - _NAMED} more" if len(edits) > _NAMED else ""
    return f"{words[:1].upper()}{words[1:]}{more}"


def restart_of(brokers: int) -> BrokersRestart:
    """Return a rolling restart of so many brokers that ends well within the usual 30 cycles."""
    each_min = min(_EACH_MIN, _RESTART_MIN / max(brokers, 1))
    return BrokersRestart(down_min=each_min * 2 / 3, pause_min=each_min / 3)


def settings_action(kind: Kind, changes: Mapping[str, SettingValue], config: Settings, words: str = "") -> Action:
    """Return the action that changes settings.

    Args:
        kind: Its kind.
        changes: The values by setting.
        config: Settings in force, which know what needs a restart.
        words: What to do; the settings themselves by default.
    """
    shown = {name: without_package(conf_value(value)) for name, value in changes.items()}
    said = ", ".join(f"{name} = {value}" if value else f"{name} to nothing" for name, value in shown.items())
    known = config.release.settings
    restart = tuple(
        name
        for name, value in changes.items()
        if name in known and known[name].takes_effect in NEEDS_RESTART and config[name] != value
    )
    return Action(kind=kind, words=words or f"Set {said}", settings=dict(changes), restart=restart)


def both(one: Action, two: Action) -> Action:
    """Return two actions as one."""
    return Action(
        kind=one.kind,
        words=f"{one.words}, and {two.words[:1].lower()}{two.words[1:]}",
        settings={**one.settings, **two.settings},
        edits=(*one.edits, *two.edits),
        restart=tuple(dict.fromkeys((*one.restart, *two.restart))),
    )


def _plain(value: SettingValue) -> str | int | float | bool:
    return conf_value(value) if value is None or isinstance(value, tuple) else value
