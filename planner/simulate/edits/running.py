"""What an edit is carried out in: all that it may ask of a simulation, and nothing else.

`planner.simulate.run.Simulation` is one. Moments are ms since 1970. A broker or a bundle is named, or given by its
position; `RunningCluster.broker` and `RunningCluster.bundle` say the position of a name.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from planner.cluster.arrays import BoolArray, Int64Array
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Policies, Snapshot
from planner.simulate.assumptions import Assumptions
from planner.simulate.event import EventKind
from planner.simulate.load_model import Shape


class RunningCluster(Protocol):
    """The cluster of a simulation, at the moment of an edit.

    Attributes:
        present: Brokers that are part of the cluster. Shape (brokers,).
        alive: Brokers that run; one that has died is present until its session ends. Shape (brokers,).
        owner: Broker that serves each bundle, -1 for nobody. Shape (bundles,).
        position: Position of each bundle by its name.
        policies: Policies in force.
    """

    present: BoolArray
    alive: BoolArray
    owner: Int64Array
    policies: Policies

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
            ScenarioError: There is no such bundle, perhaps because it was split meanwhile.
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
        """Return the broker that serves a bundle; empty for nobody."""
        ...

    def names_on(self, broker: int) -> list[str]:
        """Return the bundles that a broker serves."""
        ...

    def misplaced(self) -> Int64Array:
        """Return bundles on a broker that the isolation policy of their namespace forbids. Shape (such bundles,)."""
        ...

    def snapshot(self, at_ms: int) -> Snapshot:
        """Return the cluster with its real owners and current traffic, without averages."""
        ...

    def release(self, bundles: Int64Array | int) -> Int64Array:
        """Let nobody serve bundles, without that their brokers notice. Returns their positions. Shape (bundles,)."""
        ...

    def unload(self, bundles: Int64Array | int) -> Int64Array:
        """Let nobody serve bundles, and their brokers notice. Returns their positions. Shape (bundles,)."""
        ...

    def close(self, broker: int) -> None:
        """Let a broker take no more bundles; it serves those that it has, and is no longer registered."""
        ...

    def die(self, broker: int) -> None:
        """Let a broker stop. Nobody notices until it leaves; until then nobody serves its bundles."""
        ...

    def leave(self, broker: int) -> Int64Array:
        """Take a broker out of the cluster; return the bundles that it gives up. Shape (bundles given up,)."""
        ...

    def resize(self, names: Sequence[str], cores: float, nic_gbps: float) -> None:
        """Change the machines of brokers, of all where none is named; a size of 0 is kept.

        Raises:
            ScenarioError: There is no such broker.
        """
        ...

    def report_at_once(self, at_ms: int) -> None:
        """Let every broker measure now, and report where enough has changed."""
        ...

    def scale(self, scope: Literal["cluster", "namespace", "bundle", "topic"], target: str, shape: Shape) -> None:
        """Let traffic change over time; an empty target means the cluster.

        Raises:
            ScenarioError: What it is about is not there.
        """
        ...

    def recut(self, namespace: str, count: int) -> None:
        """Make a namespace anew with equal bundles that nobody serves yet.

        Raises:
            ScenarioError: There is no such namespace.
        """
        ...

    def change_policies(self, policies: Policies) -> None:
        """Let other policies hold; everybody knows at once."""
        ...

    def pin(self, bundle: str, broker: str) -> None:
        """Keep a bundle on a broker, and its children after a split."""
        ...


class Running(Protocol):
    """The simulation that an edit changes.

    Attributes:
        start_ms: The moment at which it starts.
        config: Settings in force.
        assumptions: What it supposes where no snapshot tells.
        cluster: The cluster as it is.
        dispatch_limited: Whether dispatch limits are changed, so that they are to be worked out.
    """

    start_ms: int
    config: Settings
    dispatch_limited: bool

    @property
    def assumptions(self) -> Assumptions: ...  # noqa: D102
    @property
    def cluster(self) -> RunningCluster: ...  # noqa: D102

    def minute(self, minutes: float) -> float:
        """Return a moment by its minutes since the start."""
        ...

    def at(self, at_ms: float, action: Callable[[int], object]) -> None:
        """Plan what to do at a moment; it is given the moment."""
        ...

    def check(self) -> None:
        """Stop where somebody asked for it; called wherever an edit can take long."""
        ...

    def give(self, bundle: int, to: str, now: int, kind: EventKind, acceptable: tuple[str, ...], why: str) -> None:
        """Let a broker serve a bundle; write down what happened, and who else might have got it."""
        ...

    def move(self, bundle: str, destination: str, now: int) -> None:
        """Let an operator unload a bundle with its destination.

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
        """Let clients ask for bundles that nobody serves, by their positions. Shape (bundles to look up,)."""
        ...

    def retry(self, now: int) -> None:
        """Look up again what nobody could take."""
        ...

    def join(self, names: Sequence[str], cores: float, nic_gbps: float, now: int, why: str) -> None:
        """Take brokers into the cluster; sizes of 0 are the median.

        Raises:
            ScenarioError: There is a broker of that name.
        """
        ...

    def back(self, name: str, now: int) -> None:
        """Let a broker come back, empty; nothing happens where it is there."""
        ...

    def remove(self, name: str, now: int, *, why: str) -> None:
        """Shut a broker down in order; nothing happens where it is not there."""
        ...

    def gone(self, broker: int, now: int, kind: EventKind, why: str) -> None:
        """Let the others notice that a broker left; its bundles are looked up, and another one leads if it did."""
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
        """Write down what happened to a bundle."""
        ...

    def note_broker(self, now: int, kind: EventKind, broker: str, why: str) -> None:
        """Write down what happened to a broker."""
        ...
