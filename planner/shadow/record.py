"""What shadow mode found, cycle by cycle: predicted, actual, the difference and its likely reason; and the score.

A record is one line of JSON in `.shadow.jsonl` beside the snapshots of its cluster. The file begins with a dot, so that
readers of histories pass it over.
"""

import json
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter

from planner.cluster.errors import CaptureError
from planner.cluster.files import PRIVATE, opened, plain_file, reading, write_whole, writing
from planner.cluster.relocation import Relocation
from planner.history.manifest import cluster_of_folder

RECORD = ".shadow.jsonl"
"""Name of the record, in the folder of its cluster."""

NEXT = ".shadow-next.json"
"""File name of the present prediction, beside the record."""

MAX_BYTES = 16 << 20
"""Most bytes of a record on disk; the oldest cycles are deleted."""

_LONGEST_LINE = 4 << 20


class Cause(StrEnum):
    """Why a prediction likely differs from what happened."""

    EARLIER = "decided earlier"
    LATE_REPORT = "late report"
    MEMORY = "different leader memory"
    ORDER = "order of equals"
    MANUAL = "manual unload"
    MANUAL_SPLIT = "manual split"
    LEADER = "leader changed"
    MISSED = "capture missed the cycle"
    SETTINGS = "settings changed"
    POLICIES = "policies changed"
    RETURNED = "unloaded and taken back"
    BROKER_LEFT = "broker left"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Split:
    """A bundle that is split.

    Attributes:
        bundle: Full bundle name.
        boundaries: New boundaries inside it; None when they could not be predicted.
    """

    bundle: str
    boundaries: tuple[int, ...] | None

    def is_among(self, cuts: tuple[int, ...] | None) -> bool:
        """Whether the bundle was cut here; a child of it may have been cut again before the next capture."""
        return self.boundaries is not None and cuts is not None and set(self.boundaries) <= set(cuts)


