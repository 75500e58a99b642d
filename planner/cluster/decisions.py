"""Decisions and their reasons, as data.

A decision names what moves or splits *and* why everything that was examined moved or stayed. Reasons are columnar: one
block for each kind of reason, so that a decision about 100,000 bundles costs no 100,000 objects; pages turn the rows
they show into text.
"""

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray


@cache
def _fields_of(template: str) -> tuple[str, ...]:
    names = (name for _, name, _, _ in string.Formatter().parse(template) if name)
    return tuple(dict.fromkeys(n for n in names if n not in {"other", "broker", "bundle"}))


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit that was exceeded.

    Attributes:
        setting: Real name of the setting with the limit.
        value: What was compared, in the unit of the limit.
        limit: The limit.
    """

    setting: str
    value: float
    limit: float


@dataclass(frozen=True, slots=True)
class ReasonCode:
    """One kind of reason.

    Attributes:
        code: Stable name, `algorithm.what`, such as `threshold.below`.
        template: English text with the fields in braces, such as `usage {usage_percent:.1f} % < {limit_percent:.1f} %`.
            `{other}` stands for a second broker, `{broker}` and `{bundle}` for the subject. Hashes may be written as
            `0x{boundary:08x}` although the numbers compared are floats.
        acts: True when this reason moves, splits or chooses; False when it holds back.
        limited_by: Real name of the setting whose limit was exceeded, where that is the reason: the first of `fields`
            is what was compared with it, the second the limit.
    """

    code: str
    template: str
    acts: bool = False
    limited_by: str = ""

    def __hash__(self) -> int:
        return hash(self.code)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the numbers compared, in the order of their columns."""
        return _fields_of(self.template)

    def of(
        self, *numbers: float, broker: str | None = None, bundle: str | None = None, other: str | None = None
    ) -> "Reason":
        """Return a reason of this kind, with the numbers in the order of `fields`; names are those of `Reason`."""
        values = dict(zip(self.fields, map(float, numbers), strict=True))
        return Reason(self, broker, bundle, values, other)


class _Sentence(string.Formatter):
    """Writes hashes in hexadecimal even when they travelled as floats, which hold 32 bits exactly."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, float) and format_spec.endswith("x"):
            value = int(value)
        return str(super().format_field(value, format_spec))


_SENTENCE = _Sentence()


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason about one subject.

    Attributes:
        code: Its kind.
        broker: Broker id (`host:port`) it is about, or None when it is about the whole cluster.
        bundle: Bundle it is about, or None when it is about the broker.
        values: The numbers compared, by name.
        other: A second broker that took part, such as the destination or the other one of a pair.
    """

    code: ReasonCode
    broker: str | None
    bundle: str | None
    values: Mapping[str, float]
    other: str | None = None

    @property
    def exceeded(self) -> Exceeded | None:
        """The limit that was exceeded; None where the reason is another one."""
        if not self.code.limited_by:
            return None
        value, limit = (self.values[name] for name in self.code.fields[:2])
        return Exceeded(self.code.limited_by, value, limit)

    @property
    def text(self) -> str:
        """The reason as one English sentence part."""
        template = self.code.template
        write = _SENTENCE.format if "x}" in template else str.format  # which is quicker
        return write(
            template,
            **self.values,
            other=self.other or "?",
            broker=self.broker or "?",
            bundle=self.bundle or "?",
        )


_Columns: TypeAlias = tuple[IntArray, IntArray, FloatArray, IntArray]
"""Brokers, bundles, values and others of a block of reasons."""


