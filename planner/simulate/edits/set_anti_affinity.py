"""A namespace joins or leaves an anti-affinity group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from planner.simulate.admin_commands import Command, Word, command_of, option, positional
from planner.simulate.edits.edit import Ask, Edit, EditContext, NamespaceName, OptionalName
from planner.simulate.edits.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAntiAffinity(Edit):
    """A namespace joins an anti-affinity group, or leaves it where the group is empty."""

    title: ClassVar[str] = "Anti-affinity group"
    namespace: NamespaceName
    kind: Literal["set_anti_affinity"] = "set_anti_affinity"
    group: Annotated[OptionalName, Ask(label="Group", placeholder="Empty: remove from its group")] = ""

    def what(self) -> str:
        if not self.group.strip():
            return f"remove {self.namespace} from its anti-affinity group"
        return f"add {self.namespace} to the anti-affinity group {self.group}"

    def apply(self, run: Running, now: int) -> None:
        run.cluster.namespace_at(self.namespace)
        policies = run.cluster.policies
        groups = {name: group for name, group in policies.anti_affinity_group.items() if name != self.namespace}
        if self.group.strip():
            groups[self.namespace] = self.group
        run.cluster.change_policies(replace(policies, anti_affinity_group=groups))

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        words: list[Word] = ["namespaces", "delete-anti-affinity-group", positional(self.namespace)]
        if self.group.strip():
            words[1] = "set-anti-affinity-group"
            words.append(option("--group", self.group))
        what = f"anti-affinity group of {self.namespace}: {self.group or 'none'}"
        yield command_of("policies", program, words, what)

    def lacks(self, context: EditContext) -> str:
        grouped = {edit.namespace for edit in context.edits if isinstance(edit, SetAntiAffinity)}
        there = self.namespace in grouped.union(context.snapshot.policies.anti_affinity_group)
        return "" if self.group.strip() or there else "Name the group."
