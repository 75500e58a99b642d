"""What every kind of edit brings, and how its fields are asked for.

An edit is a frozen dataclass with everything that is known of its kind: the fields with their bounds and how a form
asks for them, the phrase, what it does to a simulation, its `pulsar-admin` commands. Forms, links, files, plans and the
simulation read `planner.simulate.edits.registry`, so a new kind is a file here and a line there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from planner.cluster.snapshot import Snapshot
from planner.simulate.admin_commands import Command
from planner.simulate.edits.running import Running

Pick: TypeAlias = Literal[
    "value", "tabs", "names", "pairs", "positions", "algorithm",
    "broker", "brokers", "destination", "cluster", "namespace", "bundle", "topic", "namespace or topic",
]  # fmt: skip
"""What a form offers: `value` a field by its type (number, switch, text, or a list of what it may be), `tabs` such a
list side by side, `names` and `positions` text with commas, `pairs` text with one pair of names a line, the others what
the cluster has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """How a form asks for a field; bounds are those of the field.

    Attributes:
        label: What to call it; empty for the name of what is picked.
        pick: What is offered, or a function of the fields above that says so.
        start: Value to begin with, or a function of what there is and of the fields above; None for the field's own.
        step: By how much a number goes up.
        least: Smallest number that a form offers, where the field's bound is not one.
        options: What the values of a list mean.
        help: What there is to know.
        placeholder: What an empty text stands for.
        half: Two such fields stand side by side.
        when: Whether it is asked for, by the fields above.
    """

    label: str = ""
    pick: Pick | Callable[[Mapping[str, Any]], Pick] = "value"
    start: Any = None
    step: float = 1.0
    least: float | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    help: str | None = None
    placeholder: str | None = None
    half: bool = False
    when: Callable[[Mapping[str, Any]], bool] = lambda _: True


_MAX_NAME = 300
_SIZE_HELP = "0: unchanged, or like the other brokers"

Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=_MAX_NAME)]
OptionalName: TypeAlias = Annotated[str, Field(max_length=_MAX_NAME)]
LEAST = 1e-6
"""Least divisor: a smaller minute or rate counts as nothing, because the quotient could be infinite."""


def _least(value: float) -> float:
    if 0 < value < LEAST:
        raise PydanticCustomError("least", "it should be 0, or at least 0.000001")
    return value


Minutes: TypeAlias = Annotated[float, Field(ge=0, le=100_000), AfterValidator(_least)]
AtMinute: TypeAlias = Annotated[Minutes, Ask(label="At minute")]
BrokerName: TypeAlias = Annotated[Name, Ask(pick="broker")]
BrokerNames: TypeAlias = Annotated[tuple[Name, ...], Field(max_length=2000), Ask(pick="brokers")]
NamespaceName: TypeAlias = Annotated[Name, Ask(pick="namespace")]
BundleName: TypeAlias = Annotated[Name, Ask(pick="bundle")]
Cores: TypeAlias = Annotated[float, Field(ge=0, le=4096), Ask(label="CPU cores", half=True, help=_SIZE_HELP)]
NicGbps: TypeAlias = Annotated[float, Field(ge=0, le=10_000), Ask(label="NIC (Gbit/s)", half=True, help=_SIZE_HELP)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change of a scenario. The kinds are frozen dataclasses with further fields.

    Attributes:
        kind: Its name in files and links.
        title: What a form calls the kind.
        hint: What a form says beside it.
        happens: Whether nobody decides on it, such as traffic that grows or a broker that dies: it also happens to
            whoever does nothing.
    """

    kind: str
    title: ClassVar[str]
    hint: ClassVar[str] = ""
    happens: ClassVar[bool] = False

    def phrase(self) -> str:
        """Return what it does, and when, such as `add 2 brokers at minute 5`."""
        return f"{self.what()}{self.when()}"

    def what(self) -> str:
        """Return what it does in a few words, without the moment."""
        raise NotImplementedError

    def when(self) -> str:
        """Return when it happens as the end of a phrase; empty for the start."""
        at_min: float = getattr(self, "at_min", 0.0)
        return f" at minute {at_min:g}" if at_min else ""

    def plan(self, run: Running) -> None:
        """Plan it before a simulation begins; by default `apply` at its minute.

        Raises:
            ScenarioError: It does not fit the cluster.
        """
        run.at(run.minute(getattr(self, "at_min", 0.0)), partial(self.apply, run))

    def apply(self, run: Running, now: int) -> None:
        """Carry it out.

        Args:
            run: The simulation.
            now: The moment, ms since 1970.

        Raises:
            ScenarioError: It does not fit the cluster at its moment.
        """
        raise NotImplementedError

    def over(self, snapshot: Snapshot) -> "Edit":
        """Return the edit with what it leaves to the cluster at the start, as commands need it."""
        del snapshot
        return self

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        """Yield what an operator does to make it so, apart from unloads and splits; those follow from the simulation.

        Args:
            cluster: Name of the cluster.
            program: The words that start `pulsar-admin`.
        """
        yield from ()

    def assumption(self) -> str:
        """Return the sentence that a plan says of what only happens, such as traffic that changes; empty for none."""
        return ""

    def lacks(self, context: "EditContext") -> str:
        """Return what is still to be filled in before it does something; empty when nothing is."""
        return ""

    def joining(self) -> tuple[str, ...]:
        """Return the brokers that it adds."""
        return ()

    def dying(self) -> tuple[str, ...]:
        """Return the brokers that it kills, so that no command can unload them."""
        return ()

    def emptied(self) -> tuple[str, ...]:
        """Return the brokers whose bundles all leave because that is what it is for."""
        return ()

    def held_min(self) -> tuple[float, float] | None:
        """Return from which minute to which it holds shedding and automatic splits; None where it does not."""
        return None

    def has_left(self, run: Running, broker: str) -> bool:
        """Say whether a broker has left before this edit, and note that; one that is down for a restart stays away.

        Raises:
            ScenarioError: There is no such broker.
        """
        at = run.cluster.broker(broker)
        if run.cluster.alive[at]:
            return False
        if at in run.cluster.restarting:
            run.cluster.restarting.discard(at)
        else:
            run.notes.append(f"Without effect, as {broker} has left before: {self.phrase()}.")
        return True

    def recreated(self) -> tuple[str, ...]:
        """Return the namespaces that it makes anew, so that no command leads from their bundles to the new ones."""
        return ()


@dataclass(frozen=True, eq=False, slots=True)
class EditContext:
    """What an edit may be about.

    Attributes:
        snapshot: The cluster at the start.
        edits: What the scenario changes before.
    """

    snapshot: Snapshot
    edits: Sequence[Edit] = ()

    @property
    def brokers(self) -> list[str]:
        """Brokers of the snapshot, then those that earlier edits add."""
        added = [name for edit in self.edits for name in edit.joining()]
        return list(dict.fromkeys((*self.snapshot.brokers.name, *added)))


def size_text(cores: float, nic_gbps: float) -> str:
    """Return the size of a machine in words; empty where neither number is given."""
    parts = [f"{cores:g} core{'' if cores == 1 else 's'}" if cores else "", f"{nic_gbps:g} Gbit/s" if nic_gbps else ""]
    return " and ".join(part for part in parts if part)


def some_of(names: Sequence[str], everyone: str = "", shown: int = 2) -> str:
    """Return the first few of many names, or what stands for all of them where none is given."""
    if not names:
        return everyone
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
