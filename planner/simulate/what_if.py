"""What would have to change for a broker or a bundle to be shed, or to be left alone.

Every answer is found by deciding again, never by a formula: a setting is changed until the decision flips, and the
value given is one with which it did flip, next to one with which it did not.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, TypeAlias

import numpy as np

from planner.cluster.arrays import frozen
from planner.cluster.decisions import Move, Reason, SheddingDecision
from planner.cluster.errors import PlannerError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    SHEDDING_EXCLUDED_NAMESPACES,
)
from planner.cluster.setting import SettingValue
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.manager.cycle import DRAWN_AGAIN, CycleDecision, Unload, effective_shedder
from planner.pulsar.shedding.profile import Bounds
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import offered_shedders
from planner.simulate.load_model import USAGE_COLUMNS
from planner.simulate.scene import Scene
from planner.simulate.strategies import obstacle
from planner.simulate.trace import Trace

_PROBES: Final = 10
_BACK = {"<=": 1, ">=": -1}
"""From a whole number that flips to the one before it, which should not."""
_DIGITS = 9
_MOST_TRAFFIC = 100.0

_Flipped: TypeAlias = Callable[[Settings], bool]
_Look: TypeAlias = Callable[[Settings, Snapshot], tuple[Move, ...]]
"""Returns what is shed under some settings in some view."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked about.

    Attributes:
        broker: Broker id: is anything shed from it?
        bundle: Full bundle name: is it shed? Empty to ask about the broker.
    """

    broker: str = ""
    bundle: str = ""

    def is_shed(self, moves: Sequence[Move]) -> bool:
        """Say whether some moves shed it."""
        if self.bundle:
            return any(move.bundle == self.bundle for move in moves)
        return any(move.source == self.broker for move in moves)

    def may_be_shed(self, unloads: Sequence[Unload]) -> bool:
        """Say whether some unloads shed it, or a draw kept it that may turn out otherwise."""
        return self.is_shed([one.move for one in unloads if one.carried_out or one.reason.code is DRAWN_AGAIN])

    def may_be_shed_under(self, scene: Scene, config: Settings) -> bool:
        """Say the same of what a cycle decides under some settings."""
        return self.may_be_shed(scene.decide(config).unloads)


@dataclass(frozen=True, slots=True)
class Change:
    """One setting and the values with which a decision flips.

    Attributes:
        setting: Its `broker.conf` name.
        relation: `<=`, `>=` or `=`: the flip holds at `value` and, next to it, on that side.
        value: The value nearest to the present one that was tried and flips the decision.
        now: The present value.
        exact: Where Pulsar would flip if the setting took fractions; None when it does, or when nobody knows.
    """

    setting: str
    relation: str
    value: SettingValue
    now: SettingValue
    exact: float | None = None

    @property
    def condition(self) -> str:
        """The values, such as `<= 6`."""
        return f"{self.relation} {_written(self.value)}"

    @property
    def text(self) -> str:
        """The condition as an expression, such as `loadBalancerBrokerThresholdShedderPercentage <= 6`."""
        return f"{self.setting} {self.condition}"


@dataclass(frozen=True, slots=True)
class Answer:
    """Changes that flip a decision; all of them are needed together.

    Attributes:
        changes: What to change.
        moves: What is unloaded in that cycle then, of the target.
    """

    changes: tuple[Change, ...]
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What a strategy does to a target in a cycle, and what would make it do otherwise.

    Attributes:
        shedder: Name of the strategy.
        ran: Whether it is the one that decided. Another one is asked as if it had watched the same cycles, at most ten,
            and all its unloads had failed.
        shed: Whether it sheds the target.
        answers: Each of them flips that; the ones that need fewer changes first. Empty when no setting can.
        traffic_factor: Times the broker's traffic and usage at which the answer flips, all else as it is; None when up
            to 100 times, or down to none, do not.
        usage_percent: The broker's usage then.
        reasons: Why it is so: what the strategy says about the target.
        held: What holds the target even while the strategy's settings let it shed as much as it can; empty unless it is
            not shed and no setting changes that.
        obstacle: Why the cluster cannot change to the strategy by its settings alone; empty when it can.
    """

    shedder: str
    ran: bool
    shed: bool
    answers: tuple[Answer, ...]
    traffic_factor: float | None
    usage_percent: float | None
    reasons: tuple[str, ...]
    held: tuple[str, ...] = ()
    obstacle: str = ""


