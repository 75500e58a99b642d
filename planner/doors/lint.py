"""What is wrong with the settings of a cluster or of a `broker.conf`: findings with numbers, remedies and commands."""

import difflib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from planner.cluster.errors import FormatError, SettingError
from planner.cluster.releases import REFERENCE, RELEASES, Release, releases_with
from planner.cluster.setting import OF_TYPE, conf_value
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.doors.pieces import Configuration
from planner.doors.read import read_outputs
from planner.doors.reading import Reading
from planner.doors.settings import applied, spelling, valid
from planner.doors.vocabulary import PREFIX
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.explain.setting_patterns import SEEN_IN_CYCLES
from planner.explain.setting_rules import setting_findings
from planner.remedy.trials import Trials
from planner.remedy.tried import Tried, tried_findings
from planner.share.asked import asked_of
from planner.share.hand_over import commands_of
from planner.share.lint import LintFinding, change_commands
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged

_LINE: Final = re.compile(rf"\s*(?:export\s+)?(?:{PREFIX})?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*?)\s*")
_BALANCER: Final = re.compile(r"load(Balancer?|Manager)[A-Z]")
"""How names begin that only the load balancer has."""
_LIKE: Final = 0.75
_PLACE: Final = re.compile(r"[^\n]*?(?:, line (\d+))?: ")
"""File and line before what a reading says of it."""
_RENAMED: Final = 0.95
"""How alike two names of one setting in two releases are: a letter or two differ."""
_MOST_SAID: Final = 3
"""Notes of a file without settings that an error repeats."""

_YAML_LINE: Final = re.compile(
    rf"""\s*(?:-\s+)?(?:name:\s*)?["']?(?:{PREFIX})?([A-Za-z_][A-Za-z0-9_.-]*)["']?\s*(?:[:=].*)?"""
)
"""A setting of a chart, a manifest or a Compose file; an item of a list may have its value in the next line."""


class Lines(Mapping[str, Sequence[int]]):
    """Lines of each name in a file, from 1 on.

    Attributes:
        are_properties: Whether each setting is a line `name=value`, so that a shell command can write it.
    """

    def __init__(self, text: str) -> None:
        """Find the settings of a text."""
        numbered = list(enumerate(text.splitlines(), start=1))
        found = _names_at(numbered, _LINE)
        self.are_properties = bool(found)
        self._at = found or _names_at(numbered, _YAML_LINE)

    def __getitem__(self, name: str) -> Sequence[int]:
        return self._at[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)


