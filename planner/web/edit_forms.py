"""A form for each kind of edit of a scenario."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import streamlit as st

from planner.cluster.ranges import format_range
from planner.cluster.snapshot import Snapshot
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS
from planner.simulate.scenario import (
    AddBrokers,
    ChangeCapacity,
    DrainBroker,
    Edit,
    KillBroker,
    MoveBundle,
    PinBundle,
    RemoveBroker,
    RollingRestart,
    ScaleTraffic,
    SetAntiAffinity,
    SetBundleCount,
    SetDispatchRate,
    SetIsolation,
    SplitBundle,
    added_brokers,
)

_ANYWHERE = "let placement decide"
_DEFAULT = "the default algorithm"
_SPECIFIED = "specified_positions_divide"
_MOST_BYTES = 2**53 - 1
"""The largest number that a browser's number field takes."""


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """What an edit may be about.

    Attributes:
        snapshot: The cluster at the start.
        edits: What the scenario changes before.
    """

    snapshot: Snapshot
    edits: Sequence[Edit] = ()

    @property
    def brokers(self) -> list[str]:
        """Brokers of the snapshot, then those that earlier edits add."""
        added = [name for edit in self.edits if isinstance(edit, AddBrokers) for name in added_brokers(edit)]
        return list(dict.fromkeys((*self.snapshot.brokers.name, *added)))


def _minute(key: str) -> float:
    return float(st.number_input("At minute", 0.0, 100_000.0, 0.0, 1.0, key=f"{key}-at", format="%g"))


def _broker(known: Known, key: str, label: str = "Broker") -> str:
    return str(st.selectbox(label, known.brokers, key=f"{key}-broker") or "")


def _brokers(known: Known, key: str) -> tuple[str, ...]:
    chosen = st.multiselect("Brokers", known.brokers, key=f"{key}-brokers", placeholder="all of them")
    return tuple(chosen)


def _namespace(known: Known, key: str) -> str:
    return str(st.selectbox("Namespace", known.snapshot.namespaces, key=f"{key}-namespace") or "")


def _bundle(known: Known, key: str) -> str:
    """Let a bundle be chosen: first its namespace, then its range, the busiest first."""
    namespace = _namespace(known, key)
    place = known.snapshot.namespaces.index(namespace) if namespace in known.snapshot.namespaces else -1
    table = known.snapshot.bundles
    rows = [i for i, owner in enumerate(table.namespace.tolist()) if owner == place]
    traffic = table.msg_throughput_in_bytes_per_s + table.msg_throughput_out_bytes_per_s
    rows.sort(key=lambda i: -float(traffic[i]))
    ranges = {format_range(int(table.low[i]), int(table.high[i])): i for i in rows}

    def label(text: str) -> str:
        at = ranges[text]
        return f"{text} · {traffic[at] / 1e6:.3g} MB/s · {int(table.topics[at]):,} topics"

    chosen = st.selectbox("Bundle", list(ranges), format_func=label, key=f"{key}-bundle-{namespace}")
    return f"{namespace}/{chosen}"


def _sizes(key: str) -> tuple[float, float]:
    left, right = st.columns(2)
    cores = left.number_input(
        "CPU cores", 0.0, 4096.0, 0.0, 1.0, key=f"{key}-cores", format="%g", help="0: as it is, or as the others have"
    )
    nic = right.number_input(
        "NIC (Gbit/s)", 0.0, 10_000.0, 0.0, 1.0, key=f"{key}-nic", format="%g", help="0: as it is, or as the others"
    )
    return float(cores), float(nic)


def _add_brokers(known: Known, key: str) -> Edit:
    number = int(st.number_input("How many", 1, 1000, 1, key=f"{key}-count"))
    cores, nic = _sizes(key)
    earlier = sum(isinstance(edit, AddBrokers) for edit in known.edits)
    default = f"added{earlier + 1}" if earlier else "added"
    prefix = st.text_input("Name", default, key=f"{key}-prefix", max_chars=60, help="Brokers are NAME-1:8080 and so on")
    return AddBrokers(count=number, cores=cores, nic_gbps=nic, at_min=_minute(key), name_prefix=prefix)


def _remove_broker(known: Known, key: str) -> Edit:
    return RemoveBroker(broker=_broker(known, key), at_min=_minute(key))


def _drain_broker(known: Known, key: str) -> Edit:
    broker = _broker(known, key)
    pace = st.number_input("Bundles a minute", 0.1, 1e6, 60.0, 10.0, key=f"{key}-pace", format="%g")
    return DrainBroker(broker=broker, at_min=_minute(key), bundles_per_min=float(pace))


def _kill_broker(known: Known, key: str) -> Edit:
    return KillBroker(broker=_broker(known, key), at_min=_minute(key))


