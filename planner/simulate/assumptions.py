"""What a simulation supposes where no snapshot tells."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field


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
