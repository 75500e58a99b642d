"""The one family of errors that the planner raises on purpose.

PlannerError
├── FormatError      bytes that cannot be read as what they claim to be
├── LinkError        a link that cannot be read or made (`planner.share.link`)
├── SnapshotError    readable data that no Pulsar cluster could have answered
├── SettingError     an unknown setting, or a value outside its bounds
├── ScenarioError    a scenario that cannot be read, or does not fit the cluster
├── StoreError       the workspace database cannot do what was asked
├── CaptureError     a live cluster, or what it answered, cannot be captured
│   ├── TooMuchError  a Prometheus is asked for too much at once (`planner.capture.prometheus_client`)
│   └── AnswerError  one answer that is not used (`planner.capture.client`)
├── ReplayError      Spark or its Java cannot do what was asked
├── VectorError      a conformance vector that cannot be read
└── PulsarError      what Pulsar itself would refuse, under Pulsar's own exception name
    └── ContradictoryOrderError  Java gives up sorting (`planner.cluster.java`)

Every message says what is wrong, where, and what to do about it; a page shows it as it is.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

HIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Signs that control a terminal or turn text around."""

_MOST_SIGNS: Final = 2_000


def escaped(text: str) -> str:
    """Return a text that can be written anywhere: bytes of a file name that are not UTF-8 are escaped."""
    return text.encode(errors="backslashreplace").decode()


def shown(text: str) -> str:
    """Return a text that can be shown anywhere, whatever input it repeats: one line, not endless, all signs seen."""
    text = text if len(text) <= _MOST_SIGNS else f"{text[:_MOST_SIGNS]}…"
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


class PlannerError(Exception):
    """Something a person can put right.

    Args:
        what: What is wrong, one sentence.
        where: The file, row, field or setting it was found in; empty when there is only one.
        remedy: What to do about it, one sentence.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what = shown(what)
        self.where = shown(where)
        self.remedy = shown(remedy)
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}{' ' + self.remedy if self.remedy else ''}"


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Put the file or part that is read meanwhile in front of the place that an error names.

    Raises:
        PlannerError: The one that was raised.
    """
    try:
        yield
    except PlannerError as error:
        error.where = shown(": ".join(filter(None, (where, error.where))))
        raise


class FormatError(PlannerError):
    """Bytes that cannot be read as what they claim to be."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing the validator objects to.

    Attributes:
        file: The part of the snapshot, such as `bundles.parquet` or `brokers` of a JSON document.
        row: The row counted from 1, or None when the part as a whole is meant.
        what: What is wrong, one sentence with the offending value.
        remedy: What to do about it.
    """

    file: str
    row: int | None
    what: str
    remedy: str

    def __str__(self) -> str:
        place = self.file if self.row is None else f"{self.file}, row {self.row}"
        return f"{place}: {self.what} {self.remedy}"


class SnapshotError(PlannerError):
    """Readable data that no Pulsar cluster could have answered.

    Args:
        violations: What was found, first the most telling; never empty.
        total: How many there are in all, when only the first were kept.
    """

    def __init__(self, violations: Sequence[Violation], total: int | None = None) -> None:
        self.violations = tuple(violations)
        self.total = len(self.violations) if total is None else total
        first = self.violations[0]
        where = first.file if first.row is None else f"{first.file}, row {first.row}"
        super().__init__(first.what, where=where, remedy=first.remedy)


class SettingError(PlannerError):
    """An unknown setting, or a value outside its bounds."""


class ScenarioError(PlannerError):
    """A scenario cannot be read, or does not fit the cluster."""


class StoreError(PlannerError):
    """The workspace database cannot do what was asked."""


class CaptureError(PlannerError):
    """A live cluster, or what it answered, cannot be captured."""


class ReplayError(PlannerError):
    """Spark or its Java cannot do what was asked."""


class VectorError(PlannerError):
    """A conformance vector that cannot be read."""


class PulsarError(PlannerError):
    """What Pulsar itself would refuse.

    Args:
        exception: Simple name of the exception Pulsar raises, such as `IllegalArgumentException`.
        what: What is wrong, one sentence.
    """

    def __init__(self, exception: str, what: str, *, where: str = "", remedy: str = "") -> None:
        self.exception = exception
        super().__init__(what, where=where, remedy=remedy)
