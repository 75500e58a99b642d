"""What is wrong with settings, as text, as JSON and as SARIF 2.1.0, which code hosts and editors show at its line."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from planner.cluster.settings import Settings
from planner.cluster.version import VERSION
from planner.explain.finding import Finding, Severity
from planner.explain.meanings import MEANINGS
from planner.share.commands import CommandOptions, settings_commands
from planner.share.plan_text import printed

LEVELS: Final[dict[Severity, str]] = {"high": "error", "medium": "warning", "low": "note"}
"""Levels of SARIF, by severity."""
ORDER: Final[tuple[Severity, ...]] = ("high", "medium", "low")
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_TOOL: Final = "pulsar-bundle-planner"


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One thing that is wrong.

    Attributes:
        code: Stable name of the rule, such as `misspelt_setting`.
        severity: How bad it is.
        title: What it is, one line.
        evidence: The numbers that show it.
        remedy: What to do.
        tried: What the remedy achieved when it was simulated; empty where there is no cluster to try it on.
        command: What carries the remedy out, in order; lines to write into `broker.conf` are commands of a shell.
        settings: Settings concerned.
        source: File or snapshot.
        line: Line of the file, from 1 on; 0 where it is about none.
    """

    code: str
    severity: Severity
    title: str
    evidence: str
    remedy: str
    tried: str = ""
    command: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    source: str = ""
    line: int = 0

    @property
    def message(self) -> str:
        """It in a few sentences."""
        parts = (f"{self.title.rstrip('.')}.", self.evidence, self.remedy, self.tried)
        return " ".join(filter(None, parts))


def worst_first(found: Sequence[LintFinding], at_least: Severity = "low") -> tuple[LintFinding, ...]:
    """Return findings of some severity and above, the worst first, those of a file in the order of its lines."""
    kept = [one for one in found if ORDER.index(one.severity) <= ORDER.index(at_least)]
    return tuple(sorted(kept, key=lambda one: (ORDER.index(one.severity), one.source, one.line)))


def change_commands(finding: Finding, config: Settings) -> tuple[str, ...]:
    """Return the commands that make the changes of settings of a finding; notes say what is done by hand."""
    changes = {name: (config[name], value) for name, value in finding.changes.items() if name in config}
    commands = settings_commands(changes, CommandOptions())
    return tuple(one.line or f"# {one.note}" for one in commands)


def lint_text(found: Sequence[LintFinding]) -> str:
    """Return findings as lines for a terminal, as compilers write them."""
    lines: list[str] = []
    for one in found:
        place = f"{one.source}:{one.line}" if one.line else one.source
        lines.append(f"{place}: {LEVELS[one.severity]}: {one.title} [{one.code}]")
        lines += [f"  {part}" for part in (one.evidence, one.remedy, one.tried) if part]
        lines += [f"  $ {command}" if not command.startswith("#") else f"  {command}" for command in one.command]
    return printed(lines or ["No findings."])


def lint_document(found: Sequence[LintFinding]) -> dict[str, Any]:
    """Return findings as JSON values: `findings`, each with the fields of `LintFinding`, and how many there are."""
    numbers: dict[str, Any] = {severity: sum(one.severity == severity for one in found) for severity in ORDER}
    return {"findings": [{**asdict(one), "level": LEVELS[one.severity]} for one in found], **numbers}


def lint_sarif(found: Sequence[LintFinding]) -> dict[str, Any]:
    """Return findings as a SARIF 2.1.0 log with one run."""
    first = {one.code: one for one in reversed(found)}
    codes = sorted(first)
    # Of a rule a code host keeps what it was told first: the words are those of the rule, not of a finding.
    rules = [
        {
            "id": code,
            "shortDescription": {"text": f"{MEANINGS[code].partition('. ')[0].rstrip('.')}."},
            "fullDescription": {"text": MEANINGS[code]},
            "help": {"text": MEANINGS[code]},
            "defaultConfiguration": {"level": LEVELS[first[code].severity]},
        }
        for code in codes
    ]
    driver = {"name": _TOOL, "version": VERSION, "semanticVersion": VERSION, "rules": rules}
    results = [_result(one, codes.index(one.code)) for one in found]
    run = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(one: LintFinding, rule: int) -> dict[str, Any]:
    path = Path(one.source)
    uri = path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if one.line:
        physical["region"] = {"startLine": one.line}
    logical = [{"name": name, "kind": "member"} for name in dict.fromkeys(one.settings)]
    location = {"physicalLocation": physical, **({"logicalLocations": logical} if logical else {})}
    return {
        "ruleId": one.code,
        "ruleIndex": rule,
        "level": LEVELS[one.severity],
        "message": {"text": one.message},
        "locations": [location],
        "properties": {"remedy": one.remedy, "tried": one.tried, "command": list(one.command)},
    }
