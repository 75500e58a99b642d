"""Measurements that cannot be right, and usage that no bundle takes along: shedding acts on both in vain."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Final

import numpy as np

from planner.cluster.arrays import FloatArray
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    BANDWIDTH_IN_RESOURCE_WEIGHT,
    BANDWIDTH_OUT_RESOURCE_WEIGHT,
    BANDWITH_IN_RESOURCE_WEIGHT,
    BANDWITH_OUT_RESOURCE_WEIGHT,
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    CPU_RESOURCE_WEIGHT,
    DIRECT_MEMORY_RESOURCE_WEIGHT,
    LOAD_SHEDDING_STRATEGY,
    MEMORY_RESOURCE_WEIGHT,
    OVERRIDE_BROKER_NIC_SPEED_GBPS,
    REPORT_UPDATE_MAX_INTERVAL_MINUTES,
)
from planner.cluster.pulsar_json import RESOURCES as COLUMNS
from planner.cluster.settings import Settings
from planner.cluster.tables import BrokerTable
from planner.cluster.text import count
from planner.cluster.units import MS_PER_MIN
from planner.explain.finding import Finding, listed
from planner.explain.held import APART
from planner.explain.outcome import Outcome
from planner.explain.shedding_patterns import limits_of
from planner.explain.unlike import ABOVE, OddCores, beyond_at_first, beyond_network, few_cores, odd_limits, without_cpu
from planner.pulsar.load.usage import (
    RESOURCES,
    UNWEIGHTED,
    ResourceWeights,
    deciding_resource,
    overload_usage,
    usage_percent_by_resource,
    weighted_usage,
)
from planner.pulsar.shedding.registry import fallback_shedder, offered_shedders
from planner.simulate.edits.registry import MachineChange
from planner.simulate.load_model import COPIES, network_of_bundles

_AHEAD_MIN: Final = 1.0
"""Minutes between two clocks that are nothing yet."""
_LATE: Final = 2
"""Times the longest pause between two reports from which on a report is overdue."""
_CALLED: Final = dict(
    zip(RESOURCES, ("CPU", "heap", "direct memory", "inbound network", "outbound network"), strict=True)
)
_NETWORK: Final = ("bandwidthIn", "bandwidthOut")
_WEIGHT_OF: Final = {
    "cpu": CPU_RESOURCE_WEIGHT,
    "directMemory": DIRECT_MEMORY_RESOURCE_WEIGHT,
    "bandwidthIn": BANDWIDTH_IN_RESOURCE_WEIGHT,
    "bandwidthOut": BANDWIDTH_OUT_RESOURCE_WEIGHT,
}
_OLD_WEIGHT_OF: Final = {"bandwidthIn": BANDWITH_IN_RESOURCE_WEIGHT, "bandwidthOut": BANDWITH_OUT_RESOURCE_WEIGHT}
"""Misspelt names of older releases, which count where the right one is 1."""
_UNIT: Final = dict(zip(RESOURCES, ("% of a core", "MiB", "MiB", "kbit/s", "kbit/s"), strict=True))
_CHECK: Final = {
    "cpu": "The limit is 100 % for each processor that the JVM sees, but the usage may be that of the whole machine:"
    " compare -XX:ActiveProcessorCount and the CPU limit of the container with the cores of the machine.",
    "bandwidthIn": f"Set {OVERRIDE_BROKER_NIC_SPEED_GBPS} to the real speed of the network, on every broker.",
    "bandwidthOut": f"Set {OVERRIDE_BROKER_NIC_SPEED_GBPS} to the real speed of the network, on every broker.",
    "memory": "Check how the broker reads its memory.",
    "directMemory": "Compare -XX:MaxDirectMemorySize with what Netty may use.",
}
"""Why usage may be above its limit, and what to do about it."""


def impossible_measurement(case: Outcome) -> Iterator[Finding]:
    """A report cannot be right: usage above its limit, usage without a limit, or a time that is yet to come."""
    yield from _above_limit(case)
    yield from _without_limit(case)
    yield from _without_cpu(case)
    yield from _ahead(case)


def report_outdated(case: Outcome) -> Iterator[Finding]:
    """A broker has written no load report for longer than it may: what is decided rests on old numbers."""
    start, config = case.trace.start, case.trace.settings
    most = config.integer(REPORT_UPDATE_MAX_INTERVAL_MINUTES)
    table = start.brokers
    minutes = (start.info.captured_at_ms - table.updated_at_ms) / MS_PER_MIN
    late = table.registered & table.has_load_data & (table.updated_at_ms > 0) & (minutes > _LATE * most)
    odd = [int(at) for at in np.argsort(-minutes, kind="stable") if late[at]]
    if not odd or start.info.captured_at_ms <= 0:
        return
    names = tuple(table.name[at] for at in odd)
    yield Finding(
        code="report_outdated",
        title=f"The load report of {names[0]} is {_age(float(minutes[odd[0]]))} old",
        evidence=(
            f"Brokers write one at least every {count(most, 'minute')} ({REPORT_UPDATE_MAX_INTERVAL_MINUTES})."
            + (f" Late as well: {listed(names[1:])}." if len(names) > 1 else "")
            + " Decisions about these brokers, by Pulsar and here, rest on old numbers."
        ),
        remedy=(
            "Look in the log of that broker for errors when it writes its load report, restart it if need be, and"
            " capture again."
        ),
        severity="medium",
        brokers=names,
        settings=(REPORT_UPDATE_MAX_INTERVAL_MINUTES,),
    )


def report_missing(case: Outcome) -> Iterator[Finding]:
    """A registered broker has no load data: what it uses is unknown. In the simulation it reports at once."""
    table = case.trace.start.brokers
    names = tuple(table.name[at] for at in np.flatnonzero(table.registered & ~table.has_load_data).tolist())
    if not names or len(names) == int(table.registered.sum()):
        return
    if case.load_manager is LoadManager.EXTENSIBLE:
        title = f"There is no load data of {listed(names)}"
        evidence = (
            f"If the leader has none either, {case.shedder} skips every cycle (NoLoadData), and placement passes such a"
            " broker over. The simulation lets it report at once, so that what is shed here is not certain."
        )
        give = "If it has just started, capture again in a minute."
    else:
        title = f"There is no load report of {listed(names)}"
        evidence = (
            "So its usage and its bundles are unknown, and averages leave it out. If the leader has none either, it"
            " sheds nothing from there, and placement fails where such a broker is a candidate. The simulation lets it"
            " report at once, so that what is shed here is not certain."
        )
        give = (
            f"If only the files lack it, add the answer of http://{names[0]}/admin/v2/broker-stats/load-report. If it"
            " has just started, capture again in a minute."
        )
    yield Finding(
        code="report_missing",
        title=title,
        evidence=evidence,
        remedy=(f"{give} Otherwise look in its log for errors when it writes load data, and restart it if need be."),
        severity="medium",
        brokers=names,
    )


def _age(minutes: float) -> str:
    return f"{minutes / 60:,.0f} h" if minutes >= 2 * 60 else f"{minutes:,.0f} min"


def _above_limit(case: Outcome) -> Iterator[Finding]:
    table = case.trace.start.brokers
    percents = usage_percent_by_resource(table)
    above = beyond_at_first(case.trace)
    if not above.any():
        return
    worst = np.argsort(-np.where(above, percents, -1).max(axis=0), kind="stable")
    odd = [int(at) for at in worst if above[:, at].any()]
    row = int(np.where(above[:, odd[0]], percents[:, odd[0]], -1).argmax())
    resource, name = RESOURCES[row], table.name[odd[0]]
    used, limit = (float(getattr(table, column)[odd[0]]) for column in COLUMNS[resource])
    decides = deciding_resource(table, case.trace.settings, case.load_manager)
    others = f" The same is true of {listed([table.name[at] for at in odd[1:]])}." if len(odd) > 1 else ""
    odd_speeds = odd_limits(table, beyond_network(table)) if resource.startswith("bandwidth") else ()
    unlike = [one for one in odd_speeds if one.is_wrong]
    beside = f" Among brokers with as many cores: {'; '.join(one.sentence for one in unlike)}." if unlike else ""
    alike = {one.nic_gbps: one.brokers for one in unlike}
    edits = [MachineChange(brokers=brokers, nic_gbps=speed) for speed, brokers in alike.items()]
    all_of_them = above[row, table.registered & table.has_load_data].all() and len(odd) > 1
    about = "" if all_of_them else " about this broker"
    decisive = any(above[RESOURCES.index(decides[at]), at] for at in odd)
    which = "with it every share of that broker: what is shed from it, and where its bundles go"
    if not decisive:
        which = "nothing here is decided by it"
    few = few_cores(table) if resource == "cpu" else None
    if few is not None and (fitting := _fitting(table, few, odd)):
        beside = f" Others have {few.usual:g} cores; with as many, the usage of {listed(fitting)} is possible."
        edits = [MachineChange(brokers=tuple(fitting), cores=few.usual)]
    yield Finding(
        code="impossible_measurement",
        title=(
            f"All {len(odd)} brokers report more {_CALLED[resource]} usage than their limits"
            if all_of_them
            else f"{name} reports more {_CALLED[resource]} usage than its limit"
        ),
        evidence=(
            f"{name} uses {used:,.0f} {_UNIT[resource]} of {limit:,.0f} ({percents[row, odd[0]]:.0f} %), which cannot"
            f" be.{others} One of the two numbers is wrong, and {which}.{beside}"
        ),
        remedy=_CHECK[resource]
        + (f" Then capture again: until it is right, no prediction{about} holds." if decisive else ""),
        severity="high" if decisive else "low",
        brokers=tuple(table.name[at] for at in odd),
        settings=(OVERRIDE_BROKER_NIC_SPEED_GBPS,) if resource.startswith("bandwidth") else (),
        edits=tuple(edits),
    )


def _fitting(table: BrokerTable, few: OddCores, odd: Sequence[int]) -> list[str]:
    """Return which of some brokers have few cores, and use no more CPU than the usual cores have."""
    most = few.usual * 100 * ABOVE
    return [table.name[at] for at in odd if table.name[at] in few.brokers and table.cpu_usage_percent[at] <= most]


def _without_limit(case: Outcome) -> Iterator[Finding]:
    table = case.trace.start.brokers
    weights = ResourceWeights.of(case.trace.settings, case.load_manager)
    weight = (weights.cpu, weights.memory, weights.direct_memory, weights.bandwidth_in, weights.bandwidth_out)
    for resource, matters in zip(RESOURCES, weight, strict=True):
        used, limit = (getattr(table, column) for column in COLUMNS[resource])
        odd = [table.name[at] for at in np.flatnonzero((used > 0) & ~(limit > 0)).tolist()]
        if not odd or not matters:
            continue
        usual = float(np.median(limit[limit > 0])) if (limit > 0).any() else 0.0
        rows = [table.position[name] for name in odd]
        others = weighted_usage(table, case.trace.settings, case.load_manager)[rows]
        decides = resource == "cpu" or not usual or bool((used[rows] / usual * matters > others).any())
        as_others = f" With {usual:,.0f} {_UNIT[resource]}, as others have, another resource would decide there."
        yield Finding(
            code="impossible_measurement",
            title=f"The {_CALLED[resource]} limit of {odd[0]} is {limit[table.position[odd[0]]]:g}",
            evidence=(
                f"{listed(odd)} use{'s' if len(odd) == 1 else ''} {_CALLED[resource]}, but the reported limit is"
                f" {limit[table.position[odd[0]]]:g}."
                f" Pulsar then takes the {_CALLED[resource]} as unused, however busy it is."
                f"{'' if decides else as_others}"
            ),
            remedy=_CHECK[resource],
            severity="medium" if decides else "low",
            brokers=tuple(odd),
            settings=(OVERRIDE_BROKER_NIC_SPEED_GBPS,) if resource.startswith("bandwidth") else (),
        )
        return


def _without_cpu(case: Outcome) -> Iterator[Finding]:
    table = case.trace.start.brokers
    odd = [table.name[at] for at in np.flatnonzero(without_cpu(table)).tolist()]
    if not odd or not ResourceWeights.of(case.trace.settings, case.load_manager).cpu:
        return
    most = float(table.msg_rate_per_s()[table.position[odd[0]]])
    yield Finding(
        code="impossible_measurement",
        title=f"{odd[0]} reports no CPU usage",
        evidence=(
            f"{listed(odd)} report{'s' if len(odd) == 1 else ''} 0 % CPU; {odd[0]} handles {most:,.0f} msg/s meanwhile."
            " Usage is then only that of the network, and headroom is overstated."
        ),
        remedy=(
            "See what it reports with pulsar-admin broker-stats load-report: its JVM or container may hide the"
            " processors. If only the files lack it, give a load report or metrics with CPU usage."
        ),
        severity="medium",
        brokers=tuple(odd),
    )


def _ahead(case: Outcome) -> Iterator[Finding]:
    start = case.trace.start
    minutes = (start.brokers.updated_at_ms - start.info.captured_at_ms) / MS_PER_MIN
    odd = [int(at) for at in np.argsort(-minutes, kind="stable") if minutes[at] > _AHEAD_MIN]
    if not odd or start.info.captured_at_ms <= 0:
        return
    names = tuple(start.brokers.name[at] for at in odd)
    whose = "the clock of the machine that captured" if len(odd) == len(start.brokers) else "the clock of that broker"
    yield Finding(
        code="impossible_measurement",
        title=f"The load report of {names[0]} is from the future",
        evidence=(
            f"The report of {names[0]} is {minutes[odd[0]]:,.0f} min younger than the capture"
            + (f", those of {listed(names[1:])} as well" if len(names) > 1 else "")
            + f": {whose} is wrong. Pulsar cannot tell then whether a report is outdated."
        ),
        remedy="Synchronize the clocks (NTP), then capture again.",
        severity="low",
        brokers=names,
    )


def used_by_others(case: Outcome) -> Iterator[Finding]:
    """A broker without traffic is far busier than the average: something else uses its machine."""
    view, usage = case.last, case.reported_usage[-1]
    if not np.isfinite(usage).any():
        return
    place = {name: at for at, name in enumerate(case.series.brokers)}
    own = view.bundles.throughput_bytes_per_s() > 0
    carries = set(view.bundles.owner[own].tolist())
    average = float(np.nanmean(usage))
    odd = [
        name
        for at, name in enumerate(view.brokers.name)
        if at not in carries and not view.brokers.msg_rate_per_s(at) and usage[place[name]] - average >= APART
    ]
    if not odd:
        return
    first = max(odd, key=lambda name: float(usage[place[name]]))
    limit = case.limit
    decides = deciding_resource(view.brokers, case.trace.settings, case.load_manager)
    resource = _CALLED[decides[view.brokers.position[first]]]
    others = f" The same holds for {listed([one for one in odd if one != first])}." if len(odd) > 1 else ""
    yield Finding(
        code="used_by_others",
        title=f"{first} is busy without any traffic",
        evidence=(
            f"It carries no messages, and uses {usage[place[first]] * 100:.0f} % of its {resource}; the average is"
            f" {average * 100:.0f} %. Something else uses that machine, and no unload lowers it.{others}"
        ),
        remedy=(
            "Look on that machine for what uses it: another process, a function worker, a compaction or offload that"
            " runs, or a broker that starts."
        ),
        severity="high" if usage[place[first]] > limit else "medium",
        brokers=tuple(odd),
    )


def memory_stays(case: Outcome) -> Iterator[Finding]:
    """Memory lifts a broker above the threshold; bundles leave, and the memory stays."""
    view, config = case.last.brokers, case.trace.settings
    limits = limits_of(case, case.scores)
    full = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    # Some strategies compare pairs of brokers; and where memory fills all of them, none is far above the average.
    limit = min(float(limits[-1]), full) if np.isfinite(limits[-1]) else full
    if not len(view):
        return
    unweighted = case.load_manager is LoadManager.MODULAR and config.release.has(UNWEIGHTED)
    unweighted = unweighted and case.shedder == fallback_shedder(case.load_manager).name
    weights = ResourceWeights.of(config, case.load_manager)
    heap, direct = usage_percent_by_resource(view)[[1, 2]].astype(float) / 100
    memory = np.nan_to_num(np.array([heap * weights.memory, direct * (1.0 if unweighted else weights.direct_memory)]))
    score = overload_usage(view, config) if unweighted else weighted_usage(view, config, case.load_manager)
    top = memory.max(axis=0)
    odd = np.flatnonzero((top >= limit) & (top >= score - 1e-6) & view.has_load_data)
    if not len(odd):
        return
    order = odd[np.argsort(-top[odd], kind="stable")]
    first = int(order[0])
    of_heap = bool(memory[0, first] > memory[1, first])
    what, setting = ("heap", MEMORY_RESOURCE_WEIGHT) if of_heap else ("direct memory", DIRECT_MEMORY_RESOURCE_WEIGHT)
    shed = [e for e in case.trace.events if e.kind == "shed" and e.source == view.name[first]]
    remedy = f"Set {setting} to 0, so that the {what} does not count."
    changes: dict[str, str | float] = {setting: 0.0}
    if unweighted:
        other = offered_shedders(case.load_manager, config.release)[0]
        remedy = (
            f"{case.shedder} of Pulsar {config.release.name} ignores the weights: use {other.name}, and set {setting}"
            " to 0."
        )
        changes = {LOAD_SHEDDING_STRATEGY: other.java_class, **changes}
    yield Finding(
        code="memory_stays",
        title=f"{view.name[first]} is above the threshold by its {what}, which no bundle takes along",
        evidence=(
            f"Its {what} is {(heap if of_heap else direct)[first] * 100:.0f} % used; the threshold is"
            f" {limit * 100:.0f} %. {count(len(shed), 'bundle')} left it in"
            f" {count(len(case.trace.cycles), 'cycle')}, but a broker frees memory by its own rules, so the usage stays"
            f"{' and shedding goes on until nothing is left to shed' if shed else ''}."
        ),
        remedy=f"{remedy} Look for what holds the memory: managedLedgerCacheSizeMB, slow consumers, publish buffers.",
        severity="high" if shed else "medium",
        brokers=tuple(view.name[int(at)] for at in order),
        settings=(setting,),
        changes=changes,
    )


def network_stays(case: Outcome) -> Iterator[Finding]:
    """A broker is above the threshold by traffic on its network that is not of its bundles; shedding lowers none."""
    view, config = case.last.brokers, case.trace.settings
    if not len(view):
        return
    limits, full = limits_of(case, case.scores), case.limit
    limit = min(float(limits[-1]), full) if np.isfinite(limits[-1]) else full
    most = network_of_bundles(view, case.last.bundles)
    weights = dict(zip(RESOURCES, astuple(ResourceWeights.of(config, case.load_manager)), strict=True))
    own = {name: np.nan_to_num(_without(view, name, most)) for name in _NETWORK}
    top = np.max([own[name] * weights[name] for name in _NETWORK], axis=0)
    decides = np.array(deciding_resource(view, config, case.load_manager))
    stays = (top >= limit) & (top <= ABOVE) & view.has_load_data & np.isin(decides, _NETWORK)
    order = np.flatnonzero(stays)[np.argsort(-top[stays], kind="stable")]
    if not len(order):
        return
    first = int(order[0])
    resource = max(_NETWORK, key=lambda name: float(own[name][first] * weights[name]))
    used = float(usage_percent_by_resource(view)[RESOURCES.index(resource)][first])
    mine = 100 * most[first] / COPIES / float(_limit_of(view, resource)[first])
    shed = [e for e in case.trace.events if e.kind == "shed" and e.source == view.name[first]]
    others = f" The same holds for {listed([view.name[at] for at in order[1:].tolist()])}." if len(order) > 1 else ""
    yield Finding(
        code="network_stays",
        title=f"{view.name[first]} is above the threshold by traffic that is not of its bundles",
        evidence=(
            f"Its {_CALLED[resource]} is {used:.0f} % used; the threshold is {limit * 100:.0f} %. The messages of its"
            f" bundles are {mine:.1f} % of it, and {COPIES * mine:.1f} % with what it may write to bookies and read"
            f" back. {count(len(shed), 'bundle')} left it in"
            f" {count(len(case.trace.cycles), 'cycle')}; no bundle takes the rest along.{others}"
        ),
        remedy=(
            "Look on that machine for what uses its network: a bookie, replication to other clusters, a backup, or an"
            " offload. Move that elsewhere; unloads do not lower it."
        ),
        severity="high" if shed or used / 100 > full else "medium",
        brokers=tuple(view.name[at] for at in order.tolist()),
    )


def _limit_of(table: BrokerTable, resource: str) -> FloatArray:
    """Return the speed of the network of each broker, in kbit/s. Shape (brokers,)."""
    incoming = resource == "bandwidthIn"
    speed = table.bandwidth_in_limit_kbit_per_s if incoming else table.bandwidth_out_limit_kbit_per_s
    return np.where(speed > 0, speed, np.inf)


def _without(table: BrokerTable, resource: str, taken_kbit_per_s: FloatArray) -> FloatArray:
    """Return which share of a network is used without some traffic (1.0 = all of it). Shape (brokers,)."""
    incoming = resource == "bandwidthIn"
    used = table.bandwidth_in_usage_kbit_per_s if incoming else table.bandwidth_out_usage_kbit_per_s
    share: FloatArray = np.maximum(used - taken_kbit_per_s, 0.0) / _limit_of(table, resource)
    return share


def resource_not_counted(case: Outcome) -> Iterator[Finding]:
    """A machine is full by a resource whose weight hides it from shedding and placement."""
    table, config = case.last.brokers, case.trace.settings
    limit = round(case.limit * 100)
    weights = dict(zip(RESOURCES, astuple(ResourceWeights.of(config, case.load_manager)), strict=True))
    raw = config.release.has(UNWEIGHTED) and case.shedder == fallback_shedder(case.load_manager).name
    for resource, percents in zip(RESOURCES, usage_percent_by_resource(table).astype(float), strict=True):
        if resource == "memory" or raw or weights[resource] >= 1:
            continue
        used = np.where(table.has_load_data, np.nan_to_num(percents), 0.0)
        full = np.flatnonzero((used > limit) & (used <= 100 * ABOVE) & (used * weights[resource] <= limit))
        if len(full):
            order = full[np.argsort(-used[full], kind="stable")].tolist()
            names = [table.name[at] for at in order]
            yield _not_counted(
                resource, _weight_setting(resource, config), weights[resource], names, used[order], limit
            )


def _weight_setting(resource: str, config: Settings) -> str:
    """Return the setting that a weight comes from: of a network, the misspelt old one where the right one is 1."""
    setting, old = _WEIGHT_OF[resource], _OLD_WEIGHT_OF.get(resource, "")
    return old if old in config and config.number(setting) == 1 else setting


def _not_counted(
    resource: str, setting: str, weight: float, names: Sequence[str], usage: FloatArray, limit: int
) -> Finding:
    """Return that brokers, the fullest first, use so much of a resource that counts for less or for nothing."""
    called, used = _CALLED[resource], float(usage[0])
    others = f" The same holds for {listed(names[1:])}." if len(names) > 1 else ""
    of_memory = resource == "directMemory"
    remedy = (
        "No bundle takes it along, so leave the weight as it is. Look for what holds the memory"
        " (managedLedgerCacheSizeMB, slow consumers, publish buffers), or raise -XX:MaxDirectMemorySize."
        if of_memory
        else f"Set {setting} to 1, its default, so that shedding and placement see it."
    )
    return Finding(
        code="resource_not_counted",
        title=f"{names[0]} uses {used:.0f} % of its {called}, which counts for {'little' if weight else 'nothing'}",
        evidence=(
            f"The limit is {limit} % ({BROKER_OVERLOADED_THRESHOLD_PERCENTAGE}). {setting} is {weight:g}, so that load"
            f" balancing sees {used * weight:.0f} %.{others}"
        ),
        remedy=remedy,
        severity="medium" if of_memory else "high",
        brokers=tuple(names),
        settings=(setting,),
        changes={} if of_memory else {setting: 1.0},
    )
