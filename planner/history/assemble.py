"""Makes a day of history out of its records, which come in the order of time; memory holds one state of the cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.cluster.units import DAY_MS
from planner.history.assumed import Hosts, listed
from planner.history.gateways import Gateways
from planner.history.labels import WEB_PORT
from planner.history.layout import Layout
from planner.history.manifest import Gap, RowCounts, day_of
from planner.history.moment import Moment, MomentMaker
from planner.history.records import BROKER_VALUES, DayFacts, Kind, Row
from planner.history.sources import snapshot_of_source
from planner.history.spec import Options
from planner.history.state import ClusterState

_MOST_GAPS = 1_000
_ONE_IN = 50
_MOST_LABELS = 20
_UPDATED = BROKER_VALUES.index("updated_at_ms")


def skew_of(lag_ms: Mapping[str, Sequence[int]], options: Options) -> dict[str, int]:
    """Return by how much the clock of a broker is ahead of the recorder's, for those that are off.

    No report is made after it arrives, and none is older than the longest time between two; so the shortest lags of a
    day show a clock that is ahead (below 0), or far behind (longer than any report is valid). A few rows with a wrong
    clock are no clock: those more than a day from the median do not count, and of the others the shortest one in fifty.
    """
    found = {}
    for broker, lags in sorted(lag_ms.items()):
        every = np.sort(np.array(lags, dtype=np.int64))
        near = every[np.abs(every - every[len(every) // 2]) <= DAY_MS]
        lag = int(near[len(near) // _ONE_IN])
        if lag < 0 or lag > options.report_ms:
            found[broker] = -lag
    return found


def _supplied(outputs: str) -> str:
    """Return the sentence on what supplies something that no row says."""
    return (
        "Ingest an earlier snapshot of the cluster as well: of python -m planner capture, or of python -m planner"
        f" snapshot FILE... --out with load reports, {outputs}."
    )


class DayAssembler:
    """Takes the records of a day, counted from 1970-01-01, and gives the moments at which snapshots are due.

    Reports and samples give a snapshot at every full interval at which any broker has a valid report; snapshots and
    captures come out as they went in, at their own moment. From `base`, the last snapshot before the day, bundles,
    settings and policies are known. Kept (pickled) at any moment, it goes on from there.

    Attributes:
        at_ms: The time of the last record that it took.
        taken: How many of that time it took.
    """

    def __init__(self, cluster: str, day: int, hint: DayFacts, options: Options, base: Snapshot | None = None) -> None:
        self.start_ms = day * DAY_MS
        self.day = day_of(self.start_ms)
        self.options = options
        self.skew_ms = skew_of(hint.lag_ms, options)
        layout = Layout(options.report_ms)
        gateways = Gateways(hint.targets)
        named = {*hint.brokers, *(base.brokers.name if base is not None else ())}
        hosts = Hosts(named - gateways.brokers.keys())
        self.state = ClusterState(cluster, layout, options, self.skew_ms, hosts, gateways)
        self.maker = MomentMaker(self.state)
        if base is not None:
            self.state.apply_snapshot(base, layout_only=True)
        layout.start(hint.first_ms)
        self._warnings = hint.warnings
        self.counts: dict[str, int] = dict.fromkeys(RowCounts.model_fields, 0) | {"late": hint.late}
        self.gaps: list[Gap] = []
        self.next_ms = self.start_ms
        self.newest_ms = -1
        self.last_moment_ms = -1
        self.snapshot_digest = ""
        self.heard_ms: dict[str, int] = {}
        self.all_heard_ms = self.start_ms
        self._before: tuple[tuple[int, str, str], tuple[int, int], float, int] | None = None
        self.at_ms = self.taken = 0

    def moments(self, rows: Iterable[Row]) -> Iterator[Moment]:
        """Take all rows that are left, in the order of time, and yield the moments that are due."""
        for row in rows:
            record = row.record
            yield from self._moments(record.time_ms)
            self.taken = self.taken * (record.time_ms == self.at_ms) + 1
            self.at_ms = record.time_ms
            self.counts["carried" if row.carry else "kept"] += record.rows
            if record.kind is Kind.SNAPSHOT:
                yield from self._snapshot(row)
            elif self._is_new(row):
                self._apply(row)

        yield from self._finish()

    def _finish(self) -> Iterator[Moment]:
        """Yield the moments that are left after the last record."""
        self.newest_ms = max(self.newest_ms, self.state.samples.newest_ms)
        end = -(-self.newest_ms // self.options.interval_ms) * self.options.interval_ms
        yield from self._moments(min(end + 1, self.start_ms + DAY_MS))
        samples = self.state.samples
        self.counts["duplicate"] += samples.duplicate
        self.counts["outdated"] += samples.outdated
        self.counts["used"] -= samples.duplicate + samples.outdated
        self.counts["counter_resets"] = self.state.counters.resets + samples.counters.resets
        self._close_gaps()

    @property
    def regular(self) -> bool:
        """Whether there are snapshots at full intervals."""
        return self.newest_ms >= 0 or len(self.state.samples) > 0

    def notes(self) -> list[str]:
        """Return what else there is to know about the day, one sentence each."""
        state = self.state
        found = []
        if state.assumed:
            more = (
                ", and more where brokers serve topics of the same range" if set(state.assumed) & set(state.cut) else ""
            )
            found.append(
                f"The bundles of {listed(state.assumed)} are not known; the default number of bundles of "
                f"a new namespace is assumed{more}. {_supplied('and the answers to namespaces bundles')}"
            )
        if split := [name for name in state.cut if name not in state.assumed]:
            found.append(
                f"Several brokers serve topics of the same bundle of {listed(split)}, so it was split "
                "after the last report. The planner splits it between their topics. Ingest a newer snapshot "
                "as well, of python -m planner capture."
            )
        found += list(self._warnings)[:_MOST_LABELS]
        found += self._notes_of_labels()
        if self.state.unplaced_topics:
            count = len(self.state.unplaced_topics)
            found.append(f"{count} topics have the hash 0xffffffff, for which Pulsar finds no bundle.")
        if self.regular:
            found.append(
                "Averages (BundleData) are computed only from the reports of this day and the minutes before it."
                " Captures with --metadata-store have those of the leader."
            )
        if self.state.base is None:
            name = self.state.cluster
            unnamed = f" Rows without a cluster count as {name}; --cluster names it as the snapshot does."
            found.append(
                "Settings and policies are not known; defaults are shown."
                f" {_supplied('broker.conf and isolation policies')}"
                f"{unnamed if name == Options().cluster else ''}"
            )
        return found

    def _notes_of_labels(self) -> Iterator[str]:
        hosts = self.state.hosts
        yield from self.state.gateways.notes(hosts)
        if programs := self.state.programs:
            yield f"{listed(programs)} left out: they have only the metrics of any Java program, such as a bookie."
        if hosts.assumed:
            yield (
                f"Series name {listed(hosts.assumed)} without a port; {WEB_PORT} is assumed. Keep the label instance"
                " (host:port), or fetch them with --prometheus and --broker-names."
            )
        if hosts.unclear:
            yield (
                f"Series name {listed(hosts.unclear)} without a port, but several brokers run there. The "
                "series were left out. Keep the label instance (host:port), or fetch them with --prometheus and "
                "--broker-names."
            )
        conflicts: dict[tuple[str, str], list[str]] = {}
        for (metric, label), value in sorted(self.state.samples.rivals.conflicts.items()):
            conflicts.setdefault((label, value), []).append(metric)
        for (label, value), metrics in list(conflicts.items())[:_MOST_LABELS]:
            yield (
                f"Series of {listed(metrics)} differ only in the label {listed([label])}, which the "
                "planner does not know. Only the first series of each counts "
                f"({listed([value]) or 'without it'}). Export one of them, or add them up in the query."
            )

    def _is_new(self, row: Row) -> bool:
        """Count a row, and say whether it says anything new of its moment."""
        record = row.record
        if record.kind is Kind.SAMPLES:
            return True
        key = (
            record.time_ms,
            record.broker,
            record.kind.value + (record.names[0] if record.kind is Kind.STATE else ""),
        )
        clock = float(record.values[_UPDATED]) if record.kind is Kind.REPORT else 0.0
        before = self._before
        counted = 0 if row.carry else record.rows
        if before is not None and before[0] == key:
            if before[1] == row.digest:
                self.counts["duplicate"] += counted
                return False
            self.counts["outdated"] += counted if clock < before[2] else before[3]
            if clock < before[2]:
                return False
            self.counts["used"] += counted - before[3]
        else:
            self.counts["used"] += counted
        self._before = (key, row.digest, clock, counted)
        return True

    def _apply(self, row: Row) -> None:
        record, counts = row.record, not row.carry
        self.state.apply(record, counts=counts)
        if record.kind is not Kind.SAMPLES:
            self.newest_ms = max(self.newest_ms, record.time_ms)
        elif counts:
            self.counts["used" if self.state.is_placed(record) else "not_placed"] += record.rows

    def _snapshot(self, row: Row) -> Iterator[Moment]:
        record = row.record
        if record.time_ms == self.last_moment_ms:
            self.counts["duplicate" if record.metric == self.snapshot_digest else "outdated"] += record.rows
            return
        snapshot = snapshot_of_source(Path(record.text), record.cluster, record.time_ms)
        self.counts["used"] += record.rows
        self.snapshot_digest = record.metric
        self.state.apply_snapshot(snapshot)
        self.last_moment_ms = record.time_ms
        for name in snapshot.brokers.name:
            self.heard_ms[name] = record.time_ms
        self.all_heard_ms = record.time_ms
        yield Moment(record.time_ms, snapshot.rows, lambda: snapshot)

    def _moments(self, before_ms: int) -> Iterator[Moment]:
        """Yield the moments that are due before a moment."""
        while self.next_ms < before_ms:
            at = self.next_ms
            self.next_ms += self.options.interval_ms
            if not self.regular:
                continue  # nothing but snapshots so far
            self.state.advance(at)
            if at == self.last_moment_ms or not self._listen(at):
                continue
            self.last_moment_ms = at
            yield self.maker.moment(at)

    def _listen(self, at: int) -> bool:
        """Return whether any broker has a valid report, and note the gaps of those that have none."""
        present = self.state.present(at)
        for row in np.flatnonzero(present).tolist():
            name = self.state.brokers.names[row]
            last = self.heard_ms.get(name)
            if last is not None and at - last > self.options.interval_ms:
                self._gap(last, at, name)
            self.heard_ms[name] = at
        if present.any():
            if at - self.all_heard_ms > self.options.interval_ms:
                self._gap(self.all_heard_ms, at, "")
            self.all_heard_ms = at
        return bool(present.any())

    def _gap(self, from_ms: int, to_ms: int, broker: str) -> None:
        if len(self.gaps) < _MOST_GAPS:
            self.gaps.append(Gap(from_ms=from_ms, to_ms=to_ms, broker=broker))

    def _close_gaps(self) -> None:
        end = self.next_ms - self.options.interval_ms
        for name, last in sorted(self.heard_ms.items()):
            if end - last > self.options.interval_ms and self.newest_ms >= 0:
                self._gap(last, end, name)

    def rows(self) -> RowCounts:
        """Return what became of the rows."""
        return RowCounts(**self.counts)
