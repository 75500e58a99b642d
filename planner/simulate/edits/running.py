"""What an edit may use of a simulation.

`planner.simulate.run.Simulation` is one. Moments are ms since 1970. A broker or a bundle is named, or given by its
position; `RunningCluster.broker` and `RunningCluster.bundle` say the position of a name.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Policies, Snapshot
from planner.simulate.assumptions import Assumptions
from planner.simulate.event import Event, EventKind
from planner.simulate.load_model import Shape


class RunningCluster(Protocol):
    """The cluster of a simulation, at the moment of an edit.

    Attributes:
        present: Brokers that are part of the cluster. Shape (brokers,).
        alive: Brokers that run; one that has died is present until its session ends. Shape (brokers,).
        owner: Owner of each bundle, -1 if unowned. Shape (bundles,).
        names: Full bundle names, by position.
        position: Position of each bundle by its name.
        policies: Policies in force.
        restarting: Brokers that are down for a restart and come back, by position.
    """

    restarting: set[int]
    present: BoolArray
    alive: BoolArray
    owner: Int64Array
    policies: Policies
    names: Sequence[str]

    @property
    def position(self) -> Mapping[str, int]: ...  # noqa: D102

    def broker(self, name: str) -> int:
        """Return the position of a broker.

        Raises:
            ScenarioError: There is no such broker.
        """
        ...

    def bundle(self, name: str) -> int:
        """Return the position of a bundle.

        Raises:
            ScenarioError: There is no such bundle; it may have been split.
        """
        ...

    def namespace_at(self, name: str) -> int:
        """Return the position of a namespace.

        Raises:
            ScenarioError: There is no such namespace.
        """
        ...

    def present_names(self) -> tuple[str, ...]:
        """Return the brokers that are part of the cluster."""
        ...

    def server_of(self, bundle: int) -> str:
        """Return the owner of a bundle; empty if unowned."""
        ...

    def misplaced(self) -> Int64Array:
        """Return bundles on a broker that the isolation policy of their namespace forbids. Shape (such bundles,)."""
        ...

    def snapshot(self, at_ms: int) -> Snapshot:
        """Return the cluster with its real owners and current traffic, without averages."""
        ...

    def release(self, bundles: Int64Array | int) -> Int64Array:
        """Release bundles; their brokers do not notice. Returns their positions. Shape (bundles,)."""
        ...

    def unload(self, bundles: Int64Array | int) -> Int64Array:
        """Unload bundles; their brokers notice. Returns their positions. Shape (bundles,)."""
        ...

    def close(self, broker: int) -> None:
        """Unregister a broker: it keeps its bundles and gets no more."""
        ...

    def die(self, broker: int) -> None:
        """Stop a broker. The others notice when it leaves; until then its bundles are not served."""
        ...

    def leave(self, broker: int) -> Int64Array:
        """Remove a broker from the cluster; return the bundles that it owned. Shape (bundles given up,)."""
        ...

    def resize(self, names: Sequence[str], cores: float, nic_gbps: float) -> None:
        """Change the machines of brokers, or of all if none is named; a size of 0 stays as it is.

        Raises:
            ScenarioError: There is no such broker.
        """
        ...

    def report_at_once(self, at_ms: int) -> None:
        """Let every broker measure now, and report if enough has changed."""
        ...

    def scale(self, scope: Literal["cluster", "namespace", "bundle", "topic"], target: str, shape: Shape) -> None:
        """Change traffic over time; an empty target means the cluster.

        Raises:
            ScenarioError: Its target does not exist.
        """
        ...

    def partition(self, topic: str, target: str, partitions: int) -> None:
        """Spread the traffic of a topic over the partitions of a target, which is the topic itself or a new one.

        Raises:
            ScenarioError: There is no such topic, or Pulsar would refuse it.
        """
        ...

    def recut(self, namespace: str, count: int) -> None:
        """Recreate a namespace with equal, unowned bundles.

        Raises:
            ScenarioError: There is no such namespace.
        """
        ...

    def add_namespace(self, name: str, count: int, like: str) -> None:
        """Create a namespace without topics, with equal bundles and the policies of another one.

        Raises:
            ScenarioError: There is one of that name, or none that it is to be like.
        """
        ...

    def hand_over(self, namespace: str, successor: str, left: int) -> tuple[dict[int, FloatArray], Int64Array]:
        """Move the next topics of a namespace to its successor, where all move in `left` parts.

        Returns what each bundle loses, by its position, and the successor's bundles without an owner. Shape (bundles,).

        Raises:
            ScenarioError: There is no such namespace.
        """
        ...

    def change_policies(self, policies: Policies) -> None:
        """Replace the policies; every broker knows at once."""
        ...

    def pin(self, bundle: str, broker: str) -> None:
        """Keep a bundle on a broker, and its children after a split."""
        ...


class Running(Protocol):
    """The simulation that an edit changes.

    Attributes:
        start_ms: The moment at which it starts.
        config: Settings in force.
        assumptions: What it assumes where a snapshot does not say.
        cluster: The cluster as it is.
        dispatch_limited: Whether dispatch limits are changed, so that they are to be worked out.
        notes: What there is to say of it, a sentence each.
    """

    start_ms: int
    config: Settings
    dispatch_limited: bool
    notes: list[str]

    @property
    def assumptions(self) -> Assumptions: ...  # noqa: D102
    @property
    def cluster(self) -> RunningCluster: ...  # noqa: D102

    def minute(self, minutes: float) -> float:
        """Return the moment that is this many minutes after the start."""
        ...

    def at(self, at_ms: float, action: Callable[[int], object]) -> None:
        """Schedule an action; it is called with its moment."""
        ...

    def check(self) -> None:
        """Stop if that was requested; called wherever an edit can take long."""
        ...

    def give(self, bundle: int, to: str, now: int, kind: EventKind, acceptable: tuple[str, ...], why: str) -> None:
        """Assign a bundle to a broker, and record the event with the other brokers that were possible."""
        ...

    def move(self, bundle: str, destination: str, now: int) -> None:
        """Unload a bundle to a destination, as an operator does.

        Raises:
            ScenarioError: There is no such bundle or broker at that moment.
        """
        ...

    def split(
        self,
        bundle: int,
        boundaries: Sequence[int],
        now: int,
        why: str,
        *,
        unload: bool,
    ) -> None:
        """Split a bundle at boundaries in order inside it; look up children that are unloaded."""
        ...

    def look_up(self, bundles: Int64Array, now: int) -> None:
        """Let clients look up unowned bundles, by their positions. Shape (bundles to look up,)."""
        ...

    def retry(self, now: int) -> None:
        """Look up again the bundles that no broker could own."""
        ...

    def join(self, names: Sequence[str], cores: float, nic_gbps: float, now: int, why: str) -> None:
        """Add brokers to the cluster; a size of 0 is the median.

        Raises:
            ScenarioError: There is a broker of that name.
        """
        ...

    def back(self, name: str, now: int) -> None:
        """Bring a broker back without bundles; nothing happens if it is present."""
        ...

    def remove(self, name: str, now: int, *, why: str) -> None:
        """Shut a broker down gracefully; nothing happens if it is absent."""
        ...

    def gone(self, broker: int, now: int, kind: EventKind, why: str) -> None:
        """Let the others notice that a broker left: its bundles are looked up, and a leader is elected if it led."""
        ...

    def note(
        self,
        now: int,
        kind: EventKind,
        bundle: int,
        source: str,
        destination: str = "",
        acceptable: tuple[str, ...] = (),
        why: str = "",
    ) -> None:
        """Record an event of a bundle."""
        ...

    def record(self, event: Event) -> None:
        """Record an event as it is."""
        ...

    def note_broker(self, now: int, kind: EventKind, broker: str, why: str) -> None:
        """Record an event of a broker."""
        ...
