"""A plan as `pulsar-admin` commands, in an order that is safe to follow. Text only: nothing here talks to a cluster.

The order: what cannot be done by command; brokers that join; the load balancer's own shedding and splitting on hold;
policies; splits, parents first; unloads with their destination, in batches with pauses; brokers that leave; settings,
once everything before has succeeded; shedding and splitting as they were. The unloads are those that lead from the
start of a simulation to its end, each bundle once, not its every move. A plan whose settings need a restart ends with
that: brokers that restart hand over what they serve, so that what the plan would move after it is known only from
another capture. A change of load manager is a migration, which no script makes.

What an edit asks for stands with its kind (`planner.simulate.edits`); this module puts it in order, and adds settings,
splits and unloads. What a request does is that of the brokers of 4.2.4.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from planner.cluster.errors import SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    LOAD_MANAGER_CLASS_NAME,
    LOAD_PLACEMENT_STRATEGY,
    LOAD_SHEDDING_STRATEGY,
    SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS,
)
from planner.cluster.ranges import format_range, middle_of, parse_bundle
from planner.cluster.releases import REFERENCE
from planner.cluster.relocation import Relocation, moved
from planner.cluster.setting import SettingValue, conf_value
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.switches import HELD_SWITCHES, hold_of
from planner.cluster.text import count
from planner.pulsar.manager.class_names import MANAGER_CLASSES
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.registry import SHEDDERS
from planner.pulsar.splitting.manual import SplitCommand
from planner.pulsar.splitting.registry import HALVES, SPLIT_ALGORITHMS
from planner.share.owners import Owners
from planner.share.script import SECTIONS
from planner.simulate.admin_commands import (
    PROGRAM,
    Command,
    DynamicChange,
    Role,
    command_of,
    option,
    positional,
    setting_command,
    split_command,
)
from planner.simulate.edits.edit import Edit
from planner.simulate.edits.registry import BrokersRestart
from planner.simulate.event import Event
from planner.simulate.trace import Trace

_CLASSES: Final[Mapping[str, Mapping[str, str]]] = {
    LOAD_SHEDDING_STRATEGY: {one.name: one.java_class for one in SHEDDERS},
    LOAD_PLACEMENT_STRATEGY: {
        one.name: one.java_class for one in PLACEMENTS if one.load_manager is LoadManager.MODULAR
    },
}
CAPTURE_AGAIN: Final = (
    "The plan ends here: brokers that restart hand over their bundles, so bundles will have other owners "
    "afterwards. Capture the cluster again after the restart, and plan its splits and unloads from there."
)
_EMPTY = (
    "An empty value cannot be set, so this command restores the value in broker.conf. Make sure that it is empty there."
)
_MIGRATION: Final = (
    "By hand: migrate to {value}. Changing the load manager is a migration, which no script can carry "
    "out: plan it separately, write these lines into every broker.conf, and restart all brokers. Do not "
    "set loadManagerClassName in the dynamic configuration, where it takes effect on all running brokers "
    "at once. The lines: {lines}."
)
_SPECIFIED = next(algorithm.name for algorithm in SPLIT_ALGORITHMS if algorithm.needs_positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
    """How commands are written.

    Attributes:
        program: The words that start `pulsar-admin`.
        batch_bundles: Bundles unloaded between two pauses.
        pause_s: Length of a pause, s: time for clients to reconnect and for brokers to report.
        hold: Hold automatic shedding and splits in between.
    """

    program: tuple[str, ...] = PROGRAM
    batch_bundles: int = 10
    pause_s: int = 60
    hold: bool = True

    def __post_init__(self) -> None:
        if self.batch_bundles < 1 or self.pause_s < 0 or not self.program:
            raise SettingError(
                "The options for writing commands are not valid.",
                remedy="Use a program, batches of at least 1 bundle and a pause of 0 s or more.",
            )


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
    `Reflections.createInstance`: ClassNotFoundException). A simple name for the class in force is no change.

    Args:
        before: Settings in force.
        after: Those that are to be.
        managers: The load manager before and after; another one counts as a change of `loadManagerClassName`.
    """
    names = sorted({*before.overrides, *after.overrides})
    pairs = {
        name: (before[name], before[name] if after[name] == before[name] else _named_in_full(name, after[name]))
        for name in names
    }
    found = {name: (old, new) for name, (old, new) in pairs.items() if old != new}
    if managers[0] is not managers[1]:
        found[LOAD_MANAGER_CLASS_NAME] = (MANAGER_CLASSES[managers[0]], MANAGER_CLASSES[managers[1]])
    return dict(sorted(found.items()))


