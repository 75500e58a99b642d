"""The leader's view of a simulated cluster, a stale one: load reports lag, and averages lag more.

Mirrors, of Pulsar 4.2.4: when a broker works out its rates and when it writes a report (`LoadReportUpdaterTask`,
`BrokerLoadDataReporter`, `TopBundleLoadDataReporter`), the averages that the modular leader keeps
(`ModularLoadManagerImpl.updateAll`), the moving averages that a broker of the extensible load manager reports
(`BrokerLoadData`), and what a leader forgets. It differs in that a broker works out its rates, measures its machine and
checks whether to report at one moment of each `stats_interval_s`, and that reports of one moment are read together.
"""

from collections.abc import Collection
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any
from weakref import proxy

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    HISTORY_RESOURCE_PERCENTAGE,
    MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT,
    NAMESPACE_MAXIMUM_BUNDLES,
    REPORT_UPDATE_MAX_INTERVAL_MINUTES,
    SHEDDING_EXCLUDED_NAMESPACES,
)
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS, BrokerTable, BundleTable, make_bundles
from planner.cluster.units import MS_PER_MIN
from planner.pulsar.load.averages import BROKER_AVERAGES, LONG_TERM_RATES, broker_averages
from planner.pulsar.load.broker_load import averages as known_averages
from planner.pulsar.load.top_bundles import reported_under, with_top_ranks
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.placement.modular import Report, configured_placement
from planner.pulsar.splitting.limits import DIVISIBLE_TOPICS, SplitLoads, limits_of
from planner.simulate.late_bundles import LateBundles
from planner.simulate.leader_averages import TERMS, LeaderAverages
from planner.simulate.load_model import (
    COUNT_COLUMNS,
    LIMIT_COLUMNS,
    USAGE_COLUMNS,
    broker_sums,
    rows_of,
    served_by,
    with_sums,
    with_values,
)
from planner.simulate.renumbering import Names, Renumbering, Room
from planner.simulate.report_inputs import ReportInputs, compared, percent_changed
from planner.simulate.report_order import ReportOrder

if TYPE_CHECKING:
    from planner.simulate.cluster import Cluster

_BUNDLES = 7
_ROWS = (*TRAFFIC_COLUMNS, *COUNT_COLUMNS)
_SHOWN = frozenset((*TRAFFIC_COLUMNS, *COUNT_COLUMNS, "owner", "has_stats"))
_COMPARED = ("averages_estimated", "data_topics")
_AVERAGED = frozenset(
    ("has_data", *_COMPARED, *(term + name for term in TERMS for name in (*TRAFFIC_COLUMNS, "samples")))
)
_EMA_TICK_MS = 5_000
_ROUNDING = 1e-9
"""Share by which rounding may bring an average above what it comes from; far more than it can."""


