"""Why AvgShedder moves nothing between brokers that were hit often enough: its minimums, or too little traffic."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from planner.cluster.names import (
    LOAD_PLACEMENT_STRATEGY,
    LOAD_SHEDDING_STRATEGY,
    MAX_UNLOAD_PERCENTAGE,
    MIN_UNLOAD_MESSAGE,
    MIN_UNLOAD_MESSAGE_THROUGHPUT,
)
from planner.cluster.settings import Settings
from planner.cluster.text import count
from planner.cluster.units import MIB
from planner.pulsar.shedding.avg_reasons import TOO_LITTLE
from planner.pulsar.shedding.profile import ROOM, HeldBack, Quiet, Remedy

_BY_USAGE: Final = {
    LOAD_SHEDDING_STRATEGY: "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder",
    LOAD_PLACEMENT_STRATEGY: "org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate",
}


@dataclass(frozen=True, slots=True, order=True)
class _Share:
    """What a pair was to move in a cycle.

    Attributes:
        msg_per_s: Share of the difference of message rates; below 0 where the busier broker has less.
        mib_per_s: The same of throughputs.
        broker: The broker of the pair with the higher score.
        other: The other one.
        cycle: Number of the cycle, from 1.
    """

    msg_per_s: float
    mib_per_s: float
    broker: str
    other: str
    cycle: int


def held_back(quiet: Iterable[Quiet], config: Settings) -> HeldBack | None:
    """Return that pairs were hit often enough, and the share of their difference is below the minimums.

    Args:
        quiet: Cycles in which nothing was shed.
        config: Settings in force.
    """
    held = [share for one in quiet for share in _shares(one)]
    if not held:
        return None
    by_rate = [one for one in held if one.msg_per_s >= 1]
    by_size = [one for one in held if one.mib_per_s > 0]
    if not by_rate and not by_size:
        return _nothing(held, config)
    top = max(by_rate) if by_rate else max(by_size, key=lambda one: one.mib_per_s)
    least, share = config.integer(MIN_UNLOAD_MESSAGE), config.number(MAX_UNLOAD_PERCENTAGE)
    least_size = config.integer(MIN_UNLOAD_MESSAGE_THROUGHPUT)
    evidence = (
        f"In {_cycles(held)}, a pair had enough hits but nothing was shed. In cycle {top.cycle}, {share * 100:g} % of"
        f" the difference is {top.msg_per_s:.0f} msg/s (minUnloadMessage: {least}) and {top.mib_per_s:.1f} MiB/s"
        f" (minUnloadMessageThroughput: {least_size / MIB:.1f} MiB/s)."
    )
    changes: dict[str, int | float] = {}
    if by_rate:
        changes[MIN_UNLOAD_MESSAGE] = min(math.ceil(top.msg_per_s * (1 - ROOM)) - 1, least)
        remedy = f"Lower minUnloadMessage to {changes[MIN_UNLOAD_MESSAGE]}"
    else:
        changes[MIN_UNLOAD_MESSAGE_THROUGHPUT] = max(math.ceil(top.mib_per_s * MIB * (1 - ROOM)) - 1, 0)
        remedy = f"Lower minUnloadMessageThroughput to {changes[MIN_UNLOAD_MESSAGE_THROUGHPUT]}"
    if share < 0.5:  # noqa: PLR2004 - half the difference evens a pair out
        changes[MAX_UNLOAD_PERCENTAGE] = 0.5
        remedy += ", and raise maxUnloadPercentage to 0.5, which balances a pair completely"
    return HeldBack(
        evidence=evidence,
        remedy=Remedy(f"{remedy}.", changes),
        brokers=_brokers(held),
        settings=(MIN_UNLOAD_MESSAGE, MIN_UNLOAD_MESSAGE_THROUGHPUT, MAX_UNLOAD_PERCENTAGE),
    )


def _shares(one: Quiet) -> list[_Share]:
    """Return what the pairs of a cycle were to move that move nothing, each once."""
    scores, found = one.decision.scores, []
    for part in one.decision.reasons:
        if part.code != TOO_LITTLE:
            continue
        rows = zip(part.brokers.tolist(), part.others.tolist(), part.values.tolist(), strict=True)
        for broker, other, row in rows:
            if scores[broker] > scores[other]:
                given = dict(zip(part.code.fields, row, strict=True))
                names = (one.brokers[broker], one.brokers[other])
                found.append(_Share(given["msg_per_s"], given["mib_per_s"], *names, one.cycle))
    return found


def _nothing(held: Sequence[_Share], config: Settings) -> HeldBack:
    """Return that no share is above 0: it is 0 itself, or the busier broker of each pair has no more traffic."""
    top = max(held)
    if config.number(MAX_UNLOAD_PERCENTAGE) <= 0:
        return HeldBack(
            evidence=f"In {_cycles(held)}, a pair had enough hits but nothing was shed: the share to move is 0.",
            remedy=Remedy(
                f"Set {MAX_UNLOAD_PERCENTAGE} to 0.5, which balances a pair completely.", {MAX_UNLOAD_PERCENTAGE: 0.5}
            ),
            brokers=_brokers(held),
            settings=(MAX_UNLOAD_PERCENTAGE,),
            title=f"AvgShedder moves nothing, as {MAX_UNLOAD_PERCENTAGE} is 0",
        )
    return HeldBack(
        evidence=(
            f"In {_cycles(held)}, a pair had enough hits but nothing was shed. In cycle {top.cycle}, the share of the"
            f" difference that {top.broker} was to move to {top.other} is {top.msg_per_s:.0f} msg/s and"
            f" {top.mib_per_s:.1f} MiB/s, and no minimum lets less than 0 move."
        ),
        remedy=Remedy(
            f"Look for what uses {top.broker}: another process, a smaller machine, or clients that cost more."
            " ThresholdShedder with LeastLongTermMessageRate sheds by usage, whatever the traffic is.",
            _BY_USAGE,
        ),
        brokers=_brokers(held),
        settings=tuple(_BY_USAGE),
        title=f"AvgShedder moves nothing, as {top.broker} uses more than {top.other} and carries no more",
    )


def _brokers(held: Sequence[_Share]) -> tuple[str, ...]:
    both = [name for one in sorted(held, reverse=True) for name in (one.broker, one.other)]
    return tuple(dict.fromkeys(both))


def _cycles(held: Sequence[_Share]) -> str:
    return count(len({one.cycle for one in held}), "cycle")
