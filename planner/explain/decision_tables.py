"""What a cycle decides and what its leader remembers, as tables and sentences."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from planner.cluster.decisions import ReasonBlock
from planner.cluster.names import BROKER_MAX_TOPICS
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import bytes_per_s, count, moment
from planner.cluster.units import MIB
from planner.explain.finding import listed
from planner.pulsar.manager.cycle import CycleDecision, Unload
from planner.pulsar.manager.leader import LeaderMemory, memory_to_json
from planner.pulsar.placement.selection import Selection

_LISTED = 5
_SAID = 3
_FILTERS = {
    "isolation": "Isolation policies, and whether the broker serves such topics",
    "topics": BROKER_MAX_TOPICS,
    "anti-affinity": "Anti-affinity group",
    "even distribution": "Even distribution of the namespace's bundles",
    "load manager class": "Same load manager class",
    "version": "Latest broker version",
    "restored": "The filters failed or left no broker: back to the isolation policies",
    "broker_load_manager_class_filter": "Same load manager class",
    "broker_max_topic_count_filter": BROKER_MAX_TOPICS,
    "broker_version_filter": "Latest broker version",
    "broker_anti_affinity_group_filter": "Anti-affinity group",
    "broker_isolation_policies_filter": "Isolation policies",
}
_PARTS = {
    "shedding": "Shedding strategy",
    "modular": "Placement",
    "extensible": "Placement",
    "split_hits": "Automatic splits",
}
_MEANINGS = {
    "usage_ema": "averaged usage (%)",
    "hits_high": "high hits (consecutive cycles)",
    "hits_low": "low hits (consecutive cycles)",
    "hit_count": "consecutive cycles that call for shedding",
    "broker": "broker assigned to bundles with these averages",
    "most_brokers": "highest number of brokers in any cycle",
    "recently_unloaded_bundles": "unloaded at",
    "recently_unloaded_brokers": "last unloaded from at",
    "usage": "averaged usage (%)",
    "counter": "turns so far",
    "listed": "brokers in rotation",
    "bundles": "bundles assigned but not reported yet",
    "promised": "assigned to",
    "preallocated": "counted for, until it is reported",
    "split": "counted for, though split, until a report",
    "affinities": "named as destination",
    "split_hits": "consecutive checks above a limit",
}
_PERCENT = {"usage_ema", "usage"}
_MOMENTS = {"recently_unloaded_bundles", "recently_unloaded_brokers"}
_ROTATION = "Round robin for excluded namespaces"


def reason_rows(snapshot: Snapshot, blocks: Iterable[ReasonBlock], *, bundles: bool) -> list[Mapping[str, Any]]:
    """Return reasons as table rows, what acts first: about brokers, or about bundles; the snapshot names them."""
    rows: list[Mapping[str, Any]] = []
    for group in blocks:
        about_bundles = bool(len(group)) and bool((group.bundles >= 0).any())
        if about_bundles != bundles:
            continue
        for reason in group.rows(snapshot.brokers.name, snapshot.bundle_names):
            row: dict[str, Any] = {"broker": reason.broker or "whole cluster"}
            if bundles:
                row["bundle"] = reason.bundle
            row |= {"moves": reason.code.acts, "why": reason.text, "code": reason.code.code}
            rows.append(row)
    return sorted(rows, key=lambda row: not row["moves"])


def destination(unload: Unload) -> str:
    """Return where a bundle goes, in words; where Pulsar draws, all brokers that it may draw."""
    if not unload.carried_out:
        return "stays"
    if len(unload.acceptable) > 1:
        return f"one of {len(unload.acceptable)} brokers: {listed(unload.acceptable, _LISTED)}"
    return unload.move.destination or "no broker: it stays unowned"


def moves_frame(decision: CycleDecision) -> pd.DataFrame:
    """Return one row for each bundle that the strategy chose: where it goes, or which rule keeps it."""
    rows = []
    for one in decision.unloads:
        move, size = one.move, one.move.throughput_bytes_per_s / MIB
        texts = one.reason.text, move.reason.text
        rows.append((move.bundle, move.source, destination(one), size, move.msg_rate_per_s, *texts))
    columns = ["bundle", "from", "to", "MiB/s", "msg/s", "what happens", "why it was selected"]
    return pd.DataFrame(rows, columns=columns)


def verdict(decision: CycleDecision, when: str) -> str:
    """Return what a cycle does, in one sentence with Markdown; `when` is such as `in the next cycle`."""
    name, chosen, moves = decision.shedder.name, decision.unloads, decision.moves
    if not chosen:
        return f"**{name} sheds nothing {when}.**"
    kept = len(chosen) - len(moves)
    if not moves:
        return f"**{name} selects {count(kept, 'bundle')} {when}, but other rules keep them in place.**"
    moved = bytes_per_s(sum(m.throughput_bytes_per_s for m in moves))
    sources = len({m.source for m in moves})
    stays = (
        f" {count(kept, 'more bundle')} {'is' if kept == 1 else 'are'} selected but kept in place by other rules."
        if kept
        else ""
    )
    return f"**{name} sheds {count(len(moves), 'bundle')} from {count(sources, 'broker')} ({moved}) {when}.**{stays}"


def before_and_after(snapshot: Snapshot, decision: CycleDecision) -> pd.DataFrame:
    """Return the traffic and the bundles of each broker before a cycle and after it.

    Where Pulsar draws the destination, the one drawn here counts.
    """
    names, position = snapshot.brokers.name, snapshot.brokers.position
    bundles = snapshot.bundles
    throughput = snapshot.brokers.throughput_bytes_per_s()
    leaving, arriving = np.zeros(len(names)), np.zeros(len(names))
    gained = np.zeros(len(names), dtype=np.int64)
    for move in decision.moves:
        at = snapshot.bundle_position[move.bundle]
        carried = move.throughput_bytes_per_s
        if bundles.has_stats[at]:
            carried = float(bundles.throughput_bytes_per_s(at))
        leaving[position[move.source]] += carried
        gained[position[move.source]] -= 1
        if move.destination is not None:
            arriving[position[move.destination]] += carried
            gained[position[move.destination]] += 1
    owned = snapshot.bundle_counts()
    return pd.DataFrame(
        {
            "broker": names,
            "MiB/s before": throughput / MIB,
            "- MiB/s": leaving / MIB,
            "+ MiB/s": arriving / MIB,
            "MiB/s after": (throughput - leaving + arriving) / MIB,
            "bundles before": owned,
            "bundles after": owned + gained,
        }
    ).sort_values("MiB/s before", ascending=False, kind="stable")


def step_lines(snapshot: Snapshot, selection: Selection) -> list[str]:
    """Return one sentence for each filter: how many brokers it left, and which it dropped or took back, and why."""
    names, bundles = snapshot.brokers.name, snapshot.bundle_names
    lines = []
    for step in selection.steps:
        total = sum(len(group) for group in step.reasons)
        first = islice((r for group in step.reasons for r in group.rows(names, bundles)), _SAID)
        text = "; ".join(f"{r.broker}: {r.text}" for r in first)
        more = f"; and {total - _SAID:,} more" if total > _SAID else ""
        what = f"failed: {step.failure}" if step.failure else f"{text}{more}"
        left = f"{count(len(step.kept), 'broker')} left"
        lines.append(f"**{_FILTERS.get(step.name, step.name)}**: {left}{f' ({what})' if what else ''}.")
    return lines


def candidate_frame(snapshot: Snapshot, selection: Selection) -> pd.DataFrame:
    """Return one row for each reason that the placement strategy or a filter gives about a broker."""
    names = snapshot.brokers.name, snapshot.bundle_names
    rows: list[tuple[Any, ...]] = []
    for call, answer in enumerate(selection.calls, start=1):
        for reason in (r for group in answer.reasons for r in group.rows(*names)):
            may = "may be drawn" if reason.broker in answer.acceptable else "not chosen"
            taken = reason.broker == answer.selected
            rows.append((f"pass {call}", reason.broker, "taken" if taken else may, reason.text))
    for step in selection.steps:
        verb = "restored by" if step.name == "restored" else "excluded by"
        text = f"{verb}: {_FILTERS.get(step.name, step.name)}"
        rows += [("filters", r.broker, text, r.text) for group in step.reasons for r in group.rows(*names)]
    frame = pd.DataFrame(rows, columns=["step", "broker", "verdict", "why"])
    return frame if rows and len(selection.calls) > 1 else frame.drop(columns="step")


def _text(name: str, value: Any) -> str:
    if name in _PERCENT:
        return f"{value * 100:.4f}"
    if name in _MOMENTS:
        return moment(value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _entries(part: str, name: str, value: Any) -> Iterator[dict[str, str]]:
    """Yield the rows of one thing that is remembered; none when it is empty."""
    row = {"kept by": part, "what": _MEANINGS.get(name, name.replace("_", " "))}
    if isinstance(value, Mapping):
        for of, held in value.items():
            inner = held.items() if isinstance(held, Mapping) else [("", held)]
            for bundle, number in inner:
                yield {**row, "of": f"{bundle} on {of}" if bundle else str(of), "value": _text(name, number)}
    elif name == "broker":
        for key, broker in value:
            yield {**row, "of": " · ".join(f"{number:g}" for number in key), "value": str(broker)}
    elif value:
        yield {**row, "of": "", "value": _text(name, value)}


def memory_frame(memory: LeaderMemory) -> pd.DataFrame:
    """Return one row for each thing that a leader remembers: who keeps it, what it is, of what, and its value."""
    rows: list[dict[str, str]] = []
    for part, content in memory_to_json(memory).items():
        if part == "split_hits":
            rows += _entries(_PARTS[part], part, content)
            continue
        for name, value in content.items():
            if name in {"state", "placement", "rotation"}:
                keeper = _ROTATION if name == "rotation" else _PARTS[part]
                for own, held in (value or {}).items():
                    rows += [] if own == "kind" else _entries(keeper, own, held)
            else:
                keeper = "Leader" if name in _MOMENTS else _PARTS[part]
                rows += _entries(keeper, name, value)
    return pd.DataFrame(rows, columns=["kept by", "what", "of", "value"])
