"""What helps a topic that is too much for its bundle or broker: more partitions, and where they go, or less skew."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.hashing import PARTITION, partition_index, partitioned_topic, topic_hash
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.partitions import NEW_TOPIC, partitions_of, skew_share, skewed
from planner.cluster.ranges import bundles_of_hashes
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import KBIT_PER_GBIT
from planner.explain.finding import admin, listed
from planner.simulate.edits.edit import Edit, size_text
from planner.simulate.edits.registry import MachineChange, MorePartitions
from planner.simulate.usage_model import UsageModel

PART: Final = 0.1
"""Share of a broker that a partition should use at most, so that it can be moved about like any bundle."""
_ROOM: Final = 1.25
"""What a limit leaves above the largest of today."""
LOOK_FOR_KEY: Final = (
    "Look for a hot key, or for producers that send to one partition only: more partitions help only if keys spread."
)
_MOST: Final = 64
_FILLED: Final = 0.9
"""Share of the threshold up to which a machine is filled that is made large enough."""


@dataclass(frozen=True, slots=True)
class PartitionAdvice:
    """What to do about a topic or partition.

    Attributes:
        topic: The topic without the number of a partition.
        partitions: How many it has now; 0 when it is not partitioned.
        share: Share of the traffic of all partitions that it has (1.0 = 100 %); 1 for a topic without.
        skewed: Whether a partition of the topic has far more than its share, so that more of them do not help.
        evidence: The rates of its partitions in words; empty for a topic without.
        wanted: Number of partitions that would help; 0 where they do not.
        bundles: Bundles that these would hash to.
        brokers: Brokers that own them now.
        remedy: What to do, with the command.
        edits: The edit that tries it; none where it does not help.
        is_largest: Whether it is itself a partition that has far more than its share.
        fullest: Share of a broker that these partitions make of the bundle that most of them hash to (1.0 = 100 %).
    """

    topic: str
    partitions: int
    share: float
    skewed: bool
    evidence: str
    wanted: int
    bundles: tuple[str, ...]
    brokers: tuple[str, ...]
    remedy: str
    edits: tuple[Edit, ...] = ()
    is_largest: bool = False
    fullest: float = 0.0


def topic_usage(model: UsageModel, rows: Int64Array) -> FloatArray:
    """Return the share of its broker's capacity that each topic takes by itself (1.0 = 100 %), as shedding weighs it.

    It is the part of its bundle's demand that goes with its traffic; 0 where its bundle has no owner. Shape (rows,).
    """
    snapshot = model.snapshot
    topics, bundles = snapshot.topics, snapshot.bundles
    bundle = topics.bundle[rows].astype(np.int64)
    held = topics.bundle >= 0
    listed_topics = np.bincount(topics.bundle[held], minlength=len(bundles))
    share = np.zeros(len(rows))
    for every, of_bundle in (
        (topics.throughput_bytes_per_s(), bundles.throughput_bytes_per_s()),
        (topics.msg_rate_per_s(), bundles.msg_rate_per_s()),
    ):
        whole = np.bincount(topics.bundle[held], every[held], minlength=len(bundles))
        whole = np.where(listed_topics >= bundles.topics, whole, np.maximum(whole, of_bundle))[bundle]
        share += np.divide(every[rows], whole, out=np.zeros(len(rows)), where=whole > 0) / 2
    owner = np.where(bundle >= 0, bundles.owner[bundle], -1)
    demand = model.bundle[:, bundle] * share / model.limit[:, owner] * model.weight
    return np.where(owner >= 0, demand.max(axis=0, initial=0.0), 0.0)


def partition_advice(snapshot: Snapshot, row: int, usage: float) -> PartitionAdvice:
    """Say what helps a topic, by its position.

    Args:
        snapshot: The cluster.
        row: Position of the topic or partition.
        usage: Share of its broker that it takes by itself (1.0 = 100 %).
    """
    name = str(snapshot.topics.name[row].as_py())
    index = partition_index(name)
    base = partitioned_topic(name)
    if index >= 0:
        siblings = partitions_of(snapshot.topics, base)
        rates = snapshot.topics.msg_rate_in_per_s[siblings]
        which = "msg/s in"
        if not rates.any():
            rates, which = snapshot.topics.msg_rate_per_s(siblings), "msg/s"
        others = rates[siblings != row]
        mine, whole = float(rates[siblings == row].sum()), float(rates.sum())
        fair = 1 / max(len(siblings), 1)
        share = mine / whole if whole > 0 else fair
        evidence = ""
        if len(others):
            least, most = f"{others.min():,.0f}", f"{others.max():,.0f}"
            each = least if least == most else f"{least} to {most}"
            evidence = (
                f"It is one of {count(len(siblings), 'partition')}: it has {mine:,.0f} {which}, the others {each} each."
            )
        if skewed(rates):
            largest = row if share >= skew_share(len(siblings)) else int(siblings[rates.argmax()])
            remedy = _against_skew(str(snapshot.topics.name[largest].as_py()))
            return PartitionAdvice(
                base, len(siblings), share, True, evidence, 0, (), (), remedy, is_largest=largest == row
            )
        now = len(siblings)
    else:
        now, evidence, share = 0, "", 1.0
    wanted = min(max(math.ceil(max(now, 1) * usage / PART), 2 * max(now, 1)), max(_MOST, 2 * now))
    target = base if now else f"{base}{NEW_TOPIC}"  # a topic that is there cannot get partitions
    bundles, brokers, unowned, together = _destinations(snapshot, target, wanted, row)
    remedy = _more(target, now, wanted, _where(len(bundles), brokers, unowned))
    edit = MorePartitions(topic=base, partitions=wanted, new_topic="" if now else target)
    edits = (edit,) if bundles else ()
    fullest = usage * max(now, 1) * together / wanted
    return PartitionAdvice(base, now, share, False, evidence, wanted, bundles, brokers, remedy, edits, fullest=fullest)


def larger_machine(model: UsageModel, broker: int) -> tuple[MachineChange, str] | None:
    """Return the machine with which a broker carries what it has well below its threshold, and the change in words.

    None where it is large enough.

    Args:
        model: The cluster, with more than 100 % where demand exceeds capacity.
        broker: Position of the broker.
    """
    threshold = model.config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    now = model.limit[:, broker]
    demand = (model.own + model.served())[:, broker] * model.weight[:, 0]
    needed = np.divide(demand, threshold * _FILLED, out=np.zeros_like(demand), where=np.isfinite(now))
    cores, *nic = np.where(needed > now, needed, 0.0).tolist()
    if threshold <= 0 or not (cores or any(nic)):
        return None
    edit = MachineChange(
        brokers=(model.snapshot.brokers.name[broker],),
        cores=float(math.ceil(cores / 100)),
        nic_gbps=float(math.ceil(max(nic) / KBIT_PER_GBIT)),
    )
    size = size_text(float(now[0]) / 100 if cores else 0.0, float(now[1:].min()) / KBIT_PER_GBIT if any(nic) else 0.0)
    return edit, f"{edit.what()} (now {size})"


def cure_of(snapshot: Snapshot, row: int) -> str:
    """Return what helps a topic, by its position, in one sentence."""
    if partition_advice(snapshot, row, 0.0).skewed:
        return "Look for a hot key or for producers that send to one partition: more partitions do not divide it."
    return "Add partitions to this topic."


def _destinations(
    snapshot: Snapshot, base: str, wanted: int, row: int
) -> tuple[tuple[str, ...], tuple[str, ...], int, int]:
    """Return the bundles that so many partitions hash to, and the brokers that own those now.

    Then how many of the bundles nobody owns, and how many partitions the fullest of them has.
    """
    bundle = int(snapshot.topics.bundle[row])
    if bundle < 0:
        return (), (), 0, 0
    table = snapshot.bundles
    mine = np.flatnonzero(table.namespace == table.namespace[bundle])
    mine = mine[np.argsort(table.low[mine], kind="stable")]
    hashes = np.array([topic_hash(f"{base}{PARTITION}{at}") for at in range(wanted)], dtype=np.int64)
    places = mine[bundles_of_hashes(table.low[mine].astype(np.int64), hashes)]
    held = sorted(set(places.tolist()))
    owned = [int(table.owner[at]) for at in held if table.owner[at] >= 0]
    names, _ = snapshot.names_of(np.array(held, dtype=np.int64))
    brokers = tuple(snapshot.brokers.name[at] for at in dict.fromkeys(owned))
    return tuple(names), brokers, len(held) - len(owned), int(np.bincount(places).max())


def _against_skew(name: str) -> str:
    return (
        f"{LOOK_FOR_KEY} Until then, move the other bundles off the broker of {name.rpartition('/')[2]} (Best plan"
        " does), or give that broker a larger machine."
    )


def _where(bundles: int, brokers: tuple[str, ...], unowned: int) -> str:
    """Return where partitions go, as a sentence with a space before it; empty where that is unknown."""
    if not bundles:
        return ""
    on = f" on {count(len(brokers), 'broker')} ({listed(brokers)})" if brokers else ""
    rest = f"; Pulsar places {'it' if bundles == 1 else 'those'} when clients connect" if unowned == bundles else ""
    rest = f"; Pulsar places the other {unowned} when clients connect" if 0 < unowned < bundles else rest
    all_in_one = " Split it as well, or they all stay on one broker." if bundles == 1 else ""
    return f" They hash to {count(bundles, 'bundle')}{on}{rest}.{all_in_one}"


def _more(base: str, now: int, wanted: int, where: str) -> str:
    if now:
        command = admin("topics", "update-partitioned-topic", base, "--partitions", str(wanted))
        return (
            f"Use {wanted} partitions instead of {now}: {command}.{where} Keys then move to other partitions, so the"
            " order by key is not kept across the change."
        )
    command = admin("topics", "create-partitioned-topic", base, "--partitions", str(wanted))
    return (
        f"Use a new topic with {wanted} partitions, because an existing one cannot get any: {command}.{where} Move its"
        " consumers first, then its producers. Messages then keep their order by key only."
    )


def raised(largest: float) -> int:
    """Return a limit that leaves some room above the largest value of today, in two significant digits."""
    value = max(largest * _ROOM, 1.0)
    step: int = 10 ** max(math.floor(math.log10(value)) - 1, 0)
    return math.ceil(value / step) * step
