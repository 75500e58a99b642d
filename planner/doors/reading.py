"""What became of the files that were read: a snapshot, settings, and what a person must know about both."""

from dataclasses import dataclass, field
from typing import Literal

from planner.cluster.snapshot import Snapshot
from planner.doors.pieces import Configuration

PieceKind = Literal[
    "brokers", "load", "owners", "bundles", "topics", "settings", "release", "policies", "averages", "limits", "idle"
]
"""The pieces of a cluster that files may lack."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that the files do not say.

    Attributes:
        kind: Which of the pieces of a cluster it is.
        what: What is missing.
        assumed: What is assumed instead, one sentence.
        uncertain: Which decisions that makes uncertain, one sentence.
        command: The command that supplies it.
    """

    kind: PieceKind
    what: str
    assumed: str
    uncertain: str
    command: str

    @property
    def note(self) -> str:
        """Everything in one text, for the notes of a snapshot."""
        return f"Missing: {self.what}. {self.assumed} {self.uncertain} To add it: {self.command}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What the files hold.

    Attributes:
        snapshot: The cluster; None where they are not enough for one.
        found: What there is, such as `load reports of 3 brokers`.
        missing: What is not there, the most important first.
        assumed: What was concluded from little, one sentence each.
        contradictions: Where two pieces do not agree, one sentence each.
        not_used: What was not read, with the reason, one sentence each.
        configurations: Settings files, in the order of the files.
        running: Settings that brokers answered with: those in force, and dynamic ones.
        not_enough: Why there is no snapshot; empty where there is one.
        expected: What of `not_used` is no loss.
    """

    snapshot: Snapshot | None
    found: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    assumed: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    not_used: tuple[str, ...] = ()
    configurations: tuple[Configuration, ...] = ()
    running: tuple[Configuration, ...] = field(default=(), kw_only=True)
    not_enough: str = ""
    expected: tuple[str, ...] = ()

    @property
    def settings_files(self) -> tuple[Configuration, ...]:
        """The settings files that have any setting of the load balancer."""
        return tuple(one for one in self.configurations if one.is_of_brokers)

    @property
    def text(self) -> str:
        """What was found, as one line."""
        return ", ".join(self.found) or "nothing that is known"
