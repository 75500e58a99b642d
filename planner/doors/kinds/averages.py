"""Averages of the leader, as the shell of the metadata store prints them: `BundleData` and `TimeAverageBrokerData`."""

import re
from collections.abc import Iterator
from typing import Final

from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.pieces import Averages, NotUsed, Piece

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
    yield Averages(source=chunk.source, path=found[0], values=chunk.value)


KIND = Kind("averages", "pulsar zookeeper-shell get /loadbalance/bundle-data/BUNDLE", _recognise, _read)
