"""Brokers above the threshold of the strategy that a rule holds back: which rule it is, and what opens it.

Also the question that a verdict asks before it says that no rule calls for more.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from planner.cluster.errors import PlannerError
from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import SHEDDING_BUNDLES_WITH_POLICIES_ENABLED
from planner.cluster.setting import SettingValue, conf_value
from planner.cluster.snapshot import IsolationPolicy
from planner.cluster.text import count
from planner.explain.finding import Finding, Severity, admin, listed
from planner.explain.held import Held, gate_reasons, held_brokers, held_in, worst
from planner.explain.isolation import allowed_brokers, even_usage_percent, lone_groups, narrowed, policies_of, widened
from planner.explain.outcome import Outcome
from planner.explain.split_advice import split_advice
from planner.pulsar.manager.cycle import ANTI_AFFINITY, FRAME_GATES, ISOLATED, SAME_BROKER
from planner.pulsar.manager.pairing import running_placement
from planner.pulsar.shedding.profile import ROOM
from planner.simulate.edits.registry import BundleSplit, GroupChange, IsolationChange
from planner.simulate.scene import Scene
from planner.simulate.what_if import Change, Target, draws_of, opening_of, rule_behind

_ASKED_BROKERS: Final = 3
"""Brokers of which it is asked what opens their gate: the busiest ones."""
_COUNTED: Final = 20
"""Whole numbers below this are counts, of cycles or bundles, whose edge does not depend on traffic."""
_MOSTLY: Final = 0.5
"""Share of the traffic of a broker from which on it is what keeps the broker busy."""


@dataclass(frozen=True, slots=True)
class _Opening:
    """What makes the next cycle shed from a broker.

    Attributes:
        broker: Its id.
        change: The value that opens its gate.
        given: What has to be set besides, by the names of the settings.
        waits: What counts anew once cycles are no longer skipped, as a subject; empty for nothing.
    """

    broker: str
    change: Change
    given: Mapping[str, SettingValue] = field(default_factory=dict)
    waits: str = ""


@dataclass(frozen=True, slots=True)
class _Behind:
    """The gate that stands behind another one.

    Attributes:
        held: What holds the broker then.
        setting: The setting that opens the first gate.
        value: The value of it with which the other gate shows.
    """

    held: Held
    setting: str
    value: SettingValue


def held_by_gate(case: Outcome) -> Iterator[Finding]:
    """A broker is above the threshold, and a rule holds it back; or only one broker may own its bundles."""
    held = held_brokers(case)
    # Whether anything is due is not looked at in cycles that are skipped.
    if not held or (held[0].gate.skips and _opening(case, held) is None):
        return
    first = held[0]
    like = [one for one in held if one.code is first.code]
    limit = case.limit
    usage = dict(zip(case.series.brokers, case.reported_usage[-1].tolist(), strict=True))
    others = f" The same holds back {listed([one.broker for one in like[1:]])}." if len(like) > 1 else ""
    about = f"{count(len(first.bundles), 'bundle')} of " if first.bundles else ""
    example = f", such as {first.bundles[0]}" if first.bundles else ""
    severity: Severity = "high" if usage[first.broker] > limit else "medium"
    opening = None if first.code is ISOLATED else _opening(case, like)
    names = first.gate.settings
    if opening is not None and (
        first.gate.beside or (names and not {opening.change.setting, *opening.given} & set(names))
    ):
        names = (opening.change.setting,)
    what = names[0] if names else first.gate.what
    whole = _unreported(case, first)
    if first.code is ISOLATED or (opening is None and _stays_by_policy(case, whole)):
        yield _isolated(case, whole, severity, others)
        return
    second = _behind(case, first) if opening is None else None
    if second is not None and second.held.code is ISOLATED:
        yield _isolated(case, second.held, severity, others, _choosing(case, second))
        return
    if opening is None and (own := _internal(case, first, severity)) is not None:
        yield own
        return
    remedy, changes = _remedy(case, first, opening)
    edits: tuple[GroupChange, ...] | tuple[BundleSplit, ...] = ()
    if first.code is ANTI_AFFINITY:
        remedy, edits = _ungrouped(case, first)
    elif opening is None and not first.gate.settings and (only := _only_bundle(case, first)) is not None:
        words, edits = _split(case, only)
        remedy = f"Its only bundle is {case.last.bundle_names[only]}. {words}"
    verb = "keeps bundles there" if first.code in FRAME_GATES else "holds it back"
    due = "is due to shed"
    if case.profile.threshold or usage[first.broker] > limit:
        due = f"{'is' if _from_the_start(case, first) else 'ends'} above the threshold"
    title = f"{first.broker} {due}, but {what} {verb}"
    if what.startswith("that "):
        title = f"{first.broker} {due}, but sheds nothing: {what.removeprefix('that ')}"
    yield Finding(
        code="held_by_gate",
        title=title,
        evidence=(
            f"In {_when(case, first)}, {about}{first.broker}{example}: {first.text.removeprefix('stays: ')}.{others}"
        ),
        remedy=remedy,
        severity=severity,
        brokers=tuple(one.broker for one in like),
        bundles=first.bundles,
        settings=tuple(dict.fromkeys((*changes, *names))),
        changes=changes,
        edits=edits,
    )


def _internal(case: Outcome, held: Held, severity: Severity) -> Finding | None:
    """Return that bundles of Pulsar's own keep a broker busy; None where they carry less than half of its traffic.

    The extensible load manager reports none of them, so that nothing sheds them; the modular one sheds those of
    `pulsar/system`.
    """
    view = case.last
    if case.load_manager is not LoadManager.EXTENSIBLE or held.broker not in view.brokers.position:
        return None
    mine = view.bundles_of(view.brokers.position[held.broker])
    sizes, kept = view.bundles.throughput_bytes_per_s()[mine], internal_bundles(view)[mine]
    total, own = float(sizes.sum()), float(sizes[kept].sum())
    if not total or own / total < _MOSTLY:
        return None
    largest = view.bundle_names[mine[int(np.where(kept, sizes, -1.0).argmax())]]
    space, _, part = largest.rpartition("/")
    return Finding(
        code="held_by_gate",
        title=f"{held.broker} is above the threshold by bundles of {space}, which are never shed",
        evidence=(
            f"{own / total * 100:.0f} % of its traffic is of Pulsar's own bundles, such as {largest}. Brokers leave"
            " them out of what they report, so that no setting sheds them."
        ),
        remedy=(
            f"See which of their topics carry so much: {admin('topics', 'list', space)}. To let placement decide"
            f" again, unload a bundle: {admin('namespaces', 'unload', space, '--bundle', part)}."
        ),
        severity=severity,
        brokers=(held.broker,),
        bundles=(largest,),
    )


def _from_the_start(case: Outcome, held: Held) -> bool:
    """Say whether the first cycle, too, is to shed from a broker; pages show that one."""
    if not held.cycle or any(move.source == held.broker for move in case.decision(0).moves):
        return True
    return any(one.broker == held.broker for one in held_in(case, 0))


def _ungrouped(case: Outcome, held: Held) -> tuple[str, tuple[GroupChange, ...]]:
    """Return how bundles get out of the group that keeps them on a full broker, and the edits that do it."""
    mine = {bundle.rpartition("/")[0] for bundle in held.bundles}
    alone = [name for names in lone_groups(case.last).values() for name in names if name in mine]
    if not alone:
        why = "Pulsar sheds none of them while no broker has fewer namespaces of the group"
        return (
            f"{why}. Move bundles by command (page Best plan), add brokers, or take a namespace out of the group.",
            (),
        )
    commands = "; ".join(admin("namespaces", "delete-anti-affinity-group", name) for name in alone)
    only = f"Of its namespaces, only {listed(alone)} has bundles here, so that it keeps nothing apart"
    return f"Delete the group. {only}: {commands}.", tuple(GroupChange(namespace=name) for name in alone)


def _when(case: Outcome, held: Held) -> str:
    """Return which cycle left a broker alone."""
    return "the last cycle" if held.cycle == len(case.trace.cycles) - 1 else f"cycle {held.cycle + 1}"


def _stays_by_policy(case: Outcome, held: Held) -> bool:
    """Say whether isolation policies allow no other broker for any of the bundles that are held."""
    spaces = {bundle.rpartition("/")[0] for bundle in held.bundles}
    return bool(spaces) and all(set(allowed_brokers(case.last, space)) <= {held.broker} for space in spaces)


def _unreported(case: Outcome, held: Held) -> Held:
    """Return what holds a broker back with all its bundles, where its report leaves them out and so names none."""
    if held.bundles or not held.gate.beside:
        return held
    mine = case.last.bundles_of(case.last.brokers.position[held.broker])
    kept = internal_bundles(case.last)
    return replace(held, bundles=tuple(case.last.bundle_names[at] for at in mine.tolist() if not kept[at]))


def _opening(case: Outcome, held: Sequence[Held]) -> _Opening | None:
    """Return the first of the busiest brokers whose gate a value opens, and that value.

    Where placement would then assign its bundles to it again, a switch of placement may have to be off as well.
    """
    for one in held[:_ASKED_BROKERS]:
        found = opening_of(case.trace, one.cycle, one.broker, (*one.gate.settings, *one.gate.beside))
        if found is not None:
            return _Opening(one.broker, found)
    first = held[0]
    if first.gate.skips:
        return _opening_of_skips(case, first)
    behind = rule_behind(case.trace, first.cycle, first.broker, first.gate.settings)
    if behind is not None and behind.code is SAME_BROKER:
        config = case.trace.settings
        for name in [one for one in FRAME_GATES[SAME_BROKER].beside if one in config and config.flag(one)]:
            found = opening_of(case.trace, first.cycle, first.broker, first.gate.settings, {name: False})
            if found is not None:
                return _Opening(first.broker, found, {name: False})
    return _both_openings(case, first)


def _opening_of_skips(case: Outcome, held: Held) -> _Opening | None:
    """Return the value with which cycles are no longer skipped, where the broker is shed once a counter is full."""
    second = _behind(case, held)
    if second is None or not second.held.gate.passes:
        return None
    scene = Scene.of_running(case.trace, held.cycle)
    full = {name: _wide_open(scene, name) for name in second.held.gate.settings}
    found = opening_of(case.trace, held.cycle, held.broker, held.gate.settings, full)
    return None if found is None else _Opening(held.broker, found, waits=second.held.gate.what)


def _both_openings(case: Outcome, held: Held) -> _Opening | None:
    """Return values of several settings that open a gate, and the one behind it, together; None where none do."""
    second = _behind(case, held)
    if second is not None and second.held.gate.passes:
        return None
    trace, cycle, broker = case.trace, held.cycle, held.broker
    scene = Scene.of_running(trace, cycle)
    gates = [held.gate, *([second.held.gate] if second is not None else [])]
    names = dict.fromkeys(name for gate in gates for name in (*gate.settings, *gate.beside) if name in scene.config)
    wide = {name: value for name in names if (value := _wide_open(scene, name)) != scene.config[name]}

    def sheds(values: Mapping[str, SettingValue]) -> bool:
        return Target(broker=broker).may_be_shed_under(scene, scene.config.changed(**values))

    if not wide or not sheds(wide):
        return None
    for name in reversed(list(wide)):
        if sheds(fewer := {one: value for one, value in wide.items() if one != name}):
            wide = fewer
    first, *others = wide
    for name in others:
        rest = {one: value for one, value in wide.items() if one != name}
        if (nearer := opening_of(trace, cycle, broker, (name,), rest)) is not None:
            wide[name] = with_room(nearer, case)
    also = {name: wide[name] for name in others}
    found = opening_of(trace, cycle, broker, (first,), also)
    return _Opening(broker, found, also) if found is not None else None


def _wide_open(scene: Scene, name: str) -> SettingValue:
    """Return the value of a setting that holds least back; the present one where it is not known."""
    if scene.config.of(name).kind == "names":
        return ()
    low_high = scene.bounds.get(name)
    return scene.eager.get(name, low_high[1] if low_high else scene.config[name])


def _behind(case: Outcome, held: Held) -> _Behind | None:
    """Return the gate that holds a broker once a value of a setting has opened the first one; None for no other."""
    return case.once(f"behind {held.broker} {held.code.code}", lambda: _look_behind(case, held))


def _look_behind(case: Outcome, held: Held) -> _Behind | None:
    scene = Scene.of_running(case.trace, held.cycle)
    for setting in [name for name in (*held.gate.settings, *held.gate.beside) if name in scene.config]:
        wide = _wide_open(scene, setting)
        for value in (wide,) if wide != scene.config[setting] else scene.bounds.get(setting) or ():
            second = _held_with(case, scene, held, {setting: value})
            if second is not None and second.gate is not held.gate:
                return _Behind(second, setting, value)
    return None


def _held_with(case: Outcome, scene: Scene, held: Held, changes: Mapping[str, SettingValue]) -> Held | None:
    """Return what holds a broker back under some changes; None for nothing."""
    every = {**case.profile.gates, **FRAME_GATES}
    reasons = gate_reasons(scene.view, scene.decide(scene.config.changed(**changes)), every)
    found = reasons.get(held.broker) or reasons.get("")
    return worst(held.broker, held.cycle, found, every) if found else None


def _even_wide_open(case: Outcome, held: Held) -> str:
    """Return what a gate still says with its first setting as far open as it goes, as a sentence; empty for nothing."""
    scene = Scene.of_running(case.trace, held.cycle)
    name = held.gate.settings[0]
    if name not in scene.config or (wide := _wide_open(scene, name)) == scene.config[name]:
        return ""
    still = _held_with(case, scene, held, {name: wide})
    return f" Even with {conf_value(wide) or 'nothing'}: {still.text}." if still is not None else ""


def _remedy(case: Outcome, held: Held, opening: _Opening | None) -> tuple[str, dict[str, SettingValue]]:
    """Return what to do, and the settings that do it."""
    if opening is not None:
        change = opening.change
        least = case.trace.settings.of(change.setting).minimum
        what = f"Empty {change.setting}" if change.value == () else f"Set {change.setting} {_relation(change, least)}"
        value = with_room(change, case)
        usual = ", its default" if value == case.trace.settings.of(change.setting).default else ""
        such = "" if value == change.value else f", such as {value}{usual}"
        also = "".join(
            f", and {name} to {conf_value(given)}" if given != () else f", and empty {name}"
            for name, given in opening.given.items()
        )
        changes = {change.setting: value, **opening.given}
        then = (
            f"the next cycle then {_sheds(case, held, opening, changes)}"
            if not opening.waits
            else (f"cycles are then no longer skipped, and {opening.broker} sheds once {opening.waits} is full")
        )
        return f"{what}{such} (now {_now(change)}){also}: {then}.", changes
    if held.gate.settings:
        return _no_value(case, held), {}
    if held.code is SAME_BROKER:
        return f"{_why_again(case, held)}Move its bundles by command (page Best plan).", {}
    second = _behind(case, held)
    if second is not None and held.gate.beside:
        also = f"Even with {second.setting} = {conf_value(second.value) or 'nothing'}: {second.held.text}. "
    else:
        also = _not_allowed(case, held)
    return f"{also}Move its bundles by command where needed (page Best plan).", {}


def _no_value(case: Outcome, held: Held) -> str:
    """Return why no value of the settings of a gate opens it, as sentences."""
    names = " or ".join(held.gate.settings)
    behind = rule_behind(case.trace, held.cycle, held.broker, held.gate.settings)
    if behind is not None:
        why = behind.text.removeprefix("stays: ")
        return f"No value of {names} opens it alone: a chosen bundle stays, as {why}."
    second = _behind(case, held)
    if second is not None:
        what = " or ".join(second.held.gate.settings) or second.held.gate.what
        why = f"as {what.removeprefix('that ')}" if what.startswith("that ") else f"because of {what}"
        waits = " That passes by itself." if second.held.gate.passes else ""
        return f"No value of {names} opens it alone, {why}: {second.held.text}.{waits}"
    even = _even_wide_open(case, held) or " See the page Why for the other rules."
    return f"No value of {names} opens it alone.{even}"


def _not_allowed(case: Outcome, held: Held) -> str:
    """Return that isolation policies keep the least used broker from all bundles that are held, as a sentence."""
    usage = case.reported_usage[held.cycle]
    if not held.bundles or not np.isfinite(usage).any():
        return ""
    least = case.series.brokers[int(np.nanargmin(usage))]
    spaces = tuple(dict.fromkeys(bundle.rpartition("/")[0] for bundle in held.bundles))
    if any(least in allowed_brokers(case.last, space) for space in spaces):
        return ""
    return f"Isolation policies do not allow {least}, the least used broker, for {listed(spaces)}. "


def _sheds(case: Outcome, held: Held, opening: _Opening, changes: Mapping[str, SettingValue]) -> str:
    """Return what a cycle does once a gate is open: it sheds, or a draw decides that."""
    broker = opening.broker
    draws = draws_of(case.trace, held.cycle, broker, changes)
    if not draws:
        return f"sheds from {broker}"
    few, most = min(draws), max(draws)
    among = f"{few} brokers" if few == most else f"{few} to {most} brokers"
    one = len(draws) == 1
    chosen, each = ("a bundle", "") if one else (count(len(draws), "bundle"), " for each")
    return (
        f"chooses {chosen} of {broker}, and draws from {among} with {broker} among them{each}. Where it draws {broker},"
        f" {'the' if one else 'a'} bundle stays, and the cycle after it draws again"
    )


def _why_again(case: Outcome, held: Held) -> str:
    """Return why placement would assign a bundle of a broker to it again, as a sentence; empty where it is unknown."""
    unloads = case.decision(held.cycle).unloads
    selection = next((one.selection for one in unloads if one.reason.code is SAME_BROKER and one.selection), None)
    if selection is None or not selection.steps:
        return ""
    only = next((step.name for step in selection.steps if len(step.kept) == 1), "")
    if only and len(selection.steps[-1].kept) == 1:
        return f"The filter by {only} leaves no other broker. "
    place = running_placement(case.load_manager, case.trace.settings)
    return f"{place.name} places by {place.judges_by}, and so chooses {held.broker} itself. "


def with_room(change: Change, case: Outcome) -> SettingValue:
    """Return a value that opens a gate with room to spare: one just at its edge fails with a little less traffic.

    That is the default where it opens the gate with as much room. No share of more than 1, and nothing else beyond what
    makes sense for the strategy, is returned.
    """
    config = case.trace.settings
    value, factor = change.value, {"<=": 1 - ROOM, ">=": 1 + ROOM}.get(change.relation)
    if factor is None or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    roomy = round(value * factor) if isinstance(value, int) else float(f"{value * factor:.2g}")
    if (ends := case.profile.bounds.get(change.setting)) is not None:
        roomy = type(roomy)(min(max(roomy, ends[0]), ends[1]))
    usual = config.of(change.setting).default
    if isinstance(usual, int | float) and (usual <= roomy if change.relation == "<=" else usual >= roomy):
        return usual
    try:
        config.changed(**{change.setting: roomy})
    except PlannerError:  # there is no more room
        return value
    return roomy if abs(value) >= _COUNTED or isinstance(value, float) else value


def _relation(change: Change, least: float | None) -> str:
    value = change.text.partition(change.relation)[2].strip()
    if change.relation == "<=" and change.value == least:  # no value is less
        return f"to {value}"
    return {"<=": f"to {value} or less", ">=": f"to {value} or more"}.get(change.relation, f"to {value}")


def _now(change: Change) -> str:
    return ", ".join(change.now) if isinstance(change.now, tuple) else str(change.now).lower()


def _only_bundle(case: Outcome, held: Held) -> int | None:
    """Return the position of the only bundle of a broker; None where it has others."""
    mine = case.last.bundles_of(case.last.brokers.position[held.broker])
    return int(mine[0]) if len(mine) == 1 else None


def _split(case: Outcome, bundle: int) -> tuple[str, tuple[BundleSplit, ...]]:
    """Return whether a split of a bundle helps, as Split lab says, and the edit; none when the bundle came later."""
    advice = split_advice(case.last, bundle, case.trace.settings)
    best, name = advice.best, case.last.bundle_names[bundle]
    if best is None or advice.verdict in {"Not worth it", "No need"}:
        return advice.sentence, ()
    words = f"Split it, so that a part can move: {advice.sentence[:1].lower()}{advice.sentence[1:]}"
    if name not in case.trace.start.bundle_position:
        return words, ()
    return words, (BundleSplit(bundle=name, algorithm=best.algorithm, positions=best.positions or (), unload=True),)


def none_with_policies(case: Outcome) -> bool:
    """Say whether no bundle with policies is shed: the extensible load manager has a switch for them."""
    config = case.trace.settings
    known = case.load_manager is LoadManager.EXTENSIBLE and SHEDDING_BUNDLES_WITH_POLICIES_ENABLED in config
    return known and not config.flag(SHEDDING_BUNDLES_WITH_POLICIES_ENABLED)


def _choosing(case: Outcome, behind: _Behind) -> Change | None:
    """Return the value of a first gate with which the strategy chooses bundles that another gate then keeps."""
    held = behind.held
    return opening_of(case.trace, held.cycle, held.broker, (behind.setting,), chosen=True)


def isolated_behind(case: Outcome, changes: Mapping[str, SettingValue], severity: Severity) -> Finding | None:
    """Return that isolation policies keep on the busiest broker what a lower threshold would shed; None where not.

    Args:
        case: The outcome.
        changes: The one setting that lowers the threshold; of another strategy nothing is asked.
        severity: How bad it is.
    """
    usage, last = case.reported_usage[-1], len(case.trace.cycles) - 1
    if len(changes) != 1 or not changes.keys() <= case.profile.bounds.keys() or not np.isfinite(usage).any():
        return None
    busiest, scene = case.series.brokers[int(np.nanargmax(usage))], Scene.of_running(case.trace, last)
    every = {**case.profile.gates, **FRAME_GATES}
    found = gate_reasons(scene.view, scene.decide(scene.config.changed(**changes)), every).get(busiest, [])
    held = worst(busiest, last, found, every) if found else None
    if held is None or held.code is not ISOLATED:
        return None
    ((name, value),) = changes.items()
    return _isolated(case, held, severity, "", Change(name, "=", value, scene.config[name]), above=False)


def _isolated(
    case: Outcome, held: Held, severity: Severity, others: str, first: Change | None = None, *, above: bool = True
) -> Finding:
    """Return that the isolation policies leave the bundles of a full broker no other one.

    Args:
        case: The outcome.
        held: The broker, with the bundles that the policies keep.
        severity: How bad it is.
        others: A sentence about other brokers.
        first: The value of a setting without which the strategy does not choose them either; None where it does.
        above: Whether the broker is above the threshold.
    """
    namespaces = tuple(dict.fromkeys(bundle.rpartition("/")[0] for bundle in held.bundles))
    policies = policies_of(case.last, namespaces)
    even = even_usage_percent(case.last, case.trace.settings)
    edits = tuple(edit for policy in policies if (edit := widened(case.last, policy)) is not None)
    if not policies:
        every = (narrowed(case.last, policy) for policy in case.last.policies.isolation)
        edits = tuple(edit for edit in every if edit is not None)[:1]
    named = listed([f"'{policy.name}'" for policy in policies]) or "of other namespaces"
    plural = "policy" if len(policies) == 1 else "policies"
    when = _when(case, held)
    reserved = "" if policies else " Its namespaces have no policy, and every other broker is reserved for one."
    bundles = f"{count(len(held.bundles), 'bundle')} of {listed(namespaces)}"
    selects = f"{when[:1].upper()}{when[1:]} selects {bundles}, and all stay"
    if off := bool(policies) and none_with_policies(case):
        selects = (
            f"{SHEDDING_BUNDLES_WITH_POLICIES_ENABLED} is off, so that none of its {bundles} is shed. They could not"
            " move either way"
        )
    changes: dict[str, SettingValue] = {SHEDDING_BUNDLES_WITH_POLICIES_ENABLED: True} if off else {}
    if first is not None:
        selects = f"With a {first.setting} that lets it shed, {when} would select {bundles}, and all would stay"
        changes = {first.setting: with_room(first, case)} if edits else {}
    so = "above the threshold" if above else "the busiest one"
    switch = "".join(f", and set {name} to {conf_value(value)}" for name, value in changes.items())
    return Finding(
        code="held_by_gate",
        title=f"The isolation {plural} {named} keep{'s' if len(policies) == 1 else ''} bundles on {held.broker}",
        evidence=(
            f"{held.broker} is {so}. {selects}: the isolation {plural} {named} allow"
            f"{'s' if len(policies) == 1 else ''} no other broker.{reserved} Without the {plural}, an"
            f" even spread would be {even:.0f} %.{others}"
        ),
        remedy=_more_brokers(policies, edits) + (f"{switch}." if changes else ". No setting moves these bundles."),
        severity=severity,
        brokers=(held.broker,),
        bundles=held.bundles,
        changes=changes,
        edits=edits,
    )


def _more_brokers(policies: Sequence[IsolationPolicy], edits: Sequence[IsolationChange]) -> str:
    """Return how namespaces get more brokers: by their policies, or by those of others; without the full stop."""
    if not policies:
        one = edits[0] if edits else None
        such = f", such as by primary brokers {listed(one.primary)} only for '{one.name}'" if one is not None else ""
        return f"Leave more brokers to namespaces without a policy{such}"
    named = listed([f"'{policy.name}'" for policy in policies])
    such = f", such as {listed(edits[0].primary[len(policies[0].primary) :])}" if edits else ""
    return f"Add brokers to the {'policy' if len(policies) == 1 else 'policies'} {named}{such}"
