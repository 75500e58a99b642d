"""Which bundle was meant by a name that a cluster has not: the hint tells the kinds of misses apart."""

import re
from collections.abc import Collection
from typing import Final

from planner.cluster.errors import FormatError
from planner.cluster.ranges import format_range, parse_bundle
from planner.cluster.text import count

_END: Final = re.compile(r"(?:0[xX])?(?P<end>[0-9a-fA-F]{1,8})")
_ENDS: Final = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,8})_(?:0[xX])?([0-9a-fA-F]{1,8})")
_DOMAIN: Final = re.compile(r"^(?:non-)?persistent://")
_BOTH_ENDS: Final = "A bundle is named by both ends of its range, such as"
_SHOWN: Final = 3


def meant(name: str, known: Collection[str]) -> str:
    """Return what to write instead of a name, by what the cluster has.

    Args:
        name: The name that no bundle has.
        known: Names of all bundles.
    """
    name = _as_written(name)
    if name in known:
        return f"Write it as {name}."
    spaces: dict[str, list[str]] = {}
    for one in known:
        spaces.setdefault(one.rpartition("/")[0], []).append(one)
    if name in spaces:
        held = spaces[name]
        return f"That is a namespace of {count(len(held), 'bundle')}: choose one of them, such as {held[0]}."
    space, _, ends = name.rpartition("/")
    mine = {parse_bundle(one)[1:]: one for one in spaces.get(space, ())}
    elsewhere = f"It has no bundles of the namespace '{space or name}'. Its namespaces: {_listed(sorted(spaces))}."
    try:
        _, low, high = parse_bundle(name)
    except FormatError:
        example = next(iter(known), "")
        return _by_one_end(ends, mine) if mine else f"{_BOTH_ENDS} {example}. {elsewhere}"
    return _by_range(low, high, mine) if mine else elsewhere


def _by_range(low: int, high: int, mine: dict[tuple[int, int], str]) -> str:
    """Return the hint for a range that no bundle of its namespace has."""
    inside = [mine[pair] for pair in sorted(mine) if low <= pair[0] and pair[1] <= high]
    around = [mine[pair] for pair in sorted(mine) if pair[0] <= low and high <= pair[1]]
    if inside:
        return f"It has been split: choose one of its children, {_listed(inside)}."
    if around:
        return f"That range is part of {around[0]}, which has not been split there."
    across = [mine[pair] for pair in sorted(mine) if pair[0] < high and low < pair[1]]
    return f"No bundle has these boundaries. At that place: {_listed(across or list(mine.values()))}."


def _as_written(name: str) -> str:
    """Return a name as Pulsar writes it: without a domain, with small letters and all digits of both ends."""
    plain = _DOMAIN.sub("", name.strip())
    space, _, ends = plain.rpartition("/")
    found = _ENDS.fullmatch(ends)
    return plain if found is None or not space else f"{space}/0x{int(found[1], 16):08x}_0x{int(found[2], 16):08x}"


def _by_one_end(ends: str, mine: dict[tuple[int, int], str]) -> str:
    """Return the hint for a name that is no range."""
    example = next(iter(mine.values()))
    found = _END.fullmatch(ends)
    if found is None:
        return f"{_BOTH_ENDS} {example}."
    value = int(found["end"], 16)
    starts = [name for (low, _), name in sorted(mine.items()) if low == value]
    ending = [name for (_, high), name in sorted(mine.items()) if high == value]
    holding = [name for (low, high), name in sorted(mine.items()) if low < value < high]
    if starts or ending:
        return f"{_BOTH_ENDS} {_listed((starts + ending)[:2], ' or ')}."
    if holding:
        return f"{_BOTH_ENDS} {holding[0]}, which holds {format_range(value, value + 1).partition('_')[0]}."
    return f"{_BOTH_ENDS} {example}."


def _listed(names: list[str], word: str = ", ") -> str:
    rest = len(names) - _SHOWN
    return word.join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
