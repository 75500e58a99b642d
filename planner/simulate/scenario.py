"""A scenario: what is changed about a cluster, and for how long its load balancer is then watched.

A scenario is data. It can be written down, put into a link, compared with another one, and gives the same plan wherever
it is run on the same snapshot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from planner.cluster.errors import PlannerError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import LoadManager, Snapshot

FORMAT_VERSION: Final = 1
"""Version of the written form; raised when an old reader could misunderstand a new scenario."""

_MAX_MINUTES = 100_000
_MAX_NAME = 300

Minutes: TypeAlias = Annotated[float, Field(ge=0, le=_MAX_MINUTES)]
Factor: TypeAlias = Annotated[float, Field(ge=0, le=1_000_000)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=_MAX_NAME)]
OptionalName: TypeAlias = Annotated[str, Field(max_length=_MAX_NAME)]
Expressions: TypeAlias = Annotated[tuple[Name, ...], Field(max_length=100)]


class ScenarioError(PlannerError):
    """A scenario cannot be read, or does not fit the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddBrokers:
    """Brokers join the cluster, empty.

    Attributes:
        count: How many.
        cores: CPU cores of each; 0 for as many as the cluster's brokers have in the median.
        nic_gbps: NIC speed of each, in each direction; 0 for the cluster's median.
        at_min: When, minutes after the start.
        name_prefix: Names are `<name_prefix>-1:8080` and so on.
    """

    kind: Literal["add_brokers"] = "add_brokers"
    count: Annotated[int, Field(ge=1, le=1000)] = 1
    cores: Annotated[float, Field(ge=0, le=4096)] = 0.0
    nic_gbps: Annotated[float, Field(ge=0, le=10_000)] = 0.0
    at_min: Minutes = 0.0
    name_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.\-]{0,60}$")] = "added"


