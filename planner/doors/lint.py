"""What is wrong with the settings of a cluster or of a `broker.conf`: findings with numbers, remedies and commands."""

import difflib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Final

from planner.cluster.errors import FormatError, SettingError
from planner.cluster.releases import RELEASES, Release, releases_with
from planner.cluster.releases import release as named
from planner.cluster.setting import OF_TYPE, conf_value
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MIB
from planner.doors.images import release_of_images, without_release
from planner.doors.pieces import Configuration
from planner.doors.places import Lines
from planner.doors.read import read_outputs
from planner.doors.reading import Reading
from planner.doors.settings import applied, spelling, valid
from planner.doors.unpack import MARK
from planner.doors.vocabulary import PREFIX, is_known, is_of_balancer
from planner.doors.without_effect import without_effect
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.explain.setting_patterns import SEEN_IN_CYCLES
from planner.explain.setting_rules import setting_findings
from planner.remedy.trials import Trials
from planner.remedy.tried import NOT_TRIED, Tried, tried_findings
from planner.share.asked import asked_of
from planner.share.commands import CommandOptions, settings_commands
from planner.share.hand_over import commands_of
from planner.share.lint import LintFinding, change_commands
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged

_LIKE: Final = 0.75
_LARGEST_ANSWER: Final = MIB
"""Bytes of the settings of a broker at most; a snapshot may have many more, and is not read twice."""
_LOOKED_AT: Final = 5
_WORD: Final = re.compile("[A-Z]?[a-z]+|[A-Z]+")
_PLACE: Final = re.compile(r"[^\n]*?(?:, line (\d+))?: ")
"""File and line before what a reading says of it."""
_RENAMED: Final = 0.95
"""How alike two names of one setting in two releases are: a letter or two differ."""
_MOST_SAID: Final = 3
"""Notes of a file without settings that an error repeats."""


def lint_snapshot(snapshot: Snapshot, source: str) -> tuple[LintFinding, ...]:
    """Return what is wrong with the settings of a cluster: each remedy is tried on it."""
    return (*_fighting(snapshot, source), *_idle(snapshot.settings, source), *_ignored(snapshot, source))


def _fighting(snapshot: Snapshot, source: str) -> tuple[LintFinding, ...]:
    """Return the findings of a cluster about settings, each remedy tried on it."""
    scenario = unchanged(snapshot.settings.release.name)
    outcome = Outcome(simulate(snapshot, scenario))
    shown = [one for one in diagnose(outcome) if one.settings]
    codes = {one.code for one in shown}
    said = codes | ({"balancer_off"} if "shedding_off" in codes else set())
    alone = [
        one
        for one in setting_findings(snapshot.settings, snapshot.info.load_manager)
        if one.code in SEEN_IN_CYCLES - said
    ]
    trials = Trials(snapshot, scenario, outcome)
    tried = tried_findings([*shown, *alone], trials)
    without = {one.code: one for one in [*shown, *alone]}
    return tuple(_of_finding(one, without[one.finding.code], source, trials) for one in tried)


def _idle(config: Settings, source: str) -> Iterator[LintFinding]:
    """Yield settings of a cluster that change nothing, because what reads them does not run."""
    for name, why in without_effect(config):
        default = config.release.settings[name].default
        back = settings_commands({name: (config[name], default)}, CommandOptions())
        command = tuple(one.line or f"# {one.note}" for one in back)
        remedy = f"Set it back to its default, {conf_value(default) or 'empty'}, or set what reads it."
        yield _without_effect(name, why, remedy, command, source)


def _ignored(snapshot: Snapshot, source: str) -> Iterator[LintFinding]:
    """Yield settings of a cluster that its release does not have."""
    for name in snapshot.settings.without_effect:
        one = _of_another_release(name, snapshot.settings.release, source, None)
        yield replace(one, remedy=f"{one.remedy.removesuffix('.')} in the broker.conf, where it stands there.")


def _of_finding(tried: Tried, plain: Finding, source: str, trials: Trials) -> LintFinding:
    """Return a finding of a cluster with the commands of its remedy, where that is offered."""
    finding, snapshot = tried.finding, trials.snapshot
    command: tuple[str, ...] = ()
    if tried.trial is not None and tried.trial.offered:
        asked = asked_of(simulate(snapshot, tried.trial.action.on(trials.scenario)))
        command = tuple(one.line or f"# {one.note}" for one in commands_of(asked))
    elif tried.trial is None and finding.tried != NOT_TRIED:
        command = change_commands(plain, snapshot.settings)
    command = command or (f"pulsar-bundle-planner fix --snapshot {shlex.quote(source)}",)
    return replace(_of_settings(finding, command, source), tried=finding.tried)