def _rolling_restart(known: Known, key: str) -> Edit:
    brokers = _brokers(known, key)
    left, right = st.columns(2)
    down = left.number_input("Minutes away", 0.0, 1e4, 2.0, 1.0, key=f"{key}-down", format="%g")
    pause = right.number_input("Pause (min)", 0.0, 1e4, 3.0, 1.0, key=f"{key}-pause", format="%g")
    return RollingRestart(brokers=brokers, at_min=_minute(key), down_min=float(down), pause_min=float(pause))


def _capacity(known: Known, key: str) -> Edit:
    brokers = _brokers(known, key)
    cores, nic = _sizes(key)
    return ChangeCapacity(brokers=brokers, cores=cores, nic_gbps=nic, at_min=_minute(key))


def _traffic(known: Known, key: str) -> Edit:
    scopes = ["cluster", "namespace", "bundle", "topic"]
    scope: Any = st.segmented_control("Of", scopes, default="cluster", key=f"{key}-scope") or "cluster"
    target = ""
    if scope == "namespace":
        target = _namespace(known, key)
    elif scope == "bundle":
        target = _bundle(known, key)
    elif scope == "topic":
        target = st.text_input(
            "Topic", key=f"{key}-topic", max_chars=300, placeholder="persistent://tenant/namespace/topic",
            help="A partitioned topic: all its partitions"
        )  # fmt: skip
    shapes = {
        "step": "from then on, or for a while",
        "growth": "grows to it",
        "daily": "swings up to it and back",
        "spike": "spikes to it once",
    }
    shape: Any = st.selectbox("How", list(shapes), format_func=lambda s: f"{s}: {shapes[s]}", key=f"{key}-shape")
    left, right = st.columns(2)
    factor = left.number_input("Factor", 0.0, 1e6, 2.0, 0.5, key=f"{key}-factor", format="%g", help="0 stops it")
    length = right.number_input(
        "Duration (min)", 0.0, 1e5, 0.0 if shape == "step" else 60.0, 10.0, key=f"{key}-length-{shape}", format="%g",
        help="0 with step: for ever"
    )  # fmt: skip
    return ScaleTraffic(
        scope=scope,
        target=target,
        factor=float(factor),
        shape=shape,
        at_min=_minute(key),
        duration_min=float(length),
    )


def _split(known: Known, key: str) -> Edit:
    bundle = _bundle(known, key)
    names = [_DEFAULT, *(algorithm.name for algorithm in SPLIT_ALGORITHMS)]
    algorithm = st.selectbox("Algorithm", names, key=f"{key}-algorithm")
    positions: tuple[int, ...] = ()
    if algorithm == _SPECIFIED:
        text = st.text_input("Positions", key=f"{key}-positions", placeholder="0x20000000, 0x30000000", max_chars=2_000)
        positions = tuple(_hash(part) for part in text.split(",") if part.strip())
    unload = st.toggle("Unload the children", key=f"{key}-unload")
    name = "" if algorithm in {_DEFAULT, None} else str(algorithm)
    return SplitBundle(bundle=bundle, algorithm=name, positions=positions, unload=unload, at_min=_minute(key))


def _hash(text: str) -> int:
    """Read a position of the hash space; what is none becomes -1, which the scenario refuses in a sentence."""
    try:
        return int(text.strip(), 0)
    except ValueError:
        return -1


def _bundle_count(known: Known, key: str) -> Edit:
    namespace = _namespace(known, key)
    number = int(st.number_input("Bundles", 1, 100_000, 16, key=f"{key}-bundles"))
    return SetBundleCount(namespace=namespace, bundles=number)


def _move(known: Known, key: str) -> Edit:
    bundle = _bundle(known, key)
    to = st.selectbox("To", [_ANYWHERE, *known.brokers], key=f"{key}-to")
    return MoveBundle(bundle=bundle, destination="" if to in {_ANYWHERE, None} else str(to), at_min=_minute(key))


def _pin(known: Known, key: str) -> Edit:
    st.caption("Pulsar cannot pin a bundle; the nearest it has is an isolation policy for its namespace.")
    return PinBundle(bundle=_bundle(known, key), broker=_broker(known, key))


def _expressions(label: str, key: str, placeholder: str) -> tuple[str, ...]:
    text = st.text_input(label, key=key, placeholder=placeholder, max_chars=2_000, help="Separated by commas")
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _isolation(known: Known, key: str) -> Edit:
    names = [policy.name for policy in known.snapshot.policies.isolation]
    name = st.text_input("Name of the policy", names[0] if names else "policy", key=f"{key}-policy", max_chars=100)
    namespaces = _expressions("Namespaces (regular expressions)", f"{key}-namespaces", "tenant/.*; none removes it")
    primary = _expressions("Primary brokers (regular expressions)", f"{key}-primary", "broker-1.*")
    secondary = _expressions("Secondary brokers", f"{key}-secondary", "broker-2.*")
    least = int(st.number_input("Primaries wanted (min_limit)", 0, 10_000, 1, key=f"{key}-least"))
    return SetIsolation(name=name, namespaces=namespaces, primary=primary, secondary=secondary, min_limit=least)


