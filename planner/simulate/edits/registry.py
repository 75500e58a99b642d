"""Every kind of edit there is, in the order in which forms list them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias, Union

from pydantic import Field

from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.change_capacity import ChangeCapacity
from planner.simulate.edits.drain_broker import DrainBroker
from planner.simulate.edits.edit import Edit
from planner.simulate.edits.hold_balancer import HoldBalancer
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.move_bundles import MoveBundles
from planner.simulate.edits.move_namespace import MoveNamespace
from planner.simulate.edits.pin_bundle import PinBundle
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.edits.rolling_restart import RollingRestart
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.edits.set_anti_affinity import SetAntiAffinity
from planner.simulate.edits.set_bundle_count import SetBundleCount
from planner.simulate.edits.set_dispatch_rate import SetDispatchRate
from planner.simulate.edits.set_isolation import SetIsolation
from planner.simulate.edits.set_partitions import SetPartitions
from planner.simulate.edits.split_bundle import SplitBundle

EDITS: Final[tuple[type[Edit], ...]] = (
    ScaleTraffic,
    AddBrokers,
    RemoveBroker,
    DrainBroker,
    KillBroker,
    RollingRestart,
    ChangeCapacity,
    SplitBundle,
    MoveBundle,
    MoveBundles,
    PinBundle,
    SetBundleCount,
    MoveNamespace,
    SetPartitions,
    SetIsolation,
    SetAntiAffinity,
    SetDispatchRate,
    HoldBalancer,
)

BrokerLoss: TypeAlias = KillBroker
"""The edit by which a page lets a broker be lost."""

BrokerDrain: TypeAlias = DrainBroker
"""The edit by which a page empties a broker."""

NewBrokers: TypeAlias = AddBrokers
"""The edit by which a page adds brokers."""

TrafficGrowth: TypeAlias = ScaleTraffic
"""The edit by which pages and plans let traffic grow."""

DispatchLimit: TypeAlias = SetDispatchRate
"""The edit by which a page sets a dispatch limit."""

BrokersRestart: TypeAlias = RollingRestart
"""The edit by which a change of settings restarts the brokers."""

BundleMoves: TypeAlias = MoveBundles
"""The edit by which a plan moves bundles."""

BundleSplit: TypeAlias = SplitBundle
"""The edit by which a plan splits one."""

IsolationChange: TypeAlias = SetIsolation
"""The edit by which a remedy sets an isolation policy."""

GroupChange: TypeAlias = SetAntiAffinity
"""The edit by which a remedy takes a namespace out of its anti-affinity group."""

MorePartitions: TypeAlias = SetPartitions
"""The edit by which a remedy spreads a topic over partitions."""

MachineChange: TypeAlias = ChangeCapacity
"""The edit by which a remedy makes machines alike."""

BalancerHold: TypeAlias = HoldBalancer
"""The edit by which a plan holds shedding and splits while it is carried out."""

BundleCount: TypeAlias = SetBundleCount
"""The edit that recreates a namespace with another number of bundles."""

NamespaceMove: TypeAlias = MoveNamespace
"""The edit that moves a namespace to a successor, batch by batch."""

if TYPE_CHECKING:
    AnyEdit: TypeAlias = Edit
else:
    AnyEdit = Annotated[Union[EDITS], Field(discriminator="kind")]  # noqa: UP007 - a union of what is registered
    "One of these kinds; files and links name it in the field `kind`."

KINDS: Final[Mapping[str, type[Edit]]] = {
    str(next(f.default for f in fields(edit) if f.name == "kind")): edit for edit in EDITS
}
"""The same by their names in files and links."""
