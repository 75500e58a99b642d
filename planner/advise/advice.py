"""What the advisor answers: candidates, evidence against the current settings, ranges, and the check on later days.

Every scenario of a replay has a balance index and a disruption index (`planner.advise.objectives`); of both, small is
good. `planner.advise.advisor` works all of it out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from planner.advise.objectives import SIDES, Question, Side
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import REFERENCE
from planner.cluster.setting import SettingValue, conf_value
from planner.cluster.settings import Settings
from planner.explain.doubt import NO_DOUBT, Doubt
from planner.simulate.judge import Result, judge
from planner.simulate.judge import Verdict as Judgement
from planner.simulate.measures import Measure
from planner.simulate.scenario import Scenario

ALIKE: Final = 1e-9
"""Indices that differ by no more are equal."""

Counted: TypeAlias = Side | Literal["overload"]
"""What days are won by: a side, or overload."""

COUNTED: Final[tuple[Counted, ...]] = ("overload", *SIDES)
"""Each of them, in display order."""


@dataclass(frozen=True, slots=True)
class Configured:
    """How a cluster is set now.

    Attributes:
        settings: Settings in force.
        load_manager: The load manager that runs.
        doubt: What cannot be right about the usage in its history.
    """

    settings: Settings
    load_manager: LoadManager
    doubt: Doubt = NO_DOUBT


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A scenario with what it came to over all days and clusters.

    Attributes:
        scenario: What was replayed.
        totals: Every measure.
        balance: Index of balance; 100 is the average of the candidates, small is good.
        disruption: Index of disruption, likewise.
        on_front: Whether no other candidate beats it.
        result: What the judge compares; None where the candidates are measured differently.
        more_overload: Whether another candidate has less overload by the judge; then it is not on the front.
    """

    scenario: Scenario
    totals: Mapping[str, float | None]
    balance: float
    disruption: float
    on_front: bool
    result: Result | None = None
    more_overload: bool = False

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.scenario.name


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """One measure of the recommended settings against the current ones.

    Attributes:
        measure: Which.
        current: Its value with the current settings; None where there is none.
        chosen: Its value with the recommended ones.
        better: True when the recommended one is better, False when it is worse, None when neither.
    """

    measure: Measure
    current: float | None
    chosen: float | None
    better: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPair:
    """One day of one cluster: with the current settings and with the recommended ones; small is good.

    Attributes:
        cluster: Name.
        day: `yyyy-mm-dd`, UTC.
        balance: Index with the current and with the recommended settings.
        disruption: Likewise.
        overload: Broker-minutes above the limit, likewise.
    """

    cluster: str
    day: str
    balance: tuple[float, float]
    disruption: tuple[float, float]
    overload: tuple[float, float] = (0.0, 0.0)

    def of(self, side: Counted) -> tuple[float, float]:
        """Return the pair of a side, or of overload."""
        pair: tuple[float, float] = getattr(self, side)
        return pair


