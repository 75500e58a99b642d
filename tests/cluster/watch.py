"""Waits for what the leader of the modular load manager decides, and keeps what could be seen before."""

import re
import time
from dataclasses import dataclass

from planner.model.snapshot import Snapshot
from tests.cluster.launch import Broker
from tests.cluster.scene import Scene

__all__ = ["Unload", "shed_by_leader"]

_UNLOADING = re.compile(
    r"^(?P<at>\d+) .*\[(?P<shedder>\w+)\] Unloading bundle: (?P<bundle>\S+) from broker (?P<source>\S+)"
    r" to dest broker (?P<destination>\S+)$",
    re.MULTILINE,
)
_CYCLE_S = 60.0
_ALL_OF_A_CYCLE_S = 12.0


@dataclass(frozen=True)
class Unload:
    """What the leader wrote about one bundle: when, in ms since 1970, which, from where and to where."""

    at_ms: int
    shedder: str
    bundle: str
    source: str
    destination: str


def unloads(broker: Broker) -> list[Unload]:
    """Return every automatic unload in the log of a leader."""
    return [
        Unload(int(line["at"]), line["shedder"], line["bundle"], line["source"], line["destination"])
        for line in _UNLOADING.finditer(broker.log)
    ]


def shed_by_leader(scene: Scene, *, cycles: int = 1) -> tuple[Snapshot, list[Unload]]:
    """Wait for a cycle that unloads something.

    Returns:
        The last snapshot from before the decision, and what the leader unloaded in that cycle.
    """
    leader = scene.cluster.leader
    known = len(unloads(leader))
    seen: list[Snapshot] = []
    until = time.monotonic() + cycles * _CYCLE_S + 30
    while time.monotonic() < until and len(unloads(leader)) == known:
        seen.append(scene.snapshot())
        time.sleep(0.5)
    time.sleep(_ALL_OF_A_CYCLE_S)
    done = unloads(leader)[known:]
    assert done, f"nothing was unloaded; the log of the leader:\n{leader.log[-3000:]}"
    before = [snapshot for snapshot in seen if snapshot.info.captured_at_ms < done[0].at_ms]
    assert before, "the leader decided before the first snapshot"
    return before[-1], done
