"""Settings files on a cluster: their values in force, what they misspell, and what differs between two of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from planner.cluster.errors import SettingError
from planner.cluster.releases import REFERENCE
from planner.cluster.setting import OF_TYPE, SettingValue
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.doors.pieces import Configuration
from planner.doors.vocabulary import PREFIX, is_before_and_after, merged
from planner.history.assumed import listed
from planner.pulsar.manager.class_names import OFFICIAL_CLASSES
from planner.simulate.scenario import Scenario, scenario_from_json, scenario_to_json, unchanged

_LONGEST = 100
"""Characters of the name of a scenario."""


def _is_begun(name: str, value: str) -> bool:
    """Say whether a value is the beginning of the name of a class of Pulsar, as where a line is cut."""
    classes = OFFICIAL_CLASSES.get(name, ())
    return value not in classes and "." in value and any(one.startswith(value) for one in classes)


def spelling(files: Sequence[Configuration]) -> Iterator[str]:
    """Yield what is odd about the names in settings files, one sentence for each file."""
    for one in files:
        yield from _ignored(one)
        for name, meant in one.misspelt.items():
            yield f"{one.source}: {name} is not a setting of Pulsar's load balancer. It may mean {meant}."
        yield from _invalid(one)
        if cut := [name for name, value in one.values.items() if _is_begun(name, value)]:
            yield (
                f"{one.source}: {listed(cut)} has only the beginning of the name of a class, which brokers cannot load."
                " If the line was cut, save the output to a file."
            )
        if one.read_false:
            names = listed(list(one.read_false))
            yield f"{one.source}: brokers read {names} as false, because any text but true is."
        if unknown := [name for name, has_default in one.variables.items() if not has_default]:
            yield (
                f"{one.source}: {listed(unknown)} left out: variables, whose values stand elsewhere. Use the file that "
                "the brokers read, or brokers get-runtime-config."
            )
        if one.repeated:
            yield f"{one.source}: {listed(one.repeated)} stand there with several values; the last one counts."
        if by_default := [name for name, has_default in one.variables.items() if has_default]:
            yield f"{one.source}: {listed(by_default)}: variables, whose defaults are taken."
        if one.foreign and one.form == "file":
            yield (
                f"{one.source}: the load balancer does not read {listed(one.foreign)}, so the planner does not use "
                f"{'it' if len(one.foreign) == 1 else 'them'}."
            )


def _invalid(one: Configuration) -> Iterator[str]:
    """Yield which values were left out: brokers run with one out of range, and decide by it."""
    runs = [name for name, wrong in one.invalid.items() if one.form != "file" and not wrong.startswith(OF_TYPE)]
    for name in runs:
        yield (
            f"{one.source}: brokers run with a value of {name} that is out of range. It was left out, so they decide"
            f" otherwise than is shown until it is corrected. {one.invalid[name]}"
        )
    if others := [name for name in one.invalid if name not in runs]:
        which = "values given there; they were" if len(others) > 1 else "value given there; it was"
        yield f"{one.source}: {listed(others)} cannot have the {which} left out."


def _ignored(one: Configuration) -> Iterator[str]:
    """Yield what brokers never see of a file."""
    if one.unprefixed:
        them = "it" if len(one.unprefixed) == 1 else "them"
        names = listed(list(one.unprefixed))
        yield f"{one.source}: {names} left out. Images of Pulsar ignore {them} without {PREFIX} before the name."


def valid(config: Settings, values: Mapping[str, object]) -> tuple[dict[str, SettingValue], list[str]]:
    """Return the values that are valid settings, and a sentence for each other one."""
    kept: dict[str, SettingValue] = {}
    wrong: list[str] = []
    for name, value in values.items():
        try:
            kept |= {name: config.of(name).parse(value)}
        except (SettingError, KeyError) as error:
            wrong.append(f"{error} It was left out.")
    return kept, wrong


def against_runtime(
    values: Mapping[str, str], files: Sequence[Configuration], runtime: Iterable[Mapping[str, str]]
) -> Iterator[str]:
    """Yield a sentence where a settings file and the settings of running brokers differ."""
    running = next((one for one in runtime if one), {})
    differing = [name for name, value in values.items() if name in running and not _same(name, value, running[name])]
    if differing and files:
        yield (
            f"{files[0].source} and the settings of the running brokers differ in {listed(differing)}. Those of the "
            "running brokers count."
        )


def among_files(files: Sequence[Configuration]) -> Iterator[str]:
    """Yield a sentence where several settings files do not agree: which one counts."""
    if is_before_and_after(files):
        before, after = (one.source.file for one in files)
        yield f"{before} and {after} are taken for settings before and after a change; {before} is in force."
        return
    seen: dict[str, str] = {}
    differing: dict[str, None] = {}
    for one in files:
        differing |= dict.fromkeys(name for name, value in one.values.items() if seen.get(name, value) != value)
        seen |= one.values
    if differing:
        yield f"The settings files differ in {listed(differing)}; the last one that says something counts."


def _same(name: str, one: str, other: str) -> bool:
    """Say whether two texts of a setting are one value."""
    setting = REFERENCE.settings.get(name) or REFERENCE.others[name]
    try:
        return setting.parse(one) == setting.parse(other)
    except SettingError:
        return one == other


def applied(snapshot: Snapshot, files: Sequence[Configuration]) -> tuple[Snapshot, list[str]]:
    """Return a snapshot with the settings of files in force, and notes; dynamic overrides stay above them.

    Settings that the files leave out have the defaults of the release, as in a broker that starts with them, unless
    the brokers' own settings are known.
    """
    if not files:
        return snapshot, []
    kept, notes = valid(snapshot.settings, merged(files))
    above = snapshot.info.dynamic_settings or {}
    base = snapshot.settings.overrides if snapshot.info.settings_from == "brokers" else {}
    if base and (differing := [n for n, v in kept.items() if n in snapshot.settings and snapshot.settings[n] != v]):
        notes.append(
            f"{files[0].source} and the settings of the running brokers differ in {listed(differing)}. Those of the "
            "running brokers count."
        )
        return snapshot, notes
    overridden, _ = valid(snapshot.settings, above)
    config = Settings({**kept, **base, **overridden}, snapshot.settings.release)
    info = replace(snapshot.info, settings_from="brokers")
    return replace(snapshot, settings=config, info=info), notes


def scenario_of(files: Sequence[Configuration], snapshot: Snapshot) -> tuple[Scenario, list[str]]:
    """Return settings files as a scenario over a snapshot, and a sentence for each value that is not valid.

    One file: its settings, where they differ from those of the snapshot. Two that are one before and after a change:
    what differs between them.
    """
    config = snapshot.settings
    if is_before_and_after(files):
        before, after = (one.values for one in files)
        changes, wrong = difference(config, before, after), valid(config, after)[1]
        name = f"{files[0].source.file} to {files[1].source.file}"
    else:
        kept, wrong = valid(config, merged(files))
        changes = {name: value for name, value in kept.items() if name in config and config[name] != value}
        name = f"settings of {files[0].source.file}"
    plain = {name: ",".join(value) if isinstance(value, tuple) else value for name, value in changes.items()}
    version = snapshot.info.pulsar_version
    return scenario_from_json({**scenario_to_json(unchanged(version, name=name[:_LONGEST])), "settings": plain}), wrong


def difference(config: Settings, before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, SettingValue]:
    """Return what a settings file changes against another one, as the values of a scenario.

    A setting that only the first one has goes back to the default of the release.
    """
    first, _ = valid(config, before)
    second, _ = valid(config, after)
    names = [name for name in (*first, *second) if name in config]
    of_first = {name: first.get(name, config.of(name).default) for name in names}
    of_second = {name: second.get(name, config.of(name).default) for name in names}
    return {name: value for name, value in of_second.items() if value != of_first[name]}