def _names_at(numbered: Iterable[tuple[int, str]], form: re.Pattern[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, line in numbered:
        match = form.fullmatch(line)
        if match:
            found.setdefault(match[1], []).append(number)
    return found


def lint_snapshot(snapshot: Snapshot, source: str) -> tuple[LintFinding, ...]:
    """Return what is wrong with the settings of a cluster: each remedy is tried on it."""
    scenario = unchanged(snapshot.info.pulsar_version)
    outcome = Outcome(simulate(snapshot, scenario))
    shown = [one for one in diagnose(outcome) if one.settings]
    codes = {one.code for one in shown}
    alone = [one for one in setting_findings(snapshot.settings) if one.code in SEEN_IN_CYCLES - codes]
    trials = Trials(snapshot, scenario, outcome)
    tried = tried_findings([*shown, *alone], trials)
    without = {one.code: one for one in [*shown, *alone]}
    return tuple(_of_finding(one, without[one.finding.code], source, trials) for one in tried)


def _of_finding(tried: Tried, plain: Finding, source: str, trials: Trials) -> LintFinding:
    """Return a finding of a cluster with the commands of its remedy, where that is offered."""
    finding, snapshot = tried.finding, trials.snapshot
    command: tuple[str, ...] = ()
    if tried.trial is not None and tried.trial.offered:
        asked = asked_of(simulate(snapshot, tried.trial.action.on(trials.scenario)))
        command = tuple(one.line or f"# {one.note}" for one in commands_of(asked))
    elif tried.trial is None:
        command = change_commands(plain, snapshot.settings)
    return LintFinding(
        code=finding.code,
        severity=finding.severity,
        title=finding.title,
        evidence=finding.evidence,
        remedy=finding.remedy,
        tried=finding.tried,
        command=command or (f"pulsar-bundle-planner fix --snapshot {shlex.quote(source)}",),
        settings=finding.settings,
        source=source,
    )


def lint_file(
    path: Path, release: Release = REFERENCE, snapshot: Snapshot | None = None, name: str = ""
) -> tuple[LintFinding, ...]:
    """Return what is wrong with a `broker.conf`, and, with a cluster that it is for, with that cluster under it.

    Args:
        path: The file.
        release: The release whose brokers read it.
        snapshot: A cluster on which it is tried.
        name: What that cluster's snapshot is called on the command line.

    Raises:
        FormatError: It cannot be read, or has none of the settings that the planner knows.
    """
    reading = read_outputs(path, release=release.name)
    files = reading.settings_files
    if not files:
        raise FormatError(
            " ".join(["It holds no settings of Pulsar's load balancer.", *reading.not_used[:_MOST_SAID]]),
            where=str(path),
            remedy="Name a broker.conf or a snapshot.",
        )
    source = str(path)
    lines = Lines(path.read_text(encoding="utf-8", errors="replace"))
    found = [
        *_names(files, release, source, lines),
        *_values(files, release, source, lines),
        *_read_false(files, release, source, lines),
        *_variables(files, release, source, lines),
        *_unprefixed(files, release, source, lines),
        *_twice(lines, source, release),
        *_not_read(reading, source),
    ]
    config = Settings(valid(Settings({}, release), _known(files, release))[0], release)
    if snapshot is not None:
        changed, _ = applied(snapshot, files)
        return (*found, *(_at(one, source, lines) for one in lint_snapshot(changed, name)))
    named = set(_known(files, release))
    for one in setting_findings(config):
        if named.isdisjoint(one.settings):  # what no file sets has its default, of which brokers say nothing either
            continue
        written = [f"{name}={conf_value(value)}" for name, value in one.changes.items()]
        found.append(
            LintFinding(
                code=one.code,
                severity=one.severity,
                title=one.title,
                evidence=one.evidence,
                remedy=one.remedy,
                command=tuple(_write(text, source, lines) for text in written),
                settings=one.settings,
                source=source,
                line=_line_of(one.settings, lines),
            )
        )
    return tuple(found)


def _at(one: LintFinding, source: str, lines: Lines) -> LintFinding:
    return replace(one, source=source, line=_line_of(one.settings, lines))


def _line_of(settings: Sequence[str], lines: Lines) -> int:
    return next((lines[name][-1] for name in settings if name in lines), 0)


def _known(files: Sequence[Configuration], release: Release) -> dict[str, str]:
    return {name: value for one in files for name, value in one.values.items() if name in release.settings}


def _write(text: str, source: str, lines: Lines) -> str:
    """Return the shell command that writes a line into a file: in place of the line with its name, or at the end.

    A file of another format, such as values of a chart, is left to a person.
    """
    name = text.partition("=")[0]
    at = lines.get(name, ())
    if not lines.are_properties:
        return f"# Write {text} the way that {source} has its settings{f': line {at[-1]}' if at else ''}."
    if at:
        changed = text.replace("\\", "\\\\").replace("|", "\\|").replace("&", "\\&")
        return shlex.join(["sed", "-i", f"{at[-1]}s|.*|{changed}|", source])
    return f"echo {shlex.quote(text)} >> {shlex.quote(source)}"


def _sed(change: str, source: str, lines: Lines) -> tuple[str, ...]:
    """Return the command that changes a line; none for a file whose lines only a person can change."""
    return (shlex.join(["sed", "-i", change, source]),) if lines.are_properties else ()


def _names(files: Sequence[Configuration], release: Release, source: str, lines: Lines) -> Iterator[LintFinding]:
    """Yield names that are misspelt, of another release, or none although only the load balancer has such names."""
    for one in files:
        for name, meant in one.misspelt.items():
            yield _unknown(name, meant, release, source, lines)
        for name in one.foreign:
            if _BALANCER.match(name):
                near = difflib.get_close_matches(name, release.settings, n=1, cutoff=_LIKE)
                yield _unknown(name, near[0] if near else "", release, source, lines)
        for name in dict.fromkeys((*one.values, *one.invalid, *one.read_false, *one.variables)):
            if name not in release.settings:
                yield _of_another_release(name, release, source, lines)


def _of_another_release(name: str, release: Release, source: str, lines: Lines) -> LintFinding:
    """Return a setting that this release lacks, to be renamed where it has another name there, else deleted."""
    near = difflib.get_close_matches(name, release.settings, n=1, cutoff=_RENAMED)
    renamed = near[0] if near and near[0] not in lines else ""
    at = _line_of((name,), lines)
    change = f"{at}s|{name}|{renamed}|" if renamed else f"{at}d"
    return LintFinding(
        code="setting_of_another_release",
        severity="medium",
        title=f"Pulsar {release.name} does not have {name}",
        evidence=f"Only {_readers(name)} read it.",
        remedy=f"Write {renamed}." if renamed else "Delete the line.",
        command=_sed(change, source, lines) if at else (),
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
    at = _line_of((name,), lines)
    change = f"{at}s|{name}|{meant}|" if meant else f"{at}d"
    return LintFinding(
        code="misspelt_setting" if meant else "unknown_setting",
        severity="medium" if meant else "low",
        title=f"{name} is not a setting of Pulsar {release.name}",
        evidence=f"Brokers ignore it{f'. The nearest name is {meant}' if meant else ''}.",
        remedy=f"Write {meant}." if meant else "Delete the line, or correct the name.",
        command=_sed(change, source, lines) if at else (),
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
            yield LintFinding(
                code="invalid_value",
                severity="high",
                title=f"{name} cannot have its value",
                evidence=(
                    "It has another type: a broker does not start with it."
                    if instead.startswith(OF_TYPE)
                    else "It is out of range."
                ),
                remedy=f"{instead} The default is {default or 'empty'}.",
                command=(_write(f"{name}={default}", source, lines),),
                settings=(name,),
                source=source,
                line=_line_of((name,), lines),
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
                command=(_write(f"{name}={meant}", source, lines),),
                settings=(name,),
                source=source,
                line=_line_of((name,), lines),
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
                line=_line_of((name,), lines),
            )


def _unprefixed(files: Sequence[Configuration], release: Release, source: str, lines: Lines) -> Iterator[LintFinding]:
    """Yield variables of a container that its image ignores."""
    for one in files:
        for name in one.unprefixed:
            if name not in release.settings:
                continue
            yield LintFinding(
                code="setting_without_prefix",
                severity="medium",
                title=f"Images of Pulsar ignore {name}",
                evidence="Without a prefix, they only change lines of their broker.conf, which has none for it.",
                remedy=f"Write {PREFIX}{name}.",
                settings=(name,),
                source=source,
                line=_line_of((name,), lines),
            )


def _not_read(reading: Reading, source: str) -> Iterator[LintFinding]:
    """Yield what else a file holds: commands that override settings, damaged lines, answers that are no settings."""
    known = set(spelling(reading.configurations))
    for said in (one for one in reading.not_used if one not in known):
        place = _PLACE.match(said, len(Path(source).name))
        why = said[place.end() :] if place else said
        yield LintFinding(
            code="not_checked",
            severity="low",
            title="A part of the file was not checked",
            evidence=f"{why[:1].upper()}{why[1:]}",
            remedy="Check it by hand, or delete it.",
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


def _twice(lines: Lines, source: str, release: Release) -> Iterator[LintFinding]:
    """Yield settings that a file has more than once: the last line counts."""
    for name, at in lines.items():
        if lines.are_properties and len(at) > 1 and name in release.settings:
            yield LintFinding(
                code="setting_twice",
                severity="medium",
                title=f"{name} is set {len(at)} times",
                evidence=f"Lines {', '.join(map(str, at))}: brokers read the last one.",
                remedy="Keep one line.",
                command=(shlex.join(["sed", "-i", ";".join(f"{one}d" for one in at[:-1]), source]),),
                settings=(name,),
                source=source,
                line=at[-1],
            )
