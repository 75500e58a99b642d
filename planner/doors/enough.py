"""Which questions the files are good enough for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from planner.doors.reading import Missing, PieceKind

Verdict = Literal["yes", "with assumptions", "no"]

NEEDS: Final[Mapping[str, tuple[Sequence[PieceKind], Sequence[PieceKind]]]] = {
    "overview": (("load", "owners"), ("brokers", "settings", "release", "policies", "bundles")),
    "why": (("load", "owners"), ("brokers", "settings", "release", "policies", "bundles")),
    "shedding": (("load", "owners"), ("brokers", "settings", "release", "policies", "bundles")),
    "brokers": (("load",), ("brokers", "owners")),
    "namespaces": (("owners",), ("load", "bundles", "topics", "policies", "settings", "release")),
    "bundle_map": (("owners",), ("bundles", "topics")),
    "split_lab": (("topics",), ("bundles", "settings", "release")),
    "throttling": (("topics",), ("settings", "release")),
    "best_plan": (("load", "owners"), ("brokers", "bundles", "topics", "policies")),
    "what_if": (("load", "owners"), ("brokers", "settings", "release", "policies", "bundles", "topics")),
    "failure_review": (("load", "owners"), ("brokers", "policies", "bundles")),
    "upgrade": ((), ("settings", "load", "owners", "brokers", "release")),
    "moves": (("load", "owners", "bundles"), ("brokers", "policies")),
}
"""What a page cannot do without, and what it assumes where it is missing, by the name of the page."""


@dataclass(frozen=True, slots=True)
class Enough:
    """Whether the files are good enough for a page.

    Attributes:
        page: Name of the page.
        verdict: Whether they are.
        why: What is missing, in a few words; empty where nothing is.
    """

    page: str
    verdict: Verdict
    why: str


def enough_for(missing: Sequence[Missing]) -> Iterator[Enough]:
    """Yield for each page whether a snapshot that lacks this is good enough for it."""
    for page, (needed, assumed) in NEEDS.items():
        lacking = [one.what for one in missing if one.kind in needed]
        others = [one.what for one in missing if one.kind in assumed]
        verdict: Verdict = "no" if lacking else "with assumptions" if others else "yes"
        yield Enough(page, verdict, "; ".join(lacking or others))
