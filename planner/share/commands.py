"""A plan as `pulsar-admin` commands, in an order that is safe to follow. Text only: nothing here talks to a cluster.

The order: what cannot be done by command; brokers that join; the load balancer's own shedding and splitting on hold;
settings; policies; splits, parents first; unloads with their destination, in batches with pauses; brokers that leave;
shedding and splitting as they should be. The unloads are those that lead from the start of a simulation to its end,
each bundle once, not its every move.

Options are those of the `pulsar-admin` of 4.0.8, the nearest one published apart from a distribution; what a request
does is that of the brokers of 4.2.4.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from planner.cluster.errors import SettingError
from planner.cluster.ranges import format_range, parse_bundle
from planner.cluster.releases import REFERENCE
from planner.cluster.setting import SettingValue
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, LoadManager, Snapshot
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.registry import SHEDDERS
from planner.pulsar.splitting.manual import HOT, LARGEST, SplitCommand
from planner.share.shell import comment, option, positional, quoted
from planner.simulate.dispatch.edits import policy_words
from planner.simulate.scenario import (
    AddBrokers,
    ChangeCapacity,
    DrainBroker,
    Edit,
    KillBroker,
    PinBundle,
    RemoveBroker,
    RollingRestart,
    ScaleTraffic,
    SetAntiAffinity,
    SetBundleCount,
    SetDispatchRate,
    SetIsolation,
)
from planner.simulate.trace import Event, Trace
from planner.simulate.wording import in_words

Section: TypeAlias = Literal[
    "notes", "brokers", "hold", "settings", "policies", "splits", "unloads", "leaving", "release"
]
"""Part of a plan; `SECTIONS` has them in their order."""

SECTIONS: Final[Mapping[Section, str]] = {
    "notes": "What this plan supposes, and what Pulsar cannot do by command",
    "brokers": "Brokers that join or change",
    "hold": "Hold automatic shedding and splitting, so that they do not cross these steps",
    "settings": "Settings",
    "policies": "Policies",
    "splits": "Splits",
    "unloads": "Unloads, in batches",
    "leaving": "Brokers that leave",
    "release": "Shedding and splitting as they should be",
}
"""What each part is for, in the order in which to follow them."""

_HELD = ("loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled")
_CLASSES: Final[Mapping[str, Mapping[str, str]]] = {
    "loadBalancerLoadSheddingStrategy": {one.name: one.java_class for one in SHEDDERS},
    "loadBalancerLoadPlacementStrategy": {
        one.name: one.java_class for one in PLACEMENTS if one.load_manager is LoadManager.MODULAR
    },
}
_MANAGERS = {
    LoadManager.MODULAR: "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
    LoadManager.EXTENSIBLE: "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl",
}
_RANGE, _SPECIFIED = "range_equally_divide", "specified_positions_divide"
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
    """How commands are written.

    Attributes:
        program: The words that start `pulsar-admin`.
        batch_bundles: Bundles unloaded between two pauses.
        pause_s: Length of a pause, s: time for clients to reconnect and for brokers to report.
        hold: Switch automatic shedding and splitting off in between.
    """

    program: tuple[str, ...] = ("pulsar-admin",)
    batch_bundles: int = 10
    pause_s: int = 60
    hold: bool = True

    def __post_init__(self) -> None:
        if self.batch_bundles < 1 or self.pause_s < 0 or not self.program:
            raise SettingError(
                "Commands cannot be written so.", remedy="Give a program, batches of 1 or more and no negative pause."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One step of a plan.

    Attributes:
        section: Which part it belongs to.
        words: The command; empty where the note says it all.
        note: Why, or what to do by hand; shown before the command.
        by_hand: The command is only shown: a person has to fill something in, or to decide.
    """

    section: Section
    words: tuple[str, ...] = ()
    note: str = ""
    by_hand: bool = False

    @property
    def line(self) -> str:
        """The command as a shell reads it; empty where there is none."""
        return quoted(self.words) if self.words else ""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """One bundle that is served by another broker at the end than at the start.

    Attributes:
        bundle: Full name, as it is at the end.
        source: The broker that serves it, or the bundle it is cut from, at the start; empty for nobody.
        destination: The broker that serves it at the end.
        why: Why it went there.
        topics: Topics that are disconnected.
        producers: Producers that have to reconnect.
        consumers: Consumers that have to reconnect.
        msg_rate_per_s: Message rate in + out at the end.
        throughput_bytes_per_s: Throughput in + out at the end.
    """

    bundle: str
    source: str
    destination: str
    why: str
    topics: int
    producers: int
    consumers: int
    msg_rate_per_s: float
    throughput_bytes_per_s: float


