"""Which questions the files are good enough for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from planner.doors.reading import Missing, PieceKind

Verdict = Literal["yes", "with assumptions", "no"]

_DECIDES: Final[Sequence[PieceKind]] = ("load", "owners")
_ASSUMES: Final[Sequence[PieceKind]] = (
    "brokers",
    "settings",
    "release",
    "policies",
    "bundles",
    "averages",
    "limits",
    "idle",
)
NEEDS: Final[Mapping[str, tuple[Sequence[PieceKind], Sequence[PieceKind]]]] = {
    "overview": (_DECIDES, _ASSUMES),
    "why": (_DECIDES, _ASSUMES),
    "shedding": (_DECIDES, _ASSUMES),
    "brokers": (("load",), ("brokers", "owners", "limits")),
    "namespaces": (("owners",), ("topics", *_ASSUMES)),
    "bundle_map": (("owners",), ("bundles", "topics")),
    "split_lab": (("topics",), ("bundles", "settings", "release")),
    "throttling": (("topics",), ("settings", "release")),
    "best_plan": (_DECIDES, (*_ASSUMES, "topics")),
    "what_if": (_DECIDES, (*_ASSUMES, "topics")),
    "failure_review": (_DECIDES, _ASSUMES),
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