@dataclass(frozen=True, slots=True)
class Deviation:
    """One thing that was not as predicted.

    Attributes:
        bundle: Full bundle name.
        what: `stayed` (predicted to be unloaded), `unloaded` (not predicted), `went elsewhere`; `not split`,
            `split` (not predicted), `split elsewhere`.
        cause: The likely reason.
    """

    bundle: str
    what: str
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowCycle:
    """One shedding cycle, and what was split since the one before.

    Attributes:
        cluster: Name of the cluster.
        number: Which one of this watch, from 1.
        from_ms: The capture from which it was predicted, ms since 1970.
        to_ms: The capture that first showed what happened, or that nothing did.
        leader: Broker id of the leader; empty unknown.
        shedder: Strategy that decides.
        predicted: Bundles that were to be unloaded.
        actual: Bundles that were unloaded.
        outside: Bundles that left their broker since the cycle before, but not in a cycle.
        predicted_splits: Splits that were predicted, and due.
        actual_splits: Splits that happened.
        differences: What was not as predicted, `outside` included, with the likely reason.
        in_time: Whether the inputs of the leader were seen in time: the two captures before the cycle and the loads of
            the one after it predict the same bundles, the leader's counters have been followed long enough to be known,
            and no further cycle, election or change of settings lies between the captures.
    """

    cluster: str
    number: int
    from_ms: int
    to_ms: int
    leader: str
    shedder: str
    predicted: tuple[Relocation, ...]
    actual: tuple[Relocation, ...]
    outside: tuple[Relocation, ...] = ()
    predicted_splits: tuple[Split, ...] = ()
    actual_splits: tuple[Split, ...] = ()
    differences: tuple[Deviation, ...] = ()
    in_time: bool = True

    @property
    def acts(self) -> bool:
        """Whether something was unloaded, or to be unloaded for certain."""
        return bool(self.actual) or not all(u.may_stay for u in self.predicted)

    @property
    def right(self) -> bool:
        """Whether exactly the predicted bundles were unloaded; those that may stay, or not."""
        left = {u.bundle for u in self.actual}
        sure = {u.bundle for u in self.predicted if not u.may_stay}
        return sure <= left <= {u.bundle for u in self.predicted}

    @property
    def by_hand(self) -> bool:
        """Whether all that was not as predicted, of the cycle itself, was unloaded by hand."""
        extra = {u.bundle for u in self.actual} - {u.bundle for u in self.predicted}
        found = [d for d in self.differences if d.bundle in extra or d.what == "stayed"]
        return not self.right and bool(found) and all(d.cause is Cause.MANUAL for d in found)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The reasons of all differences, each once."""
        return tuple(dict.fromkeys(difference.cause for difference in self.differences))


@dataclass(frozen=True, slots=True)
class Score:
    """How often shadow mode was right.

    Attributes:
        cycles: Cycles judged.
        right: Those in which exactly the predicted bundles were unloaded, none included.
        acting: Cycles in which something was unloaded, or to be unloaded.
        acting_right: Those of them that were right.
        in_time: Acting cycles whose inputs were seen in time.
        in_time_right: Those of them that were right.
        destinations: Bundles unloaded as predicted whose new broker is known.
        destinations_right: Those that went to a broker that was predicted to be acceptable.
        splits: Splits predicted or made.
        splits_right: Those predicted and made at the same boundaries; a child that was cut again changes nothing.
        by_hand: Cycles that differ in nothing but bundles unloaded by hand; counted here and nowhere above.
    """

    cycles: int = 0
    right: int = 0
    acting: int = 0
    acting_right: int = 0
    in_time: int = 0
    in_time_right: int = 0
    destinations: int = 0
    destinations_right: int = 0
    splits: int = 0
    splits_right: int = 0
    by_hand: int = 0

    @property
    def text(self) -> str:
        """One line for people."""
        parts = [
            _share("correct cycles", self.right, self.cycles),
            _share("with unloads", self.acting_right, self.acting),
            _share("of these, seen in time", self.in_time_right, self.in_time),
            _share("destinations", self.destinations_right, self.destinations),
            _share("splits", self.splits_right, self.splits),
        ]
        hands = f"; {self.by_hand} differ only by manual unloads" if self.by_hand else ""
        return "; ".join(parts) + hands


def _share(what: str, right: int, of: int) -> str:
    return f"{what} {right} of {of}{f' ({right / of:.1%})' if of else ''}"


def score_of(cycles: Iterable[ShadowCycle]) -> Score:
    """Return the score over some cycles."""
    numbers = dict.fromkeys(Score.__slots__, 0)
    for cycle in cycles:
        numbers["by_hand"] += cycle.by_hand
        numbers["cycles"] += not cycle.by_hand
        numbers["right"] += cycle.right
        if cycle.acts and not cycle.by_hand:
            numbers["acting"] += 1
            numbers["acting_right"] += cycle.right
            numbers["in_time"] += cycle.in_time
            numbers["in_time_right"] += cycle.in_time and cycle.right
        went = {u.bundle: u.destination for u in cycle.actual if u.destination}
        for unload in cycle.predicted:
            if unload.bundle in went:
                numbers["destinations"] += 1
                numbers["destinations_right"] += went[unload.bundle] in unload.acceptable
        cuts = {split.bundle: split for split in cycle.predicted_splits}
        made = {split.bundle: split.boundaries for split in cycle.actual_splits}
        numbers["splits"] += len(cuts.keys() | made.keys())
        numbers["splits_right"] += sum(1 for name, at in made.items() if name in cuts and cuts[name].is_among(at))
    return Score(**numbers)


def scores_by_strategy(cycles: Iterable[ShadowCycle]) -> dict[str, Score]:
    """Return the score under each strategy, in the order in which they decided first."""
    found: dict[str, list[ShadowCycle]] = {}
    for cycle in cycles:
        found.setdefault(cycle.shedder, []).append(cycle)
    return {shedder: score_of(those) for shedder, those in found.items()}


@dataclass(frozen=True, slots=True)
class NextCycle:
    """What is predicted as of the last capture.

    Attributes:
        captured_at_ms: That capture, ms since 1970.
        due_ms: When the next cycle is expected.
        rhythm_known: Whether that was learned from a cycle that was seen.
        shedder: Strategy that decides.
        unloads: Bundles that are to be unloaded.
        splits: Splits that are expected.
        notes: What a reader should know.
        too_seldom: Why no cycle can count as seen in time at the pace of these captures, and which pace would do;
            empty where some can.
    """

    captured_at_ms: int
    due_ms: int
    rhythm_known: bool
    shedder: str
    unloads: tuple[Relocation, ...] = ()
    splits: tuple[Split, ...] = ()
    notes: tuple[str, ...] = ()
    too_seldom: str = ""


_ADAPTER: TypeAdapter[ShadowCycle] = TypeAdapter(ShadowCycle)
_NEXT: TypeAdapter[NextCycle] = TypeAdapter(NextCycle)


def write_next(folder: Path, following: NextCycle) -> None:
    """Write what is predicted now, in place of what was.

    Raises:
        CaptureError: The file cannot be written.
    """
    with _writing(folder / NEXT):
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        write_whole(folder / NEXT, _NEXT.dump_json(following, exclude_defaults=True))


def read_next(folder: Path) -> NextCycle | None:
    """Return what is predicted now; None when nobody follows the cluster, or the file cannot be made out.

    Raises:
        CaptureError: There is a file, but it cannot be read.
    """
    try:
        with opened(folder / NEXT) as file:
            content = file.read(_LONGEST_LINE)
        return _NEXT.validate_python(json.loads(content))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(folder / NEXT, error) from error
    except (ValueError, RecursionError):
        return None


def _writing(path: Path) -> AbstractContextManager[None]:
    return writing(
        path, CaptureError, "Free some disk space, or choose another folder.", what="The record cannot be written"
    )


def _unreadable(path: Path, error: OSError) -> CaptureError:
    return CaptureError(
        f"The record cannot be read: {error.strerror}.", where=str(path), remedy="Check its permissions."
    )


class ShadowRecord:
    """The record of a cluster, in its folder of the history; it takes `max_bytes` at most.

    A line is written at once, and lines that a writer left unfinished are passed over. When the file is too long, its
    newer half is written anew under another name, and renamed.

    Raises:
        CaptureError: The file cannot be written, or there is one that cannot be read; any method may say so.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = folder / RECORD
        self.max_bytes = max_bytes

    def add(self, cycle: ShadowCycle) -> None:
        """Append a cycle, and make room for it."""
        line = _ADAPTER.dump_json(cycle, exclude_defaults=True) + b"\n"
        with _writing(self.path):
            self.path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            size = plain_file(self.path).stat().st_size if self.path.exists() else 0
            if size + len(line) > self.max_bytes:
                self._keep_newest(self.max_bytes // 2 - len(line))
            with self.path.open("ab") as file:
                if file.tell() and not self._ends_a_line():
                    file.write(b"\n")
                file.write(line)

    def _ends_a_line(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _keep_newest(self, size: int) -> None:
        with self.path.open("rb") as file:
            file.seek(-min(max(size, 0), self.path.stat().st_size), os.SEEK_END)
            kept = file.read().partition(b"\n")[2]
        write_whole(self.path, kept)

    def read(self, last: int = 100_000) -> tuple[ShadowCycle, ...]:
        """Return the last cycles on record, oldest first, without lines that cannot be read."""
        try:
            with opened(self.path) as file:
                lines = file.read(2 * self.max_bytes).splitlines()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _unreadable(self.path, error) from error
        found = []
        for line in lines[-last:]:
            if len(line) <= _LONGEST_LINE:
                with suppress(ValueError, RecursionError):
                    found.append(_ADAPTER.validate_python(json.loads(line)))
        return tuple(found)


def clusters_of(root: Path) -> dict[str, Path]:
    """Return the clusters in a folder of histories, and the folder of each.

    Raises:
        CaptureError: The folder cannot be read.
    """
    with reading(root, CaptureError, "Check the name of the folder.", what="The histories cannot be read"):
        folders = sorted(p for p in root.iterdir() if p.is_dir() and p.name.startswith("cluster="))
    return {cluster_of_folder(folder): folder for folder in folders}