def split_command(command: SplitCommand, program: Sequence[str] = ("pulsar-admin",)) -> tuple[str, ...]:
    """Return the words that make a request to split a bundle."""
    namespace = positional(command.namespace) or (command.namespace,)
    meant = "--bundle-type" if command.bundle in {LARGEST, HOT} else "--bundle"
    words = [*program, "namespaces", "split-bundle", *namespace, meant, command.bundle]
    if command.unload:
        words.append("--unload")
    if command.algorithm:
        words += ["--split-algorithm-name", command.algorithm]
    for position in command.positions or ():
        words += ["--split-boundaries", str(position)]
    return tuple(words)


def conf_value(value: SettingValue) -> str:
    """Return a value as `broker.conf` writes it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def changed_settings(trace: Trace) -> dict[str, tuple[SettingValue, SettingValue]]:
    """Return the settings that a scenario changes, sorted by name: value before and after.

    Another load manager counts as a change of `loadManagerClassName`.
    """
    managers = (trace.start.info.load_manager, trace.scenario.load_manager_over(trace.start))
    return setting_changes(trace.start.settings, trace.settings, managers)


def setting_changes(
    before: Settings, after: Settings, managers: tuple[LoadManager, LoadManager]
) -> dict[str, tuple[SettingValue, SettingValue]]:
    """Return the settings that differ, sorted by name: value before and after.

    Strategies have their full class names: a broker that is given a simple one does not start (4.2.4,
    `Reflections.createInstance`: ClassNotFoundException). The same class under both names is no change.

    Args:
        before: Settings in force.
        after: Those that are to be.
        managers: The load manager before and after; another one counts as a change of `loadManagerClassName`.
    """
    names = sorted({*before.overrides, *after.overrides})
    pairs = {name: (_named_in_full(name, before[name]), _named_in_full(name, after[name])) for name in names}
    found = {name: (old, new) for name, (old, new) in pairs.items() if old != new}
    if managers[0] is not managers[1]:
        found["loadManagerClassName"] = (_MANAGERS[managers[0]], _MANAGERS[managers[1]])
    return dict(sorted(found.items()))


def _named_in_full(name: str, value: SettingValue) -> SettingValue:
    return _CLASSES[name].get(value, value) if name in _CLASSES and isinstance(value, str) else value


def final_moves(trace: Trace) -> tuple[PlannedMove, ...]:
    """Return every bundle that another broker serves at the end than at the start, in the order of their moves.

    A child counts as served by the broker of the bundle it is cut from. Bundles of a namespace that a scenario makes
    anew are left out, and so are those that nobody serves at the end.
    """
    anew = {edit.namespace for edit in trace.scenario.edits if isinstance(edit, SetBundleCount)}
    arrived: dict[tuple[str, str], tuple[int, str]] = {}
    events = trace.events
    for at, event in enumerate(events):
        if event.destination and event.kind != "split":
            arrived[event.bundle, event.destination] = (at, event.why)
    start_owner = _OwnerAtStart(trace.start)
    end, bundles = trace.end, trace.end.bundles
    found: list[tuple[int, PlannedMove]] = []
    for row, (name, owner) in enumerate(zip(end.bundle_names, bundles.owner.tolist(), strict=True)):
        source = start_owner.of(name)
        destination = end.brokers.name[owner] if owner >= 0 else ""
        if not destination or destination == source or name.rpartition("/")[0] in anew:
            continue
        at, why = arrived.get((name, destination), (len(events), ""))
        move = PlannedMove(
            bundle=name,
            source=source,
            destination=destination,
            why=why,
            topics=int(bundles.topics[row]),
            producers=int(bundles.producers[row]),
            consumers=int(bundles.consumers[row]),
            msg_rate_per_s=float(bundles.msg_rate_in_per_s[row] + bundles.msg_rate_out_per_s[row]),
            throughput_bytes_per_s=float(
                bundles.msg_throughput_in_bytes_per_s[row] + bundles.msg_throughput_out_bytes_per_s[row]
            ),
        )
        found.append((at, move))
    found.sort(key=lambda pair: pair[0])
    return tuple(move for _, move in found)


class _OwnerAtStart:
    """Who served, at the start, the range that a bundle has now."""

    def __init__(self, snapshot: Snapshot) -> None:
        ranges: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        owners = snapshot.bundles.owner.tolist()
        for namespace, low, owner in zip(
            snapshot.bundles.namespace.tolist(), snapshot.bundles.low.tolist(), owners, strict=True
        ):
            ranges[snapshot.namespaces[namespace]].append((low, snapshot.brokers.name[owner] if owner >= 0 else ""))
        self._ranges = {name: sorted(parts) for name, parts in ranges.items()}
        names = (*snapshot.brokers.name, "")
        self._same: dict[str, str] = {
            bundle: names[owner] for bundle, owner in zip(snapshot.bundle_names, owners, strict=True)
        }

    def of(self, bundle: str) -> str:
        if bundle in self._same:
            return self._same[bundle]
        namespace, low, _ = parse_bundle(bundle)
        parts = self._ranges.get(namespace, [])
        at = bisect_right(parts, low, key=lambda part: part[0]) - 1
        return parts[at][1] if at >= 0 else ""


def plan_commands(trace: Trace, options: CommandOptions | None = None) -> tuple[Command, ...]:
    """Return what to do, in order.

    Args:
        trace: What a simulation found.
        options: How commands are written.
    """
    how = options or CommandOptions()
    work = [*_splits(trace, how), *_unloads(trace, how)]
    hold, release = _hold(trace, how) if how.hold and any(command.words for command in work) else ([], [])
    later = _HELD if hold else ()
    settings = _settings({name: pair for name, pair in changed_settings(trace).items() if name not in later}, how)
    notes, joining, leaving = _by_hand(trace, how)
    return (*notes, *joining, *hold, *settings, *_policies(trace, how), *work, *leaving, *release)


def command_script(commands: Sequence[Command], title: str) -> str:
    """Return commands as a script for a POSIX shell, with the notes as comments.

    Args:
        commands: As `plan_commands` returns them.
        title: What the plan is about; shown at the top.
    """
    remarks = [title, "Nothing of this has been run. Read it first; it is written for the cluster as it was captured."]
    remarks.append("It stops at the first error.")
    if any(command.section == "release" for command in commands):
        remarks.append("If it does, run the last part by hand: shedding and splitting are on hold till then.")
    lines = ["#!/bin/sh", *map(comment, remarks), "set -eu"]
    section = ""
    for command in commands:
        if command.section != section:
            section = command.section
            lines += ["", comment(f"=== {SECTIONS[command.section]}")]
        if command.note:
            lines.append(comment(command.note))
        if command.words:
            lines.append(f"# {command.line}" if command.by_hand else command.line)
    return "\n".join(lines) + "\n"


def _command(
    section: Section, how: CommandOptions, parts: Sequence[str | tuple[str, ...] | None], note: str, what: str
) -> Command:
    """Return a command, or a note that says what to do by hand where a part of it cannot be written."""
    if any(part is None for part in parts):
        return Command(
            section=section, note=f"By hand: {what}. A name or value in it cannot be given to pulsar-admin as it is."
        )
    words = [word for part in parts if part for word in ((part,) if isinstance(part, str) else part)]
    return Command(section=section, words=(*how.program, *words), note=note)


def _dynamic(name: str, value: str, section: Section, how: CommandOptions, note: str) -> Command:
    if not value:
        parts: list[str | tuple[str, ...] | None] = ["brokers", "delete-dynamic-config", option("--config", name)]
        note = f"{note} An empty value cannot be set: this goes back to the one in broker.conf; see that it is empty."
        return _command(section, how, parts, note.strip(), f"empty {name}")
    # The value becomes part of an address; pulsar-admin writes a space in it as a plus.
    words = None if " " in value else option("--value", value)
    parts = ["brokers", "update-dynamic-config", option("--config", name), words]
    return _command(section, how, parts, note, f"set {name} to {value}")


def settings_commands(
    changes: Mapping[str, tuple[SettingValue, SettingValue]], options: CommandOptions | None = None
) -> tuple[Command, ...]:
    """Return the commands that change settings, and what to do by hand for those that cannot change at run time.

    Args:
        changes: By name, value before and after.
        options: How commands are written.
    """
    return tuple(_settings(changes, options or CommandOptions()))


def _settings(changes: Mapping[str, tuple[SettingValue, SettingValue]], how: CommandOptions) -> Iterator[Command]:
    restart = []
    for name, (before, after) in changes.items():
        setting, value = REFERENCE.settings[name], conf_value(after)
        note = f"{name}: {conf_value(before) or 'not set'} -> {value or 'not set'}."
        if setting.dynamic:
            yield _dynamic(name, value, "settings", how, f"{note} {setting.note}".strip())
            if "restart" in setting.note.lower() or "read at start" in setting.note.lower():
                restart.append(name)
        else:
            restart.append(name)
            yield Command(section="settings", note=f"{note} Not dynamic; by hand, this line into every broker.conf:")
            yield Command(section="settings", note=f"{name}={value}")
    if restart:
        yield Command(
            section="settings",
            note=(
                "By hand: restart the brokers one after the other, then go on. Without that, these do not count:"
                f" {', '.join(restart)}."
            ),
        )


def _policies(trace: Trace, how: CommandOptions) -> Iterator[Command]:
    for edit in trace.scenario.edits:
        if isinstance(edit, SetIsolation):
            yield _isolation(edit, trace.start.info.cluster, how)
        elif isinstance(edit, SetDispatchRate):
            yield _dispatch(edit, how)
        elif isinstance(edit, SetAntiAffinity):
            namespace = positional(edit.namespace)
            if edit.group.strip():
                parts = ["namespaces", "set-anti-affinity-group", namespace, option("--group", edit.group)]
            else:
                parts = ["namespaces", "delete-anti-affinity-group", namespace]
            yield _command(
                "policies", how, parts, "", f"anti-affinity group of {edit.namespace}: {edit.group or 'none'}"
            )


def _dispatch(edit: SetDispatchRate, how: CommandOptions) -> Command:
    rate = DispatchRate(edit.msg_per_period, edit.bytes_per_period, edit.period_s, edit.relative_to_publish_rate)
    before, after = policy_words(edit.level, edit.target, rate)
    parts = [*before, positional(edit.target), *((word,) for word in after)]
    return _command("policies", how, parts, "", in_words(edit))


def _isolation(edit: SetIsolation, cluster: str, how: CommandOptions) -> Command:
    what = f"isolation policy {edit.name} of the cluster {cluster}"
    if not edit.namespaces:
        parts = ["ns-isolation-policy", "delete", positional(cluster), positional(edit.name)]
        return _command("policies", how, parts, "", f"delete the {what}")
    parts = ["ns-isolation-policy", "set", positional(cluster), positional(edit.name)]
    for name, expressions in (
        ("--namespaces", edit.namespaces),
        ("--primary", edit.primary),
        ("--secondary", edit.secondary),
    ):
        # pulsar-admin cuts at every comma, and cannot be told not to.
        parts += [option(name, expression) if "," not in expression else None for expression in expressions]
    parts += [
        ("--auto-failover-policy-type", "min_available"),
        ("--auto-failover-policy-params", f"min_limit={edit.min_limit},usage_threshold=100"),
        ("--unload-scope", "none"),
    ]
    note = "The bundles that have to leave are unloaded below, so the policy itself unloads nothing."
    if not edit.primary:
        parts.append(None)
    return _command("policies", how, parts, note, f"set the {what}")


def _splits(trace: Trace, how: CommandOptions) -> Iterator[Command]:
    anew = {edit.namespace for edit in trace.scenario.edits if isinstance(edit, SetBundleCount)}
    extensible = trace.scenario.load_manager_over(trace.start) is LoadManager.EXTENSIBLE
    supported = trace.settings.names("supportedNamespaceBundleSplitAlgorithms")
    for event in trace.events:
        if event.kind != "split" or event.bundle.rpartition("/")[0] in anew:
            continue
        for at, request in enumerate(_requests(event, two_at_a_time=extensible)):
            missing = (
                f" {request.algorithm} must first be added to supportedNamespaceBundleSplitAlgorithms."
                if request.algorithm not in supported
                else ""
            )
            note = f"{event.bundle}: {event.why or 'split'}.{missing}" if at == 0 else missing.strip()
            words = split_command(request, how.program)
            if positional(request.namespace) is None:
                words, note = (), f"By hand: {note} Its name cannot be given to pulsar-admin as it is."
            yield Command(section="splits", words=words, note=note)


def _requests(event: Event, *, two_at_a_time: bool) -> Iterator[SplitCommand]:
    """Yield the requests that cut a bundle exactly as the simulation did, whatever its topics do meanwhile.

    Specified positions are refused for a bundle with one topic or none, where only the cut in the middle works. The
    extensible load manager follows a request for more than two children only in part.
    """
    namespace, low, high = parse_bundle(event.bundle)
    cuts = sorted({parse_bundle(child)[1] for child in event.children} - {low})
    if cuts == [low + (high - low) // 2]:
        yield SplitCommand(namespace, format_range(low, high), _RANGE)
    elif not two_at_a_time:
        yield SplitCommand(namespace, format_range(low, high), _SPECIFIED, tuple(cuts))
    else:
        for start, cut in zip((low, *cuts), cuts, strict=False):
            yield SplitCommand(namespace, format_range(start, high), _SPECIFIED, (cut,))


def _unloads(trace: Trace, how: CommandOptions) -> Iterator[Command]:
    killed = {edit.broker for edit in trace.scenario.edits if isinstance(edit, KillBroker)}
    moves = final_moves(trace)
    served = [move for move in moves if move.source and move.source not in killed]
    orphans = [move for move in moves if move.source in killed]
    unserved = sum(1 for move in moves if not move.source)
    if orphans:
        yield Command(
            section="unloads",
            note=(
                f"Left out: {_count(len(orphans), 'bundle')} of brokers that the scenario kills; Pulsar places them"
                " itself when that happens."
            ),
        )
    if unserved:
        yield Command(
            section="unloads",
            note=f"Left out: {_count(unserved, 'bundle')} that nobody serves; the first lookup places them.",
        )
    batches = [served[at : at + how.batch_bundles] for at in range(0, len(served), how.batch_bundles)]
    for number, batch in enumerate(batches, start=1):
        if number > 1 and how.pause_s:
            yield Command(section="unloads", words=("sleep", str(how.pause_s)))
        clients = sum(move.producers + move.consumers for move in batch)
        head = (
            f"Batch {number} of {len(batches)}: {_count(len(batch), 'bundle')},"
            f" {_count(sum(move.topics for move in batch), 'topic')}, {_count(clients, 'client')} to reconnect."
        )
        for at, move in enumerate(batch):
            namespace, _, bundle_range = move.bundle.rpartition("/")
            yield _command(
                "unloads",
                how,
                [
                    "namespaces",
                    "unload",
                    positional(namespace),
                    ("--bundle", bundle_range),
                    option("--destinationBroker", move.destination),
                ],
                head if at == 0 else "",
                f"unload {move.bundle} to {move.destination}",
            )


def _hold(trace: Trace, how: CommandOptions) -> tuple[list[Command], list[Command]]:
    hold, release = [], []
    for name in _HELD:
        if trace.start.settings.flag(name) or trace.settings.flag(name):
            hold.append(_dynamic(name, "false", "hold", how, ""))
            wanted = conf_value(trace.settings[name])
            release.append(_dynamic(name, wanted, "release", how, ""))
    return hold, release


def _by_hand(trace: Trace, how: CommandOptions) -> tuple[list[Command], list[Command], list[Command]]:
    """Return what is supposed or cannot be done, what to do before, and what to do after the unloads."""
    notes = [
        Command(section="notes", note=f"Supposed: {text}") for text in map(_supposed, trace.scenario.edits) if text
    ]
    notes += [Command(section="notes", note=note) for note in trace.notes]
    joining: list[Command] = []
    leaving: list[Command] = []
    for edit in trace.scenario.edits:
        match edit:
            case PinBundle():
                text = (
                    f"Pulsar cannot pin {edit.bundle} to {edit.broker}. It is moved there below, and stays only until"
                    " shedding or a restart takes it away; the nearest Pulsar has is an isolation policy for its"
                    " namespace."
                )
                notes.append(Command(section="notes", note=text))
            case SetBundleCount():
                notes.append(_bundle_count(edit, how))
            case AddBrokers():
                names = [f"{edit.name_prefix}-{number}:8080" for number in range(1, edit.count + 1)]
                text = f"By hand: start {_count(edit.count, 'broker')}, and put the real ids below for {_some(names)}."
                joining.append(Command(section="brokers", note=text))
            case ChangeCapacity():
                size = [f"{edit.cores:g} cores"] * bool(edit.cores) + [f"{edit.nic_gbps:g} Gbit/s"] * bool(
                    edit.nic_gbps
                )
                who = _some(edit.brokers) if edit.brokers else "every broker"
                text = f"By hand: change the machine of {who} to {' and '.join(size) or 'what it is'}."
                joining.append(Command(section="brokers", note=text))
            case RollingRestart():
                who = _some(edit.brokers) if edit.brokers else "all brokers"
                text = (
                    f"By hand: restart {who} one after the other, each {edit.down_min:g} min away and"
                    f" {edit.pause_min:g} min apart, and only then go on: a restart moves bundles by itself."
                )
                joining.append(Command(section="brokers", note=text))
            case DrainBroker() | RemoveBroker():
                leaving.append(_shutdown(edit, how))
            case _:
                pass
    return notes, joining, leaving


def _bundle_count(edit: SetBundleCount, how: CommandOptions) -> Command:
    name = positional(f"{edit.namespace}-new")
    words = ("namespaces", "create", *(name or ()), "--bundles", str(edit.bundles))
    return Command(
        section="notes",
        words=(*how.program, *words) if name else (),
        by_hand=True,
        note=(
            f"Pulsar cannot change the number of bundles of an existing namespace: {edit.namespace} gets"
            f" {edit.bundles} only if it is made anew and its topics move there (splits only ever add bundles)."
        ),
    )


def _shutdown(edit: DrainBroker | RemoveBroker, how: CommandOptions) -> Command:
    pace = edit.bundles_per_min / 60 if isinstance(edit, DrainBroker) else 0.0
    url = option("--admin-url", f"http://{edit.broker}")
    words = ["brokers", "shutdown", *(("--max-concurrent-unload-per-sec", str(max(round(pace), 1))) if pace else ())]
    return Command(
        section="leaving",
        words=(*how.program, *url, *words) if url else (),
        by_hand=True,
        note=f"By hand: stop {edit.broker} in order, once nothing is left on it; check its address first.",
    )


def _supposed(edit: Edit) -> str:
    match edit:
        case KillBroker():
            return f"{edit.broker} dies at minute {edit.at_min:g}."
        case ScaleTraffic():
            lasts = f" over {edit.duration_min:g} min" if edit.duration_min else ""
            return (
                f"traffic of {edit.target or 'the cluster'} times {edit.factor:g} ({edit.shape}) from minute"
                f" {edit.at_min:g}{lasts}."
            )
        case _:
            return ""


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
