"""Where bundles went during a simulation, and which came back: the events read as relocations."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from planner.cluster.internal_bundles import is_internal_bundle
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MS_PER_MIN
from planner.simulate.event import Event
from planner.simulate.trace import Stretch

THRASHING_WINDOW_MIN = 60.0
"""Minutes within which traffic that leaves a broker again counts as moved in vain."""


@dataclass(frozen=True, slots=True)
class Return:
    """A bundle that came back to a broker it had left: one line of the ping-pong ledger.

    Attributes:
        left: The relocation by which it left.
        back: The one by which it came back.
    """

    left: Event
    back: Event

    @property
    def bundle(self) -> str:
        """Full bundle name."""
        return self.back.bundle

    @property
    def broker(self) -> str:
        """The broker."""
        return self.back.destination

    @property
    def away_min(self) -> float:
        """Minutes it was away."""
        return (self.back.served_from_ms - self.left.at_ms) / MS_PER_MIN

    @property
    def by_shedding(self) -> bool:
        """Whether the load balancer itself sent it away and back."""
        return self.left.kind == "shed" and self.back.kind == "shed"


class _Walk:
    """Where every bundle is, while the events are read."""

    def __init__(self, served_by: Mapping[str, str]) -> None:
        self.broker = dict(served_by)
        """Broker that serves, or served last, each bundle."""
        self.closed: set[str] = set()
        """Bundles whose clients wait for a broker and are already counted."""
        self.made: list[Event] = []
        self.open: dict[str, int] = {}
        """Place in `made` of the relocations that have not ended."""
        self.disconnections: list[Event] = []

    def read(self, event: Event) -> None:
        """Follow one event."""
        if event.kind in {"shed", "moved"}:
            self.disconnections.append(event)
            self.leave(event, event.source)
            if not event.destination:
                self.closed.add(event.bundle)
        elif event.kind == "handed_over":
            self.disconnections.append(event)
        elif event.kind == "unserved":
            self.close(event)
        elif event.kind == "placed":
            self.place(event)
        elif event.kind == "split" and event.bundle in self.broker:
            parent = self.broker.pop(event.bundle)
            self.broker.update(dict.fromkeys(event.children, parent))

    def leave(self, event: Event, source: str) -> None:
        if not event.destination:
            self.open[event.bundle] = len(self.made)
        self.made.append(event if event.source == source else replace(event, source=source))
        self.broker[event.bundle] = event.destination or source

    def close(self, event: Event) -> None:
        """Count the clients of a bundle whose broker is gone, once."""
        if event.bundle in self.broker and event.bundle not in self.closed:
            self.disconnections.append(event)
            self.closed.add(event.bundle)

    def place(self, event: Event) -> None:
        """Let a bundle arrive: its relocation ends, or it begins one because its broker is gone."""
        begun = self.open.pop(event.bundle, None)
        if begun is not None:
            self.made[begun] = replace(self.made[begun], destination=event.destination, arrived_at_ms=event.at_ms)
            self.broker[event.bundle] = event.destination
        else:
            self.close(event)
            self.leave(event, event.source or self.broker.get(event.bundle, ""))
        self.closed.discard(event.bundle)


def _served_by(snapshot: Snapshot) -> dict[str, str]:
    names, owners = snapshot.brokers.name, snapshot.bundles.owner.tolist()
    return {bundle: names[at] for bundle, at in zip(snapshot.bundle_names, owners, strict=True) if at >= 0}


def relocations(trace: Stretch) -> tuple[Event, ...]:
    """Return every relocation in the order in which the bundles left; `kind` is what made them leave.

    A bundle that was unloaded without a destination arrives with the `placed` event that follows. The children of a
    split are where their parent was.
    """
    walk = _Walk(_served_by(trace.start))
    for event in trace.events:
        walk.read(event)
    return tuple(walk.made)


def disconnections(trace: Stretch) -> tuple[tuple[Event, ...], ...]:
    """Return, cycle by cycle, the events whose topics, producers and consumers are disconnected.

    Clients are disconnected when their bundle is shed or moved, and when its broker leaves or a split gives it away,
    which shows when it is placed anew. That a bundle is placed after it was unloaded disconnects nobody once more, and
    neither does a split whose children stay. Clients that go over to another namespace are disconnected once. Bundles
    that Pulsar keeps for itself have no clients who would notice.
    """
    walk, release = _Walk(_served_by(trace.start)), trace.start.settings.release
    by_cycle: list[tuple[Event, ...]] = []
    for cycle in trace.cycles:
        for event in cycle.events:
            walk.read(event)
        by_cycle.append(tuple(one for one in walk.disconnections if not is_internal_bundle(one.bundle, release)))
        walk.disconnections.clear()
    return tuple(by_cycle)


def returns(moves: Iterable[Event]) -> tuple[Return, ...]:
    """Return the ping-pong ledger: every bundle that came back to a broker it had left, in the order of coming back.

    Args:
        moves: In order, as `relocations` returns them.
    """
    left: dict[tuple[str, str], Event] = {}
    ledger: list[Return] = []
    for move in moves:
        if move.source:
            left[move.bundle, move.source] = move
        before = left.pop((move.bundle, move.destination), None) if move.destination else None
        if before is not None:
            ledger.append(Return(before, move))
    return tuple(ledger)


def thrashing_percent(moves: Iterable[Event], window_min: float = THRASHING_WINDOW_MIN) -> float:
    """Return the thrashing score: the share of the shed traffic that was shed in vain.

    Traffic (throughput in + out) that a broker sheds is in vain as far as shedding gave that broker as much within the
    `window_min` minutes before. A broker that only gives, or only receives, makes 0; two brokers that hand the same
    traffic to and fro for ever come near 100.

    Why it is counted by broker, not by bundle: Pulsar sheds no bundle twice within
    `loadBalancerSheddingGracePeriodMinutes` (30), so a cluster that thrashes sends other bundles back; a count of
    bundles that move twice would call it calm. A first move that puts a bundle on the wrong broker, which must then
    shed, is counted once. Moves for other reasons (an operator, a broker that left) are not.

    Args:
        moves: In order, as `relocations` returns them.
        window_min: How far back a broker's gains count.

    Returns:
        Percent, 0 to 100; 0 when nothing was shed.
    """
    gained: dict[str, deque[tuple[int, float]]] = {}
    total = vain = 0.0
    for move in moves:
        if move.kind != "shed":
            continue
        traffic = move.throughput_bytes_per_s
        total += traffic
        queue = gained.setdefault(move.source, deque())
        while queue and queue[0][0] < move.at_ms - window_min * MS_PER_MIN:
            queue.popleft()
        left = traffic
        while queue and left > 0:
            at, amount = queue.popleft()
            used = min(amount, left)
            left -= used
            if amount > used:
                queue.appendleft((at, amount - used))
        vain += traffic - left
        if move.destination:
            gained.setdefault(move.destination, deque()).append((move.served_from_ms, traffic))
    return 100 * vain / total if total else 0.0