class LeaderView:
    """What the leader knows; `view` answers. The cluster tells it what brokers notice, and when they report.

    Args:
        truth: The cluster as it is; it is only read here.
        snapshot: What was reported at the start.
        config: Settings in force.
    """

    _version = 0
    """How often what the leader knows of bundles has changed."""
    _glance: Snapshot | None = None  # the last look, until the leader knows something else

    def __init__(self, truth: "Cluster", snapshot: Snapshot, config: Settings) -> None:
        self.truth: Cluster = proxy(truth)  # which holds this view: neither waits until Python looks for circles
        self.config = config
        self._enough = config.integer("loadBalancerReportUpdateThresholdPercentage")
        self._late_ms = MS_PER_MIN * config.integer(REPORT_UPDATE_MAX_INTERVAL_MINUTES)
        self.extensible = truth.info.load_manager is LoadManager.EXTENSIBLE
        self.table = snapshot.brokers
        bundles = snapshot.bundles
        reported = bundles.has_stats & (bundles.owner >= 0)
        self.measured_by: IntArray = np.where(reported, bundles.owner, -1).astype(np.int32)
        self.reported_by: IntArray = self.measured_by.copy()
        self.reported: FloatArray = rows_of(bundles, _ROWS)
        self.measured: FloatArray = self.reported.copy()
        self._rooms = Room(), Room()
        self.totals: FloatArray = broker_sums(self.measured, self.measured_by, len(self.table))
        """Sums over each broker's measured bundles: rows of `measured`, then bundles. Shape (8, brokers)."""
        self._outdated: BoolArray = np.zeros(len(self.table), dtype=np.bool_)
        """Which of them still hold a bundle that another broker has measured since. Shape (brokers,)."""
        self._seen: ReportInputs | None = None
        """Latest measurements and their brokers; `measured` and `measured_by` lack them until `settle`."""
        self._unsettled: BoolArray = np.zeros(len(self.table), dtype=np.bool_)
        self._lists_cut: BoolArray = np.zeros(len(self.table), dtype=np.bool_)
        """Whose last report lists a bundle that was cut since. Shape (brokers,)."""
        self.bundles = bundles
        self.averages = None if self.extensible else LeaderAverages(bundles)
        self._order = None if self.extensible else ReportOrder(snapshot)
        self._limits = limits_of(config)
        self._most_bundles = config.integer(NAMESPACE_MAXIMUM_BUNDLES)
        self._large: BoolArray = self._may_exceed(slice(None))
        """Bundles whose reported values or averages may exceed a limit for splits until they are reported again."""
        self._has_room: BoolArray | None = None
        """Which bundles are of a namespace that may have more bundles."""
        self.updated_ms: Int64Array = snapshot.brokers.updated_at_ms.copy()
        self.updated_ms[self.updated_ms == 0] = snapshot.info.captured_at_ms
        self.dirty: BoolArray = np.zeros(len(self.table), dtype=np.bool_)
        self.measured_ms: Int64Array = np.full(len(self.table), snapshot.info.captured_at_ms, dtype=np.int64)
        if self.extensible:
            known = known_averages(self.table, config)
            self.load_ema: FloatArray = known.weighted_max_ema.copy()
            self.throughput_ema: FloatArray = known.msg_throughput_ema_bytes_per_s.copy()
            self.ema_ms: Int64Array = self.measured_ms.copy()
            self.fresh: BoolArray = np.zeros(len(self.table), dtype=np.bool_)
            if (bundles.top_rank >= 0).any():
                self.bundles = reported_under(snapshot, snapshot.settings, config).bundles
            else:
                self.bundles = with_top_ranks(snapshot, config).bundles
        self._view: Snapshot | None = None
        self._table: BundleTable | None = None
        self._columns: dict[str, Any] = {}
        """What views show of `reported` and `reported_by`, for as long as these stay as they are."""
        self._last: Snapshot | None = None

    # Brokers that come and go

    def joined(self, at_ms: int) -> None:
        """Take brokers in that are new in the cluster's table; they report at once that nothing is on them."""
        self.settle()
        count = len(self.truth.brokers) - len(self.table)
        columns: dict[str, Any] = {}
        for column in fields(self.table):
            known, all_now = getattr(self.table, column.name), getattr(self.truth.brokers, column.name)
            new = all_now[len(self.table) :]
            columns[column.name] = all_now if isinstance(all_now, tuple) else frozen(np.append(known, new))
        self.table = BrokerTable(**columns)
        self.totals = np.pad(self.totals, ((0, 0), (0, count)))
        self.updated_ms = np.append(self.updated_ms, np.full(count, at_ms))
        self.measured_ms = np.append(self.measured_ms, np.full(count, at_ms))
        self.dirty = np.append(self.dirty, np.zeros(count, dtype=np.bool_))
        self._unsettled = np.zeros(len(self.table), dtype=np.bool_)
        self._outdated = np.append(self._outdated, np.zeros(count, dtype=np.bool_))
        self._lists_cut = np.append(self._lists_cut, np.zeros(count, dtype=np.bool_))
        if self.extensible:
            self.load_ema = np.append(self.load_ema, np.zeros(count))
            self.throughput_ema = np.append(self.throughput_ema, np.zeros(count))
            self.ema_ms = np.append(self.ema_ms, np.full(count, at_ms))
            self.fresh = np.append(self.fresh, np.ones(count, dtype=np.bool_))
        for broker in range(len(self.table) - count, len(self.table)):
            self.started(broker, at_ms)
        self.touch()

    def started(self, broker: int, at_ms: int) -> None:
        """Take in the first report of a broker that has just started."""
        self._forget(broker)
        if self.extensible:
            self.fresh[broker] = True
        who = np.array([broker])
        self._measure(who, at_ms)
        self._write(who, at_ms)

    def left(self, broker: int) -> None:
        """Forget a broker that is no longer registered."""
        self._forget(broker)
        self.table = with_values(self.table, broker, {"has_load_data": False, "registered": False})
        self.touch()

    def _forget(self, broker: int) -> None:
        self.settle()
        self._version += 1
        self.measured_by[self.measured_by == broker] = -1
        self.totals[:, broker], self._outdated[broker], self._lists_cut[broker] = 0.0, False, False
        gone = self.reported_by == broker
        self.reported_by[gone], self._columns = -1, {}
        if self.extensible:
            self._unrank(gone)
        elif gone.any():
            self._refresh(1)

    def policies_changed(self) -> None:
        """Note other policies: every view shows them, and brokers of the extensible load manager report by them."""
        if self.extensible:
            self.note_changes()
        self.touch()

    def touch(self) -> None:
        """Note that something changed that every view shows."""
        self._view = self._glance = self._table = None

    # Bundles that move and split

    def report_of(self, bundle: int) -> Report | None:
        """Return the report that lists a bundle, by its position, as far as a modular leader knows; None if none."""
        by = -1 if self.extensible else int(self.reported_by[bundle])
        return Report(self.table.name[by], int(self.table.updated_at_ms[by])) if by >= 0 else None

    def before_cut(self, bundles: Int64Array) -> None:
        """Write down what a cut of bundles, by position, overwrites: measurements, and averages of their brokers."""
        self.settle()
        if self.averages is None:
            return
        by = np.unique(self.reported_by[bundles]).astype(np.int64)
        missing = np.isnan(self.table.long_term_msg_rate_in_per_s)
        unknown = by[(by >= 0) & missing[by]]
        if len(unknown):
            every = configured_placement(self.config).measure == "msg_rate"
            view, some = self._view or self._in_order(self._glance or self.glance(0)), None if every else unknown
            sums = broker_averages(view, columns=LONG_TERM_RATES, brokers=some)
            if every:  # they hold until the next report, and every lookup of a child would sum them up again
                unknown = np.flatnonzero(missing)
            self.table = with_values(self.table, unknown, {name: values[unknown] for name, values in sums.items()})

    def ownership_changed(self, brokers: Int64Array, bundles: Int64Array) -> None:
        """Note that bundles came to or left brokers, which will show in what these measure next."""
        there = brokers[brokers >= 0]
        self.dirty[there] = True
        if self.extensible:
            self._unrank(np.isin(np.arange(len(self.measured_by)), bundles))
            self.fresh[there] = True
            self.throughput_ema[there] = 0.0
            self.load_ema[there] = 1.0
            self.table = with_values(self.table, there, {"has_load_data": False})
        self.touch()

    def _unrank(self, bundles: BoolArray) -> None:
        rank = self.bundles.top_rank
        if (rank[bundles] >= 0).any():
            self.bundles = replace(self.bundles, top_rank=frozen(np.where(bundles, -1, rank).astype(np.int32)))

    def rebuilt(self, change: Renumbering) -> None:
        """Follow a renumbering; of new bundles nothing is known. What was measured before is settled already."""
        self._version += 1
        made, owners = change.made, np.unique(self.measured_by[change.gone])
        listing = self.reported_by[change.gone]
        self._lists_cut[listing[listing >= 0]] = True

        def follow(values: Any, unknown: int | None = None) -> Any:
            followed = change.follow(values)
            if unknown is not None:
                followed[..., made] = unknown
            return followed

        self.measured_by, self.reported_by = follow(self.measured_by, -1), follow(self.reported_by, -1)
        self.reported, self.measured = (
            room.follow(values, change)
            for room, values in zip(self._rooms, (self.reported, self.measured), strict=True)
        )
        self.reported[:, made] = self.measured[:, made] = 0.0
        self._outdated[owners[owners >= 0]] = True
        some = np.flatnonzero(self._outdated)
        self.totals = with_sums(self.totals, some, self.measured, self.measured_by)
        self._outdated[:] = False
        columns: dict[str, Any] = {}
        for name in self.bundles.__dataclass_fields__:
            if name in _SHOWN or (name in _AVERAGED and not self.extensible):
                continue  # every view puts its own in place of it
            if name in {"low", "high", "namespace"}:
                now = getattr(self.truth.traffic, name)
                columns[name] = frozen(now.astype(getattr(self.bundles, name).dtype, copy=False))
                continue
            columns[name] = frozen(follow(getattr(self.bundles, name), -1 if name == "top_rank" else None))
        if self.averages is not None and self._order is not None:
            self.averages.rebuilt(change)
            self._order.rebuilt(change)
        self._large, self._has_room = follow(self._large, 0), None
        self.bundles, self._columns = replace(self.bundles, **columns), {}
        self.touch()

    # Reports

    def note_changes(self, brokers: Int64Array | slice = slice(None)) -> None:
        """Note that brokers (all by default) will measure something new the next time."""
        self.dirty[brokers] = True

    def report(self, who: Int64Array, at_ms: int, *, at_once: bool = False) -> bool:
        """Let brokers measure where something has changed, and write a report where enough has.

        Args:
            who: Positions of the brokers whose moment it is. Shape (reporting,).
            at_ms: The moment, ms since 1970.
            at_once: Let all of them measure.

        Returns:
            Whether any of them wrote a report.
        """
        if not len(who):
            return False
        if not at_once and self.truth.traffic.changes_within(int(self.measured_ms[who].min()), at_ms):
            self.dirty[:] = True
        measures = who if at_once else who[self.dirty[who]]
        late = at_ms - self.updated_ms[who] > self._late_ms
        if not len(measures) and not late.any():
            return False
        if len(measures):
            self._measure(measures, at_ms)
        writes = late if late.all() else late | self._changed(who, at_ms)
        if self.extensible:
            writes |= self.fresh[who]
        if not writes.any():
            return False
        self._write(who[writes], at_ms)
        return True

    def stirs(self, at_ms: int) -> bool:
        """Return whether any broker may have something to measure or report at a moment; quicker than asking each."""
        return bool(
            self.dirty.any()
            or at_ms - int(self.updated_ms.min()) > self._late_ms
            or self.truth.traffic.changes_within(int(self.measured_ms.min()), at_ms)
        )

    def _measure(self, who: Int64Array, at_ms: int) -> None:
        """Let brokers work out the rates of their bundles and measure their machines."""
        seen = self.truth.condition.measurable(at_ms)
        if seen is not self._seen:
            self.settle()
            self._seen = seen
        self._unsettled[who] = True
        self.totals[:, who] = seen.totals[:, who]
        self.measured_ms[who] = at_ms
        self.dirty[who] = False
        if self.extensible:
            self._report_top_bundles(who, *self.settle())

    def settle(self) -> tuple[BoolArray, Int64Array]:
        """Write down, bundle by bundle, what brokers measured; they do so far more often than anybody asks.

        Returns:
            Which bundles they have lost, shape (bundles,); positions of those they have, shape (bundles they have,).
        """
        who = np.flatnonzero(self._unsettled)
        if self._seen is None or not len(who):
            return np.zeros(len(self.measured_by), dtype=np.bool_), who
        mine, theirs = (served_by(who, owner, len(self.table)) for owner in (self._seen.owner, self.measured_by))
        lost, rows = theirs & ~mine, np.flatnonzero(mine)
        self.measured_by[lost] = -1
        now, before = self._seen.owner[rows], self.measured_by[rows]
        self._outdated[before[(before != now) & (before >= 0)]] = True
        self._outdated[who] = False
        self.measured_by[rows] = now
        self.measured[:4, rows], self.measured[4:, rows] = self._seen.traffic[:, rows], self._seen.counts[:, rows]
        self._unsettled[who] = False
        return lost, rows

    def _report_top_bundles(self, who: Int64Array, lost: BoolArray, rows: Int64Array) -> None:
        """Let brokers that measured report their top bundles, which they do whatever has changed."""
        self.reported_by[lost & (self.measured_by < 0)] = -1
        self._publish(rows)
        self._table = None
        snapshot = self._make(0).sharing(self._last)
        self.bundles = with_top_ranks(snapshot, self.config, who.tolist()).bundles
        self._last = snapshot
        self.touch()

    def _changed(self, who: Int64Array, at_ms: int) -> BoolArray:
        """Say of which brokers measurements differ enough from their last report. Shape (asked about,)."""
        reported = compared(self.table, self.config, self.truth.info.load_manager)[:, who]
        change, totals = (
            100 * np.abs(self.truth.condition.measurable(at_ms).usage[who] - reported[0]),
            self.totals[:, who],
        )
        now = np.array([totals[0] + totals[1], totals[2] + totals[3], totals[_BUNDLES]])
        changed: BoolArray = np.maximum(change, percent_changed(reported[1:], now).max(axis=0)) > self._enough
        return changed

    def _write(self, who: Int64Array, at_ms: int) -> None:
        """Publish what some brokers have measured, and let the leader read it."""
        self.settle()
        now = self.truth.condition.brokers(at_ms)
        new: dict[str, Any] = {name: getattr(now, name)[who] for name in (*USAGE_COLUMNS, *LIMIT_COLUMNS)}
        new |= dict(zip((*_ROWS, "reported_bundles"), self.totals[:, who], strict=True))
        new |= {"updated_at_ms": at_ms, "has_load_data": True, "registered": True}
        self.updated_ms[who], self._lists_cut[who] = at_ms, False
        if self.extensible:
            self._advance_ema(who, at_ms, weighted_usage(now, self.config, LoadManager.EXTENSIBLE)[who])
            new["weighted_max_ema"] = self.load_ema[who]
            new["msg_throughput_ema_bytes_per_s"] = self.throughput_ema[who]
        self.table = with_values(self.table, who, new)
        mine, theirs = (served_by(who, owner, len(self.table)) for owner in (self.measured_by, self.reported_by))
        self.reported_by[theirs & ~mine] = -1
        rows = np.flatnonzero(mine)
        self._publish(rows)
        if self.averages is not None:
            self._large[rows] = self._may_exceed(rows)
            self._refresh(len(who), rows)
        self.touch()

    def _publish(self, rows: Int64Array) -> None:
        """Report what was measured of some bundles, and forget the columns that it changes."""
        self._version += 1
        self.reported_by[rows], now = self.measured_by[rows], self.measured[:, rows]
        changed = (self.reported[:, rows] != now).any(axis=1).tolist()
        self.reported[:, rows] = now
        for name in ("owner", "has_stats", *(name for name, differs in zip(_ROWS, changed, strict=True) if differs)):
            self._columns.pop(name, None)

    def _advance_ema(self, who: Int64Array, at_ms: int, usage: FloatArray) -> None:
        """Let the moving averages of some brokers take a sample every 5 s since they last did."""
        history = self.config.number(HISTORY_RESOURCE_PERCENTAGE)
        kept = history ** np.maximum((at_ms - self.ema_ms[who]) // _EMA_TICK_MS, 1)
        throughput, fresh = self.totals[2, who] + self.totals[3, who], self.fresh[who]
        for ema, value in ((self.load_ema, usage), (self.throughput_ema, throughput)):
            ema[who] = np.where(fresh, value, value + (ema[who] - value) * kept)
        self.ema_ms[who] = at_ms
        self.fresh[who] = False

    # What the leader makes of the reports

    def _may_exceed(self, rows: Int64Array | slice) -> BoolArray:
        """Say which bundles may be above a limit until they are reported again: averages go to what is reported."""
        reported = self.reported[:, rows]
        rates = reported[:4] if self.averages is None else np.maximum(reported[:4], self.averages.long_term(rows))
        topics, sessions = reported[4].astype(np.int64), (reported[5] + reported[6]).astype(np.int64)
        loads = SplitLoads(topics, sessions, rates[0] + rates[1], rates[2] + rates[3], self._limits)
        return loads.may_exceed(_ROUNDING)

    def may_split(self) -> bool:
        """Say whether the modular leader may find a bundle to split now; quicker than to let it look."""
        large = np.flatnonzero(self._large)
        if self._has_room is None and len(large):
            namespace = self.truth.traffic.namespace
            self._has_room = (np.bincount(namespace) < self._most_bundles)[namespace]
        return self._has_room is not None and self._exceed(large[self._has_room[large]])

    def _exceed(self, rows: Int64Array) -> bool:
        """Say whether any of some bundles is above a limit now, as far as the modular leader knows."""
        if self.averages is None or not len(rows):
            return False
        topics, producers, consumers = self.reported[4:, rows].astype(np.int64)
        means = np.where(self.averages.known[rows], self.averages.long_term(rows), 0.0)
        loads = SplitLoads(topics, producers + consumers, means[0] + means[1], means[2] + means[3], self._limits)
        hot = (self.reported_by[rows] >= 0) & (topics >= DIVISIBLE_TOPICS) & (loads.exceeded() > 0)
        return bool(hot.any())

    def _refresh(self, samples: int, rows: Int64Array | None = None) -> None:
        """Let the averages take samples; some bundles, by position, were reported anew. Shape (reported anew,)."""
        self._version += 1
        if self.averages is not None:
            anew = np.zeros(0, dtype=np.int64) if rows is None else rows
            self.averages.refresh(samples, self.reported, self.reported_by >= 0, anew)
            sums = np.flatnonzero(~self._lists_cut)  # of others, the last report is read again, with what was cut
            if not np.isnan(self.table.long_term_msg_rate_in_per_s[sums]).all():
                self.table = with_values(self.table, sums, dict.fromkeys(BROKER_AVERAGES, np.nan))

    def write_back(self) -> None:
        """Take one more sample, and write averages to the metadata store, as the leader does now and then.

        With `loadBalancerMaxNumberOfBundlesInBundleLoadReport` above 0 only so many for each broker are written, the
        busiest.
        """
        if self.averages is None:
            return
        self._refresh(1)
        chosen = self.averages.known
        most = self.config.integer(MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT) * int(self.table.registered.sum())
        if 0 < most < int(chosen.sum()):
            excluded = set(self.config.names(SHEDDING_EXCLUDED_NAMESPACES))
            names = self.truth.traffic.namespaces
            out = np.array([name in excluded for name in names] or [False], dtype=np.bool_)
            chosen = self.averages.heaviest(chosen & ~out[self.truth.traffic.namespace], most)
        self.averages.store(chosen)
        self.touch()

    def recall(self, bundle: int) -> bool:
        """Let the leader read what the store has of a bundle that it knows nothing of, as a lookup does.

        Returns:
            Whether the store has any.
        """
        if self.averages is None or not self.averages.recall(bundle):
            return False
        self._version += 1
        self.touch()
        return True

    # What it looks like

    def view(self, at_ms: int) -> Snapshot:
        """Return the cluster as the leader knows it at a moment."""
        if self._view is None or self._view.info.captured_at_ms != at_ms:
            self._view = self._last = self._make(at_ms).sharing(self._last)
        return self._view

    def glance(self, at_ms: int) -> Snapshot:
        """Return what a modular leader knows at a moment, for a look that ends before anything changes.

        Its columns are worked out when somebody asks for them.
        """
        if self.averages is None:
            return self.view(at_ms)
        if self._view is not None and self._view.info.captured_at_ms == at_ms:
            return self._view
        if self._glance is None or self._glance.info.captured_at_ms != at_ms:
            truth, made = self.truth, self._snapshot(at_ms, LateBundles.of(self, self._version))
            self._glance = made.naming(truth.names, truth.hashes, truth.position)
        return self._glance

    def column(self, name: str, version: int) -> Any:
        """Return a column of bundles as a modular leader knows it, if nothing has changed since a version.

        Raises:
            RuntimeError: Somebody looks at it later.
        """
        if version != self._version:
            raise RuntimeError(f"{name} is read when the leader already knows something else")
        if name in _SHOWN:
            return frozen(self._reported_column(name)[:])
        if self.averages is not None and name in _AVERAGED:
            return frozen(self.averages.column(name)[:])
        return getattr(self.bundles, name)

    def _in_order(self, seen: Snapshot) -> Snapshot:
        """Let a snapshot know the order of the bundles in the reports."""
        if self._order is None or "reported" in vars(seen):
            return seen
        order = self._order.of(self.reported_by, self.truth.hashes)
        return seen.naming(seen.bundle_names, seen.bundle_name_hashes, reported=order)

    def evaluated(self, at_ms: int, promised: Collection[str]) -> Snapshot:
        """Return what a modular leader knows with the real owners, by which it judges its promises.

        Args:
            at_ms: The moment, ms since 1970.
            promised: The bundles that are asked about: the modular load manager's snapshot has no others, and of these
                no traffic.
        """
        if self.averages is None:
            return self.view(at_ms)
        truth, traffic = self.truth, self.truth.traffic
        names = tuple(name for name in promised if name in truth.position)
        rows = np.array([truth.position[name] for name in names], dtype=np.int64)
        owner, reported_by = truth.owner[rows], self.reported_by[rows]
        table = make_bundles(
            traffic.low[rows],
            high=traffic.high[rows],
            namespace=traffic.namespace[rows],
            owner=owner,
            has_stats=(reported_by >= 0) & (reported_by == owner),
            has_data=self.averages.known[rows],
            **dict.fromkeys(TRAFFIC_COLUMNS, 0.0),
        )
        position = {name: at for at, name in enumerate(names)}
        return self._snapshot(at_ms, table).naming(names, frozen(truth.hashes[rows]), position)

    def _make(self, at_ms: int) -> Snapshot:
        cluster = self.truth
        if self._table is None:
            columns = self._reported_columns().copy()
            if self.averages is not None:
                for name, values in self.averages.columns().items():
                    columns[name] = self._kept(name, values) if name in _COMPARED else values
            else:
                listed = (self.reported_by >= 0) & (self.reported_by == cluster.owners())
                columns |= {"has_stats": self._kept("has_stats", listed), "owner": cluster.owners()}
            self._table = replace(self.bundles, **columns)
        made = self._snapshot(at_ms, self._table)
        return self._in_order(made.naming(Names.kept(cluster.names), cluster.hashes, cluster.position))

    def _snapshot(self, at_ms: int, bundles: BundleTable) -> Snapshot:
        cluster = self.truth
        return Snapshot(
            replace(cluster.info, captured_at_ms=at_ms),
            self.config,
            self.table,
            cluster.traffic.namespaces,
            bundles,
            cluster.traffic.topics,
            cluster.policies,
        )

    def _reported_columns(self) -> dict[str, Any]:
        columns = self._columns
        shown = _ROWS if self.extensible else (*_ROWS, "has_stats", "owner")  # of extensible ones the channel tells
        for name in shown:
            if name not in columns:
                columns[name] = self._kept(name, self._reported_column(name))
        return columns

    def _reported_column(self, name: str) -> Any:
        """Return a column of what was reported."""
        if name in _ROWS:
            values = self.reported[_ROWS.index(name)]
            return values if name in TRAFFIC_COLUMNS else values.astype(np.int64)
        return self.reported_by >= 0 if name == "has_stats" else self.reported_by.copy()

    def _kept(self, name: str, values: Any) -> Any:
        """Return a column as the last view has it, if it is the same: a trace keeps many views.

        A part of an array is copied, as the array goes on changing.
        """
        known = getattr(self._last.bundles, name) if self._last is not None else None
        same = known is values or (known is not None and np.array_equal(known, values))
        return known if same else frozen(values if values.base is None else values.copy())
