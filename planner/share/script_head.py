"""The head of a script: what it is for, whom it disconnects, how long it takes, its steps; and what it checks first."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE, LOAD_SHEDDING_STRATEGY
from planner.cluster.ranges import parse_bundle
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, moment
from planner.cluster.units import DAY_S, MIN_PER_HOUR, MS_PER_S, S_PER_MIN
from planner.pulsar.load.usage import ResourceWeights
from planner.pulsar.manager.class_names import MANAGER_CLASSES
from planner.share.step_table import is_step
from planner.simulate.admin_commands import Command

CALL_S: Final = 3.0
"""Seconds for one call of `pulsar-admin`: it starts a Java machine each time, which takes 2 to 4 s."""
ARRIVAL_S: Final = 5.0
"""Seconds until the bundles of a batch have arrived: the first look is at once, the second 5 s later."""
MOST_CHECKED: Final = 3
"""Bundles whose place a script looks up before it begins."""
_SHOWN: Final = 10
_BY_HAND: Final = " A broker that is stopped or restarted by hand disconnects its clients, who are not counted here."

STATUSES: Final = {
    0: "done",
    1: "a pulsar-admin command failed",
    2: "wrong option",
    3: "stopped at a question",
    4: "done, except for bundles that have moved or been split since the capture",
    5: "another script holds shedding and splits",
    6: "settings could not be restored; the commands to restore them are printed",
    7: "not the cluster of the plan, or not as expected; nothing was changed",
    8: "a split had no effect, or after a batch a bundle had not arrived or a broker was above the limit",
}
"""Exit statuses of a script; after a signal it is 128 plus its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of the cluster and the question of a plan.

    Attributes:
        captured_at_ms: When the cluster was captured, ms since 1970.
        made_at_ms: When the script is made, ms since 1970.
        question: What the plan is for, in words.
        link: What follows `?` in an address that opens the scenario; empty for none.
        release: Release of the brokers.
        load_manager: Simple class name of the load manager.
        strategy: Simple class name of the shedding strategy; empty where the capture does not tell.
        limit_percent: Usage above which a broker is overloaded.
        weights: Factor of each metric of a broker that counts as usage, such as `brk_lb_cpu_usage=1`.
        warning: What speaks against the plan; empty for nothing.
    """

    captured_at_ms: int
    made_at_ms: int
    question: str
    link: str
    release: str
    load_manager: str
    strategy: str
    limit_percent: int
    weights: str
    warning: str = ""


def facts_of(start: Snapshot, *, question: str, link: str, made_at_ms: int, warning: str = "") -> Facts:
    """Return the facts of a plan for a cluster as captured.

    Usage comes from the metrics of a broker, which both load managers have: the extensible one answers a request for
    a load report with an error (4.2.4, `ExtensibleLoadManagerWrapper.generateLoadReport`), and `pulsar-admin` (4.0.8)
    does not end when it is asked for the report of the modular one.

    Args:
        start: The cluster as captured.
        question: What the plan is for, in words.
        link: What follows `?` in an address that opens the scenario; empty for none.
        made_at_ms: When the script is made, ms since 1970.
        warning: What speaks against the plan; empty for nothing.
    """
    info, settings = start.info, start.settings
    weights = ResourceWeights.of(settings, info.load_manager)
    counted = {
        "cpu": weights.cpu,
        "directMemory": weights.direct_memory,
        "bandwidth_in": weights.bandwidth_in,
        "bandwidth_out": weights.bandwidth_out,
    }
    known = info.settings_from != "defaults"
    return Facts(
        captured_at_ms=info.captured_at_ms,
        made_at_ms=made_at_ms,
        question=question,
        link=link,
        release=info.pulsar_version,
        load_manager=MANAGER_CLASSES[info.load_manager].rpartition(".")[2],
        strategy=settings.text(LOAD_SHEDDING_STRATEGY).rpartition(".")[2] if known else "",
        limit_percent=settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE),
        weights=" ".join(f"brk_lb_{name}_usage={weight:g}" for name, weight in counted.items()),
        warning=warning,
    )


def head_lines(commands: Sequence[Command], cluster: str, facts: Facts | None) -> Iterator[str]:
    """Yield what a script says at its top, a paragraph each: cluster, question, duration, who is disconnected."""
    if facts is None:
        yield f"Cluster: {cluster}."
    else:
        old_s = (facts.made_at_ms - facts.captured_at_ms) // MS_PER_S
        yield f"Cluster: {cluster}, captured {moment(facts.captured_at_ms)}, {_age(old_s)}."
        yield f"Question: {facts.question}"
        if facts.warning:
            yield f"Warning: {facts.warning}"
        if facts.link:
            yield f"Scenario: ?{facts.link}"
    by_hand = sum(command.by_hand for command in commands)
    steps = f", plus {count(by_hand, 'step')} by hand" if by_hand else ""
    yield f"Duration: about {_duration(duration_s(commands))}{steps}."
    yield from disconnected_lines(commands)


def duration_s(commands: Sequence[Command]) -> float:
    """Return about how many seconds a script takes: its calls of `pulsar-admin` and its pauses, no steps by hand."""
    calls, pauses = 3.0, 0.0  # what it reads first
    brokers: set[str] = set()
    for command in commands:
        if command.wave_s is not None:
            calls += len(brokers)
            brokers, pauses = set(), pauses + command.wave_s + ARRIVAL_S
        pauses += command.wait_s or 0
        if command.words and not command.by_hand:
            calls += 1 + bool(command.cuts)  # after a split, the boundaries of its namespace are read
        if command.destination:
            # Before: both brokers are looked up. After: the destination, twice, and its usage.
            calls += len({command.source} - brokers) + 3 * len({command.destination} - brokers)
            brokers |= {command.source, command.destination}
    return calls * CALL_S + pauses


def disconnected_lines(commands: Sequence[Command]) -> Iterator[str]:
    """Yield whom the moves disconnect, by tenant and namespace, worst first; the first ten of each.

    What a person stops or restarts by hand is not counted, which is said.
    """
    more = _BY_HAND if any(command.by_hand for command in commands) else ""
    clients: Counter[str] = Counter()
    topics: Counter[str] = Counter()
    for command in commands:
        if command.destination:
            namespace = command.bundle.rpartition("/")[0]
            clients[namespace] += command.clients
            topics[namespace] += command.topics
    if not clients:
        yield f"Disconnected: no clients by the commands.{more}" if more else "Disconnected: no clients."
        return
    yield (
        f"Disconnected: {count(clients.total(), 'client')} of {count(topics.total(), 'topic')}, in"
        f" {count(len(clients), 'namespace')}. They reconnect by themselves.{more}"
    )
    tenants: dict[str, list[str]] = {}
    for name, _ in clients.most_common():
        tenants.setdefault(name.partition("/")[0], []).append(name)
    worst = sorted(tenants.items(), key=lambda pair: -sum(clients[name] for name in pair[1]))
    for tenant, names in worst[:_SHOWN]:
        numbers = [sum(found[name] for name in names) for found in (clients, topics)]
        parts = [f"{name}: {count(clients[name], 'client')}" for name in names[:_SHOWN]]
        parts += [f"and {len(names) - _SHOWN:,} more"] if len(names) > _SHOWN else []
        yield f"- {tenant}, {count(numbers[0], 'client')} of {count(numbers[1], 'topic')} ({', '.join(parts)})"
    if len(worst) > _SHOWN:
        rest = sum(clients[name] for _, names in worst[_SHOWN:] for name in names)
        yield f"- {count(len(worst) - _SHOWN, 'other tenant')}, {count(rest, 'client')}"


def checks(commands: Sequence[Command]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the bundles that a script looks up before it begins, each with the brokers that may own it by then.

    Moves first, spread over the plan; brokers whose real ids a person has to give are left out. What a split of the
    plan makes does not exist yet, so the bundle that is split stands for it.
    """
    invented = {name for command in commands for name in command.asks}
    about = [command for command in commands if command.bundle and command.source and is_step(command)]
    splits = [command for command in about if command.cuts]
    places: dict[str, list[str]] = {}
    for one in [one for one in about if one.destination] or about:
        whole = next((split for split in splits if _is_within(one.bundle, split.bundle)), one)
        brokers = places.setdefault(whole.bundle, [whole.source])
        if one.bundle.rpartition("_")[0] == whole.bundle.rpartition("_")[0]:  # the part that begins it
            brokers.append(one.destination)
    found = [(bundle, dict.fromkeys(brokers)) for bundle, brokers in places.items() if brokers[0] not in invented]
    if len(found) > MOST_CHECKED:
        found = [found[at * (len(found) - 1) // (MOST_CHECKED - 1)] for at in range(MOST_CHECKED)]
    return [(bundle, tuple(name for name in brokers if name and name not in invented)) for bundle, brokers in found]


def _is_within(bundle: str, whole: str) -> bool:
    """Say whether a bundle is another one, or a part of it."""
    (space, low, high), (other, least, most) = parse_bundle(bundle), parse_bundle(whole)
    return space == other and least <= low and high <= most


def _age(seconds: int) -> str:
    """Return how old a capture was when its script was made."""
    if seconds < 0:
        return "which is after this script was made: compare the clocks"
    if seconds < 2 * MIN_PER_HOUR * S_PER_MIN:
        old = f"{seconds // S_PER_MIN} min"
    elif seconds < 2 * DAY_S:
        old = f"{seconds // S_PER_MIN // MIN_PER_HOUR} h"
    else:
        old = f"{seconds // DAY_S:,} days"
    return f"{old} old when this script was made"


def _duration(seconds: float) -> str:
    if seconds < 2 * S_PER_MIN:
        return f"{seconds:,.0f} s"
    return (
        f"{seconds / S_PER_MIN:,.0f} min"
        if seconds < 2 * MIN_PER_HOUR * S_PER_MIN
        else f"{seconds / S_PER_MIN / MIN_PER_HOUR:,.1f} h"
    )
