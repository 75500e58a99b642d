"""Follows a cluster that is being watched, and keeps the record."""

from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from statistics import median

from planner.cluster.errors import CaptureError, FormatError, PlannerError, SnapshotError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import REPORT_UPDATE_MIN_INTERVAL_MILLIS
from planner.cluster.snapshot import Snapshot
from planner.explain.captured_settings import settings_warning
from planner.history.days import read_day
from planner.history.manifest import complete_days
from planner.history.passed_over import passed_over
from planner.history.watched import HistoryFolder
from planner.shadow.follow import ShadowResult, shadow_step
from planner.shadow.observe import misses_report
from planner.shadow.record import NextCycle, Score, ShadowCycle, ShadowRecord, score_of, write_next
from planner.shadow.state import ShadowState

_KINDS = 3
_MOST_CYCLES = 100_000
_PACE_OF = 20
_LEAST_PAIRS = 5
_MISSED_SHARE = 0.8
"""Captures that miss reports so often never hold enough of them in a row."""


class ShadowWatch:
    """Follows a cluster, tells a line for each cycle, keeps the score and, below a root of histories, the record.

    No error of a prediction ends it: it is told, and what was known is forgotten. Each note about how the load balancer
    comes to its decisions, such as one on a class of your own, is told once.

    Args:
        root: Where the record goes, if anywhere.
        report: Told what is found, a line each.
        interval_ms: Time from one cycle to the next; 0 for that of the settings.
        complain: Told what goes wrong, a line each; `report` is when there is none.

    Attributes:
        too_seldom: Why no cycle can count as seen in time at the pace of the last captures; empty where some can.
    """

    def __init__(
        self,
        root: Path | None,
        report: Callable[[str], None],
        interval_ms: int = 0,
        complain: Callable[[str], None] | None = None,
    ) -> None:
        self.root = root
        self.interval_ms = interval_ms
        self.report = report
        self.complain = complain or report
        self.state = ShadowState()
        self.last: Snapshot | None = None
        self.cycles: list[ShadowCycle] = []
        self.too_seldom = ""
        self._failed = ""
        self._warned = False
        self._noted: set[str] = set()
        self._pace: deque[tuple[int, bool]] = deque(maxlen=_PACE_OF)

    def add(self, snapshot: Snapshot) -> tuple[ShadowCycle, ...]:
        """Take the next capture in; return the cycles that are complete with it. What fails is told once."""
        before, self.last = self.last, snapshot
        if (warning := settings_warning(snapshot.info)) and not self._warned:
            self._warned = True
            self.complain(f"warning: {warning}")
        if before is None or before.info.captured_at_ms == snapshot.info.captured_at_ms:
            return ()
        self._look_at_pace(before, snapshot)
        try:
            self.state, result = shadow_step(self.state, before, snapshot, interval_ms=self.interval_ms)
        except Exception as error:  # noqa: BLE001 - a watch goes on whatever a strategy stumbles over
            self.state = ShadowState()
            known = isinstance(error, PlannerError)
            text = (
                str(error)
                if known
                else f"a prediction failed ({type(error).__name__}: {error}); shadow mode starts again."
            )
            if text != self._failed:
                self._failed = text
                self.complain(f"shadow: {text}")
            return ()
        for note in result.prediction.decision.notes:
            if note not in self._noted:
                self._noted.add(note)
                self.complain(f"shadow: {note}")
        self.cycles = [*self.cycles, *result.cycles][-_MOST_CYCLES:]
        for cycle in result.cycles:
            self.report(describe(cycle))
        if self.root is not None:
            self._keep(self.root, result, snapshot)
        return result.cycles

    def _look_at_pace(self, before: Snapshot, snapshot: Snapshot) -> None:
        """See whether captures are so far apart that no cycle can count as seen in time; it is told once.

        The averages of the modular load manager's leader are known after dozens of reports in a row.
        """
        gap_ms = snapshot.info.captured_at_ms - before.info.captured_at_ms
        is_modular = snapshot.info.load_manager is LoadManager.MODULAR
        self._pace.append((gap_ms, is_modular and misses_report(before, snapshot)))
        missed = sum(misses for _, misses in self._pace)
        if len(self._pace) < _LEAST_PAIRS or missed < _MISSED_SHARE * len(self._pace):
            self.too_seldom = ""
            return
        every_s = snapshot.settings.integer(REPORT_UPDATE_MIN_INTERVAL_MILLIS) / 1000
        apart_s = median(gap for gap, _ in self._pace) / 1000
        text = (
            f"Captures are {apart_s:,.0f} s apart, but brokers report every {every_s:g} s. Captures miss "
            f"reports, and no cycle counts as seen in time. Watch with --interval {every_s:g} or less."
        )
        if not self.too_seldom:
            self.complain(f"shadow: {text}")
        self.too_seldom = text

    def _keep(self, root: Path, result: ShadowResult, snapshot: Snapshot) -> None:
        folder = HistoryFolder(root, 1).folder_of(snapshot.info.cluster)
        record = ShadowRecord(folder)
        for cycle in result.cycles:
            record.add(cycle)
        made = result.prediction
        following = NextCycle(
            snapshot.info.captured_at_ms,
            result.due_ms,
            result.rhythm_known,
            made.decision.shedder.name,
            made.unloads,
            result.splits,
            made.decision.notes,
            self.too_seldom,
        )
        write_next(folder, following)

    def follow(self, root: Path, cluster: str) -> None:
        """Take in every snapshot of a cluster in a history. What cannot be read of a day is told and left out.

        Raises:
            CaptureError: There are fewer than two.
            FormatError: There is no such history.
        """
        for sentence in passed_over(root):
            self.complain(f"shadow: {sentence}")
        count = 0
        for day in complete_days(root, cluster):
            try:
                for snapshot in read_day(day.path):
                    self.add(snapshot)
                    count += 1
            except (FormatError, SnapshotError) as error:
                self.complain(f"shadow: {error} Shadow mode continues with the next day.")
        if count < 2:  # noqa: PLR2004 - one predicts, the next one shows
            raise CaptureError(
                f"There are only {count} snapshots of {cluster}; two are needed.",
                where=str(root),
                remedy="Watch the cluster for a while: python -m planner watch.",
            )

    @property
    def cycle_ms(self) -> int:
        """When the leader decides next, ms since 1970; 0 as long as its rhythm is not known."""
        return self.state.rhythm.due_ms if self.state.rhythm.known else 0

    @property
    def score(self) -> Score:
        """The score so far."""
        return score_of(self.cycles)


def describe(cycle: ShadowCycle) -> str:
    """Return a line about a cycle."""
    if not cycle.acts:
        text = "no unloads predicted, and none happened"
    else:
        text = f"{len(cycle.predicted)} predicted, {len(cycle.actual)} unloaded"
    verdict = "right" if cycle.right else "wrong"
    splits = f", {len(cycle.actual_splits)} split" if cycle.actual_splits else ""
    counted = Counter(f"{d.what} ({d.cause})" for d in cycle.differences)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counted.most_common(_KINDS))
    late = "" if cycle.in_time or not cycle.acts else "; input not seen in time"
    return f"cycle {cycle.number}: {verdict}: {text}{splits}{f'; {kinds}' if kinds else ''}{late}"