class ReasonBlock:
    """Reasons of one kind about many subjects.

    The columns are put together when the first of them is read: most decisions are made of what moves, and nobody asks
    for the reasons. What they are made of never changes.

    Args:
        code: Their kind.
        columns: Puts the columns together.

    Attributes:
        code: Their kind.
    """

    def __init__(self, code: ReasonCode, columns: Callable[[], _Columns]) -> None:
        self.code = code
        self._make: Callable[[], _Columns] | None = columns
        self._made: _Columns | None = None

    @property
    def _columns(self) -> _Columns:
        make = self._make
        if self._made is None and make is not None:  # another thread may be as far
            self._made = make()
            self._make = None  # and what it holds
        assert self._made is not None  # noqa: S101 - one of them is there
        return self._made

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.code, self._columns)

    @property
    def brokers(self) -> IntArray:
        """Broker positions in the snapshot, -1 for the whole cluster. Shape (n,)."""
        return self._columns[0]

    @property
    def bundles(self) -> IntArray:
        """Bundle positions in the snapshot, -1 when the reason is about the broker. Shape (n,)."""
        return self._columns[1]

    @property
    def values(self) -> FloatArray:
        """The numbers compared, one column for each of `code.fields`. Shape (n, fields)."""
        return self._columns[2]

    @property
    def others(self) -> IntArray:
        """Broker positions of the second broker, -1 for none. Shape (n,)."""
        return self._columns[3]

    def __len__(self) -> int:
        return len(self.brokers)

    def about(self, bundle: int) -> "ReasonBlock":
        """Return the same reasons, numbers and all, about a bundle by its position; only the bundle takes memory."""

        def columns() -> _Columns:
            brokers, _, values, others = self._columns
            bundles: IntArray = np.ndarray(len(brokers), np.int32, np.array([bundle], dtype=np.int32), strides=(0,))
            return brokers, bundles, values, others

        return ReasonBlock(self.code, columns)

    def only(self, rows: Int64Array) -> "ReasonBlock":
        """Return some of the reasons, by their rows."""
        brokers, bundles, values, others = self._columns
        return _restored(self.code, (brokers[rows], bundles[rows], values[rows], others[rows]))

    def rows(self, broker_names: Sequence[str], bundle_names: Sequence[str]) -> Iterator[Reason]:
        """Yield each reason with its subjects named."""
        fields = self.code.fields
        rows = zip(
            self.brokers.tolist(), self.bundles.tolist(), self.others.tolist(), self.values.tolist(), strict=True
        )
        for broker, bundle, other, values in rows:
            yield Reason(
                self.code,
                broker_names[broker] if broker >= 0 else None,
                bundle_names[bundle] if bundle >= 0 else None,
                dict(zip(fields, values, strict=True)),
                broker_names[other] if other >= 0 else None,
            )


def _restored(code: ReasonCode, columns: _Columns) -> ReasonBlock:
    return ReasonBlock(code, lambda: columns)


_Ids: TypeAlias = Sequence[int] | IntArray | Int64Array | int
_Numbers: TypeAlias = Sequence[float] | FloatArray | Int64Array | float


def block(
    code: ReasonCode,
    brokers: _Ids = -1,
    bundles: _Ids = -1,
    values: Sequence[_Numbers] = (),
    others: _Ids = -1,
) -> ReasonBlock:
    """Build a block of reasons; single numbers are repeated for every row. What is given must not change afterwards.

    Args:
        code: The kind.
        brokers: Broker positions, or one for all.
        bundles: Bundle positions, or one for all.
        values: One sequence (or one number) for each of `code.fields`, in that order.
        others: Positions of the second broker, or one for all.

    Raises:
        ValueError: The number of value columns is not that of the fields.
    """
    if len(values) != len(code.fields):
        raise ValueError(f"{code.code} compares {code.fields}, got {len(values)} columns")
    return ReasonBlock(code, lambda: _columns(brokers, bundles, values, others))


def _columns(brokers: _Ids, bundles: _Ids, values: Sequence[_Numbers], others: _Ids) -> _Columns:
    columns: list[FloatArray] = [np.asarray(v, dtype=np.float64) for v in values]
    ids: list[IntArray] = [np.asarray(i, dtype=np.int32) for i in (brokers, bundles, others)]
    sizes = [c.size for c in columns if c.ndim] + [i.size for i in ids if i.ndim]
    rows = (0 if 0 in sizes else max(sizes)) if sizes else 1
    spread = [i if i.ndim and i.size == rows else np.full(rows, i, dtype=np.int32) for i in ids]
    table = np.empty((rows, len(columns)))
    for at, column in enumerate(columns):
        table[:, at] = column
    return spread[0], spread[1], table, spread[2]


def add_reasons(
    reasons: list[ReasonBlock],
    code: ReasonCode,
    which: BoolArray,
    brokers: IntArray | Int64Array | int,
    *values: FloatArray | Int64Array | float,
    bundles: Int64Array | int = -1,
    others: Int64Array | int = -1,
) -> None:
    """Add the reasons of some subjects, if it is any. What is given must not change afterwards.

    Args:
        reasons: Gets them.
        code: Their kind.
        which: The subjects that it is the reason of. Shape (n,).
        brokers: Broker positions, shape (n,), or one for all; the same holds for what follows.
        values: The numbers of each of `code.fields`.
        bundles: Bundle positions.
        others: Positions of the second broker.

    Raises:
        ValueError: The number of value columns is not that of the fields.
    """
    if not np.count_nonzero(which):  # quicker than to ask whether any is
        return
    if len(values) != len(code.fields):
        raise ValueError(f"{code.code} compares {code.fields}, got {len(values)} columns")

    def columns() -> _Columns:
        chosen = [value[which] if isinstance(value, np.ndarray) else value for value in values]
        ids = [each[which] if isinstance(each, np.ndarray) else each for each in (brokers, bundles, others)]
        return _columns(ids[0], ids[1], chosen, ids[2])

    reasons.append(ReasonBlock(code, columns))


