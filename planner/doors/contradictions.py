"""Where pieces do not agree with each other, or with themselves, and which one counts."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from planner.cluster.errors import FormatError
from planner.cluster.hashing import topic_hashes
from planner.cluster.moments import SECONDS_BELOW
from planner.cluster.names import LOAD_MANAGER_CLASS_NAME
from planner.cluster.pulsar_json import BROKER_COUNTS, BUNDLE_STATS, RATES, RESOURCES, Json, bundle_numbers, last_stats
from planner.cluster.ranges import FULL_HIGH, parse_bundle, parse_range
from planner.cluster.text import count, moment
from planner.cluster.units import MS_PER_MIN
from planner.doors import plausible
from planner.doors.boundaries import boundaries_in
from planner.doors.pieces import Brokers, BrokerTopics, LoadReport, Metrics, TopicsOfBundles, TopicStatsOf
from planner.doors.words import BUNDLE
from planner.history.assumed import listed

_OF_BROKERS: Final = "/broker-time-average/"
_APART: Final = 0.05
_LEAST: Final = 1.0
_LATEST_MS: Final = 30 * MS_PER_MIN
"""Brokers that have little to do report every 15 minutes."""
_OF_REPORTS: Final = ("lastStats", "numBundles")
_OF_TABLES: Final = ("numTopics", "numBundles", "numProducers", "numConsumers")
_OF_EXTENSIBLE: Final = ("bundleCount", "topics", "weightedMaxEMA", "msgThroughputEMA")
_LOAD_MANAGERS: Final = frozenset(
    ["ModularLoadManagerImpl", "SimpleLoadManagerImpl", "ExtensibleLoadManagerImpl", "NoopLoadManager"]
)
_SUMS: Final = {
    **dict(RATES.items()),
    **{BROKER_COUNTS[c][0]: c for c in ("topics", "producers", "consumers")},
}
_COUNTS: Final = {"numTopics": "topics", "numProducers": "producerCount", "numConsumers": "consumerCount"}


class Contradictions:
    """Collects what does not agree.

    Attributes:
        texts: One sentence for each.
    """

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}

    def add(self, text: str) -> None:
        """Remember a sentence once."""
        self.texts[text] = None

    def _add_all(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.add(text)

    def averages(self, paths: Iterable[str], brokers: Collection[str]) -> None:
        """Note averages of brokers that are not there."""
        named = [path.partition(_OF_BROKERS)[2] for path in paths if _OF_BROKERS in path]
        if gone := [name for name in named if name not in brokers]:
            self.add(f"Averages of {listed(gone)} are not used, because no broker is called so.")

    def newer_report(self, before: LoadReport, after: LoadReport) -> LoadReport:
        """Return the newer one of two reports of a broker; one that is there twice is one."""
        if _rounded(before.report) == _rounded(after.report):
            return before
        early, late = sorted((before, after), key=_updated_ms)
        which = "newest" if _updated_ms(early) < _updated_ms(late) else "last"
        self.add(f"There are several load reports of {late.broker}; the {which} one counts.")
        return late

    def apart(self, broker: str, names: Sequence[str], topics: TopicsOfBundles | None) -> list[str]:
        """Return bundles of a broker without those that overlap with others; the topics are newer than its report."""
        fresh = {f"{space}/{span}" for space, spans in (topics or {}).items() for span in spans}
        taken: dict[str, list[tuple[int, int]]] = {}
        kept: list[str] = []
        dropped: list[str] = []
        for name in sorted(names, key=lambda one: one not in fresh):
            try:
                namespace, low, high = parse_bundle(name if BUNDLE.fullmatch(name) else "")
            except FormatError:
                self.add(f"{name[:120]!r} of {broker} is not a bundle; it was left out.")
                continue
            others = taken.setdefault(namespace, [])
            if any(low < top and bottom < high for bottom, top in others) if fresh else False:
                dropped.append(name)
                continue
            others.append((low, high))
            kept.append(name)
        if dropped:
            self.add(
                f"{broker} reports {listed(dropped)}, which it has split since then; the parts that its topics are in "
                "count."
            )
        order = {name: at for at, name in enumerate(names)}
        return sorted(kept, key=lambda one: order[one])

    def owners(self, owned: Mapping[str, Sequence[str]]) -> None:
        """Note the bundles that several brokers name as theirs."""
        first: dict[str, str] = {}
        twice: dict[tuple[str, str], list[str]] = {}
        for broker, names in owned.items():
            for name in names:
                if name in first:
                    twice.setdefault((first[name], broker), []).append(name)
                else:
                    first[name] = broker
        for (one, other), names in twice.items():
            self.add(f"{one} and {other} both name {listed(names)} as their own; the first counts.")
        if whole := _overlapping(first):
            self.add(
                f"{listed(whole)} overlaps with other bundles that brokers own: its parts count, as after a split."
            )

    def check(
        self,
        reports: Mapping[str, LoadReport],
        owned: Mapping[str, Sequence[str]],
        topics: Mapping[str, TopicsOfBundles],
        bundles: Mapping[str, Json],
        brokers: Sequence[str],
        lists: Iterable[Brokers],
    ) -> None:
        """Note what else does not agree."""
        given = {name for one in lists for name in one.brokers}
        if given and (more := [name for name in brokers if name not in given]):
            self.add(f"{listed(more)} is not in the list of brokers, but other files are about it; it is kept.")
        for broker, one in reports.items():
            self._complete(broker, one)
            self._sums(broker, one)
            self._add_all(plausible.of_report(broker, one))
        self._times(reports)
        named = [str(one.report.get(LOAD_MANAGER_CLASS_NAME) or "").rpartition(".")[2] for one in reports.values()]
        if len(managers := dict.fromkeys(filter(None, named))) > 1:
            self.add(
                f"Brokers run several load managers, {' and '.join(managers)}, which do not balance together. The"
                " cluster is shown with one of them."
            )
        for broker, names in owned.items():
            self._layout(broker, names, bundles)
        for broker, of_broker in topics.items():
            self._hashes(broker, of_broker)
            self._add_all(plausible.of_rows(f"the topics of {broker}", _each(of_broker)))
            if broker in reports:
                self._totals(broker, reports[broker], of_broker)

    def parts(self, one: BrokerTopics | TopicStatsOf) -> None:
        """Note topics whose producers and subscriptions do not add up to their rates."""
        if one.apart:
            shown = ", ".join(f"{name} ({count(number, 'topic')})" for name, number in one.apart.items())
            self.add(
                f"{one.source}: topics and their producers, subscriptions and sizes of messages say different rates:"
                f" {shown}. Those of the topics count; a unit may be wrong."
            )

    def check_metrics(self, metrics: Mapping[str, Metrics], placed: Mapping[str, TopicsOfBundles]) -> None:
        """Note what metrics say that cannot be, or that does not agree.

        Args:
            metrics: By broker.
            placed: The topics that they name, by broker.
        """
        for broker, one in metrics.items():
            self._add_all(plausible.of_metrics(broker, one))
            self._add_all(plausible.of_totals(broker, one))
            self._bundles_of_metrics(broker, one, placed.get(broker, {}))

    def _bundles_of_metrics(self, broker: str, one: Metrics, topics: TopicsOfBundles) -> None:
        """Compare the metrics of bundles with those of the topics in them."""
        apart: dict[str, int] = {}
        for namespace, spans in topics.items():
            for span, found in spans.items():
                stated = one.bundles.get(f"{namespace}/{span}", {})
                for name in plausible.far_apart(stated, _sums_of(found.values())):
                    apart[name] = apart.get(name, 0) + 1
        if apart:
            shown = ", ".join(f"{name} ({count(number, 'bundle')})" for name, number in apart.items())
            self.add(
                f"Metrics of bundles of {broker} do not agree with those of the topics in them: {shown}. A unit may be"
                " wrong, or the boundaries of bundles."
            )

    def _complete(self, broker: str, one: LoadReport) -> None:
        """Note the fields that every report of its kind has, and this one does not."""
        lacking = [name for name in RESOURCES if not isinstance(one.report.get(name), dict)]
        lacking += [
            f"{name}.{part}"
            for name in RESOURCES
            if isinstance(pair := one.report.get(name), dict)
            for part in ("usage", "limit")
            if pair.get(part) is None
        ]
        lacking += [name for name in RATES if one.report.get(name) is None]
        if not one.parts:
            lacking += [] if _updated_ms(one) else ["lastUpdate"]
        wanted = _OF_EXTENSIBLE if one.is_extensible else _OF_TABLES if one.parts else _OF_REPORTS
        lacking += [name for name in wanted if one.report.get(name) is None]
        rows = last_stats(one.report).values()
        lacking += [name for name in BUNDLE_STATS if any(row.get(name) is None for row in rows)]
        if lacking:
            names = listed(dict.fromkeys(lacking))
            self.add(f"The load report of {broker} lacks {names}; sums over bundles, or 0, are shown there.")
        unlimited = [name for name in RESOURCES if _limit(one.report.get(name)) <= 0]
        if unlimited:
            self.add(f"The load report of {broker} gives no limit of {listed(unlimited)}; usage counts as 0 % there.")
        named = one.report.get(LOAD_MANAGER_CLASS_NAME)
        if named is not None and not (isinstance(named, str) and named.rpartition(".")[2] in _LOAD_MANAGERS):
            self.add(f"{broker} runs the load manager {str(named)[:200]!r}, which is none of Pulsar's own.")

    def _sums(self, broker: str, one: LoadReport) -> None:
        """Compare what a report says of the broker with the sums over the bundles that it lists."""
        stats = last_stats(one.report)
        if not stats:
            return
        try:
            rows = [bundle_numbers(row, "") for row in stats.values()]
        except FormatError:
            return  # its reader says which number it is
        for key, column in _SUMS.items():
            total, stated = sum(row[column] for row in rows), one.report.get(key)
            if isinstance(stated, int | float) and abs(stated - total) > max(_APART * max(stated, total), _LEAST):
                self.add(
                    f"The load report of {broker} says {key} {stated:,.6g}, but its bundles add up to {total:,.6g}."
                )
        number = one.report.get("numBundles")
        if isinstance(number, int) and number != len(stats):
            self.add(
                f"The load report of {broker} says numBundles {number:,}, but lists {count(len(stats), 'bundle')}."
            )

    def _totals(self, broker: str, one: LoadReport, topics: TopicsOfBundles) -> None:
        """Compare what a report says of topics and clients with the topics that the broker lists."""
        sums = _sums_of(list(_each(topics)))
        totals = {key: int(sums[name]) for key, name in _COUNTS.items()}
        differing = {
            key: total
            for key, total in totals.items()
            if isinstance(stated := one.report.get(key), int) and abs(stated - total) > _APART * max(stated, total)
        }
        if differing:
            shown = ", ".join(f"{key} {one.report[key]:,} but lists {total:,}" for key, total in differing.items())
            self.add(f"{broker} reports {shown} with its topics. The two answers may be of different moments.")
        stated = {key: float(value) for key in RATES if isinstance(value := one.report.get(key), int | float)}
        if totals["numTopics"] and (apart := plausible.far_apart(stated, sums)):
            self.add(
                f"{broker} reports other rates than its topics add up to: {plausible.said(apart, stated, sums)}. The"
                " answers may be of different moments, or one of them in another unit."
            )

    def _times(self, reports: Mapping[str, LoadReport]) -> None:
        """Note reports whose time is none in ms, and reports of different moments."""
        times_ms = {broker: at_ms for broker, one in reports.items() if (at_ms := plausible.time_ms_of(one))}
        odd = [broker for broker, at_ms in times_ms.items() if at_ms < SECONDS_BELOW]
        if odd:
            self.add(
                f"The load report of {listed(odd)} says that it is of {moment(times_ms[odd[0]])}: check that this is in"
                " ms."
            )
        sure = {broker: at_ms for broker, at_ms in times_ms.items() if broker not in odd}
        oldest, newest = (min(sure, key=sure.__getitem__), max(sure.values())) if sure else ("", 0)
        if sure and newest - sure[oldest] > _LATEST_MS:
            self.add(
                f"The load report of {oldest} is {(newest - sure[oldest]) / MS_PER_MIN:,.0f} min older than the newest"
                " one, so rates and owners may not match."
            )

    def _layout(self, broker: str, names: Sequence[str], bundles: Mapping[str, Json]) -> None:
        for name in names:
            namespace, low, high = parse_bundle(name)
            edges = boundaries_in(bundles.get(namespace))
            if edges and (low, high) not in set(pairwise(edges)):
                self.add(f"{broker} owns {name}, which is not among the bundles of {namespace}.")

    def _hashes(self, broker: str, topics: TopicsOfBundles) -> None:
        """Note topics that are listed under a bundle that Pulsar would not hash them into."""
        wrong: list[str] = []
        strange: list[str] = []
        for namespace, spans in topics.items():
            for span, found in spans.items():
                strange += [name for name in found if f"://{namespace}/" not in name]
                names = [name for name in found if f"://{namespace}/" in name]
                low, high = parse_range(span)
                hashes = topic_hashes((name.encode() for name in names), len(names)).astype(np.int64)
                outside = (hashes < low) | ((hashes >= high) & (high < FULL_HIGH))
                wrong += [names[at] for at in np.flatnonzero(outside).tolist()]
        if strange:
            self.add(
                f"{broker} lists {count(len(strange), 'topic')} under another namespace ({listed(strange[:1])}). Each"
                " counts for a bundle of its own namespace, or is left out."
            )
        if wrong:
            self.add(
                f"{broker} lists {count(len(wrong), 'topic')} under a bundle that does not hold the hash "
                f"({listed(wrong[:1])}). Each is shown in the bundle of its hash."
            )


def _overlapping(names: Iterable[str]) -> list[str]:
    """Return the bundles that others lie in."""
    by_namespace: dict[str, list[tuple[int, int, str]]] = {}
    for name in names:
        namespace, low, high = parse_bundle(name)
        by_namespace.setdefault(namespace, []).append((low, -high, name))
    found: list[str] = []
    for rows in by_namespace.values():
        ordered = sorted(rows)
        found += [name for (_, end, name), (low, _, _) in pairwise(ordered) if low < -end]
    return found


def _each(topics: TopicsOfBundles) -> Iterator[Json]:
    """Yield the statistics of each topic of a broker."""
    for spans in topics.values():
        for found in spans.values():
            yield from found.values()


def _sums_of(topics: Collection[Json]) -> dict[str, float]:
    """Return the sums over topics, by the names of `NamespaceBundleStats`."""
    return {
        **{key: sum(stats[key] for stats in topics) for key in RATES},
        "topics": len(topics),
        "producerCount": sum(stats["producerCount"] for stats in topics),
        "consumerCount": sum(len(stats["subscriptions"][""]["consumers"]) for stats in topics),
    }


def _rounded(value: Any) -> Any:
    """Return a JSON value with numbers of ten digits: tools that print it anew keep no more."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def _limit(pair: Any) -> float:
    limit = pair.get("limit") if isinstance(pair, dict) else None
    return limit if isinstance(limit, int | float) else 1.0  # what lacks is said otherwise


def _updated_ms(one: LoadReport) -> int:
    times = [one.report.get(key) for key in ("lastUpdate", "updatedAt")]
    return max((at for at in times if isinstance(at, int)), default=0)