def _anti_affinity(known: Known, key: str) -> Edit:
    namespace = _namespace(known, key)
    group = st.text_input("Group", key=f"{key}-group", max_chars=100, placeholder="empty: leaves its group")
    return SetAntiAffinity(namespace=namespace, group=group)


def _dispatch_limit(known: Known, key: str) -> Edit:
    place = st.segmented_control("Of", ["namespace", "topic"], default="namespace", key=f"{key}-place")
    if place == "topic":
        hint = "persistent://tenant/namespace/topic"
        target = st.text_input("Topic", key=f"{key}-topic", max_chars=300, placeholder=hint)
    else:
        target = _namespace(known, key)
    level: Any = st.selectbox("Limits", ["topic", "subscription"], key=f"{key}-level", help="All dispatch, or each")
    left, right = st.columns(2)
    messages = int(left.number_input("Messages (-1: no limit)", -1, 2**31 - 1, 1000, 100, key=f"{key}-messages"))
    size = int(right.number_input("Bytes (-1: no limit)", -1, _MOST_BYTES, -1, 1_000_000, key=f"{key}-bytes"))
    period = int(left.number_input("Period (s)", 1, 86_400, 1, key=f"{key}-period"))
    relative = right.toggle("Above the publish rate", key=f"{key}-relative")
    return SetDispatchRate(
        target=target,
        level=level,
        msg_per_period=messages,
        bytes_per_period=size,
        period_s=period,
        relative_to_publish_rate=relative,
    )


KINDS: Mapping[str, tuple[str, Callable[[Known, str], Edit]]] = MappingProxyType(
    {
        "scale_traffic": ("Change traffic", _traffic),
        "add_brokers": ("Add brokers", _add_brokers),
        "remove_broker": ("Shut a broker down", _remove_broker),
        "drain_broker": ("Drain a broker", _drain_broker),
        "kill_broker": ("Kill a broker", _kill_broker),
        "rolling_restart": ("Restart brokers in turn", _rolling_restart),
        "change_capacity": ("Change machines", _capacity),
        "split_bundle": ("Split a bundle", _split),
        "move_bundle": ("Move or unload a bundle", _move),
        "pin_bundle": ("Pin a bundle", _pin),
        "set_bundle_count": ("Make a namespace anew", _bundle_count),
        "set_isolation": ("Isolation policy", _isolation),
        "set_anti_affinity": ("Anti-affinity group", _anti_affinity),
        "set_dispatch_rate": ("Dispatch limit", _dispatch_limit),
    }
)
"""The kinds of edits: what to call them, and their form."""


def edit_form(known: Known, key: str) -> Edit:
    """Draw the form of an edit and return what it says; it may still be out of bounds.

    Args:
        known: What brokers, namespaces and bundles there are.
        key: Keeps the widgets of several forms apart.
    """
    kind = st.selectbox("What", list(KINDS), format_func=lambda k: KINDS[k][0], key=f"{key}-kind") or next(iter(KINDS))
    return KINDS[kind][1](known, f"{key}-{kind}")


def missing(known: Known, edit: Edit) -> str:
    """Return what is still to be filled in before an edit does something; empty when nothing is.

    Args:
        known: What there is.
        edit: As `edit_form` returns it.
    """
    if isinstance(edit, SetIsolation | SetAntiAffinity):
        return _missing_in_policy(known, edit)
    if isinstance(edit, ChangeCapacity) and not (edit.cores or edit.nic_gbps):
        return "Say how many cores, or how fast a NIC, the machines get."
    if isinstance(edit, ScaleTraffic | SetDispatchRate) and not edit.target and getattr(edit, "scope", "") != "cluster":
        return "Name the topic."
    if isinstance(edit, SplitBundle) and edit.algorithm == _SPECIFIED and not edit.positions:
        return "Say where to cut."
    return ""


def _missing_in_policy(known: Known, edit: SetIsolation | SetAntiAffinity) -> str:
    """Return what a policy lacks; one without content removes another, which has to be there."""
    policies = known.snapshot.policies
    if isinstance(edit, SetAntiAffinity):
        grouped = {e.namespace for e in known.edits if isinstance(e, SetAntiAffinity)}
        there = edit.namespace in grouped.union(policies.anti_affinity_group)
        return "" if edit.group or there else "Name the group."
    names = {policy.name for policy in policies.isolation}
    names.update(e.name for e in known.edits if isinstance(e, SetIsolation))
    if not edit.namespaces:
        return "" if edit.name in names else "Say which namespaces the policy is for."
    return "" if edit.primary else "Say which brokers are primary."