class ReasonLog:
    """Collects reasons about single brokers and bundles, by position; they become a block for each kind.

    Attributes:
        rows: Each kind with broker, bundle, second broker and numbers compared, by its stable name.
    """

    def __init__(self) -> None:
        self.rows: dict[str, tuple[ReasonCode, list[tuple[int, int, int, tuple[float, ...]]]]] = {}

    def say(self, code: ReasonCode, broker: int, bundle: int = -1, other: int = -1, *values: float) -> None:
        """Add one reason; -1 for no bundle or second broker."""
        if code.code not in self.rows:
            self.rows[code.code] = code, []
        self.rows[code.code][1].append((broker, bundle, other, values))

    def blocks(self) -> list[ReasonBlock]:
        """Return all reasons, kinds in the order in which they came first."""
        made = []
        for code, rows in self.rows.values():
            brokers, bundles, others, values = zip(*rows, strict=True)
            made.append(block(code, brokers, bundles, tuple(zip(*values, strict=True)), others))
        return made


@dataclass(frozen=True, slots=True)
class Move:
    """One bundle to unload.

    Attributes:
        bundle: Full bundle name.
        source: Broker that owns it.
        destination: Broker it goes to; None when the next lookup decides.
        msg_rate_per_s: Message rate in + out that the strategy saw.
        throughput_bytes_per_s: Throughput in + out that the strategy saw.
        reason: Why it moves.
    """

    bundle: str
    source: str
    destination: str | None
    msg_rate_per_s: float
    throughput_bytes_per_s: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class Line:
    """A number that the brokers' scores are compared with, for the charts.

    Attributes:
        label: What it is, such as `average` or `average + threshold`.
        value: In the unit of the scores.
    """

    label: str
    value: float


_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class SheddingDecision:
    """What a shedding strategy chose at one moment.

    Attributes:
        moves: Bundles to unload, in the strategy's order.
        reasons: Why everything examined moved or stayed; every broker of the snapshot is the subject of at least one.
        scores: The score that the strategy compares, for each broker of the snapshot, in `score_unit`; NaN where none.
        lines: What the scores are compared with.
        measures: Further numbers by name, such as `average`, `std`, `required_bytes_per_s`.
        counters: Pulsar's own unload counters that move, by `Result/Reason` (extensible load manager).
        notes: What else the user should know: arbitrary ties, settings without effect.
        score_unit: `fraction` (1.0 = 100 %) or `msg/s`.
    """

    moves: tuple[Move, ...]
    reasons: tuple[ReasonBlock, ...]
    scores: FloatArray
    lines: tuple[Line, ...] = ()
    measures: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    counters: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()
    score_unit: str = "fraction"

    def unload(self) -> dict[str, list[str]]:
        """Return the moves as Pulsar's own answer: broker to bundles in the order chosen."""
        answer: dict[str, list[str]] = {}
        for move in self.moves:
            answer.setdefault(move.source, []).append(move.bundle)
        return answer


@dataclass(frozen=True, slots=True)
class PlacementDecision:
    """Which broker gets a bundle.

    Attributes:
        bundle: Full bundle name; empty when a strategy does not look at it.
        acceptable: Brokers that Pulsar draws one from, in candidate order; one when the choice is determined, none when
            Pulsar finds no broker.
        selected: The one drawn with the scenario's seed; None when there is none.
        reasons: Why each candidate was kept or dropped.
    """

    bundle: str
    acceptable: tuple[str, ...]
    selected: str | None
    reasons: tuple[ReasonBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class SplitOrder:
    """One bundle to split.

    Attributes:
        bundle: Full bundle name.
        broker: Its owner.
        boundaries: New boundaries strictly inside the bundle; None when the owner computes them at execution.
        children: Full names of the children; empty when not yet known.
        reason: Which limit was exceeded.
    """

    bundle: str
    broker: str
    boundaries: tuple[int, ...] | None
    children: tuple[str, ...]
    reason: Reason


@dataclass(frozen=True, eq=False)
class SplitDecision:
    """What an automatic splitter chose at one moment.

    Attributes:
        splits: Bundles to split, in Pulsar's order.
        reasons: Why every bundle examined is split or not.
        counters: Pulsar's own split counters that move, by `Result/Reason`.
    """

    splits: tuple[SplitOrder, ...]
    reasons: tuple[ReasonBlock, ...]
    counters: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