def _of_settings(finding: Finding, command: tuple[str, ...], source: str) -> LintFinding:
    """Return a finding about settings with the commands of its remedy, which was not tried."""
    return LintFinding(
        code=finding.code,
        severity=finding.severity,
        title=finding.title,
        evidence=finding.evidence,
        remedy=finding.remedy,
        command=command,
        settings=finding.settings,
        source=source,
    )


def has_settings_alone(path: Path) -> bool:
    """Say whether a file in JSON has settings, as brokers answer with them, and no cluster."""
    if path.suffix != ".json" or path.stat().st_size > _LARGEST_ANSWER:
        return False
    try:
        reading = read_outputs(path)
    except FormatError:
        return False
    return reading.snapshot is None and any(one.is_of_brokers for one in (*reading.configurations, *reading.running))


def release_in_file(path: Path) -> tuple[str, str]:
    """Return the release of the images that a settings file names, empty where there is not one, and what to say of it.

    Raises:
        FormatError: It cannot be read.
    """
    files = read_outputs(path).settings_files
    if release := release_of_images(files)[0]:
        return release, f"{path} has images of Pulsar {release}, so that release counts."
    several = without_release(files, str(path))
    return "", several and f"{several} It is checked for Pulsar {named('').name}; --release checks it for another one."


def lint_file(
    path: Path, release: Release | None = None, snapshot: Snapshot | None = None, name: str = ""
) -> tuple[LintFinding, ...]:
    """Return what is wrong with a `broker.conf`, and, with a cluster that it is for, with that cluster under it.

    Args:
        path: The file, or the settings that a broker answered with.
        release: The release whose brokers read it; by default that of the images that the file names, else the newest.
        snapshot: A cluster on which it is tried.
        name: What that cluster's snapshot is called on the command line.

    Raises:
        FormatError: It cannot be read, or has none of the settings that the planner knows.
    """
    reading = read_outputs(path)
    files = reading.settings_files
    release = release or named(release_of_images(files)[0])
    running = [one for one in reading.running if one.is_of_brokers]
    if not files and running and snapshot is not None:
        return tuple(replace(one, source=str(path)) for one in lint_snapshot(applied(snapshot, running)[0], name))
    if not files and running:
        return tuple(_of_running(running, release, str(path), reading))
    if not files:
        raise FormatError(
            " ".join(["It holds no settings of Pulsar's load balancer.", *reading.not_used[:_MOST_SAID]]),
            where=str(path),
            remedy="Name a broker.conf or a snapshot.",
        )
    source = str(path)
    lines = Lines(path)
    found = [
        *_encoding(lines, source),
        *_names(files, release, source, lines),
        *_values(files, release, source, lines),
        *_read_false(files, release, source, lines),
        *_variables(files, release, source, lines),
        *_unprefixed(files, release, source, lines),
        *_twice(lines, source, release),
        *_not_read(reading, source),
    ]
    config = Settings(valid(Settings({}, release), _known(files, release))[0], release)
    there = set(_known(files, release))
    odd = {name for one in files for name in one.read_false}
    if snapshot is not None:
        changed, _ = applied(snapshot, files)
        idle = [one for one in _idle(changed.settings, name) if there.isdisjoint(one.settings)]
        found += [_at(one, source, lines) for one in (*_fighting(changed, name), *idle)]
        return (*found, *_idle_lines(changed.settings, there - odd, source, lines))
    for one in setting_findings(config):
        # What no file sets has its default, of which brokers say nothing either.
        if there.isdisjoint(one.settings) or odd.issuperset(one.settings):
            continue
        command = tuple(lines.written(name, conf_value(value)) for name, value in one.changes.items())
        found.append(replace(_of_settings(one, command, source), line=lines.last(one.settings)))
    found += _idle_lines(config, there - odd, source, lines)
    return tuple(found)


def _of_running(
    files: Sequence[Configuration], release: Release, source: str, reading: Reading
) -> Iterator[LintFinding]:
    """Yield what is wrong with the settings that brokers answered with, which commands change, and no editor."""
    config = Settings(valid(Settings({}, release), _known(files, release))[0], release)
    there = set(_known(files, release))
    for one in setting_findings(config):
        if not there.isdisjoint(one.settings):
            yield _of_settings(one, change_commands(one, config), source)
    yield from (one for one in _idle(config, source) if there.issuperset(one.settings))
    yield from _not_read(reading, source, but_spelling=False)


def _idle_lines(config: Settings, there: AbstractSet[str], source: str, lines: Lines) -> Iterator[LintFinding]:
    """Yield settings of a file that change nothing, because what reads them does not run."""
    for name, why in without_effect(config):
        if name in there:
            at = lines.last((name,))
            command = lines.deleted([at] if at else [])
            yield _without_effect(name, why, "Delete the line, or set what reads it.", command, source, at)


