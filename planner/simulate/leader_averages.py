"""The averages that the modular leader of a simulated cluster keeps of bundles, in its memory and in the store.

Mirrors `ModularLoadManagerImpl.updateBundleData` and `writeBundleDataOnZooKeeper` of Pulsar 4.2.4: every report that is
read is one sample of every bundle that some broker reports. It differs in that reports of one moment are read together.
"""

from typing import Any, TypeVar

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.cluster.tables import TRAFFIC_COLUMNS, BundleTable
from planner.pulsar.load.averages import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES
from planner.simulate.load_model import rows_of
from planner.simulate.renumbering import Renumbering

TERMS = ("short_term_", "long_term_")
"""Prefixes of the columns of both averages."""

_Array = TypeVar("_Array", FloatArray, Int64Array)

_WINDOWS = (SHORT_TERM_SAMPLES, LONG_TERM_SAMPLES)
_BLOCK = 8_192
"""Bundles that are worked on at once, so that they stay in the cache of the processor."""
_MOST_CHANGES = 32
"""Renumberings that what is stored may wait for."""
_THROUGHPUT_STEP = 1e5
_RATE_STEP = 100.0


class LeaderAverages:
    """The averages of each bundle. No array is ever changed once a view or the store has it: it is read-only then.

    Args:
        bundles: The bundles at the start.

    Attributes:
        known: Which bundles the leader keeps averages of. Shape (bundles,).
        estimated: Whose averages were estimated. Shape (bundles,).
        data_topics: Topics of each in its averages. Shape (bundles,).
        samples: Samples in each average, by term. Shape of each: (bundles,).
        means: The averages, by term, rows as `TRAFFIC_COLUMNS`. Shape of each: (4, bundles).
    """

    def __init__(self, bundles: BundleTable) -> None:
        self.known: BoolArray = bundles.has_data
        self.estimated: BoolArray = bundles.averages_estimated
        self.data_topics: Int64Array = bundles.data_topics
        self.samples: list[Int64Array] = [getattr(bundles, f"{term}samples") for term in TERMS]
        self.means: list[FloatArray] = [rows_of(bundles, [term + name for name in TRAFFIC_COLUMNS]) for term in TERMS]
        self._stored_samples = [np.where(self.known, samples, 0) for samples in self.samples]
        """`samples` as the metadata store has them, 0 where nothing was written; likewise the two below."""
        self._stored_means = [frozen(means) for means in self.means]
        self._stored_topics: Int64Array = np.where(self.known, self.data_topics, 0)
        self._changes: list[Renumbering] = []
        """How bundles were renumbered since, first to last: what is stored is as it was before."""

    def rebuilt(self, change: Renumbering) -> None:
        """Follow a renumbering; of new bundles nothing is known."""
        made = change.made

        def follow(values: Any, unknown: int | None = None) -> Any:
            followed = change.follow(values)
            if unknown is not None:
                followed[..., made] = unknown
            return followed

        self.known, self.estimated = frozen(follow(self.known, 0)), frozen(follow(self.estimated, 0))
        self.data_topics = frozen(follow(self.data_topics))
        self.samples = [follow(samples, 0) for samples in self.samples]
        self.means = [follow(means, 0) for means in self.means]
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

    def refresh(self, samples: int, reported: FloatArray, listed: BoolArray) -> None:
        """Take every reported bundle's values as so many samples, one for each report that was read.

        Args:
            samples: How many.
            reported: What was reported last: traffic as `TRAFFIC_COLUMNS`, then topics. Shape (5 or more, bundles).
            listed: Which bundles are in a report. Shape (bundles,).
        """
        steady = listed & self.known
        if (self.estimated & ~steady).any():
            self.estimated = frozen(self.estimated & steady)
        for term, window in enumerate(_WINDOWS):
            self._sample(term, samples, reported[:4], listed, steady & (self.samples[term] == window))
        self.data_topics = reported[4].astype(np.int64)
        self.data_topics[~listed] = 0
        frozen(self.data_topics)
        if not np.array_equal(self.known, listed):
            self.known = frozen(listed)

    def _sample(self, term: int, samples: int, reported: FloatArray, listed: BoolArray, full: BoolArray) -> None:
        """Take samples for one of the averages; `full` are those of as many samples as their window.

        Where no average changes the array stays the same: most averages have long become what is reported.
        """
        if 2 * np.count_nonzero(full) < len(full):  # to pick the others out would take longer than to work all out
            found, counts = _room(self.means[term]), _room(self.samples[term])
            for begin in range(0, len(full), _BLOCK):
                at = slice(begin, begin + _BLOCK)
                _, counts[at] = self._growing(term, samples, at, reported, listed, full, into=found[:, at])
            self.means[term], self.samples[term] = found, counts
            return
        rest = np.flatnonzero(~full)
        if not len(rest):
            self.means[term] = self._changed(term, samples, reported)
            return
        new, number = self._growing(term, samples, rest, reported, listed, full)
        found = self.means[term] = self._changed(term, samples, reported)
        if not np.array_equal(number, self.samples[term][rest]):
            self.samples[term] = _own(self.samples[term])
            self.samples[term][rest] = number
        if not np.array_equal(found[:, rest], new):
            self.means[term] = _own(found)
            self.means[term][:, rest] = new

    def _changed(self, term: int, samples: int, reported: FloatArray) -> FloatArray:
        """Return averages after some samples, all as if of full windows; the same array where none changes."""
        means = self.means[term]
        differs = means[0] != reported[0]
        if 2 * np.count_nonzero(differs) > len(differs):
            found = _room(means)
            for begin in range(0, len(differs), _BLOCK):
                at = slice(begin, begin + _BLOCK)
                self._full(term, samples, means[:, at], reported[:, at], into=found[:, at])
            return found
        for mean, value in zip(means[1:], reported[1:], strict=True):
            differs |= mean != value
        some = np.flatnonzero(differs)
        if not len(some):
            return means
        found = _own(means)
        found[:, some] = self._full(term, samples, means[:, some], reported[:, some])
        return found

    @staticmethod
    def _full(
        term: int, samples: int, mean: FloatArray, value: FloatArray, *, into: FloatArray | None = None
    ) -> FloatArray:
        """Return averages after some samples where they have as many as their window; see `_growing`."""
        mean = np.subtract(mean, value, out=into)
        mean *= ((_WINDOWS[term] - 1) / _WINDOWS[term]) ** samples
        mean += value
        return mean

    def _growing(
        self,
        term: int,
        samples: int,
        at: slice | Int64Array,
        reported: FloatArray,
        listed: BoolArray,
        full: BoolArray,
        *,
        into: FloatArray | None = None,
    ) -> tuple[FloatArray, Int64Array]:
        """Return averages of some bundles after some samples, 0 of those that are not listed.

        Args:
            term: Which average.
            samples: How many.
            at: Where the bundles stand.
            reported: What was reported. Shape (4, bundles).
            listed: Which bundles are in a report. Shape (bundles,).
            full: Which have as many samples as their window. Shape (bundles,).
            into: Where the averages are written, if given. Shape (4, bundles asked about).

        Returns:
            The averages, shape (4, bundles asked about), and samples in them, shape (bundles asked about,).
        """
        window, known, value, whole = _WINDOWS[term], self.known[at], reported[:, at], full[at]
        before, old = np.minimum(self.samples[term][at], window), self.means[term][:, at]
        if not known.all():
            before[~known], old = 0, np.where(known, old, 0.0)
        after = np.minimum(before + samples, window)
        growing = after - before
        weight, total = before.astype(np.float64), after.astype(np.float64)
        weight[whole] = total[whole] = 1.0  # nothing is added: their averages stay as they are up to here
        mean = np.multiply(old, weight, out=into)
        mean += value * growing.astype(np.float64)
        mean /= total
        mean -= value
        if (growing < samples).any():  # these become full on the way
            share = (window - 1) / window
            mean *= np.append(share ** np.arange(samples + 1), share**samples)[samples - growing + whole]
        mean += value
        here = listed[at]
        if here.all():
            return mean, after
        mean[:, ~here] = 0.0
        after[~here] = 0
        return mean, after

    def columns(self) -> dict[str, Any]:
        """Return the columns of `BundleTable` that they are."""
        found: dict[str, Any] = {"has_data": self.known, "averages_estimated": self.estimated}
        found["data_topics"] = self.data_topics
        for term, samples, means in zip(TERMS, self.samples, self.means, strict=True):
            found |= {term + name: mean for name, mean in zip(TRAFFIC_COLUMNS, frozen(means), strict=True)}
            found[f"{term}samples"] = frozen(samples)
        return found

    def heaviest(self, among: BoolArray, most: int) -> BoolArray:
        """Return those of some bundles that are written to the store where only so many are. Shape (bundles,)."""
        rows = np.flatnonzero(among)
        keys = [key for means in self.means for key in _load_keys(means[:, rows])]
        chosen = np.zeros_like(among)
        chosen[rows[np.lexsort(keys[::-1])[::-1][:most]]] = True
        return chosen

    def store(self, chosen: BoolArray) -> None:
        """Write the averages of some bundles to the metadata store. Shape (bundles,)."""
        if chosen.all():
            self._stored_samples, self._stored_means = list(map(frozen, self.samples)), list(map(frozen, self.means))
            self._stored_topics = self.data_topics
            self._changes.clear()
            return
        self._settle()
        for term in range(len(TERMS)):
            self._stored_samples[term] = np.where(chosen, self.samples[term], self._stored_samples[term])
            self._stored_means[term] = np.where(chosen, self.means[term], self._stored_means[term])
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

        def put(values: Any, value: Any) -> Any:
            changed = values.copy()
            changed[..., bundle] = value
            return frozen(changed)

        self.known, self.data_topics = put(self.known, True), put(self.data_topics, self._stored_topics[at])
        for term in range(len(TERMS)):
            self.samples[term] = put(self.samples[term], self._stored_samples[term][at])
            self.means[term] = put(self.means[term], self._stored_means[term][:, at])
        return True


def _room(values: _Array) -> _Array:
    """Return where values are worked out anew: in place, as long as nobody else has them."""
    return values if values.flags.writeable else np.empty_like(values)


def _own(values: _Array) -> _Array:
    """Return values of which some are put anew: in place, as long as nobody else has them."""
    return values if values.flags.writeable else values.copy()


def _load_keys(means: FloatArray) -> list[FloatArray]:
    """Return by what averages are ordered: throughput in, throughput out and message rate, each rounded half up."""
    return [
        np.floor(means[2] / _THROUGHPUT_STEP + 0.5),
        np.floor(means[3] / _THROUGHPUT_STEP + 0.5),
        np.floor((means[0] + means[1]) / _RATE_STEP + 0.5),
    ]
