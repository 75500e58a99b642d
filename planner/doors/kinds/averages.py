"""Averages of the leader, as the shell of the metadata store prints them: `BundleData` and `TimeAverageBrokerData`."""

import re
from collections.abc import Iterator
from typing import Final

from planner.cluster.errors import FormatError
from planner.cluster.pulsar_json import RATES, Json, number, whole
from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.pieces import Averages, NotUsed, Piece

_SAMPLES: Final = ("numSamples", "maxSamples")
_OF_BUNDLES: Final = ("shortTermData", "longTermData")
_TERMS: Final = ("shortTerm", "longTerm")
_PATH: Final = re.compile(r"/loadbalance/(?:bundle-data|broker-time-average)/\S+")


def _recognise(chunk: Chunk) -> int:
    keys = chunk.keys.keys()
    return SURE if {"shortTermData", "longTermData"} <= keys or "longTermMsgRateIn" in keys else NO


def _read(chunk: Chunk) -> Iterator[Piece]:
    found = _PATH.search(chunk.before) or _PATH.search(chunk.source.command)
    if found is None:
        yield NotUsed(
            source=chunk.source, why="averages that do not name their bundle or broker; put the command above them"
        )
        return
    _check(chunk.value, str(chunk.source))
    yield Averages(source=chunk.source, path=found[0], values=chunk.value)


def _check(values: Json, where: str) -> None:
    """Refuse averages with a number that is none, so that the other outputs are read all the same.

    Raises:
        FormatError: Naming the field.
    """
    whole(values.get("topics"), f"{where}: topics")
    for name, term in values.items():
        if name not in _OF_BUNDLES or not isinstance(term, dict):
            if name.startswith(_TERMS):
                number(term, f"{where}: {name}")
            continue
        for field in RATES:
            number(term.get(field), f"{where}: {name}.{field}")
        samples, most = (whole(term.get(field), f"{where}: {name}.{field}") for field in _SAMPLES)
        if 0 < most < samples:
            what = f"numSamples of {name} is {samples:,}, more than maxSamples {most:,}."
            raise FormatError(what, where=where, remedy="Save the answer unchanged.")


KIND = Kind("averages", "pulsar zookeeper-shell get /loadbalance/bundle-data/BUNDLE", _recognise, _read)
