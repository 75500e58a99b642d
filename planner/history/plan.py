"""What an ingest has to do: which files to read, and which days to make anew."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.cluster.errors import ReplayError
from planner.history.day_writer import check_replaceable
from planner.history.ledger import DayRows, Moment, SourceEntry
from planner.history.manifest import DayFolder, SourceRows, complete_days, day_start_ms
from planner.history.sources import Source, SourceKind

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DayPlan:
    """A day that has to be made.

    Attributes:
        cluster: Name of the cluster.
        day: `yyyy-mm-dd`.
        sources: What each file contributes.
        base: Path of the last snapshot before the day; empty when there is none.
        base_name: What it is called in the manifest.
        base_ms: Its moment, ms since 1970.
    """

    cluster: str
    day: str
    sources: Mapping[str, SourceRows]
    base: str = ""
    base_name: str = ""
    base_ms: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do.

    Attributes:
        make: Days to make.
        read_too: Files of the ledger that contribute to those days, and have to be read once more.
        unchanged: How many days are complete and stay.
        remove: Days that no file contributes to any more.
        damaged: Days that would have to be made, but that are damaged: which, why, and what to do.
    """

    make: tuple[DayPlan, ...]
    read_too: tuple[str, ...]
    unchanged: int
    remove: tuple[_Key, ...] = ()
    damaged: tuple[str, ...] = ()


def changed_sources(found: list[Source], known: Mapping[str, SourceEntry], cluster: str) -> list[Source]:
    """Return the files that are new, or that changed since they were read."""
    read = {path: (Source(path, e.kind, e.size, e.changed_ns), e.cluster) for path, e in known.items()}
    return [source for source in found if read.get(source.path) != (source, cluster)]


def plan_days(
    root: Path, entries: Mapping[str, SourceEntry], just_read: frozenset[str], *, afresh: bool = False
) -> Plan:
    """Compare what the files contribute with the days that are complete.

    Args:
        root: The history.
        entries: All files, those just read included.
        just_read: Paths of those.
        afresh: Every day is made anew, because rows become history in another way than before.

    Raises:
        ReplayError: A day has to be made anew, and one of its files is gone or not given, or it was not made by an
            ingest.
    """
    wanted: dict[_Key, dict[str, DayRows]] = {}
    for path, entry in entries.items():
        for cluster, days in entry.days.items():
            for day, rows in days.items():
                wanted.setdefault((cluster, day), {})[path] = rows
    wanted = {key: rows for key, rows in wanted.items() if any(r.rows for r in rows.values())}
    there = {(d.manifest.cluster, d.manifest.day): d for d in complete_days(root)} if root.is_dir() else {}
    moments = sorted(
        ((e.moment, path) for path, e in entries.items() if e.moment is not None), key=lambda m: (m[0].time_ms, m[1])
    )
    make: list[DayPlan] = []
    damaged = tuple(str(there[key].damage) for key in sorted(wanted) if key in there and there[key].damage is not None)
    wanted = {key: rows for key, rows in wanted.items() if key not in there or there[key].damage is None}
    for key, given in sorted(wanted.items()):
        plain = {path: SourceRows(rows=r.rows, digest=r.digest) for path, r in sorted(given.items())}
        base, name, at_ms = "", "", 0
        if any(entries[path].kind not in (SourceKind.SNAPSHOT, SourceKind.HISTORY) for path in given):
            base, name, at_ms = _base(moments, key[0], day_start_ms(key[1]))
        before = there.get(key)
        if afresh or before is None or (before.manifest.sources, before.manifest.base) != (plain, name):
            if before is not None:
                _check_is_read(before, entries)
            make.append(DayPlan(*key, plain, base, name, at_ms))
    again = sorted({path for plan in make for path in (*plan.sources, plan.base) if path} - just_read)
    for path in again:
        if not Path(path).exists():
            plan = next(p for p in make if path in (*p.sources, p.base))
            raise ReplayError(
                f"{plan.day} of {plan.cluster} must be rebuilt, but a file that it was built from is missing.",
                where=path,
                remedy="Restore the file, or ingest into another folder.",
            )
    made_here = {key for key, day in there.items() if day.manifest.made_by == "ingest" and not day.is_watched}
    remove = tuple(sorted(made_here - set(wanted)) if entries else ())
    return Plan(tuple(make), tuple(again), len(wanted) - len(make), remove, damaged)


def _base(moments: "list[tuple[Moment, str]]", cluster: str, start_ms: int) -> tuple[str, str, int]:
    before = [(m, path) for m, path in moments if m.cluster == cluster and m.time_ms < start_ms]
    if not before:
        return "", "", 0
    moment, path = before[-1]
    return path, f"{moment.time_ms} {moment.digest}", moment.time_ms


def _check_is_read(day: DayFolder, entries: Mapping[str, SourceEntry]) -> None:
    """Refuse to make a day anew when something that it was made from is not read into its successor."""
    check_replaceable(day.path, "ingest")
    for path in day.manifest.sources:
        if path not in entries and str(Path(path).parent) not in entries:  # a day of a history stands for its snapshots
            raise ReplayError(
                f"{day.manifest.day} of {day.manifest.cluster} must be rebuilt, but it contains rows of a "
                "file that this run does not read.",
                where=path,
                remedy="Add that file, or ingest into another folder.",
            )
