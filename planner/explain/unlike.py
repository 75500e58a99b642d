"""Limits in which a few machines differ from others with as many cores."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.pulsar_json import RESOURCES as COLUMNS
from planner.cluster.tables import BrokerTable
from planner.explain.finding import listed
from planner.pulsar.load.usage import RESOURCES, usage_percent_by_resource
from planner.simulate.trace import Trace

ABOVE: Final = 1.05
"""Share of a limit from which on usage above it cannot be explained by rounding."""
_UNLIKE: Final = 1.2
"""Factor from which two limits count as different."""
_FEW: Final = 0.5
"""Share of the usual cores up to which a machine has few; likewise the other way round."""
_BUSY_MSG_RATE: Final = 1000.0
"""Messages per second that cannot be handled without any CPU usage."""
_OF_A_KIND: Final = 3
"""Fewest machines of one kind among which one can be called odd."""


@dataclass(frozen=True, slots=True)
class Odd:
    """Brokers whose limit differs from what others of as many cores have."""

    brokers: tuple[str, ...]
    sentence: str
    nic_gbps: float
    """Speed of the others, where it is a network that differs; else 0."""
    is_wrong: bool
    """Whether it is the speed of a network, and less than the traffic on it."""


@dataclass(frozen=True, slots=True)
class OddCores:
    """Brokers with far fewer, or far more, cores than most have."""

    brokers: tuple[str, ...]
    others: tuple[str, ...]
    """Those with the usual cores."""
    usual: float
    """Cores of the others."""


def beyond_limits(table: BrokerTable) -> BoolArray:
    """Return where usage is above its limit, which cannot be. Shape (5, brokers), rows in the order of `RESOURCES`."""
    with np.errstate(invalid="ignore"):
        return usage_percent_by_resource(table) > ABOVE * 100


def beyond_at_first(trace: Trace) -> BoolArray:
    """Return where usage was reported above its limit, and edits at the start do not mend it. Shape (5, brokers).

    Rows in the order of `RESOURCES`, columns in that of the brokers of `trace.start`. Traffic that grows in a
    simulation may ask for more than a broker has: only what was reported counts.
    """
    table, view = trace.start.brokers, trace.cycles[0].view.brokers
    above, still = beyond_limits(table), beyond_limits(view)
    for at, name in enumerate(table.name):
        if name in view.position:
            above[:, at] &= still[:, view.position[name]]
    return above


def without_cpu(table: BrokerTable) -> BoolArray:
    """Return which brokers report no CPU usage although they handle many messages. Shape (brokers,)."""
    busy = table.registered & table.has_load_data & (table.msg_rate_per_s() >= _BUSY_MSG_RATE)
    return busy & (table.cpu_usage_percent <= 0) & (table.cpu_limit_percent > 0)


def unseen_usage(table: BrokerTable) -> frozenset[str]:
    """Return the brokers that look less used than they are: a resource lacks its limit, or the CPU its usage.

    The CPU of such a broker is unknown. Its network counts where it would be busier than all else, with the speed that
    others have.
    """
    percents = usage_percent_by_resource(table)
    seen = np.where(np.isfinite(percents), percents, 0).max(axis=0, initial=0)
    hidden = without_cpu(table) | ((table.cpu_usage_percent > 0) & ~(table.cpu_limit_percent > 0))
    for resource in ("bandwidthIn", "bandwidthOut"):
        used, limit = (getattr(table, column) for column in COLUMNS[resource])
        if (limit > 0).any():
            hidden |= ~(limit > 0) & (used > 0) & (used / float(np.median(limit[limit > 0])) * 100 > seen)
    return frozenset(table.name[at] for at in np.flatnonzero(hidden & table.registered).tolist())


def beyond_network(table: BrokerTable) -> frozenset[str]:
    """Return the brokers with more traffic than the speed of their network, so that this speed is wrong."""
    above = beyond_limits(table)[[RESOURCES.index("bandwidthIn"), RESOURCES.index("bandwidthOut")]]
    return frozenset(table.name[at] for at in np.flatnonzero(above.any(axis=0)).tolist())


def few_cores(table: BrokerTable) -> OddCores | None:
    """Return the brokers with at most half the usual cores.

    None where there are none, or no two thirds of the brokers that answer agree on a number.
    """
    return _odd_cores(table, lambda percents, usual: percents <= usual * _FEW)


def many_cores(table: BrokerTable) -> OddCores | None:
    """Return the brokers with twice the usual cores or more, and otherwise no larger than the others.

    Where network or memory are larger as well, it is a larger machine. None as `few_cores` says.
    """
    found = _odd_cores(table, lambda percents, usual: percents * _FEW >= usual)
    if found is None:
        return None
    others = [table.position[name] for name in found.others]
    limits = (
        table.bandwidth_in_limit_kbit_per_s,
        table.bandwidth_out_limit_kbit_per_s,
        table.memory_limit_mib,
        table.direct_memory_limit_mib,
    )
    usual = [float(np.median(values[others])) for values in limits]
    same = tuple(
        name
        for name in found.brokers
        if not any(
            middle > 0 and float(values[table.position[name]]) > middle * _UNLIKE
            for values, middle in zip(limits, usual, strict=True)
        )
    )
    return OddCores(same, found.others, found.usual) if same else None


def _odd_cores(table: BrokerTable, is_odd: Callable[[Int64Array, int], BoolArray]) -> OddCores | None:
    there = np.flatnonzero(table.registered & table.has_load_data & (table.cpu_limit_percent > 0))
    if len(there) < _OF_A_KIND:
        return None
    percents = np.rint(table.cpu_limit_percent[there]).astype(np.int64)
    usual, number = Counter(percents.tolist()).most_common(1)[0]
    odd = there[is_odd(percents, usual)]
    if number * 3 < len(there) * 2 or not len(odd):
        return None
    alike = there[percents == usual]
    return OddCores(
        tuple(table.name[at] for at in odd.tolist()), tuple(table.name[at] for at in alike.tolist()), usual / 100
    )


def odd_limits(table: BrokerTable, wrong: Collection[str]) -> Iterator[Odd]:
    """Yield limits in which a few brokers differ from others with as many cores.

    Args:
        table: The brokers.
        wrong: Those whose network speed is wrong (see `beyond_network`); they are listed apart from others.
    """
    numbers: tuple[tuple[str, FloatArray, str, float, bool], ...] = (
        ("inbound network", table.bandwidth_in_limit_kbit_per_s, "Gbit/s", 1e6, True),
        ("outbound network", table.bandwidth_out_limit_kbit_per_s, "Gbit/s", 1e6, True),
        ("heap", table.memory_limit_mib, "GiB", 1024, False),
        ("direct memory", table.direct_memory_limit_mib, "GiB", 1024, False),
    )
    groups: dict[int, list[int]] = {}
    for i, core in enumerate(np.rint(table.cpu_limit_percent).astype(int).tolist()):
        groups.setdefault(core, []).append(i)
    for label, values, unit, size, of_network in numbers:
        for group in groups.values():
            usual = _usual([float(values[i]) for i in group])
            unlike = [i for i in group if usual and _is_unlike(float(values[i]), usual)]
            for few in ([i for i in unlike if (table.name[i] in wrong) is one] for one in (False, True)):
                if not few:
                    continue
                names = tuple(table.name[i] for i in few)
                here, others = f"{values[few[0]] / size:g} {unit}", f"{usual / size:g} {unit}"
                sentence = f"{label} {here} on {listed(names)}, {others} on others"
                nic_gbps = usual / size if of_network else 0.0
                yield Odd(names, sentence, nic_gbps, is_wrong=of_network and names[0] in wrong)


def _is_unlike(value: float, usual: float) -> bool:
    return value > 0 and not usual / _UNLIKE <= value <= usual * _UNLIKE


def _usual(values: Sequence[float]) -> float:
    """Return what most of a kind have; 0 when they are few, or no two thirds of them agree."""
    known = [value for value in values if value > 0]
    if len(known) < _OF_A_KIND:
        return 0.0
    middle = sorted(known)[len(known) // 2]
    alike = sum(not _is_unlike(value, middle) for value in known)
    return middle if alike * 3 >= len(known) * 2 else 0.0
