"""The averages that the modular leader of a simulated cluster keeps of bundles, in its memory and in the store.

Mirrors `ModularLoadManagerImpl.updateBundleData` and `writeBundleDataOnZooKeeper` of Pulsar 4.2.4: every report that is
read is one sample of every bundle that some broker reports. It differs in that reports of the same values are read
together, when somebody asks for averages: of most bundles nothing changes for many reports.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.cluster.tables import TRAFFIC_COLUMNS, BundleTable
from planner.pulsar.load.averages import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES
from planner.simulate.load_model import rows_of
from planner.simulate.renumbering import Renumbering, Room

TERMS = ("short_term_", "long_term_")
"""Prefixes of the columns of both averages."""

_Array = TypeVar("_Array", FloatArray, Int64Array)

_WINDOWS = (SHORT_TERM_SAMPLES, LONG_TERM_SAMPLES)
_BLOCK = 8_192
"""Bundles that are worked on at once, so that they stay in the cache of the processor."""
_MANY = 4_096
"""Bundles from which on it takes less time to let samples wait than to take them at once."""
_MOST_CHANGES = 32
"""Renumberings that what is stored may wait for."""
_THROUGHPUT_STEP = 1e5
_RATE_STEP = 100.0


@dataclass(frozen=True, eq=False, slots=True)
class _Reported:
    """What some bundles reported for a while, of which no sample was taken yet.

    Attributes:
        rows: Their positions, in order. Shape (bundles,).
        until: How many samples had come when that ended.
        value: Traffic as `TRAFFIC_COLUMNS`. Shape (4, bundles).
        listed: Whether each was in a report. Shape (bundles,).
        known: Whether the leader had averages of it before. Shape (bundles,).
    """

    rows: Int64Array
    until: int
    value: FloatArray
    listed: BoolArray
    known: BoolArray


class LeaderAverages:
    """The averages of each bundle. No array is ever changed once a view or the store has it: it is read-only then.

    Args:
        bundles: The bundles at the start.

    Attributes:
        known: Which bundles the leader keeps averages of. Shape (bundles,).
        estimated: Whose averages were estimated. Shape (bundles,).
        data_topics: Topics of each in its averages. Shape (bundles,).
    """

    def __init__(self, bundles: BundleTable) -> None:
        self.known: BoolArray = bundles.has_data
        self.estimated: BoolArray = bundles.averages_estimated
        self.data_topics: Int64Array = bundles.data_topics
        self._samples: list[Int64Array] = [getattr(bundles, f"{term}samples") for term in TERMS]
        """Samples in each average, by term. Shape of each: (bundles,)."""
        self._means: list[FloatArray] = [rows_of(bundles, [term + name for name in TRAFFIC_COLUMNS]) for term in TERMS]
        """The averages, by term, rows as `TRAFFIC_COLUMNS`. Shape of each: (4, bundles)."""
        self._waiting = 0
        """Samples of every bundle that are not in its averages yet."""
        self._value, self._listed = np.empty((4, 0)), self.known
        """What is reported, and of which bundles. Shapes (4, bundles) and (bundles,); none before the first report."""
        self._room, self._made = Room(), np.zeros(0, dtype=np.int64)
        """Where `_value` follows renumberings; and positions, in order, of bundles that are new since the last report.
        Shape (new bundles,)."""
        self._before: list[_Reported] = []
        """What some of them reported instead when the first of the waiting samples came, first to last."""
        self._stored_samples = [np.where(self.known, samples, 0) for samples in self._samples]
        """`_samples` as the metadata store has them, 0 where nothing was written; likewise the two below."""
        self._stored_means = [frozen(means) for means in self._means]
        self._stored_topics: Int64Array = np.where(self.known, self.data_topics, 0)
        self._changes: list[Renumbering] = []
        """How bundles were renumbered since, first to last: what is stored is as it was before."""

    def rebuilt(self, change: Renumbering) -> None:
        """Follow a renumbering; of new bundles nothing is known."""
        self._catch_up()
        made = change.made

        def follow(values: Any, unknown: int | None = None) -> Any:
            followed = change.follow(values)
            if unknown is not None:
                followed[..., made] = unknown
            return followed

        self.known, self.estimated = frozen(follow(self.known, 0)), frozen(follow(self.estimated, 0))
        self.data_topics = frozen(follow(self.data_topics))
        self._samples = [follow(samples, 0) for samples in self._samples]
        self._means = [follow(means, 0) for means in self._means]
        if self._value.shape[1]:
            self._value = self._room.follow(self._value, change)
            self._value[:, made] = 0.0
            self._listed, new = frozen(follow(self._listed, 0)), np.zeros(len(self._listed), dtype=np.bool_)
            new[self._made] = True
            self._made = np.flatnonzero(change.follow(new) | change.new)
        self._changes.append(change)
        if len(self._changes) == _MOST_CHANGES:
            self._settle()

    def _settle(self) -> None:
        """Let what is stored follow the renumberings."""
        if not self._changes:
            return
        before = np.arange(len(self._stored_topics))  # where each stood when it was stored; -1 where it was made later
        for change in self._changes:
            before = change.follow(before)
            before[change.made] = -1
        self._stored_samples = [np.where(before >= 0, samples[before], 0) for samples in self._stored_samples]
        self._stored_means = [means.take(before, axis=-1) for means in self._stored_means]
        self._stored_topics = self._stored_topics[before]
        self._changes.clear()

    def refresh(self, samples: int, reported: FloatArray, listed: BoolArray, rows: Int64Array) -> None:
        """Take every reported bundle's values as so many samples, one for each report that was read.

        Args:
            samples: How many.
            reported: What was reported last: traffic as `TRAFFIC_COLUMNS`, then topics. Shape (5 or more, bundles).
            listed: Which bundles are in a report; it must not change afterwards. Shape (bundles,).
            rows: Positions, in order, of the bundles that were reported anew since the last call; of all others the
                same is reported as then, except where bundles were renumbered. Shape (reported anew,).
        """
        if not self._value.shape[1]:
            self._value, self._listed, rows = reported[:4].copy(), listed, np.arange(len(listed))
        else:
            rows = _together(rows, np.flatnonzero(self._listed != listed), len(listed))
            rows, self._made = _together(rows, self._made, len(listed)), self._made[:0]
            self._follow_reports(reported[:4], listed, rows)
        self._waiting += samples
        steady = listed & self.known
        if (self.estimated & ~steady).any():
            self.estimated = frozen(self.estimated & steady)
        comes = np.flatnonzero(self.known != listed)
        self._count_topics(reported[4], listed, _together(rows, comes, len(listed)))
        if len(comes):
            self._note(comes)
            self.known = frozen(listed)
        if len(listed) < _MANY:
            self._catch_up()

    def _follow_reports(self, value: FloatArray, listed: BoolArray, rows: Int64Array) -> None:
        """Take over what is reported of some bundles from now on; waiting samples are of what was until now."""
        differs = (self._value[:, rows] != value[:, rows]).any(axis=0)
        if self._waiting:
            changed = rows[differs | (self._listed[rows] != listed[rows])]
            if 2 * len(changed) > len(listed):
                self._catch_up()
            elif len(changed):
                self._note(changed)
        moved = rows[differs]
        self._value[:, moved] = value[:, moved]
        self._listed = listed

    def _count_topics(self, topics: FloatArray, listed: BoolArray, rows: Int64Array) -> None:
        """Take over the topics that are reported of some bundles."""
        counted = np.where(listed[rows], topics[rows], 0.0).astype(np.int64)
        if not np.array_equal(self.data_topics[rows], counted):
            found = self.data_topics.copy()
            found[rows] = counted
            self.data_topics = frozen(found)

    def _note(self, rows: Int64Array) -> None:
        """Note what bundles reported until now; something about them changes."""
        self._before.append(_Reported(rows, self._waiting, self._value[:, rows], self._listed[rows], self.known[rows]))

    def _catch_up(self) -> None:
        """Take the samples that wait.

        Where no average changes the array stays the same: most averages have long become what is reported.
        """
        if not self._waiting:
            return
        late = np.unique(np.concatenate([before.rows for before in self._before] or [np.zeros(0, dtype=np.int64)]))
        for term, window in enumerate(_WINDOWS):
            means, counts = self._caught_up(term, late)
            self._sample(term, self._listed & (self._samples[term] == window))
            if not len(late):
                continue
            if not np.array_equal(self._samples[term][late], counts):
                self._samples[term] = _own(self._samples[term])
                self._samples[term][late] = counts
            if not np.array_equal(self._means[term][:, late], means):
                self._means[term] = _own(self._means[term])
                self._means[term][:, late] = means
        self._waiting = 0
        self._before.clear()

    def _caught_up(self, term: int, rows: Int64Array) -> tuple[FloatArray, Int64Array]:
        """Return averages of some bundles with the samples that wait, and the samples in each.

        Args:
            term: Which averages.
            rows: Positions of the bundles, in order. Shape (bundles asked about,).

        Returns:
            Shapes (4, bundles asked about) and (bundles asked about,).
        """
        means, counts = self._means[term][:, rows], self._samples[term][rows]
        if not self._waiting or not len(rows):
            return means, counts
        taken = np.zeros(len(rows), dtype=np.int64)
        now = _Reported(rows, self._waiting, self._value[:, rows], self._listed[rows], self._listed[rows])
        for reported in (*self._before, now):
            if reported is now:
                mine = theirs = np.arange(len(rows))
            else:
                _, mine, theirs = np.intersect1d(rows, reported.rows, assume_unique=True, return_indices=True)
            wait = reported.until - taken[mine]
            for samples in np.unique(wait[wait > 0]).tolist():
                some, of = mine[wait == samples], theirs[wait == samples]
                means[:, some], counts[some] = _sampled(
                    term, samples, means[:, some], counts[some],
                    reported.value[:, of], reported.listed[of], reported.known[of],
                )  # fmt: skip
            taken[mine] = reported.until
        return means, counts

    def _sample(self, term: int, full: BoolArray) -> None:
        """Take the samples that wait for one of the averages, as if what is reported now had been all the time.

        Args:
            term: Which average.
            full: Which have as many samples as their window. Shape (bundles,).
        """
        listed = known = self._listed  # where the leader knows others, that was noted
        if 2 * np.count_nonzero(full) < len(full):  # to pick the others out would take longer than to work all out
            found, counts = _room(self._means[term]), _room(self._samples[term])
            for begin in range(0, len(full), _BLOCK):
                at = slice(begin, begin + _BLOCK)
                _, counts[at] = _sampled(
                    term, self._waiting, self._means[term][:, at], self._samples[term][at],
                    self._value[:, at], listed[at], known[at], into=found[:, at],
                )  # fmt: skip
            self._means[term], self._samples[term] = found, counts
            return
        rest = np.flatnonzero(~full)
        means, counts = self._means[term][:, rest], self._samples[term][rest]
        if len(rest):
            means, counts = _sampled(
                term, self._waiting, means, counts, self._value[:, rest], listed[rest], known[rest]
            )
        found = self._changed(term)
        if not np.array_equal(counts, self._samples[term][rest]):
            self._samples[term] = _own(self._samples[term])
            self._samples[term][rest] = counts
        if not np.array_equal(found[:, rest], means):
            found = _own(found)
            found[:, rest] = means
        self._means[term] = found

    def _changed(self, term: int) -> FloatArray:
        """Return averages with the samples that wait, all as if of full windows; the same array where none changes."""
        means, value, left = self._means[term], self._value, float(_shares(term, self._waiting)[-1])
        differs = means[0] != value[0]
        if 2 * np.count_nonzero(differs) > len(differs):
            found = _room(means)
            for begin in range(0, len(differs), _BLOCK):
                at = slice(begin, begin + _BLOCK)
                _nearer(means[:, at], value[:, at], left, into=found[:, at])
            return found
        for mean, now in zip(means[1:], value[1:], strict=True):
            differs |= mean != now
        some = np.flatnonzero(differs)
        if not len(some):
            return means
        found = _own(means)
        found[:, some] = _nearer(means[:, some], value[:, some], left)
        return found

    def long_term(self, rows: Int64Array | slice) -> FloatArray:
        """Return the long-term averages of some bundles. Shape (4, bundles asked about)."""
        if isinstance(rows, slice):
            self._catch_up()
            return self._means[1][:, rows]
        return self._caught_up(1, rows)[0]

    def column(self, name: str) -> Any:
        """Return a column of `BundleTable` that they are, until the next sample is taken."""
        if name == "has_data":
            return self.known
        if name in {"data_topics", "averages_estimated"}:
            return self.data_topics if name == "data_topics" else self.estimated
        self._catch_up()
        term = next(at for at, prefix in enumerate(TERMS) if name.startswith(prefix))
        what = name.removeprefix(TERMS[term])
        return self._samples[term] if what == "samples" else self._means[term][TRAFFIC_COLUMNS.index(what)]

    def columns(self) -> dict[str, Any]:
        """Return the columns of `BundleTable` that they are."""
        self._catch_up()
        found: dict[str, Any] = {"has_data": self.known, "averages_estimated": self.estimated}
        found["data_topics"] = self.data_topics
        for term, samples, means in zip(TERMS, self._samples, self._means, strict=True):
            found |= {term + name: mean for name, mean in zip(TRAFFIC_COLUMNS, frozen(means), strict=True)}
            found[f"{term}samples"] = frozen(samples)
        return found

    def heaviest(self, among: BoolArray, most: int) -> BoolArray:
        """Return those of some bundles that are written to the store where only so many are. Shape (bundles,)."""
        self._catch_up()
        rows = np.flatnonzero(among)
        first = _in_steps(self._means[0][2, rows], _THROUGHPUT_STEP)
        least = np.partition(first, len(first) - most)[len(first) - most]
        chosen = np.zeros_like(among)
        chosen[rows[first > least]] = True
        tied = rows[first == least]
        keys = [key for means in self._means for key in _load_keys(means[:, tied])]
        chosen[tied[np.lexsort(keys[::-1])[::-1][: most - np.count_nonzero(chosen)]]] = True
        return chosen

    def store(self, chosen: BoolArray) -> None:
        """Write the averages of some bundles to the metadata store. Shape (bundles,)."""
        self._catch_up()
        if chosen.all():
            self._stored_samples, self._stored_means = list(map(frozen, self._samples)), list(map(frozen, self._means))
            self._stored_topics = self.data_topics
            self._changes.clear()
            return
        self._settle()
        for term in range(len(TERMS)):
            self._stored_samples[term] = np.where(chosen, self._samples[term], self._stored_samples[term])
            self._stored_means[term] = np.where(chosen, self._means[term], self._stored_means[term])
        self._stored_topics = np.where(chosen, self.data_topics, self._stored_topics)

    def recall(self, bundle: int) -> bool:
        """Read what the store has of a bundle, by its position, that nothing is known of; say whether it has any."""
        at = bundle
        for change in reversed(self._changes):
            if change.new[at]:
                return False
            at = int(change.parent[at])
        if self.known[bundle] or not self._stored_samples[0][at]:
            return False
        self._catch_up()

        def put(values: Any, value: Any) -> Any:
            changed = values.copy()
            changed[..., bundle] = value
            return frozen(changed)

        self.known, self.data_topics = put(self.known, True), put(self.data_topics, self._stored_topics[at])
        for term in range(len(TERMS)):
            self._samples[term] = put(self._samples[term], self._stored_samples[term][at])
            self._means[term] = put(self._means[term], self._stored_means[term][:, at])
        return True


def _together(rows: Int64Array, more: Int64Array, count: int) -> Int64Array:
    """Return positions, out of so many, that are in either of two; the first ones are in order. Shape (both,)."""
    if not len(more):
        return rows
    either = np.zeros(count, dtype=np.bool_)
    either[rows] = either[more] = True
    return np.flatnonzero(either)


@lru_cache(maxsize=32)
def _shares(term: int, most: int) -> FloatArray:
    """Return what is left of averages of a full window after 0 to so many samples. Shape (samples + 1,)."""
    share: FloatArray = ((_WINDOWS[term] - 1) / _WINDOWS[term]) ** np.arange(most + 1, dtype=np.float64)
    return frozen(share)


def _nearer(
    mean: FloatArray, value: FloatArray, left: FloatArray | float, *, into: FloatArray | None = None
) -> FloatArray:
    """Return averages of whose distance to what is reported a share is left. Shapes (4, bundles) and (bundles,)."""
    mean = np.subtract(mean, value, out=into)
    mean *= left
    mean += value
    return mean


def _sampled(
    term: int,
    samples: int,
    mean: FloatArray,
    count: Int64Array,
    value: FloatArray,
    listed: BoolArray,
    known: BoolArray,
    *,
    into: FloatArray | None = None,
) -> tuple[FloatArray, Int64Array]:
    """Return averages of some bundles after some samples, 0 of those that are not listed.

    Args:
        term: Which average.
        samples: How many.
        mean: The averages before. Shape (4, bundles).
        count: Samples in them. Shape (bundles,).
        value: What was reported. Shape (4, bundles).
        listed: Which bundles are in a report. Shape (bundles,).
        known: Of which there are averages. Shape (bundles,).
        into: Where the averages are written, if given. Shape (4, bundles).

    Returns:
        The averages, shape (4, bundles), and samples in them, shape (bundles,).
    """
    window = _WINDOWS[term]
    before = np.minimum(count, window)
    if not known.all():
        before[~known], mean = 0, np.where(known, mean, 0.0)
    after = np.minimum(before + samples, window)
    left = before / after
    late = samples - (after - before)
    if late.any():  # these have as many as their window, or get them on the way
        left *= _shares(term, samples)[late]
    mean = _nearer(mean, value, left, into=into)
    if listed.all():
        return mean, after
    mean[:, ~listed] = 0.0
    after[~listed] = 0
    return mean, after


def _room(values: _Array) -> _Array:
    """Return where values are worked out anew: in place, as long as nobody else has them."""
    return values if values.flags.writeable else np.empty_like(values)


def _own(values: _Array) -> _Array:
    """Return values of which some are put anew: in place, as long as nobody else has them."""
    return values if values.flags.writeable else values.copy()


def _in_steps(values: FloatArray, step: float) -> FloatArray:
    """Return values in steps, rounded half up."""
    found: FloatArray = np.floor(values / step + 0.5)
    return found


def _load_keys(means: FloatArray) -> list[FloatArray]:
    """Return by what averages are ordered: throughput in, throughput out and message rate."""
    throughput = (_in_steps(values, _THROUGHPUT_STEP) for values in means[2:])
    return [*throughput, _in_steps(means[0] + means[1], _RATE_STEP)]