def _written(value: SettingValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(value) or "(empty)"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def what_if(trace: Trace, cycle: int, target: Target, shedders: Sequence[Shedder] | None = None) -> tuple[WhatIf, ...]:
    """Answer for each of some strategies what would have to change about a target in a cycle, by its index.

    Args:
        trace: A simulation.
        cycle: Index of the cycle.
        target: The broker or bundle.
        shedders: The strategies; None for the one that decided and those that its load manager and its release have.

    Returns:
        One for each strategy; the one that decided comes first.

    Raises:
        PlannerError: The cluster has no such broker or bundle in that cycle.
    """
    view = trace.cycles[cycle].view
    broker = _broker_of(view, target)
    manager = view.info.load_manager
    running, _ = effective_shedder(manager, trace.settings)
    asked = (running, *offered_shedders(manager, trace.settings.release)) if shedders is None else shedders
    order = [running, *(s for s in asked if s.name != running.name)]
    wanted = {s.name for s in asked}
    scenes = [Scene.of(trace, cycle, one, ran=one is running) for one in order if one.name in wanted]
    return tuple(
        replace(
            _Question(scene, target, broker, scene.decide(scene.config)).answer(),
            obstacle=obstacle(scene.shedder, manager, trace.settings.release),
        )
        for scene in scenes
    )


def opening_of(
    trace: Trace,
    cycle: int,
    broker: str,
    names: Sequence[str],
    given: Mapping[str, SettingValue] | None = None,
    *,
    chosen: bool = False,
) -> Change | None:
    """Return the nearest value of the first of some settings that makes a cycle shed from a broker.

    A faster question than `what_if`, which tries every setting. A fraction has two decimals where that suffices.

    Args:
        trace: A simulation.
        cycle: Index of the cycle.
        broker: Broker id.
        names: Settings to try, each alone.
        given: What is set besides.
        chosen: Whether it is enough that the strategy chooses a bundle, wherever placement then puts it.
    """
    scene = Scene.of_running(trace, cycle)
    target, config = Target(broker=broker), scene.config.changed(**given or {})

    @cache
    def flips(config: Settings) -> bool:
        return target.is_shed(scene.chosen(config)) if chosen else target.may_be_shed_under(scene, config)

    for name in [one for one in names if one in config]:
        found: list[Change] = []
        if name == SHEDDING_EXCLUDED_NAMESPACES:
            found = [Change(name, "=", (), config.names(name))] if flips(config.changed(**{name: ()})) else []
        elif name in scene.bounds or config.of(name).kind == "boolean":
            found.extend(_flips_of(name, scene.bounds.get(name), config, flips))
        if found:
            return _shortened(found[0], config, flips)
    return None


def rule_behind(trace: Trace, cycle: int, broker: str, names: Sequence[str]) -> Reason | None:
    """Return why a broker keeps what is chosen once a value of one of some settings lets go of it; None for nothing.

    The arguments are those of `opening_of`.
    """
    scene = Scene.of_running(trace, cycle)
    for name, value in [(one, end) for one in names for end in scene.bounds.get(one) or ()]:
        whole = scene.config.of(name).kind in {"int", "long"}
        decision = scene.decide(scene.config.changed(**{name: round(value) if whole else value}))
        for one in decision.unloads:
            if one.move.source == broker and not one.carried_out:
                return one.reason
    return None


def draws_of(trace: Trace, cycle: int, broker: str, changes: Mapping[str, SettingValue]) -> tuple[int, ...]:
    """Return among how many brokers a draw places each bundle that a cycle chooses of a broker under some changes.

    Only where the broker itself is among them for each, so that chance may keep all of them; empty where one leaves for
    certain, or none is chosen. The extensible load manager unloads a bundle before anybody draws.

    Args:
        trace: A simulation.
        cycle: Index of the cycle.
        broker: Broker id.
        changes: The settings.
    """
    scene = Scene.of_running(trace, cycle)
    unloads = scene.decide(scene.config.changed(**changes)).unloads
    chosen = [one for one in unloads if Target(broker).may_be_shed([one])]
    again = all(broker in one.acceptable and len(one.acceptable) > 1 for one in chosen)
    if not again or scene.view.info.load_manager is LoadManager.EXTENSIBLE:
        return ()
    return tuple(len(one.acceptable) for one in chosen)


def _shortened(change: Change, config: Settings, flips: _Flipped) -> Change:
    """Return a change with a value of two decimals, where that one flips the decision as well."""
    if not isinstance(change.value, float):
        return change
    rounded = (math.floor if change.relation == "<=" else math.ceil)(change.value * 100) / 100
    return replace(change, value=rounded) if flips(config.changed(**{change.setting: rounded})) else change


def _broker_of(view: Snapshot, target: Target) -> str:
    if target.bundle:
        at = view.bundle_position.get(target.bundle, -1)
        if at < 0:
            raise PlannerError("The cluster has no such bundle in that cycle.", where=target.bundle)
        owner = int(view.bundles.owner[at])
        return view.brokers.name[owner] if owner >= 0 else ""
    if target.broker not in view.brokers.position:
        raise PlannerError("The cluster has no such broker in that cycle.", where=target.broker)
    return target.broker


@dataclass(frozen=True, eq=False, slots=True)
class _Question:
    """One strategy, one target, and what happens to it."""

    scene: Scene
    target: Target
    broker: str
    decision: CycleDecision

    @property
    def shed(self) -> bool:
        """Whether the target is shed."""
        return self.target.is_shed(self.decision.moves)

    def answer(self) -> WhatIf:
        scene, decision, shed = self.scene, self.decision, self.shed
        groups: list[tuple[Change, ...]] = []
        for look in self._looks():
            groups = self._changes(
                cache(lambda config, look=look: self.target.is_shed(look(config, scene.view)) != shed)
            )
            if all(self._flips(group) and not self._sooner(group) for group in groups):
                break
        answers = tuple(self._answer(tuple(self._with_exact(c) for c in group)) for group in groups)
        factor = self._traffic_factor()
        return WhatIf(
            scene.shedder.name,
            scene.ran,
            shed,
            answers,
            factor,
            None if factor is None else self._usage_percent(factor),
            self._reasons(decision.shedding, decision.unloads),
            () if shed or answers else self._held(),
        )

    def _held(self) -> tuple[str, ...]:
        """Return what holds the target even while the strategy sheds as much as it can."""
        config = self.scene.config.changed(**self.scene.eager)
        if not self.target.is_shed(self.scene.chosen(config)):
            alone = self.scene.shedding(config)
            return self._reasons(alone) if alone is not None else ()
        decision = self.scene.decide(config)
        return self._reasons(decision.shedding, decision.unloads)

    def _looks(self) -> Iterator[_Look]:
        """Yield the ways to search: by what the strategy chooses where that is what happens, then by whole cycles."""
        scene = self.scene
        if self.target.is_shed(scene.chosen(scene.config)) == self.shed:
            yield scene.chosen
        yield lambda config, view: scene.decide(config, view).moves

    def _changes(self, flips: _Flipped) -> list[tuple[Change, ...]]:
        """Return what flips the decision: single settings, else several together."""
        scene = self.scene
        bounds = scene.bounds
        single = [change for name in bounds for change in _flips_of(name, bounds[name], scene.config, flips)]
        single += self._unexcluded(flips)
        if single or self.shed:
            return [(change,) for change in single]
        joint = _joint(scene, flips)
        return [joint] if joint else []

    def _flips(self, changes: tuple[Change, ...]) -> bool:
        """Say whether changes flip what a whole cycle does."""
        config = self.scene.config.changed(**{change.setting: change.value for change in changes})
        return self.target.is_shed(self.scene.decide(config).moves) != self.shed

    def _sooner(self, changes: tuple[Change, ...]) -> bool:
        """Say whether a whole cycle flips one whole number before the strategy alone does, for want of a receiver."""
        return any(
            self._flips((*changes[:i], replace(c, value=c.value + _BACK[c.relation]), *changes[i + 1 :]))
            for i, c in enumerate(changes)
            if c.relation in _BACK and isinstance(c.value, int)
        )

    def _unexcluded(self, flips: _Flipped) -> list[Change]:
        """Return that the bundle's namespace, or all, should not be excluded, where that is what holds it."""
        excluded = self.scene.config.names(SHEDDING_EXCLUDED_NAMESPACES)
        if not excluded:
            return []
        namespace = self.target.bundle.rpartition("/")[0]
        left = tuple(n for n in excluded if n != namespace) if namespace in excluded else ()
        if not flips(self.scene.config.changed(**{SHEDDING_EXCLUDED_NAMESPACES: left})):
            return []
        return [Change(SHEDDING_EXCLUDED_NAMESPACES, "=", left, excluded)]

    def _answer(self, changes: tuple[Change, ...]) -> Answer:
        config = self.scene.config.changed(**{change.setting: change.value for change in changes})
        moves = self.scene.decide(config).moves
        return Answer(changes, tuple(move for move in moves if self.target.is_shed((move,))))

    def _with_exact(self, change: Change) -> Change:
        """Add the fraction at which Pulsar would flip to a threshold that takes whole numbers."""
        at = self.scene.view.brokers.position.get(self.broker, -1)
        score = float(self.decision.shedding.scores[at]) if at >= 0 else math.nan
        lines = {line.label: line.value for line in self.decision.shedding.lines}
        known = self.scene.shedder.profile.exact.get(change.setting)
        exact = known(score, lines) if known is not None else math.nan
        value = change.value
        if not isinstance(value, int) or math.isnan(exact) or not abs(exact - value) <= 1:
            return change
        return replace(change, exact=exact)

    def _reasons(self, shedding: SheddingDecision, unloads: Sequence[Unload] = ()) -> tuple[str, ...]:
        """Return what is said about the target: by the strategy about it, then by what became of its bundles."""
        view = self.scene.view
        broker = view.brokers.position.get(self.broker, -2)
        bundle = view.bundle_position.get(self.target.bundle, -2)
        texts: list[str] = []
        for part in shedding.reasons:
            about = part.bundles == bundle if self.target.bundle else part.brokers == broker
            if not self.target.bundle:
                about = about & (part.bundles < 0)
            elif not about.any():
                about = (part.brokers == broker) & (part.bundles < 0)
            rows = np.flatnonzero(about)
            if len(rows):
                texts += [reason.text for reason in part.only(rows).rows(view.brokers.name, view.bundle_names)]
        texts += [u.reason.text for u in unloads if self.target.is_shed((u.move,))]
        return tuple(dict.fromkeys(texts))

    def _traffic_factor(self) -> float | None:
        """Return the traffic of the broker, relative to now, at which the answer flips."""
        if not self.broker:
            return None
        ladder = [2.0 ** (i / 4) for i in range(1, 27) if 2.0 ** (i / 4) <= _MOST_TRAFFIC]
        for look in self._looks():

            def flips(factor: float, look: _Look = look) -> bool:
                view = _scaled(self.scene.view, self.broker, factor)
                return self.target.is_shed(look(self.scene.config, view)) != self.shed

            up = _first_flip(1.0, [*ladder, _MOST_TRAFFIC], flips)
            down = _first_flip(1.0, [*(1 / step for step in ladder), 0.0], flips)
            found = [found for found in ((down, up) if self.shed else (up, down)) if found is not None]
            if not found:
                return None
            factor = _bisected(*found[0], flips)
            view = _scaled(self.scene.view, self.broker, factor)
            if self.target.is_shed(self.scene.decide(self.scene.config, view).moves) != self.shed:
                return factor
        return None

    def _usage_percent(self, factor: float) -> float:
        view = _scaled(self.scene.view, self.broker, factor)
        at = view.brokers.position[self.broker]
        return float(weighted_usage(view.brokers, self.scene.config, view.info.load_manager)[at]) * 100


def _flips_of(name: str, bounds: Bounds, config: Settings, flips: _Flipped) -> list[Change]:
    """Return the nearest values of a setting, below and above the present one, that flip the decision."""
    now = config[name]
    if bounds is None:
        turned = config.changed(**{name: not now})
        return [Change(name, "=", not now, now)] if flips(turned) else []
    low, high = bounds
    at = config.number(name)
    whole = config.of(name).kind in {"int", "long"}

    def value_of(number: float) -> SettingValue:
        return round(number) if whole else number

    def flips_at(number: float) -> bool:
        return flips(config.changed(**{name: value_of(number)}))

    found = []
    for end, relation in ((low, "<="), (high, ">=")):
        between = _first_flip(at, _ladder(at, end, whole=whole), flips_at)
        if between is not None:
            number = _bisected(*between, flips_at, whole=whole)
            found.append(Change(name, relation, value_of(number), now))
    return found


def _ladder(start: float, end: float, *, whole: bool) -> list[float]:
    """Return numbers from near a start to an end, ever further apart."""
    span = end - start
    if span == 0:
        return []
    steps = [start + span * 2.0 ** (i - _PROBES) for i in range(1, _PROBES)]
    steps += [start + math.copysign(max(abs(start), 1.0) * share, span) for share in (0.05, 0.1, 0.25, 0.5, 1, 2, 4)]
    numbers = {round(step) if whole else step for step in steps}
    inside = [n for n in numbers if min(start, end) < n < max(start, end)]
    return [*sorted(inside, key=lambda n: abs(n - start)), end]


def _first_flip(start: float, ladder: Sequence[float], flips: Callable[[float], bool]) -> tuple[float, float] | None:
    """Return the first number of a ladder that flips, and the one before it, which does not."""
    before = start
    for number in ladder:
        if flips(number):
            return before, number
        before = number
    return None


def _bisected(holds: float, flipped: float, flips: Callable[[float], bool], *, whole: bool = False) -> float:
    """Return the flipping number nearest to one that does not flip; a fraction is rounded where that flips as well."""
    while abs(flipped - holds) > (1 if whole else 1e-12 * max(abs(flipped), abs(holds), 1e-6)):
        middle = (holds + flipped) / 2
        if whole:
            middle = round(middle)
        if middle in {holds, flipped}:
            break
        if flips(middle):
            flipped = middle
        else:
            holds = middle
    if whole:
        return flipped
    for digits in range(2, _DIGITS + 1):
        rounded = float(f"{flipped:.{digits}g}")
        near = abs(rounded - flipped) <= 1e-3 * max(abs(flipped), 1e-9)
        if near and (rounded - holds) * (flipped - holds) > 0 and flips(rounded):
            return rounded
    return flipped


def _joint(scene: Scene, flips: _Flipped) -> tuple[Change, ...]:
    """Return the fewest changes found that flip a decision together, each no further than needed; empty if none do."""
    config, bounds = scene.config, scene.bounds
    values = {n: v for n, v in scene.eager.items() if n in bounds and v != config[n]}
    if config.names(SHEDDING_EXCLUDED_NAMESPACES):
        values[SHEDDING_EXCLUDED_NAMESPACES] = ()
    if not values or not flips(config.changed(**values)):
        return ()
    for name in list(values):
        fewer = {n: v for n, v in values.items() if n != name}
        if flips(config.changed(**fewer)):
            values = fewer
    changes = []
    for name in values:
        others = config.changed(**{n: v for n, v in values.items() if n != name})
        side = _eager_side(values[name], config[name])
        found = _flips_of(name, bounds[name], others, flips) if name in bounds else []
        nearest = [change for change in found if change.relation == side]
        change = nearest[0] if nearest else Change(name, "=", values[name], config[name])
        values[name] = change.value
        changes.append(change)
    return tuple(changes)


def _eager_side(eager: SettingValue, now: SettingValue) -> str:
    if isinstance(eager, bool) or not isinstance(eager, int | float) or not isinstance(now, int | float):
        return "="
    return "<=" if eager < now else ">="


def _scaled(view: Snapshot, broker: str, factor: float) -> Snapshot:
    """Return a view in which a broker, and all its bundles, have another traffic; its heap and direct memory stay."""
    at = view.brokers.position[broker]
    brokers, bundles = view.brokers, view.bundles
    of_broker = np.ones(len(brokers))
    of_broker[at] = factor
    of_bundle = np.where(bundles.owner == at, factor, 1.0)
    traffic = [term + name for term in ("", "short_term_", "long_term_") for name in TRAFFIC_COLUMNS]
    of_brokers = (*USAGE_COLUMNS, "weighted_max_ema", "msg_throughput_ema_bytes_per_s", *traffic)
    columns = {name: frozen(getattr(brokers, name) * of_broker) for name in of_brokers}
    scaled = {name: frozen(getattr(bundles, name) * of_bundle) for name in traffic}
    return view.with_columns(brokers=replace(brokers, **columns), bundles=replace(bundles, **scaled))
