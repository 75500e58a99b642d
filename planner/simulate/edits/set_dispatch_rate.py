"""A dispatch limit is set or removed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from planner.cluster.partitions import is_listed
from planner.cluster.snapshot import DispatchRate
from planner.pulsar.throttling.precedence import Level, Source
from planner.simulate.admin_commands import Command, command_of, positional
from planner.simulate.dispatch.edits import LimitEdit, with_limit
from planner.simulate.edits.edit import Ask, Edit, EditContext, Name
from planner.simulate.edits.running import Running

_LEVELS: dict[Level, Literal["topic", "subscription"]] = {
    Level.TOPIC: "topic",
    Level.SUBSCRIPTION: "subscription",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDispatchRate(Edit):
    """A dispatch limit of a namespace or a topic is set, or removed where it limits nothing.

    Attributes:
        target: Namespace `tenant/namespace`, or full name of a topic without `-partition-N`.
        level: What it limits: all dispatch of a topic, or each subscription.
        msg_per_period: Messages; 0 or less for no limit.
        bytes_per_period: Bytes; 0 or less for no limit.
        period_s: Length of the period.
        relative_to_publish_rate: The limit comes on top of the topic's publish rate.
    """

    title: ClassVar[str] = "Dispatch limit"
    target: Annotated[Name, Ask(label="Of", pick="namespace or topic")]
    kind: Literal["set_dispatch_rate"] = "set_dispatch_rate"
    level: Annotated[
        Literal["topic", "subscription"], Ask(label="Limits", help="All dispatch of the topic, or each subscription")
    ] = "topic"
    msg_per_period: Annotated[
        int, Field(ge=-1, le=2**31 - 1), Ask(label="Messages (-1: no limit)", start=1000, step=100, half=True)
    ] = -1
    bytes_per_period: Annotated[
        int, Field(ge=-1, le=2**62), Ask(label="Bytes (-1: no limit)", step=1_000_000, half=True)
    ] = -1
    period_s: Annotated[int, Field(ge=1, le=86_400), Ask(label="Period (s)", half=True)] = 1
    relative_to_publish_rate: Annotated[bool, Ask(label="Relative to the publish rate", half=True)] = False

    @staticmethod
    def of(limit: LimitEdit) -> "SetDispatchRate | None":
        """Return the edit that sets a limit; None where a scenario has none for its level or place.

        Policies of single subscriptions, global ones and those of replicators are left out: a snapshot does not tell
        what they would hold back.
        """
        level = _LEVELS.get(limit.level)
        if level is None or limit.place not in {Source.NAMESPACE, Source.LOCAL_TOPIC}:
            return None
        rate = limit.rate
        return SetDispatchRate(
            target=limit.target,
            level=level,
            msg_per_period=rate.msg_per_period,
            bytes_per_period=rate.bytes_per_period,
            period_s=rate.period_s,
            relative_to_publish_rate=rate.relative_to_publish_rate,
        )

    @property
    def limit(self) -> LimitEdit:
        """The limit that it sets."""
        level = next(level for level, name in _LEVELS.items() if name == self.level)
        place = Source.LOCAL_TOPIC if "://" in self.target else Source.NAMESPACE
        rate = DispatchRate(self.msg_per_period, self.bytes_per_period, self.period_s, self.relative_to_publish_rate)
        return LimitEdit(level, place, self.target, rate)

    def what(self) -> str:
        whom = self.target if self.level == "topic" else f"each subscription of {self.target}"
        parts = [
            f"{number:,} {unit}"
            for number, unit in ((self.msg_per_period, "messages"), (self.bytes_per_period, "bytes"))
            if number > 0
        ]
        if not parts:
            return f"remove the dispatch limit of {whom}"
        period = "second" if self.period_s == 1 else f"{self.period_s} s"
        more = " above its publish rate" if self.relative_to_publish_rate else ""
        return f"limit dispatch of {whom} to {' and '.join(parts)} per {period}{more}"

    def plan(self, run: Running) -> None:
        super(SetDispatchRate, self).plan(run)
        run.dispatch_limited = True

    def apply(self, run: Running, now: int) -> None:
        kind, there = "topic" if "://" in self.target else "namespace", run.cluster.snapshot(now)
        if not (is_listed(there.topics, self.target) if kind == "topic" else self.target in there.namespaces):
            run.notes.append(f"No load changes, as the snapshot lists no {kind} {self.target}: {self.phrase()}.")
        run.cluster.change_policies(with_limit(run.cluster.policies, self.limit))

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        before, after = self.limit.words()
        yield command_of("policies", program, [*before, positional(self.target), *after], self.phrase())

    def lacks(self, context: EditContext) -> str:
        return "" if self.target else "Name the topic."