def _named_in_full(name: str, value: SettingValue) -> SettingValue:
    return _CLASSES[name].get(value, value) if name in _CLASSES and isinstance(value, str) else value


def final_moves(trace: Trace) -> tuple[Relocation, ...]:
    """Return every bundle that another broker serves at the end than at the start, in the order of their moves.

    Each is named as it is at the end and has the numbers of the end; its donor served it, or what it is cut from.
    A child counts as served by the broker of the bundle it is cut from. Bundles of a namespace that a scenario makes
    anew are left out, and so are those that nobody serves at the end.
    """
    recreated = _recreated(trace)
    arrived: dict[tuple[str, str], tuple[int, str]] = {}
    events = trace.events
    for at, event in enumerate(events):
        if event.destination and event.kind != "split":
            arrived[event.bundle, event.destination] = (at, event.why)
    start_owner = Owners(trace.start)
    end, bundles = trace.end, trace.end.bundles
    found: list[tuple[int, Relocation]] = []
    for row, (name, owner) in enumerate(zip(end.bundle_names, bundles.owner.tolist(), strict=True)):
        source = start_owner.of(name)
        destination = end.brokers.name[owner] if owner >= 0 else ""
        if not destination or destination == source or name.rpartition("/")[0] in recreated:
            continue
        at, why = arrived.get((name, destination), (len(events), ""))
        move = moved(end, row, source, destination, why)
        found.append((at, move))
    found.sort(key=lambda pair: pair[0])
    return tuple(move for _, move in found)


def commanded_moves(trace: Trace) -> tuple[Relocation, ...]:
    """Return the `final_moves` that unloads carry out: bundles with an owner that the scenario does not kill."""
    killed = _killed(trace)
    return tuple(move for move in final_moves(trace) if move.source and move.source not in killed)


def plan_commands(trace: Trace, options: CommandOptions | None = None) -> tuple[Command, ...]:
    """Return what to do for a plan, in order."""
    how = options or CommandOptions()
    changes, dynamic = changed_settings(trace), trace.start.info.dynamic_settings
    edits, cluster = trace.scenario.edits, trace.start.info.cluster
    assumed = [f"Assumption: {text}" for text in (edit.assumption() for edit in edits) if text]
    notes = [Command(section="notes", note=note) for note in (*assumed, *trace.notes)]
    restart = next(filter(partial(_restarts_all, trace.start), edits), None) if needs_restart(changes) else None
    asked = [
        command
        for edit in edits
        if edit is not restart  # that of the settings: brokers restart once, when these are set
        for command in edit.over(trace.start).commands(cluster, how.program)
    ]
    settings = settings_commands(changes, how, dynamic=dynamic, restart="" if restart is None else restart.what())
    work = [*_splits(trace, how), *_unloads(trace, how)]
    if needs_restart(changes) and any(command.words for command in work):
        before = [command for command in asked if command.section != "leaving"]
        found = (*notes, *before, *settings, Command(section="settings", note=CAPTURE_AGAIN))
    else:
        held = [*hold(trace.start, how)] if how.hold and any(c.words for c in work) else []
        found = (*notes, *held, *settings, *asked, *work)
    return in_order(found)


def _restarts_all(snapshot: Snapshot, edit: Edit) -> bool:
    """Say whether an edit restarts every broker."""
    brokers = snapshot.brokers.name
    return isinstance(edit, BrokersRestart) and {*brokers} <= {*(edit.brokers or brokers)}


def restarting(changes: Mapping[str, tuple[SettingValue, SettingValue]]) -> list[str]:
    """Return those settings of some changes that count only after a restart of the brokers."""
    return [name for name in changes if REFERENCE.settings[name].takes_effect in {"restart", "migration"}]


def needs_restart(changes: Mapping[str, tuple[SettingValue, SettingValue]]) -> bool:
    """Say whether brokers restart for some changes, so that bundles lie elsewhere afterwards."""
    return bool(restarting(changes)) or LOAD_MANAGER_CLASS_NAME in changes


def _killed(trace: Trace) -> set[str]:
    """Return the brokers that a scenario kills."""
    return {broker for edit in trace.scenario.edits for broker in edit.dying()}


