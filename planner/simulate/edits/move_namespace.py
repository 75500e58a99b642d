"""A namespace moves to a successor with another number of bundles, batch by batch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from planner.cluster.errors import ScenarioError
from planner.cluster.text import count, plain
from planner.cluster.topic_names import is_namespace
from planner.simulate.admin_commands import Command, creation_by_hand
from planner.simulate.edits.edit import Ask, AtMinute, Edit, EditContext, Name, NamespaceName
from planner.simulate.edits.running import Running
from planner.simulate.event import Event
from planner.simulate.planned_spec import MOST_BUNDLES

_MOST = 100
_NAME = "Name the successor tenant/namespace: letters, digits and -=:._ only."


def _successor(_: EditContext, values: Mapping[str, Any]) -> str:
    return f"{values['namespace']}-new" if values["namespace"] else ""


def _batches(number: int) -> str:
    return "1 batch" if number == 1 else f"{number} batches"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveNamespace(Edit):
    """A namespace moves to a new one: bundles never merge, so only a successor has fewer of them.

    The successor is created with the policies of the namespace. In every batch, about as many clients go over with
    their topics, the partitions of a topic together. A topic has another name there, so it hashes to another place. The
    old bundles are closed with the last batch. Messages that wait in the old topics are not simulated.

    Attributes:
        namespace: Its name.
        successor: Name of the new one, `tenant/namespace`.
        bundles: How many equal bundles the new one has.
        batches: In how many batches its clients go over.
        pause_min: Minutes from one batch to the next.
        at_min: When the first batch goes.
    """

    title: ClassVar[str] = "Move a namespace to a successor"
    hint: ClassVar[str] = "Bundles never merge: only a successor has fewer."
    namespace: NamespaceName
    successor: Annotated[Name, Ask(label="Successor", start=_successor, help="tenant/namespace, a new name")]
    kind: Literal["move_namespace"] = "move_namespace"
    bundles: Annotated[int, Field(ge=1, le=MOST_BUNDLES), Ask(label="Bundles", start=16)] = 16
    batches: Annotated[int, Field(ge=1, le=_MOST), Ask(label="Batches", half=True)] = 4
    pause_min: Annotated[float, Field(gt=0, le=10_000), Ask(label="Pause (min)", half=True, least=1.0)] = 5.0
    at_min: AtMinute = 0.0

    def what(self) -> str:
        bundles = count(self.bundles, "bundle")
        return f"move {self.namespace} to {self.successor} with {bundles} in {_batches(self.batches)}"

    def apply(self, run: Running, now: int) -> None:
        if not is_namespace(self.successor):
            raise ScenarioError(f"{self.successor!r} is not the name of a namespace.", remedy=_NAME)
        run.cluster.add_namespace(self.successor, self.bundles, self.namespace)
        for batch in range(1, self.batches):
            run.at(run.minute(self.at_min + batch * self.pause_min), partial(self._next, run, self.batches - batch))
        self._next(run, self.batches, now)

    def _next(self, run: Running, left: int, now: int) -> None:
        """Let the next clients go over, where so many batches are left; with the last one, close the old bundles."""
        cluster = run.cluster
        lost, unserved = cluster.hand_over(self.namespace, self.successor, left)
        why = f"clients go over to {self.successor}, batch {self.batches - left + 1} of {self.batches}"
        for at, row in lost.items():
            topics, producers, consumers = (round(float(value)) for value in row[7:])
            traffic = float(row[0] + row[1]), float(row[2] + row[3])
            owner = cluster.server_of(at)
            disconnected = topics, producers, consumers, *traffic
            name = cluster.names[at]
            run.record(Event(name, owner, owner, (), why, *disconnected, at_ms=now, kind="handed_over"))
        run.look_up(unserved, now)
        if left == 1:
            old = [at for at, name in enumerate(cluster.names) if name.rpartition("/")[0] == self.namespace]
            cluster.unload(np.array(old, dtype=np.int64))

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        note = (
            f"Create {self.successor} with the policies of {self.namespace}. Then move clients in"
            f" {_batches(self.batches)}, {self.pause_min:g} min apart: consumers first, which"
            f" read both until nothing is left, then producers. Delete {self.namespace} at the end."
        )
        yield creation_by_hand(self.successor, self.bundles, program, note)

    def lacks(self, context: EditContext) -> str:
        if not is_namespace(self.successor):
            return f"{plain(self.successor)} is not the name of a namespace. {_NAME}" if self.successor else _NAME
        if self.successor in context.snapshot.namespaces:
            return f"The cluster already has a namespace {self.successor}: choose another name."
        return ""

    def recreated(self) -> tuple[str, ...]:
        return (self.successor,)
