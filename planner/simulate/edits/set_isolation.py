"""A namespace isolation policy is set or removed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field

from planner.cluster.snapshot import IsolationPolicy, Snapshot
from planner.simulate.admin_commands import Command, Word, command_of, option, positional
from planner.simulate.edits.edit import Ask, Edit, EditContext, Name, some_of
from planner.simulate.edits.running import Running

_USAGE_THRESHOLD = 100

_Expressions: TypeAlias = Annotated[tuple[Name, ...], Field(max_length=100)]


def _first_policy(context: EditContext, _: Any) -> str:
    names = [policy.name for policy in context.snapshot.policies.isolation]
    return names[0] if names else "policy"


def _its_limit(context: EditContext, said: Mapping[str, Any]) -> int:
    limits = [one.min_limit for one in context.snapshot.policies.isolation if one.name == said.get("name")]
    return limits[0] if limits else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIsolation(Edit):
    """A namespace isolation policy is set, or removed where it names no namespaces.

    Attributes:
        name: Its name; one of the same name is replaced, and keeps its place in Pulsar's order.
        namespaces: Regular expressions for `tenant/namespace`.
        primary: Regular expressions for broker hosts.
        secondary: The same, used while fewer than `min_limit` primary ones are there.
        min_limit: Parameter of the `min_available` failover policy.
        usage_threshold_percent: Its other parameter, which no release reads for placement; None keeps that of the
            policy with this name, else 100.
    """

    title: ClassVar[str] = "Isolation policy"
    name: Annotated[Name, Ask(label="Policy name", start=_first_policy)]
    kind: Literal["set_isolation"] = "set_isolation"
    namespaces: Annotated[
        _Expressions,
        Ask(label="Namespaces (regular expressions)", pick="names", placeholder="tenant/.*; empty removes the policy"),
    ] = ()
    primary: Annotated[
        _Expressions, Ask(label="Primary brokers (regular expressions)", pick="names", placeholder="broker-1.*")
    ] = ()
    secondary: Annotated[_Expressions, Ask(label="Secondary brokers", pick="names", placeholder="broker-2.*")] = ()
    min_limit: Annotated[
        int, Field(ge=0, le=10_000), Ask(label="Required primary brokers (min_limit)", start=_its_limit)
    ] = 1
    usage_threshold_percent: Annotated[int | None, Field(ge=0, le=100), Ask(when=lambda _: False)] = None

    def what(self) -> str:
        if not self.namespaces:
            return f"remove the isolation policy {self.name}"
        return f"isolate {some_of(self.namespaces)} on {some_of(self.primary, 'no broker')} ({self.name})"

    def apply(self, run: Running, now: int) -> None:
        policies = run.cluster.policies
        kept = list(policies.isolation)
        usage = self._usage_threshold(kept)
        made = IsolationPolicy(self.name, self.namespaces, self.primary, self.secondary, self.min_limit, usage)
        places = [place for place, other in enumerate(kept) if other.name == self.name] or [len(kept)]
        kept[places[0] : places[0] + 1] = [made] if self.namespaces else []
        run.cluster.change_policies(replace(policies, isolation=tuple(kept)))
        run.cluster.unload(run.cluster.misplaced())
        run.look_up(np.flatnonzero(run.cluster.owner < 0), now)

    def _usage_threshold(self, policies: Sequence[IsolationPolicy]) -> int:
        if self.usage_threshold_percent is not None:
            return self.usage_threshold_percent
        return next((one.usage_threshold_percent for one in policies if one.name == self.name), _USAGE_THRESHOLD)

    def over(self, snapshot: Snapshot) -> "SetIsolation":
        return replace(self, usage_threshold_percent=self._usage_threshold(snapshot.policies.isolation))

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        what = f"isolation policy {self.name} of the cluster {cluster}"
        verb = "set" if self.namespaces else "delete"
        words: list[Word] = ["ns-isolation-policy", verb, positional(cluster), positional(self.name)]
        if not self.namespaces:
            yield command_of("policies", program, words, f"delete the {what}")
            return
        given = (("--namespaces", self.namespaces), ("--primary", self.primary), ("--secondary", self.secondary))
        for name, expressions in given:
            # pulsar-admin cuts at every comma, and cannot be told not to.
            words += [option(name, expression) if "," not in expression else None for expression in expressions]
        words += ["--auto-failover-policy-type", "min_available", "--auto-failover-policy-params"]
        usage = self._usage_threshold(())
        words += [f"min_limit={self.min_limit},usage_threshold={usage}", "--unload-scope", "none"]
        if not self.primary:
            words.append(None)
        note = "The bundles that must leave are unloaded below; the policy itself unloads nothing."
        yield command_of("policies", program, words, f"set the {what}", note)

    def lacks(self, context: EditContext) -> str:
        if not self.name.strip():
            return "Name the policy."
        names = {policy.name for policy in context.snapshot.policies.isolation}
        names.update(edit.name for edit in context.edits if isinstance(edit, SetIsolation))
        if not self.namespaces:
            return "" if self.name in names else "Enter the namespaces of the policy."
        return "" if self.primary else "Enter the primary brokers."