def _recreated(trace: Trace) -> set[str]:
    """Return the namespaces that a scenario makes anew."""
    return {namespace for edit in trace.scenario.edits for namespace in edit.recreated()}


def settings_commands(
    changes: Mapping[str, tuple[SettingValue, SettingValue]],
    how: CommandOptions,
    role: Role = "asked",
    dynamic: Mapping[str, str] | None = None,
    restart: str = "",
) -> Iterator[Command]:
    """Yield the commands that change settings, and what to do by hand for those that cannot change at run time.

    Args:
        changes: Value before and after, by name, as `setting_changes` returns them.
        how: How commands are written.
        role: Why they change.
        dynamic: Values of the dynamic configuration when the cluster was captured; None unknown.
        restart: How brokers restart where that is needed, as an imperative.
    """
    if LOAD_MANAGER_CLASS_NAME in changes:
        yield from _migration(changes)
        return
    late, lines = restarting(changes), []
    for name, (before, after) in changes.items():
        setting, value = REFERENCE.settings[name], conf_value(after)
        note = f"{name}: {conf_value(before) or 'not set'} -> {value or 'not set'}."
        if setting.dynamic:
            overridden = None if dynamic is None else name in dynamic
            change = DynamicChange(name=name, value=value, before=conf_value(before), role=role, overridden=overridden)
            note = f"{note} {setting.note}" if value else f"{note} {_EMPTY}"
            yield setting_command("settings", how.program, change, note.strip())
        else:
            lines.append(f"{name}={value}")
            yield Command(section="settings", note=f"{note} Not dynamic: it needs broker.conf and a restart.")
    if late:
        written = f"write these lines into every broker.conf: {'; '.join(lines)}. Then " if lines else ""
        note = (
            f"By hand: {written}{restart or 'restart the brokers one after the other'}. These settings take effect "
            f"only after a restart: {', '.join(late)}."
        )
        yield Command(section="settings", note=note, by_hand=True)


def _migration(changes: Mapping[str, tuple[SettingValue, SettingValue]]) -> Iterator[Command]:
    """Yield the step by hand to another load manager; settings that go with it are set at the same restart."""
    lines = "; ".join(f"{name}={conf_value(after)}" for name, (_, after) in changes.items())
    value = conf_value(changes[LOAD_MANAGER_CLASS_NAME][1])
    yield Command(section="settings", note=_MIGRATION.format(value=value, lines=lines), by_hand=True)


def planned_splits(trace: Trace) -> tuple[Event, ...]:
    """Return the splits of a plan in their order, without those of namespaces that a scenario makes anew."""
    recreated = _recreated(trace)
    return tuple(e for e in trace.events if e.kind == "split" and e.bundle.rpartition("/")[0] not in recreated)


def _splits(trace: Trace, how: CommandOptions) -> Iterator[Command]:
    extensible = trace.scenario.load_manager_over(trace.start) is LoadManager.EXTENSIBLE
    supported = trace.settings.names(SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS)
    owner = Owners(trace.start)
    for event in planned_splits(trace):
        yield from split_commands(event, owner.of(event.bundle), supported, how, two_at_a_time=extensible)


def split_commands(
    event: Event, source: str, supported: Collection[str], how: CommandOptions, *, two_at_a_time: bool
) -> Iterator[Command]:
    """Yield the commands that cut a bundle as an event says.

    Args:
        event: The split.
        source: Broker that owns the bundle; empty for nobody.
        supported: Split algorithms that the brokers may be asked for.
        how: How commands are written.
        two_at_a_time: Whether each request may cut once only.
    """
    for at, request in enumerate(_requests(event, two_at_a_time=two_at_a_time)):
        missing = ""
        if request.algorithm not in supported:
            missing = f" Add {request.algorithm} to supportedNamespaceBundleSplitAlgorithms first."
        note = f"{event.bundle}: {event.why or 'split'}.{missing}" if at == 0 else missing.strip()
        if positional(request.namespace) is None:
            note = f"By hand: {note} pulsar-admin cannot take the name of this bundle as it is."
            yield Command(section="splits", note=note, by_hand=True)
            continue
        bundle = f"{request.namespace}/{request.bundle}" if source else ""
        words = split_command(request, how.program)
        yield Command(section="splits", words=words, note=note, bundle=bundle, source=source)


