"""Brokers join the cluster."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from planner.cluster.text import count
from planner.simulate.admin_commands import SHOWN, Command
from planner.simulate.edits.edit import Ask, AtMinute, Cores, Edit, EditContext, NicGbps, size_text, some_of
from planner.simulate.edits.running import Running

_NAME = r"^[A-Za-z0-9][A-Za-z0-9.\-]{0,60}$"


def _prefix(number: int) -> str:
    return f"added{number}" if number > 1 else "added"


def _free_prefix(context: EditContext, _: Any) -> str:
    """Return a prefix that no earlier edit uses."""
    earlier = sum(isinstance(edit, AddBrokers) for edit in context.edits)
    return _prefix(earlier + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddBrokers(Edit):
    """Brokers join the cluster, empty.

    Attributes:
        count: How many.
        cores: CPU cores of each; 0 for as many as the cluster's brokers have in the median.
        nic_gbps: NIC speed of each, in each direction; 0 for the cluster's median.
        at_min: When, minutes after the start.
        name_prefix: Names are `<name_prefix>-1:8080` and so on.
    """

    title: ClassVar[str] = "Add brokers"
    kind: Literal["add_brokers"] = "add_brokers"
    count: Annotated[int, Field(ge=1, le=1000), Ask(label="How many")] = 1
    cores: Cores = 0.0
    nic_gbps: NicGbps = 0.0
    at_min: AtMinute = 0.0
    name_prefix: Annotated[
        str,
        Field(pattern=_NAME),
        Ask(label="Name", start=_free_prefix, help="Brokers are NAME-1:8080 and so on"),
    ] = "added"

    @classmethod
    def beside(cls, edits: Iterable[Edit], count: int) -> "AddBrokers":
        """Return the edit that adds so many brokers of the median size, under names that no other edit uses."""
        taken = {edit.name_prefix for edit in edits if isinstance(edit, AddBrokers)}
        free = next(name for name in map(_prefix, range(1, len(taken) + 2)) if name not in taken)
        return cls(count=count, name_prefix=free)

    def what(self) -> str:
        size = size_text(self.cores, self.nic_gbps)
        return f"add {count(self.count, 'broker')}{f' with {size}' if size else ''}"

    def joining(self) -> tuple[str, ...]:
        return tuple(f"{self.name_prefix}-{number}:8080" for number in range(1, self.count + 1))

    def apply(self, run: Running, now: int) -> None:
        run.join(self.joining(), self.cores, self.nic_gbps, now, "joins the cluster, empty")

    def lacks(self, context: EditContext) -> str:
        if not re.fullmatch(_NAME, self.name_prefix):
            return (
                "Name the brokers with letters, digits, dots and hyphens, a letter or digit first, at most 61 in all."
            )
        taken = set(context.brokers).intersection(self.joining())
        return f"The cluster already has a broker {min(taken)}: choose another name." if taken else ""

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        names = some_of(self.joining(), shown=SHOWN)
        text = f"By hand: start {count(self.count, 'broker')}, and note the real ids for {names}."
        yield Command(section="brokers", note=text, by_hand=True, asks=self.joining())