def _without_effect(
    name: str, why: str, remedy: str, command: tuple[str, ...], source: str, line: int = 0
) -> LintFinding:
    return LintFinding(
        code="setting_without_effect",
        severity="low",
        title=f"{name} has no effect",
        evidence=why,
        remedy=remedy,
        command=command,
        settings=(name,),
        source=source,
        line=line,
    )


def _at(one: LintFinding, source: str, lines: Lines) -> LintFinding:
    return replace(one, source=source, line=lines.last(one.settings))


def _known(files: Sequence[Configuration], release: Release) -> dict[str, str]:
    return {name: value for one in files for name, value in one.values.items() if name in release.settings}


def _names(files: Sequence[Configuration], release: Release, source: str, lines: Lines) -> Iterator[LintFinding]:
    """Yield names that are misspelt, of another release, or none although only the load balancer has such names."""
    for one in files:
        for name, meant in one.misspelt.items():
            yield _unknown(name, meant, release, source, lines)
        for name in one.foreign:
            if is_of_balancer(name):
                yield _unknown(name, _meant(name, release), release, source, lines)
        for name in dict.fromkeys((*one.values, *one.invalid, *one.read_false, *one.variables)):
            if name not in release.settings:
                yield _of_another_release(name, release, source, lines)


def _meant(name: str, release: Release) -> str:
    """Return the setting that a name may mean: none is near enough, or several have all of its words."""
    near = difflib.get_close_matches(name, release.settings, n=_LOOKED_AT, cutoff=_LIKE)
    words = _WORD.findall(name)
    whole = [one for one in near if _are_in_order(words, _WORD.findall(one))]
    return "" if len(whole) > 1 else next(iter(near), "")


def _are_in_order(words: Sequence[str], others: Sequence[str]) -> bool:
    """Say whether some words stand among others in this order."""
    left = iter(others)
    return all(word in left for word in words)


def _of_another_release(name: str, release: Release, source: str, lines: Lines | None) -> LintFinding:
    """Return a setting that this release lacks, to be renamed where it has another name there, else deleted."""
    near = difflib.get_close_matches(name, release.settings, n=1, cutoff=_RENAMED)
    renamed = near[0] if lines is not None and near and near[0] not in lines else ""
    at = lines.last((name,)) if lines is not None else 0
    command = () if lines is None else lines.renamed(name, renamed) if renamed else lines.deleted([at] if at else [])
    return LintFinding(
        code="setting_of_another_release",
        severity="medium",
        title=f"Pulsar {release.name} does not have {name}",
        evidence=f"Only {_readers(name)} read it.",
        remedy=f"Write {renamed}." if renamed else "Delete the line.",
        command=command,
        settings=(name,),
        source=source,
        line=at,
    )


def _readers(name: str) -> str:
    """Return the releases that have a setting, in words."""
    runs = releases_with(name)
    if not runs:
        return "other releases"
    newest = RELEASES[-1]
    parts = [
        f"{first} and later" if last == newest else f"{first} to {last}" if first != last else first
        for first, last in runs
    ]
    return f"Pulsar {', and '.join(parts)}"


def _unknown(name: str, meant: str, release: Release, source: str, lines: Lines) -> LintFinding:
    at = lines.last((name,))
    return LintFinding(
        code="misspelt_setting" if meant else "unknown_setting",
        severity="medium" if meant else "low",
        title=f"{name} is not a setting of Pulsar {release.name}",
        evidence=f"Brokers ignore it{f'. The nearest name is {meant}' if meant else ''}.",
        remedy=f"Write {meant}." if meant else "Delete the line, or correct the name.",
        command=lines.renamed(name, meant) if meant else lines.deleted([at] if at else []),
        settings=(name,),
        source=source,
        line=at,
    )


def _values(files: Sequence[Configuration], release: Release, source: str, lines: Lines) -> Iterator[LintFinding]:
    """Yield values that the setting cannot have."""
    for one in files:
        for name, instead in (*_refused(one.values, release), *one.invalid.items()):
            if name not in release.settings:
                continue
            default = conf_value(release.settings[name].default)
            meant = one.meant.get(name, "")
            yield LintFinding(
                code="invalid_value",
                severity="high",
                title=f"{name} cannot have its value",
                evidence=(
                    "It has another type: a broker does not start with it."
                    if instead.startswith(OF_TYPE)
                    else "It is out of range."
                ),
                remedy=f"{f'Write {meant}.' if meant else instead} The default is {default or 'empty'}.",
                command=(lines.written(name, meant or default),),
                settings=(name,),
                source=source,
                line=lines.last((name,)),
            )


