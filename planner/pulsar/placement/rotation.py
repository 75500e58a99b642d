"""Taking brokers in turn, as both round-robin strategies do.

Mirrors `RoundRobinBrokerSelector` of Pulsar 4.2.4, with its habit of keeping the list it saw first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_COUNTER_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Rotation:
    """What a round-robin strategy remembers.

    Attributes:
        counter: Calls so far; after 2147483647 it starts again at 0.
        listed: Candidates in the order in which they were seen first.
    """

    counter: int = 0
    listed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is.

    Attributes:
        index: Place in the list.
        selected: The broker; None when there is no candidate.
        relisted: The list was made anew from the candidates.
    """

    index: int
    selected: str | None
    relisted: bool


def rotate(state: Rotation, candidates: Sequence[str]) -> tuple[Rotation, Turn]:
    """Take the next broker.

    The list is kept while it is as long as the candidates are many and the broker whose turn it is is one of them, even
    if others were replaced meanwhile. Otherwise it is made anew in candidate order, and the same place in it is taken.

    Args:
        state: What is remembered.
        candidates: Broker ids in the order in which Pulsar's set is visited.
    """
    if not candidates:
        return state, Turn(-1, None, relisted=False)
    following = 0 if state.counter == _COUNTER_MAX else state.counter + 1
    index = state.counter % len(candidates)
    if len(state.listed) == len(candidates) and state.listed[index] in candidates:
        return Rotation(following, state.listed), Turn(index, state.listed[index], relisted=False)
    listed = tuple(candidates)
    return Rotation(following, listed), Turn(index, listed[index], relisted=True)
