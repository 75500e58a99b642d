"""A topic gets more partitions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from planner.cluster.errors import FormatError, ScenarioError
from planner.cluster.partitions import NEW_TOPIC, partitions_of
from planner.cluster.releases import Release, release
from planner.cluster.text import count
from planner.cluster.topic_names import namespace_of_topic
from planner.simulate.admin_commands import Command, positional
from planner.simulate.edits.edit import Ask, AtMinute, Edit, EditContext, Name, OptionalName
from planner.simulate.edits.running import Running

_MOST = 1000


def _partitions(context: EditContext, values: Mapping[str, Any]) -> int:
    return min(max(2 * len(partitions_of(context.snapshot.topics, values["topic"])), 4), _MOST)


def _new_topic(context: EditContext, values: Mapping[str, Any]) -> str:
    topic = values["topic"]
    return "" if not topic or len(partitions_of(context.snapshot.topics, topic)) else f"{topic}{NEW_TOPIC}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPartitions(Edit):
    """A topic gets more partitions, and its traffic spreads over all of them alike.

    Each partition goes to the bundle that its name hashes to; clients look up bundles that no broker served until then.
    A topic without partitions cannot get any, so its traffic goes to a new, partitioned one. Keys that are hot stay on
    one partition, which is not simulated.

    Attributes:
        topic: Full topic name without `-partition-N`.
        partitions: How many it has afterwards, more than before.
        new_topic: Full name of the new topic, where the old one has no partitions; empty otherwise.
        at_min: When.
    """

    title: ClassVar[str] = "Partitions"
    topic: Annotated[Name, Ask(label="Topic", pick="topic")]
    kind: Literal["set_partitions"] = "set_partitions"
    partitions: Annotated[int, Field(ge=1, le=_MOST), Ask(label="Partitions", start=_partitions)] = 4
    new_topic: Annotated[
        OptionalName,
        Ask(
            label="New topic", start=_new_topic, placeholder="for a topic without partitions", help="Clients move to it"
        ),
    ] = ""
    at_min: AtMinute = 0.0

    def what(self) -> str:
        partitions = count(self.partitions, "partition")
        if self.new_topic:
            return f"move {self.topic} to {self.new_topic} with {partitions}"
        return f"give {self.topic} {partitions}"

    def apply(self, run: Running, now: int) -> None:
        if wrong := self._wrong_name(run.config.release):
            raise ScenarioError(wrong)
        run.cluster.partition(self.topic, self.new_topic or self.topic, self.partitions)
        run.look_up(np.flatnonzero(run.cluster.owner < 0), now)
        if now == run.start_ms:
            run.cluster.report_at_once(now)

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        name = positional(self.new_topic or self.topic)
        verb = "create-partitioned-topic" if self.new_topic else "update-partitioned-topic"
        words = ("topics", verb, *(name or ()), "--partitions", str(self.partitions))
        move = (
            f"Move the consumers of {self.topic} to it first, then its producers."
            if self.new_topic
            else "Keys move to other partitions, so the order by key is not kept across the change."
        )
        yield Command(
            section="notes", words=(*program, *words) if name else (), by_hand=bool(self.new_topic), note=move
        )

    def _wrong_name(self, rules: Release) -> str:
        """Return what is wrong with the name of the new topic; empty when nothing is."""
        if not self.new_topic:
            return ""
        try:
            space, old = (namespace_of_topic(name, rules) for name in (self.new_topic, self.topic))
        except FormatError as error:
            return str(error)
        if space != old:
            return f"The new topic would be in the namespace {space}. Name one in {old}, where the old topic is."
        return ""

    def lacks(self, context: EditContext) -> str:
        now = len(partitions_of(context.snapshot.topics, self.topic))
        if wrong := self._wrong_name(release(context.snapshot.info.pulsar_version)):
            return wrong
        if not now and not self.new_topic:
            return "A topic without partitions cannot get any: name a new topic."
        if now and not self.new_topic and self.partitions <= now:
            return f"Choose more than the {now:,} partitions that the topic has."
        return ""
