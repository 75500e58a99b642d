"""The contract of a split algorithm."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.decisions import Reason
from planner.cluster.setting import SettingValue
from planner.cluster.settings import Settings
from planner.cluster.units import MIB
from planner.pulsar.protocol import Named

_STEP = 0x01000000


@dataclass(frozen=True, eq=False)
class SplitRequest:
    """A bundle to cut and what is known of its topics.

    Attributes:
        low: Lower boundary of the bundle.
        high: Its upper boundary.
        topic_hashes: Hash of each topic in the bundle, in listed order, one entry for each topic even when hashes
            collide; None when the topics could not be listed. Shape (topics,).
        has_stats: Whether the topic's rates are known. Shape (topics,).
        msg_rate_per_s: Message rate in + out. Shape (topics,).
        throughput_bytes_per_s: Throughput in + out. Shape (topics,).
        positions: Boundaries asked for (specified_positions_divide); None when none were given.
        force: Cut even when there are fewer than two topics (Pulsar's internal variant).
    """

    low: int
    high: int
    topic_hashes: Int64Array | None
    has_stats: BoolArray
    msg_rate_per_s: FloatArray
    throughput_bytes_per_s: FloatArray
    positions: tuple[int, ...] | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class SplitAnswer:
    """What an algorithm answers.

    Attributes:
        boundaries: New boundaries as Pulsar returns them: unchecked, perhaps equal to an end of the bundle, perhaps
            repeated. None when it answers null, empty when it answers an empty list; neither splits anything.
    """

    boundaries: tuple[int, ...] | None
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class SplitExample:
    """A worked example of the Concepts page about broker load balancing, and what the page says comes out.

    Attributes:
        low: Lower boundary of the bundle.
        high: Its upper boundary.
        topics: Hash of each topic, in units of 0x01000000.
        msg_rates_per_s: Message rate in + out of each topic; empty when it plays no part.
        throughputs_mib_per_s: Throughput in + out of each topic; empty when it plays no part.
        settings: Limits of the example, by `broker.conf` name.
        positions: Boundaries asked for; empty when none are.
        documented: The boundaries that the page shows.
        why: Why the page is wrong; empty when it is right.
    """

    low: int
    high: int
    topics: tuple[int, ...]
    documented: tuple[int, ...]
    msg_rates_per_s: tuple[float, ...] = ()
    throughputs_mib_per_s: tuple[float, ...] = ()
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    positions: tuple[int, ...] = ()
    why: str = ""

    @property
    def limits(self) -> str:
        """The settings, as a line of Markdown."""
        return ", ".join(f"{name} {value}" for name, value in self.settings.items())

    def computed(self, algorithm: "SplitAlgorithm") -> tuple[int, ...]:
        """Return the boundaries that the algorithm finds."""
        none = (0.0,) * len(self.topics)
        request = SplitRequest(
            self.low,
            self.high,
            np.array(self.topics, dtype=np.int64) * _STEP,
            np.ones(len(self.topics), dtype=np.bool_),
            np.array(self.msg_rates_per_s or none, dtype=np.float64),
            np.array(self.throughputs_mib_per_s or none, dtype=np.float64) * MIB,
            self.positions or None,
        )
        return algorithm.boundaries(request, Settings(self.settings)).boundaries or ()


class SplitAlgorithm(Named, Protocol):
    """Finds where to cut a bundle. Pure.

    Attributes:
        needs_positions: Whether the request has to name the boundaries.
        reads_topics: Whether the hashes of topics decide where it cuts: without a list of topics that is unknown.
        reads_traffic: Whether the rates of topics decide where it cuts; it may find several cuts at once.
        finds_none: When it finds no boundary, as the end of a sentence that begins with its name.
        differences: Where the public documentation differs from the release.
        examples: The worked examples of the public documentation.
    """

    @property
    def needs_positions(self) -> bool: ...  # noqa: D102
    @property
    def reads_topics(self) -> bool: ...  # noqa: D102
    @property
    def reads_traffic(self) -> bool: ...  # noqa: D102
    @property
    def finds_none(self) -> str: ...  # noqa: D102
    @property
    def differences(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def examples(self) -> tuple[SplitExample, ...]: ...  # noqa: D102

    def boundaries(self, request: SplitRequest, config: Settings) -> SplitAnswer:
        """Answer where the bundle would be cut.

        Raises:
            PulsarError: Pulsar's algorithm raises (its exception's simple name is carried).
        """