def _requests(event: Event, *, two_at_a_time: bool) -> Iterator[SplitCommand]:
    """Yield the requests that cut a bundle exactly as the simulation did, whatever its topics do meanwhile.

    Specified positions are refused for a bundle with one topic or none, where only the cut in the middle works. The
    extensible load manager follows a request for more than two children only in part.
    """
    namespace, low, high = parse_bundle(event.bundle)
    cuts = sorted({parse_bundle(child)[1] for child in event.children} - {low})
    if cuts == [middle_of(low, high)]:
        yield SplitCommand(namespace, format_range(low, high), HALVES)
    elif not two_at_a_time:
        yield SplitCommand(namespace, format_range(low, high), _SPECIFIED, tuple(cuts))
    else:
        for start, cut in zip((low, *cuts), cuts, strict=False):
            yield SplitCommand(namespace, format_range(start, high), _SPECIFIED, (cut,))


def _unloads(trace: Trace, how: CommandOptions) -> Iterator[Command]:
    killed, moves = _killed(trace), final_moves(trace)
    served = commanded_moves(trace)
    orphans = [move for move in moves if move.source in killed]
    unserved = sum(1 for move in moves if not move.source)
    if orphans:
        yield Command(
            section="unloads",
            note=(
                f"Left out: {count(len(orphans), 'bundle')} of brokers that the scenario kills. "
                "Pulsar places them when that happens."
            ),
        )
    if unserved:
        yield Command(
            section="unloads",
            note=f"Left out: {count(unserved, 'unowned bundle')}. The first lookup assigns an owner.",
        )
    yield from unload_batches(
        [served[at : at + how.batch_bundles] for at in range(0, len(served), how.batch_bundles)], how
    )


def unload_batches(batches: Sequence[Sequence[Relocation]], how: CommandOptions) -> Iterator[Command]:
    """Yield the unloads of moves with their destinations, batch after batch, with a pause between two of them.

    Each move has a donor and a receiver.
    """
    for number, batch in enumerate(batches, start=1):
        clients = sum(move.producers + move.consumers for move in batch)
        head = (
            f"Batch {number} of {len(batches)}: {count(len(batch), 'bundle')}, "
            f"{count(sum(move.topics for move in batch), 'topic')}, "
            f"{count(clients, 'client')} disconnected."
        )
        yield Command(section="unloads", note=head, wave_s=how.pause_s)
        for move in batch:
            namespace, _, bundle_range = move.bundle.rpartition("/")
            to = option("--destinationBroker", move.destination)
            words = ["namespaces", "unload", positional(namespace), ("--bundle", bundle_range), to]
            what = f"unload {move.bundle} to {move.destination}"
            command = command_of("unloads", how.program, words, what)
            if command.words:
                command = replace(command, bundle=move.bundle, source=move.source, destination=move.destination)
            yield replace(command, topics=move.topics, clients=move.producers + move.consumers)


def hold(start: Snapshot, how: CommandOptions) -> Iterator[Command]:
    """Yield what holds automatic shedding and splits while a script runs, and what puts them back at its end.

    Whether they are on is not asked of the snapshot: they may have been switched since.
    """
    dynamic = start.info.dynamic_settings
    for name in HELD_SWITCHES:
        before = conf_value(start.settings[name])
        earlier = (dynamic or {}).get(name, "")
        held = hold_of(earlier)  # the capture was taken while another script held it
        if held is not None:
            before = "true" if held.was_on else "false"
            overridden: bool | None = held.overridden
        else:
            overridden = None if dynamic is None else name in dynamic
        off = DynamicChange(name=name, value="false", before=before, role="held", overridden=overridden)
        yield setting_command("hold", how.program, off)
        back = replace(off, value=before if overridden else "", role="released")
        note = (
            ""
            if dynamic is not None
            else f"If the dynamic configuration had a value for {name}, set that value instead."
        )
        yield setting_command("release", how.program, back, note)


def in_order(commands: Iterable[Command]) -> tuple[Command, ...]:
    """Return steps section by section, in the order to follow them; of waits only the longest, and only on hold."""
    order, listed = list(SECTIONS), list(commands)
    held = any(command.section == "hold" for command in listed)
    longest = max((command.wait_s or 0 for command in listed), default=0) if held else 0
    kept = [command for command in listed if command.wait_s is None]
    kept += [command for command in listed if command.wait_s is not None and command.wait_s == longest][:1]
    return tuple(sorted(kept, key=lambda command: (order.index(command.section), command.wait_s is None)))
