"""What is asked of the optimizer, and what it looks at while it answers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.cluster.broker_meant import how_to_name
from planner.cluster.errors import ScenarioError
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace, is_system_service_namespace
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE, SHEDDING_EXCLUDED_NAMESPACES
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import bytes_per_s, count
from planner.optimize.rules import Rules
from planner.simulate.assumptions import Assumptions
from planner.simulate.breaches import breaches
from planner.simulate.load_model import COUNTS, load_of
from planner.simulate.usage_model import UsageModel

COSTS: Final = ("moves", "topics", "clients", "bytes_per_s")
"""Units of a budget: bundles moved, topics closed, clients disconnected, throughput interrupted."""


def unit_of(cost: str) -> str:
    """Return what one of `COSTS` is counted in, in words."""
    return cost.replace("_per_s", "/s")


def cost_text(cost: str, value: float) -> str:
    """Return so much of one of `COSTS` in words, such as `1,200 clients`."""
    return bytes_per_s(value) if cost == "bytes_per_s" else count(round(value), cost.removesuffix("s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to the optimizer. Without `under_percent` it asks for the lowest peak, then the lowest deviation.

    Attributes:
        moves: Bundles that may be moved at most; None for any number, as of the other budgets.
        topics: Topics that may be closed at most.
        clients: Producers and consumers that may be disconnected at most.
        bytes_per_s: Throughput in + out that may be interrupted at most.
        under_percent: Asks for the least `cost` such that no broker is above this usage.
        cost: What is to be least then: one of `COSTS`.
        drain: Brokers to empty; they take nothing.
        exclude: Brokers that take nothing.
        keep_namespaces: Namespaces whose bundles stay, besides those that the settings exclude from shedding.
        pins: Broker that a bundle must be on, by full bundle name.
        even: Whether a bundle may only go where `loadBalancerDistributeBundlesEvenlyEnabled` would let placement put
            it. Pulsar does not ask that of an unload with a destination; without it even brokers are preferred.
        splits: How many bundles may be split at most, where one alone makes the bound; None for a few, and only where
            one alone is above `loadBalancerBrokerOverloadedThresholdPercentage`.
        seed: Decides what is tried, not what is allowed.
        rounds: How long to improve what was found, in rounds of work; the answer never depends on a clock.
    """

    moves: int | None = None
    topics: int | None = None
    clients: int | None = None
    bytes_per_s: float | None = None
    under_percent: float | None = None
    cost: str = "clients"
    drain: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    keep_namespaces: tuple[str, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    even: bool = False
    splits: int | None = None
    seed: int = 0
    rounds: int = 12

    @property
    def budgets(self) -> FloatArray:
        """The budgets in the order of `COSTS`, infinite where there is none. Shape (4,)."""
        given = (self.moves, self.topics, self.clients, self.bytes_per_s)
        return np.array([math.inf if one is None else float(one) for one in given])

    def lower_bound(self, value: str) -> str:
        """Return a lower bound with the budgets that it holds for, such as `lower bound with 18 moves: 38.2 %`."""
        parts = [] if self.moves is None else [count(self.moves, "move")]
        cut = {"topic": self.topics, "client": self.clients}
        parts += [f"{count(most, what)} disconnected" for what, most in cut.items() if most is not None]
        parts += [] if self.bytes_per_s is None else [f"{bytes_per_s(self.bytes_per_s)} moved"]
        return f"lower bound{' with ' if parts else ''}{' and '.join(parts)}: {value}"


@dataclass(frozen=True, eq=False)
class Model:
    """A cluster and a question as columns; usage is weighted, 1.0 = 100 %.

    Attributes:
        snapshot: The cluster.
        question: The question.
        usage: What brokers use with which bundles.
        scale: Usage of a broker for one unit of each resource. Shape (resources, brokers).
        owner: Broker of each bundle, -1 for nobody. Shape (bundles,).
        takes: Brokers that may take a bundle, as far as the question goes. Shape (brokers,).
        movable: Bundles that may move. Shape (bundles,).
        forced: Bundles that must move. Shape (bundles,).
        repairs: Bundles that move first, because their broker is against their isolation policy: forced where the
            budgets suffice for all of them; else nothing but them may move. Shape (bundles,).
        cost: What moving each bundle costs, rows as `COSTS`. Shape (4, bundles).
        rules: Where each bundle may go.
        pinned: Broker that a bundle must go to, by position of the bundle.
    """

    snapshot: Snapshot
    question: Question
    usage: UsageModel
    scale: FloatArray
    owner: Int64Array
    takes: BoolArray
    movable: BoolArray
    forced: BoolArray
    repairs: BoolArray
    cost: FloatArray
    rules: Rules
    pinned: Mapping[int, int]

    @property
    def counts(self) -> BoolArray:
        """Brokers whose usage counts: those that are there and are not drained. Shape (brokers,)."""
        drained = np.isin(np.arange(len(self.usage.alive)), positions(self.snapshot, self.question.drain))
        here: BoolArray = self.usage.alive & ~drained
        return here

    @property
    def budgets(self) -> FloatArray:
        """What may be spent. Shape (4,)."""
        return self.question.budgets

    @property
    def repairs_in_part(self) -> bool:
        """Whether the budgets suffice for some of the repairs only."""
        return bool((self.repairs & ~self.forced).any())

    @cached_property
    def groups(self) -> tuple[Int64Array, BoolArray]:
        """Which namespaces may go to the same brokers: the group of each, and who may take what is of a group.

        As far as no move changes it. Shapes (namespaces,) and (groups, brokers).
        """
        masks = [self.rules.static(at) & self.takes for at in range(len(self.snapshot.namespaces))]
        places = {mask.tobytes(): mask for mask in masks}
        place = {key: at for at, key in enumerate(places)}
        group = np.array([place[mask.tobytes()] for mask in masks], dtype=np.int64)
        none = np.zeros((1, len(self.takes)), dtype=np.bool_)
        return frozen(group), frozen(np.array([*places.values()]) if masks else none)

    @property
    def limit(self) -> float:
        """Usage above which a broker is called overloaded."""
        return self.snapshot.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100

    def peak(self, usage: FloatArray) -> float:
        """Return the highest usage that counts."""
        return float(usage[self.counts].max(initial=0.0))


def positions(snapshot: Snapshot, names: tuple[str, ...]) -> Int64Array:
    """Return where brokers stand. Shape (names,).

    Raises:
        ScenarioError: There is no such broker.
    """
    unknown = [name for name in names if name not in snapshot.brokers.position]
    if unknown:
        remedy = how_to_name(unknown[0], snapshot.brokers.name)
        raise ScenarioError(f"The cluster has no broker {unknown[0]}.", remedy=remedy)
    return np.array([snapshot.brokers.position[name] for name in names], dtype=np.int64)


def model_of(
    snapshot: Snapshot, question: Question, *, gone: bool = False, left: frozenset[int] = frozenset()
) -> Model:
    """Return a cluster and a question as columns.

    Args:
        snapshot: The cluster.
        question: The question.
        gone: Brokers to empty are no candidates.
        left: Bundles that stay against their isolation policy, by position.

    Raises:
        ScenarioError: The question makes no sense, or not for this cluster; the message says why.
    """
    settings, assumptions = snapshot.settings, Assumptions()
    usage = UsageModel.of(snapshot, settings, assumptions)
    _, load = load_of(snapshot, assumptions)
    bundles = snapshot.bundles
    owner = bundles.owner.astype(np.int64)
    owner[owner >= 0] = np.where(usage.alive[owner[owner >= 0]], owner[owner >= 0], -1)
    drained, excluded = positions(snapshot, question.drain), positions(snapshot, question.exclude)
    takes = usage.alive.copy()
    takes[drained] = takes[excluded] = False
    _check(snapshot, question, usage.alive, takes, owner)
    names, decides = snapshot.namespaces, settings.release
    internal = np.array([is_system_service_namespace(name, decides) for name in names], dtype=np.bool_)
    own = np.array([is_heartbeat_or_sla_namespace(name, decides) for name in names], dtype=np.bool_)
    stay = {*settings.names(SHEDDING_EXCLUDED_NAMESPACES), *question.keep_namespaces}
    kept = internal | np.array([name in stay for name in snapshot.namespaces], dtype=np.bool_)
    space = bundles.namespace
    leaves = np.isin(owner, drained) & (owner >= 0) & ~own[space]
    pinned = _pinned(snapshot, question)
    forced = leaves.copy()
    movable = ((owner >= 0) & ~kept[space]) | leaves
    for bundle, broker in pinned.items():
        movable[bundle] = forced[bundle] = bool(owner[bundle] not in {broker, -1})
    cost = np.array(
        [np.ones(len(bundles)), np.rint(load[COUNTS][0]), usage.clients, load[2] + load[3]], dtype=np.float64
    )
    rules = Rules(snapshot, settings, even=question.even, gone=drained if gone else drained[:0])
    for bundle, broker in pinned.items():
        if forced[bundle] and not (rules.static(int(space[bundle]))[broker] and takes[broker]):
            raise ScenarioError(
                f"{snapshot.bundle_names[bundle]} is pinned to {snapshot.brokers.name[broker]}, which"
                f" {'receives no bundles' if not takes[broker] else 'placement excludes for its namespace'}.",
                remedy="Pin it to another broker, or change the policy.",
            )
    scale = usage.weight / usage.limit
    model = Model(
        snapshot, question, usage, scale, owner, takes, movable, forced, np.zeros_like(forced), cost, rules, pinned
    )
    repairs = _repairs(model, left)
    if (cost[:, forced | repairs].sum(axis=1) <= model.budgets).all():
        forced |= repairs
    else:
        movable &= repairs | forced
    for column in (owner, takes, movable, forced, repairs, cost):
        frozen(column)
    return replace(model, repairs=repairs)


def _repairs(model: Model, left: frozenset[int]) -> BoolArray:
    """Return the bundles against their isolation policy that may be moved. Shape (bundles,)."""
    repairs = np.zeros_like(model.forced)
    for bundle in breaches(model.snapshot).tolist():
        free = model.movable[bundle] and not model.forced[bundle] and bundle not in model.pinned and bundle not in left
        takers = model.rules.static(int(model.snapshot.bundles.namespace[bundle])) & model.takes
        takers[model.owner[bundle]] = False
        repairs[bundle] = free and takers.any()
    return repairs


def _pinned(snapshot: Snapshot, question: Question) -> dict[int, int]:
    found = {}
    for bundle, broker in question.pins.items():
        at = snapshot.bundle_position.get(bundle, -1)
        if at < 0:
            raise ScenarioError(f"The cluster has no bundle {bundle}.", remedy="Pin one of its bundles.")
        found[at] = int(positions(snapshot, (broker,))[0])
    return found


def _check(snapshot: Snapshot, question: Question, alive: BoolArray, takes: BoolArray, owner: Int64Array) -> None:
    """Refuse what cannot be answered."""
    for name, budget in zip(COSTS, question.budgets.tolist(), strict=True):
        if math.isnan(budget) or budget <= 0:
            raise ScenarioError(f"{budget:g} is not a valid budget for {unit_of(name)}.", remedy="Use 1 or more.")
    if question.cost not in COSTS:
        raise ScenarioError(f"“{question.cost[:40]}” is not a valid cost.", remedy=f"Use one of {', '.join(COSTS)}.")
    if min(question.seed, question.splits or 0) < 0:
        raise ScenarioError("The seed and the number of splits cannot be negative.", remedy="Use 0 or more.")
    if not alive.any():
        raise ScenarioError("No broker of this cluster has a load report.", remedy="Choose another snapshot.")
    if not takes.any():
        what = "drained" if question.drain else "excluded"
        raise ScenarioError(
            f"Every broker is {what}, so no broker is left to receive bundles.",
            remedy="Remove some of these brokers from the list.",
        )
    if not (owner >= 0).any():
        raise ScenarioError("No bundle in this snapshot has an owner.", remedy="Choose another snapshot.")
    unknown = [name for name in question.keep_namespaces if name not in snapshot.namespaces]
    if unknown:
        raise ScenarioError(f"The cluster has no namespace {unknown[0]}.", remedy="Choose one of its namespaces.")
    under = question.under_percent
    if under is not None and not 0 < under < math.inf:
        raise ScenarioError(f"No broker can be below {under:g} %.", remedy="Use a percentage above 0.")
