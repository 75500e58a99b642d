"""What a history is made with: what a generated one is like, and how raw recordings become one."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from planner.cluster.units import MS_PER_MIN
from planner.simulate.cluster_spec import ClusterSpec

Form: TypeAlias = Literal["history", "reports", "topics", "prometheus"]
"""Forms of a generated history: a history, or the files that a recorder would have written."""

FORMS: Final[tuple[Form, ...]] = get_args(Form)[1:]
"""The forms of a recorder."""

RUN_ROWS: Final = 2_000_000
"""From how many rows on, over all tables, a run of a day that is made at once is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySpec:
    """What to generate.

    Attributes:
        cluster: The cluster at its mean load; its moment is not used.
        first_day: First day, `yyyy-mm-dd` in UTC.
        days: Number of days.
        interval_s: Seconds between snapshots.
        daily_swing: How far load rises above and falls below its mean over a day; 0 for a constant load.
        peak_hour: Hour of the day (UTC) with the most load; the peak of a namespace is up to three hours away.
        weekend_share: Load on Saturdays and Sundays as a share of that on other days.
        growth_percent_per_day: Growth of the load from day to day, in percent.
        noise: Standard deviation of each topic's load from moment to moment, as a share.
        spikes_per_day: Mean number of namespaces per day whose load jumps and then decays.
        spike_factor: Largest factor of a jump.
        spike_minutes: Minutes until a spike has decayed to a third.
        restarts_per_day: Mean number of brokers per day that restart.
        restart_minutes: Minutes for which a broker is down.
        splits_per_day: Mean number of bundles per day that are split in the middle.
        topics: Whether the snapshots list the topics.
    """

    cluster: ClusterSpec = field(default_factory=ClusterSpec)
    first_day: str = "2027-01-11"
    days: int = 7
    interval_s: int = 60
    daily_swing: float = 0.5
    peak_hour: float = 14.0
    weekend_share: float = 0.6
    growth_percent_per_day: float = 0.5
    noise: float = 0.05
    spikes_per_day: float = 4.0
    spike_factor: float = 6.0
    spike_minutes: float = 10.0
    restarts_per_day: float = 1.0
    restart_minutes: float = 3.0
    splits_per_day: float = 1.0
    topics: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """How raw rows become history.

    Attributes:
        interval_ms: Time between the snapshots that are made of reports and samples.
        report_ms: How long a load report, top bundles, an answer about topics is valid; brokers report at least every
            15 minutes (`loadBalancerReportUpdateMaxIntervalMinutes`).
        sample_ms: How long a sample of Prometheus is valid, which calls a series stale after five minutes.
        cluster: Name of the cluster where raw rows do not give it.
        run_rows: From how many rows on a run of a day is complete (see `planner.history.day_writer.RunLength`).
    """

    interval_ms: int = MS_PER_MIN
    report_ms: int = 16 * MS_PER_MIN
    sample_ms: int = 5 * MS_PER_MIN
    cluster: str = "recorded"
    run_rows: int = RUN_ROWS

    @property
    def carry_ms(self) -> int:
        """How long before midnight records matter to the next day."""
        return max(self.report_ms, self.sample_ms)
