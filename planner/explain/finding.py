"""What a diagnosis says."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from planner.cluster.setting import SettingValue
from planner.simulate.admin_commands import PROGRAM
from planner.simulate.edits.edit import Edit

Severity: TypeAlias = Literal["high", "medium", "low"]
"""`high`: clients suffer; `medium`: the cluster does not get or stay balanced; `low`: it could be tidier."""

MEASUREMENT: Final = "impossible_measurement"
"""The code of the findings about what cannot be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One failure pattern that was recognised.

    Attributes:
        code: Stable name, such as `unload_storm`.
        title: What it is, one line.
        evidence: The numbers that show it, one or two sentences.
        remedy: What to do about it.
        severity: How bad it is.
        brokers: Broker ids concerned, the worst first.
        bundles: Full names of bundles concerned, the worst first.
        topics: Full names of topics concerned, the worst first.
        settings: Names of the settings concerned.
        changes: Values to try, by setting; empty when the remedy is no setting, or was tried and is not offered.
        edits: The edits of a scenario that carry the remedy out, in this order; empty when it is none.
        tried: What the remedy achieved when it was simulated on this cluster; empty where it was not.
        explains: The findings that were left out because they follow from this one.
    """

    code: str
    title: str
    evidence: str
    remedy: str
    severity: Severity
    brokers: tuple[str, ...] = ()
    bundles: tuple[str, ...] = ()
    topics: tuple[str, ...] = field(default=(), repr=False)  # they stand in the evidence
    settings: tuple[str, ...] = ()
    changes: Mapping[str, SettingValue] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    tried: str = ""
    explains: "tuple[Finding, ...]" = field(default=(), repr=False, compare=False)

    @property
    def remedy_label(self) -> str:
        """What the remedy is called: what usually helps, where it was tried on this cluster and is not offered."""
        return "Usual remedy" if self.tried and not (self.changes or self.edits) else "Remedy"


def admin(*words: str) -> str:
    """Return a command of `pulsar-admin` as a shell reads it."""
    return shlex.join((*PROGRAM, *words))


def listed(names: Sequence[str], shown: int = 3) -> str:
    """Return names as one piece of text, the first few of many."""
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")
