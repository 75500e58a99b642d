"""Machines change their size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from planner.simulate.admin_commands import SHOWN, Command
from planner.simulate.edits.edit import AtMinute, BrokerNames, Cores, Edit, EditContext, NicGbps, size_text, some_of
from planner.simulate.edits.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCapacity(Edit):
    """Machines become larger or smaller; usage in percent follows.

    Attributes:
        brokers: Broker ids; empty for all.
        cores: CPU cores; 0 keeps them.
        nic_gbps: NIC speed in each direction; 0 keeps it.
        at_min: When.
    """

    title: ClassVar[str] = "Change machines"
    kind: Literal["change_capacity"] = "change_capacity"
    brokers: BrokerNames = ()
    cores: Cores = 0.0
    nic_gbps: NicGbps = 0.0
    at_min: AtMinute = 0.0

    def what(self) -> str:
        return (
            f"change {some_of(self.brokers, 'all brokers')} to "
            f"{size_text(self.cores, self.nic_gbps) or 'the present size'}"
        )

    def apply(self, run: Running, now: int) -> None:
        run.cluster.resize(self.brokers, self.cores, self.nic_gbps)
        if now == run.start_ms:
            run.cluster.report_at_once(now)

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        who, size = some_of(self.brokers, "every broker", SHOWN), size_text(self.cores, self.nic_gbps)
        text = f"By hand: change the machine of {who} to {size or 'its present size'}."
        yield Command(section="brokers", note=text, by_hand=True)

    def lacks(self, context: EditContext) -> str:
        given = self.cores or self.nic_gbps
        return "" if given else "Enter the CPU cores or the NIC speed of the machines."