@dataclass(frozen=True, slots=True)
class Evidence:
    """The recommended settings against the current ones.

    Attributes:
        measures: One for each of `MEASURES`.
        days: One for each day and cluster.
    """

    measures: tuple[MeasureChange, ...]
    days: tuple[DayPair, ...]

    def wins(self, side: Counted) -> tuple[int, int, int]:
        """Return on how many days the recommended settings are better, worse, and alike."""
        apart = [
            (old, new)
            for old, new in (day.of(side) for day in self.days)
            if not math.isclose(old, new, rel_tol=ALIKE, abs_tol=ALIKE)
        ]
        better = sum(1 for old, new in apart if new < old)
        return better, len(apart) - better, len(self.days) - len(apart)

    def chance(self, side: Counted) -> float:
        """Return how likely so uneven a count of wins and losses is if both settings were alike (sign test)."""
        better, worse, _ = self.wins(side)
        number = better + worse
        tail = sum(math.comb(number, k) for k in range(min(better, worse) + 1)) / 2.0**number
        return min(2 * tail, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A candidate that differs from the recommended one in one setting.

    Attributes:
        value: The value of that setting.
        name: Name of the candidate.
        balance: Index of balance.
        disruption: Index of disruption.
        on_front: Whether no other candidate beats it.
        loss_percent: How much worse the side is that gets worse, in percent of its average over all candidates.
        holds: On the front, and it loses no more than asked.
    """

    value: SettingValue
    name: str
    balance: float
    disruption: float
    on_front: bool
    loss_percent: float
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRange:
    """How far one setting can move while all others stay.

    Attributes:
        setting: Its name.
        chosen: Its recommended value.
        steps: The values that were replayed with all else alike, in order; the recommended one is among them.
        low: Lowest value up to which, from the recommended one, every step holds; of names, the recommended one.
        high: Highest such value.
    """

    setting: str
    chosen: SettingValue
    steps: tuple[Step, ...]
    low: SettingValue
    high: SettingValue

    @property
    def tried(self) -> bool:
        """Whether another value was replayed with all else alike."""
        return len(self.steps) > 1

    @property
    def sentence(self) -> str:
        """What this means, one sentence."""
        unit = REFERENCE.settings[self.setting].unit.removesuffix("class")
        text = f"{self.setting} = {conf_value(self.chosen) or 'not set'}{f' {unit}' if unit else ''}"
        if not self.tried:
            return f"{text}: its range is unknown, because no other value was replayed with all other settings equal."
        broken = [step for step in self.steps if not step.holds and step.value != self.chosen]
        if not broken:
            return f"{text}: every replayed value is acceptable ({_list([step.value for step in self.steps])})."
        if not isinstance(self.chosen, int | float) or isinstance(self.chosen, bool):
            return f"{text}: this setting matters; {_list([step.value for step in broken])} would be worse."
        if self.low == self.high:
            return f"{text}: a narrow choice; the nearest replayed values would be worse."
        return f"{text}: every replayed value from {conf_value(self.low)} to {conf_value(self.high)} is acceptable."


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdout:
    """The choice made on the first days, judged on the rest.

    Attributes:
        first_days: Days on which the choice was made.
        rest_days: Days on which it is judged.
        chosen: Name of the candidate chosen on the first days.
        best: Name of the candidate that the same rule chooses on the rest.
        distance: How much better, in both indices at once and as a share, another candidate is on the rest.
        promised: Change of balance and of disruption against the current settings on the first days, in percent of
            the average of the candidates; negative is better. None without current settings.
        kept: The same on the rest.
        holds: Whether the choice holds: on the rest, the same one or an equally good one is chosen, and nothing that
            was promised is broken.
        reasons: Why it does not, one sentence each; or why it does.
        days: Every day of every cluster, with the current settings and with the choice; none without current settings.
    """

    first_days: tuple[str, ...]
    rest_days: tuple[str, ...]
    chosen: str
    best: str
    distance: float
    promised: tuple[float, float] | None
    kept: tuple[float, float] | None
    holds: bool
    reasons: tuple[str, ...]
    days: tuple[DayPair, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a replay says about settings.

    Attributes:
        question: What was asked.
        candidates: Every scenario that can be compared, in the order given.
        current: Name of the candidate with the settings in force; empty when they were not replayed.
        knee: Name of the candidate at the knee of the front; empty where the front has none.
        chosen: Name of the recommended candidate.
        evidence: Against the current settings; None when they were not replayed.
        sensitivity: One for each setting that differs among the candidates.
        holdout: None when there is only one day.
        clusters: Names.
        days: In order.
        notes: What the user should know.
        doubt: What cannot be right about the usage of a cluster.
    """

    question: Question
    candidates: tuple[Candidate, ...]
    current: str
    knee: str
    chosen: str
    evidence: Evidence | None
    sensitivity: tuple[SettingRange, ...]
    holdout: Holdout | None
    clusters: tuple[str, ...]
    days: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())
    doubt: Doubt = NO_DOUBT

    @property
    def judgement(self) -> Judgement | None:
        """What the judge of outcomes says of the chosen settings against the current ones; None where it cannot."""
        if not self.current:
            return None
        before, after = self.candidate(self.current).result, self.candidate(self.chosen).result
        return judge(before, after) if before and after else None

    def candidate(self, name: str) -> Candidate:
        """Return a candidate by its name."""
        return next(one for one in self.candidates if one.name == name)

    @property
    def front(self) -> tuple[Candidate, ...]:
        """The candidates on the front, the best balance first."""
        return tuple(sorted((c for c in self.candidates if c.on_front), key=lambda c: (c.balance, c.disruption)))


def _list(values: Sequence[SettingValue]) -> str:
    return ", ".join(conf_value(value) or "not set" for value in values)
