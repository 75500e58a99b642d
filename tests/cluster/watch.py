"""Waits for what the leader of the modular load manager decides, and keeps what could be seen before."""

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.cluster.ranges import FULL_HIGH, format_range
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.cycle import next_cycle
from tests.cluster.launch import Broker, wait_for
from tests.cluster.scene import SHED, Scene

_UNLOADING = re.compile(
    r"^(?P<at>\d+) .*\[(?P<shedder>\w+)\] Unloading bundle: (?P<bundle>\S+) from broker (?P<source>\S+)"
    r" to dest broker (?P<destination>\S+)$",
    re.MULTILINE,
)
_STEADY = 0.05
_CYCLE_S = 60.0
_ALL_OF_A_CYCLE_S = 12.0
_WORDS = 12


@dataclass(frozen=True)
class Unload:
    """What the leader wrote about one bundle: when, in ms since 1970, which, from where and to where."""

    at_ms: int
    shedder: str
    bundle: str
    source: str
    destination: str


def averages_settled(scene: Scene) -> bool:
    """Say whether the leader's short-term averages of `SHED`, as it wrote them last, are those of steady traffic.

    It writes them once a minute. While they lag behind what the leader knows, nothing can be told about its choice.
    """
    nodes = scene.cluster.metadata(f"/loadbalance/bundle-data/{SHED}")
    averages = {node["path"].rpartition("/")[2]: json.loads(node["data"])["shortTermData"] for node in nodes}
    ranges = {format_range(i << 28, min((i + 1) << 28, FULL_HIGH)): i for i in range(16)}
    rates = [flow.msg_per_s for topic, flow in scene.flows.items() if topic.startswith(f"persistent://{SHED}/")]
    return averages.keys() == ranges.keys() and all(
        abs(average["msgRateIn"] / rates[ranges[name]] - 1) < _STEADY for name, average in averages.items()
    )


def settled_snapshot(scene: Scene) -> Snapshot:
    """Wait for steady averages and return what can be seen then."""
    wait_for("steady averages", lambda: averages_settled(scene), seconds=240, every=2)
    return scene.snapshot()


def unloads(broker: Broker) -> list[Unload]:
    """Return every automatic unload in the log of a leader."""
    return [
        Unload(int(line["at"]), line["shedder"], line["bundle"], line["source"], line["destination"])
        for line in _UNLOADING.finditer(broker.log)
    ]


def words_before(broker: Broker, unload: Unload) -> str:
    """Return what a leader wrote just before it unloaded a bundle: the brokers it compared, and by what."""
    before, _, _ = broker.log.partition(f"Unloading bundle: {unload.bundle} from broker {unload.source}")
    return "\n".join(before.splitlines()[-_WORDS:])


def robust(before: Snapshot, settings: Mapping[str, object], name: str, values: Iterable[float]) -> float:
    """Return a value of a setting with which the next cycle unloads the same at the values before and after it.

    Rates never stand still; so what is tested does not hang on the last percent of one.
    """
    found = [(value, _unloaded(before, {**settings, name: value})) for value in values]
    for (_, less), (value, chosen), (_, more) in zip(found, found[1:], found[2:], strict=False):
        if chosen and less == chosen == more:
            return value
    raise AssertionError(f"every {name} is borderline: {found}")


def _unloaded(before: Snapshot, settings: Mapping[str, object]) -> dict[str, list[str]]:
    config = before.settings.changed(**settings)
    return next_cycle(before, None, config, seed=0)[1].shedding.unload()


def shed_by_leader(scene: Scene, settings: Mapping[str, object]) -> tuple[Snapshot, list[Unload]]:
    """Change dynamic settings, and wait for a cycle that unloads something.

    Returns:
        The last snapshot from before the decision, and what the leader unloaded in that cycle.
    """
    leader = scene.cluster.leader
    known = len(unloads(leader))
    seen: list[Snapshot] = []

    def decided() -> bool:
        seen.append(scene.snapshot())
        return len(unloads(leader)) > known

    with scene.settings(settings):
        wait_for("an unload by the leader", decided, seconds=_CYCLE_S + 60, every=1.5)
        time.sleep(_ALL_OF_A_CYCLE_S)
    done = unloads(leader)[known:]
    return [snapshot for snapshot in seen if snapshot.info.captured_at_ms < done[0].at_ms][-1], done