def added_brokers(edit: AddBrokers) -> list[str]:
    """Return the names of the brokers that join."""
    return [f"{edit.name_prefix}-{number}:8080" for number in range(1, edit.count + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveBroker:
    """A broker is shut down in order: it leaves the cluster and gives all its bundles up at once."""

    broker: Name
    kind: Literal["remove_broker"] = "remove_broker"
    at_min: Minutes = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainBroker:
    """A broker takes no new bundles and gives its own up one after the other, then leaves.

    Attributes:
        broker: Broker id.
        at_min: When it starts.
        bundles_per_min: How fast it unloads.
    """

    broker: Name
    kind: Literal["drain_broker"] = "drain_broker"
    at_min: Minutes = 0.0
    bundles_per_min: Annotated[float, Field(gt=0, le=1_000_000)] = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KillBroker:
    """A broker dies. The others notice when its metadata session ends; until then nobody serves its bundles."""

    broker: Name
    kind: Literal["kill_broker"] = "kill_broker"
    at_min: Minutes = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart:
    """Brokers are restarted one after the other, each shut down in order.

    Attributes:
        brokers: Broker ids in their order; empty for all.
        at_min: When the first goes down.
        down_min: How long each is away.
        pause_min: How long after one is back the next goes down.
    """

    kind: Literal["rolling_restart"] = "rolling_restart"
    brokers: Annotated[tuple[Name, ...], Field(max_length=2000)] = ()
    at_min: Minutes = 0.0
    down_min: Minutes = 2.0
    pause_min: Minutes = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCapacity:
    """Machines become larger or smaller; usage in percent follows.

    Attributes:
        brokers: Broker ids; empty for all.
        cores: CPU cores; 0 keeps them.
        nic_gbps: NIC speed in each direction; 0 keeps it.
        at_min: When.
    """

    kind: Literal["change_capacity"] = "change_capacity"
    brokers: Annotated[tuple[Name, ...], Field(max_length=2000)] = ()
    cores: Annotated[float, Field(ge=0, le=4096)] = 0.0
    nic_gbps: Annotated[float, Field(ge=0, le=10_000)] = 0.0
    at_min: Minutes = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTraffic:
    """Traffic of the cluster, a namespace, a bundle or a topic changes by a factor or over time.

    Attributes:
        scope: What is scaled.
        target: Namespace, full bundle name or full topic name (a partitioned topic: all its partitions); empty for the
            cluster.
        factor: Traffic after the change relative to before it; 0 stops it.
        shape: `step`: from `at_min` on (for `duration_min`, if that is not 0); `growth`: reaches the factor linearly
            within `duration_min`; `daily`: swings between 1 and the factor with a period of `duration_min`, lowest at
            `at_min`; `spike`: rises to the factor and falls back within `duration_min`.
        at_min: When it begins.
        duration_min: See `shape`; 0 with `step` is for ever.
    """

    kind: Literal["scale_traffic"] = "scale_traffic"
    scope: Literal["cluster", "namespace", "bundle", "topic"] = "cluster"
    target: OptionalName = ""
    factor: Factor = 2.0
    shape: Literal["step", "growth", "daily", "spike"] = "step"
    at_min: Minutes = 0.0
    duration_min: Minutes = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBundle:
    """An operator splits a bundle (`pulsar-admin namespaces split-bundle`).

    Attributes:
        bundle: Full bundle name.
        algorithm: Split algorithm; empty for the default one.
        positions: Boundaries for `specified_positions_divide`.
        unload: Unload the children afterwards.
        at_min: When.
    """

    bundle: Name
    kind: Literal["split_bundle"] = "split_bundle"
    algorithm: Annotated[str, Field(max_length=60)] = ""
    positions: Annotated[tuple[Annotated[int, Field(ge=0, le=0xFFFFFFFF)], ...], Field(max_length=1000)] = ()
    unload: bool = False
    at_min: Minutes = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBundleCount:
    """A namespace is made anew with a number of equal bundles, which are looked up and placed from the start."""

    namespace: Name
    bundles: Annotated[int, Field(ge=1, le=100_000)]
    kind: Literal["set_bundle_count"] = "set_bundle_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveBundle:
    """An operator unloads a bundle.

    Attributes:
        bundle: Full bundle name.
        destination: Broker id; empty lets placement decide.
        at_min: When.
    """

    bundle: Name
    kind: Literal["move_bundle"] = "move_bundle"
    destination: OptionalName = ""
    at_min: Minutes = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PinBundle:
    """A bundle is kept on a broker: moved there at the start, never shed, and given back to it whenever it is there.

    Pulsar cannot pin a bundle; the nearest it has is an isolation policy for its namespace.
    """

    bundle: Name
    broker: Name
    kind: Literal["pin_bundle"] = "pin_bundle"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIsolation:
    """A namespace isolation policy is set, or removed where it names no namespaces.

    Attributes:
        name: Its name; one of the same name is replaced, and keeps its place in Pulsar's order.
        namespaces: Regular expressions for `tenant/namespace`.
        primary: Regular expressions for broker hosts.
        secondary: The same, used while fewer than `min_limit` primary ones are there.
        min_limit: Parameter of the `min_available` failover policy.
    """

    name: Name
    kind: Literal["set_isolation"] = "set_isolation"
    namespaces: Expressions = ()
    primary: Expressions = ()
    secondary: Expressions = ()
    min_limit: Annotated[int, Field(ge=0, le=10_000)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAntiAffinity:
    """A namespace joins an anti-affinity group, or leaves it where the group is empty."""

    namespace: Name
    kind: Literal["set_anti_affinity"] = "set_anti_affinity"
    group: OptionalName = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDispatchRate:
    """A dispatch limit of a namespace or a topic is set, or removed where it limits nothing.

    Attributes:
        target: Namespace `tenant/namespace`, or full name of a topic without `-partition-N`.
        level: What it limits: all dispatch of a topic, or each subscription.
        msg_per_period: Messages; 0 or less for no limit.
        bytes_per_period: Bytes; 0 or less for no limit.
        period_s: Length of the period.
        relative_to_publish_rate: The limit comes on top of the topic's publish rate.
    """

    target: Name
    kind: Literal["set_dispatch_rate"] = "set_dispatch_rate"
    level: Literal["topic", "subscription"] = "topic"
    msg_per_period: Annotated[int, Field(ge=-1, le=2**31 - 1)] = -1
    bytes_per_period: Annotated[int, Field(ge=-1, le=2**62)] = -1
    period_s: Annotated[int, Field(ge=1, le=86_400)] = 1
    relative_to_publish_rate: bool = False


Edit: TypeAlias = (
    AddBrokers
    | RemoveBroker
    | DrainBroker
    | KillBroker
    | RollingRestart
    | ChangeCapacity
    | ScaleTraffic
    | SplitBundle
    | SetBundleCount
    | MoveBundle
    | PinBundle
    | SetIsolation
    | SetAntiAffinity
    | SetDispatchRate
)


@dataclass(frozen=True, slots=True)
class Step:
    """One edit and whether it counts."""

    edit: Annotated[Edit, Field(discriminator="kind")]
    on: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What no snapshot tells, and what is supposed instead. Each can be changed in a scenario.

    Attributes:
        cpu_model: How CPU follows traffic. `share`: what a broker uses beyond `idle_cpu_percent` belongs to its
            bundles, by their share of its traffic (half by messages, half by bytes), and goes along when they move;
            `fixed`: each bundle costs what the two numbers below say, the rest stays with the broker.
        cpu_percent_per_mb_per_s: `fixed`: percent of one core for 1 MB/s in or out.
        cpu_percent_per_1000_msg_per_s: `fixed`: percent of one core for 1,000 msg/s in or out.
        idle_cpu_percent: CPU that a broker without traffic uses, percent of the whole machine.
        session_timeout_s: How long it takes until a dead broker is noticed (`metadataStoreSessionTimeoutMillis`).
        stats_interval_s: How often a broker works out the rates of its bundles (`statsUpdateFrequencyInSecs`), and
            measures its machine.
        spread_reports: Brokers report at different moments of the interval, drawn by the seed; else all at once.
        reconnection_s: How long a client is away after its bundle was unloaded. It makes the time that clients lose;
            what brokers measure does not show it, as it is far below the interval of their rates.
    """

    cpu_model: Literal["share", "fixed"] = "share"
    cpu_percent_per_mb_per_s: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    cpu_percent_per_1000_msg_per_s: Annotated[float, Field(ge=0, le=1e6)] = 1.5
    idle_cpu_percent: Annotated[float, Field(ge=0, le=100)] = 2.0
    session_timeout_s: Annotated[float, Field(ge=0, le=3600)] = 30.0
    stats_interval_s: Annotated[int, Field(ge=5, le=3600)] = 60
    spread_reports: bool = True
    reconnection_s: Annotated[float, Field(ge=0, le=60)] = 1.0


_NO_SETTINGS: Mapping[str, str | int | float | bool] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is changed, and what is watched.

    Attributes:
        name: For people.
        steps: The edits in their order. Those at the same moment are made in this order.
        settings: Settings that differ from the snapshot's, by their `broker.conf` names; in force from the start.
        load_manager: The load manager to run; empty for the snapshot's own.
        pulsar_version: Version whose rules decide.
        seed: Decides where Pulsar draws at random, and when each broker reports.
        cycles: Shedding cycles to watch; the first is decided at the moment of the snapshot.
        assumptions: What no snapshot tells.
    """

    name: Annotated[str, Field(max_length=120)] = ""
    steps: Annotated[tuple[Step, ...], Field(max_length=500)] = ()
    settings: Mapping[str, str | int | float | bool] = field(default_factory=lambda: _NO_SETTINGS)
    load_manager: Literal["", "modular", "extensible"] = ""
    pulsar_version: Literal["4.2.4"] = "4.2.4"
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    cycles: Annotated[int, Field(ge=1, le=100_000)] = 30
    assumptions: Assumptions = field(default_factory=Assumptions)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that count."""
        return tuple(step.edit for step in self.steps if step.on)

    def settings_over(self, snapshot: Snapshot) -> Settings:
        """Return the settings in force: the scenario's over the snapshot's.

        Raises:
            SettingError: A name is unknown or a value out of bounds.
        """
        return snapshot.settings.changed(**self.settings)

    def load_manager_over(self, snapshot: Snapshot) -> LoadManager:
        """Return the load manager that runs."""
        return LoadManager(self.load_manager) if self.load_manager else snapshot.info.load_manager

    def with_steps(self, *steps: Step) -> "Scenario":
        """Return the scenario with other edits."""
        return replace(self, steps=steps)


_ADAPTER: TypeAdapter[Scenario] = TypeAdapter(Scenario)
_DEFAULT = Scenario()


def scenario_to_json(scenario: Scenario) -> dict[str, Any]:
    """Return the canonical written form: only what differs from the defaults, and the format's version."""
    full: dict[str, Any] = _ADAPTER.dump_python(scenario, mode="json", exclude_defaults=True)
    if "steps" in full:
        full["steps"] = [
            {"edit": {"kind": step.edit.kind, **written["edit"]}, **({} if step.on else {"on": False})}
            for step, written in zip(scenario.steps, full["steps"], strict=True)
        ]
    if scenario.settings:
        full["settings"] = {name: scenario.settings[name] for name in sorted(scenario.settings)}
    return {"version": FORMAT_VERSION, **full}


def scenario_from_json(document: Any) -> Scenario:
    """Read a scenario that may come from anywhere.

    Raises:
        ScenarioError: It is no scenario, of another version, or a value is out of bounds; the place is named.
        SettingError: It changes a setting that Pulsar does not have, or to a value that it cannot have.
    """
    if not isinstance(document, dict):
        raise ScenarioError("This is no scenario.", remedy="Give a file or a link that the planner wrote.")
    content = dict(document)
    version = content.pop("version", None)
    if version != FORMAT_VERSION:
        newer = isinstance(version, int) and not isinstance(version, bool) and version > FORMAT_VERSION
        raise ScenarioError(
            f"The scenario has format version {str(version)[:20]}, this planner reads {FORMAT_VERSION}.",
            where="version",
            remedy="Update the planner." if newer else "Make the scenario anew.",
        )
    try:
        scenario = _ADAPTER.validate_python(content, extra="forbid")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:200]
        raise ScenarioError(f"The scenario cannot be read: {first['msg']}.", where=where) from error
    Settings(scenario.settings)
    return scenario
