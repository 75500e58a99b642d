"""The settings in force, from the brokers' runtime configuration and the dynamic overrides of a raw capture."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from planner.cluster.errors import SettingError
from planner.cluster.java import java_boolean
from planner.cluster.releases import REFERENCE, Release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import MAX_TEXT
from planner.formats.raw_capture.answers import Answers
from planner.formats.raw_capture.identity import CapturedBrokers
from planner.formats.raw_capture.metadata_store import MetadataStore
from planner.pulsar.manager.class_names import OFFICIAL_CLASSES, class_name

_DYNAMIC = "/admin/configuration"


@dataclass(frozen=True, slots=True)
class CapturedSettings:
    """The settings of a capture.

    Attributes:
        in_force: Those in force.
        source: Where they come from, as `SnapshotInfo.settings_from`.
        dynamic: Dynamic overrides, as `SnapshotInfo.dynamic_settings`.
    """

    in_force: Settings
    source: Literal["brokers", "defaults"]
    dynamic: Mapping[str, str] | None


def read_capture_settings(
    answers: Answers, store: MetadataStore, brokers: CapturedBrokers, leader: str, decides: Release
) -> CapturedSettings:
    """Return the settings in force: those of the leader where brokers differ, dynamic overrides above all.

    Names that the planner does not know are passed over. A class of one's own whose name ends in that of an official
    strategy is taken for it, with a warning.
    """
    answered = sorted(brokers.aliases, key=lambda broker: (broker != leader, brokers.names.index(broker)))
    configured = [
        _known(answers.json(f"runtime-config.{brokers.aliases[b]}", dict, "The settings of another broker are used."))
        for b in answered
    ]
    if not any(configured):
        configured = [_known(answers.json("runtime-config", dict))]  # of whoever is behind one address
    configured = [values for values in configured if values]
    overrides = _dynamic(answers, store)
    dynamic = overrides or {}
    if not configured:
        answers.warn(
            f"The settings in force were not captured; the defaults of {decides.name}"
            f"{' with the dynamic overrides' if dynamic else ''} are shown."
        )
    given: dict[str, Any] = {}
    for name in sorted({name for values in (*configured, dynamic) for name in values}):
        stated = [values[name] for values in configured if name in values]
        if len(set(map(str, stated))) > 1:
            answers.warn(
                f"The brokers differ in {name} ({', '.join(dict.fromkeys(map(str, stated)))}); {stated[0]} is shown."
            )
        given[name] = dynamic.get(name, stated[0] if stated else None)
    texts = (
        None
        if overrides is None
        else {name: text for name, value in overrides.items() if (text := _text(value)) is not None}
    )
    return CapturedSettings(_settings(given, answers, decides), "brokers" if configured else "defaults", texts)


def _dynamic(answers: Answers, store: MetadataStore) -> dict[str, Any] | None:
    """Return the dynamic overrides, as the admin API or the metadata store says; None where neither does."""
    asked = answers.json("dynamic-config-values", dict)
    in_store = _known(store.node(_DYNAMIC)) if _DYNAMIC in store.nodes else None
    if in_store is not None and (not asked or store.is_newer(_DYNAMIC, "dynamic-config-values")):
        return in_store
    return None if asked is None else _known(asked)


def _text(value: object) -> str | None:
    """Return the value of a dynamic override as Pulsar keeps it; None where it is none."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else None
    return json.dumps(value) if isinstance(value, bool | int | float) else None


def _known(values: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        name: value for name, value in (values or {}).items() if name in REFERENCE.settings or name in REFERENCE.others
    }


def _settings(given: Mapping[str, Any], answers: Answers, decides: Release) -> Settings:
    kept: dict[str, Any] = {}
    for name, value in given.items():
        shown = _as_java_reads(name, value, answers, decides) if isinstance(value, str) else value
        try:
            kept |= Settings({name: shown}, decides).overrides
        except SettingError as error:
            answers.warn(
                f"{error} The default, {(decides.settings.get(name) or decides.others[name]).default}, is shown."
            )
    return Settings(kept, decides)


def _as_java_reads(name: str, value: str, answers: Answers, decides: Release) -> object:
    setting = decides.settings.get(name) or decides.others[name]
    return java_boolean(value) if setting.kind == "boolean" else _official_class(name, value, answers)


def _official_class(name: str, value: str, answers: Answers) -> str:
    if name not in OFFICIAL_CLASSES:
        return value
    found = class_name(name, value)
    like = found.like.rpartition(".")[2]
    if found.kind == "missing":
        answers.warn(f"{name} is {value}, a class that Pulsar cannot load. It may mean {found.like}.")
    if found.kind != "own":
        return value
    if not found.ends_like:
        answers.warn(
            f"{name} is {value}, which is not one of Pulsar's own classes. The planner cannot predict its decisions."
        )
        return value
    answers.warn(f"{name} is {value.rpartition('.')[2]}, a class of your own; it is assumed to decide like {like}.")
    return found.like