def _read_false(files: Sequence[Configuration], release: Release, source: str, lines: Lines) -> Iterator[LintFinding]:
    """Yield switches with a text that brokers take for false, although it is not."""
    for one in files:
        for name, means_true in one.read_false.items():
            if name not in release.settings:
                continue
            meant = "true" if means_true else "false"
            yield LintFinding(
                code="read_as_false",
                severity="high" if means_true else "low",
                title=f"Brokers read {name} as false",
                evidence="Any text but true is false: quotes, comments behind it, and words such as yes or 1 as well.",
                remedy=f"Write {meant}." if means_true else "Write false, or true if that is meant.",
                command=(lines.written(name, meant),),
                settings=(name,),
                source=source,
                line=lines.last((name,)),
            )


def _variables(files: Sequence[Configuration], release: Release, source: str, lines: Lines) -> Iterator[LintFinding]:
    """Yield settings whose value a template or a shell fills in: brokers take what stands there as it is."""
    for one in files:
        for name, has_default in one.variables.items():
            if name not in release.settings:
                continue
            counts = "its default was checked" if has_default else "its value was not checked"
            yield LintFinding(
                code="value_to_fill_in",
                severity="low",
                title=f"{name} is a variable",
                evidence=f"A template or a shell has to fill it in; {counts}. Brokers do not fill in variables.",
                remedy="Check the file that the brokers read.",
                settings=(name,),
                source=source,
                line=lines.last((name,)),
            )


def _unprefixed(files: Sequence[Configuration], release: Release, source: str, lines: Lines) -> Iterator[LintFinding]:
    """Yield variables of a container that its image ignores."""
    for one in files:
        for name in one.unprefixed:
            if name not in release.settings:
                yield _of_another_release(name, release, source, lines)
                continue
            yield LintFinding(
                code="setting_without_prefix",
                severity="medium",
                title=f"Images of Pulsar ignore {name}",
                evidence="Without a prefix, they only change lines of their broker.conf, which has none for it.",
                remedy=f"Write {PREFIX}{name}.",
                settings=(name,),
                source=source,
                line=lines.last((name,)),
            )


def _not_read(reading: Reading, source: str, *, but_spelling: bool = True) -> Iterator[LintFinding]:
    """Yield what else a file holds: commands that override settings, damaged lines, answers that are no settings."""
    known = {*(spelling(reading.configurations) if but_spelling else ()), *reading.expected}
    for said in (one for one in reading.not_used if one not in known):
        place = _PLACE.match(said, len(Path(source).name))
        why = said[place.end() :] if place else said
        yield LintFinding(
            code="not_checked",
            severity="low",
            title="A part of the file was not checked",
            evidence=why if is_known(re.split("[ ,]", why, maxsplit=1)[0]) else f"{why[:1].upper()}{why[1:]}",
            remedy="Check it by hand.",
            source=source,
            line=int(place[1] or 0) if place else 0,
        )


def _refused(values: Mapping[str, str], release: Release) -> Iterator[tuple[str, str]]:
    """Yield settings whose value this release does not allow, and what it does."""
    for name, value in values.items():
        try:
            if name in release.settings:
                release.settings[name].parse(value)
        except SettingError as error:
            yield name, error.remedy


def _counts(at: Sequence[int], lines: Lines) -> str:
    """Say which of several lines of a setting counts."""
    if lines.has_prefix(at[-1]) and not all(map(lines.has_prefix, at)):
        return f"images of Pulsar take line {at[-1]}, which has {PREFIX} before the name"
    return "brokers read the last one"


def _encoding(lines: Lines, source: str) -> Iterator[LintFinding]:
    """Yield that brokers cannot read a file, or its first line, because of how it is encoded."""
    if not lines.marked or not lines.are_properties or lines.are_variables:
        return
    whole = lines.marked != MARK
    first = tuple(name for name, at in lines.items() if 1 in at)
    if whole or first:
        yield LintFinding(
            code="encoding_not_read",
            severity="high",
            title="Brokers read no setting of this file" if whole else f"Brokers do not read {first[0]} in line 1",
            evidence=(
                f"It is in {lines.marked}; brokers read ISO 8859-1, in which no name of a setting is the same."
                if whole
                else f"The file begins with {MARK}, which brokers take for a part of the name."
            ),
            remedy="Save it as UTF-8 without a byte order mark." if whole else "Take the byte order mark away.",
            command=tuple(one for one in [lines.unmarked()] if one),
            settings=() if whole else first,
            source=source,
            line=1,
        )


def _twice(lines: Lines, source: str, release: Release) -> Iterator[LintFinding]:
    """Yield settings that a file has more than once: the last line counts."""
    for name, at in lines.items():
        if lines.are_properties and len(at) > 1 and name in release.settings:
            yield LintFinding(
                code="setting_twice",
                severity="medium",
                title=f"{name} is set {len(at)} times",
                evidence=f"Lines {', '.join(map(str, sorted(at)))}: {_counts(at, lines)}.",
                remedy="Keep one line.",
                command=lines.deleted(at[:-1]),
                settings=(name,),
                source=source,
                line=at[-1],
            )
