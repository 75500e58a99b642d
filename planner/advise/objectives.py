"""What the advisor weighs: objectives of balance and of disruption, added up over days and clusters of a replay.

A replay gives numbers for each cluster and day, named as in `planner.simulate.measures.Summary`; how those of several
days make one says `planner.replay.aggregate`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal, TypeAlias, get_args

from planner.cluster.errors import SettingError
from planner.cluster.files import packaged_rows
from planner.cluster.names import (
    BANDWIDTH_IN_RESOURCE_WEIGHT,
    BANDWIDTH_OUT_RESOURCE_WEIGHT,
    BANDWITH_IN_RESOURCE_WEIGHT,
    BANDWITH_OUT_RESOURCE_WEIGHT,
    CPU_RESOURCE_WEIGHT,
    DIRECT_MEMORY_RESOURCE_WEIGHT,
    MEMORY_RESOURCE_WEIGHT,
)

Side: TypeAlias = Literal["balance", "disruption"]
"""Subject of an objective."""

SIDES: Final[tuple[Side, ...]] = get_args(Side)
"""Both sides, in display order."""


@dataclass(frozen=True, slots=True)
class Objective:
    """Something to keep small.

    Attributes:
        name: Names it in a link.
        label: What to call it.
        unit: Its unit.
        side: Whether it measures balance or disruption.
        measures: Measures of a `Summary` that are added up.
        meaning: One sentence.
        yardstick: Settings that it is measured with: scenarios that differ in one cannot be compared by it.
    """

    name: str
    label: str
    unit: str
    side: Side
    measures: tuple[str, ...]
    meaning: str
    yardstick: tuple[str, ...] = ()


_WEIGHTS = (
    CPU_RESOURCE_WEIGHT,
    MEMORY_RESOURCE_WEIGHT,
    DIRECT_MEMORY_RESOURCE_WEIGHT,
    BANDWIDTH_IN_RESOURCE_WEIGHT,
    BANDWIDTH_OUT_RESOURCE_WEIGHT,
    BANDWITH_IN_RESOURCE_WEIGHT,
    BANDWITH_OUT_RESOURCE_WEIGHT,
)


def _objective(row: Mapping[str, str]) -> Objective:
    sides: dict[str, Side] = {side: side for side in SIDES}
    yardstick = [_WEIGHTS if name == "weights" else (name,) for name in row["yardstick"].split()]
    return Objective(
        row["name"],
        row["label"],
        row["unit"],
        sides[row["side"]],
        tuple(row["measures"].split()),
        row["meaning"],
        tuple(chain.from_iterable(yardstick)),
    )


OBJECTIVES: Final = tuple(map(_objective, packaged_rows("planner.advise", "objectives.csv")))
"""Every objective; all are to be small and none is ever negative."""


def objective_by_name(name: str) -> Objective:
    """Return an objective.

    Raises:
        SettingError: There is none of this name.
    """
    for objective in OBJECTIVES:
        if objective.name == name:
            return objective
    raise SettingError(
        "Unknown objective.",
        where=name[:40],
        remedy=f"Choose from {', '.join(objective.name for objective in OBJECTIVES)}.",
    )


def value_of(totals: Mapping[str, float | None], objective: Objective) -> float | None:
    """Return an objective from measures; None when one of them is not known."""
    parts = [totals.get(measure) for measure in objective.measures]
    known = [part for part in parts if part is not None and math.isfinite(part)]
    return math.fsum(known) if len(known) == len(parts) else None


def references(totals: Sequence[Mapping[str, float | None]], objectives: Sequence[Objective]) -> dict[str, float]:
    """Return what each objective is on average over candidates: the 100 of an index."""
    found = {}
    for objective in objectives:
        values = [value for one in totals if (value := value_of(one, objective)) is not None]
        found[objective.name] = math.fsum(values) / len(values) if values else 0.0
    return found


def index_of(
    totals: Mapping[str, float | None], objectives: Sequence[Objective], reference: Mapping[str, float]
) -> float | None:
    """Return one number for the objectives of one side: the mean of what each is in percent of its reference.

    Objectives that are 0 in all candidates say nothing and are left out. As no objective is negative and each has a
    positive share, whoever is better in one objective and no worse in the others has the smaller index.

    Returns:
        100 for the average of the candidates, small is good; None when an objective is not known.
    """
    shares = []
    for objective in objectives:
        value, usual = value_of(totals, objective), reference[objective.name]
        if value is None:
            return None
        if usual > 0:
            shares.append(value / usual)
    return 100 * math.fsum(shares) / len(shares) if shares else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What counts, and how much, among the settings with the least overload.

    Attributes:
        balance: Names of objectives of balance.
        disruption: Names of objectives of disruption.
        weight: Share of balance against disruption, 0 … 1; None for the knee of the front.
        loss_percent: How much worse a setting may make a side, in percent of its average over all candidates; and on
            other days, how much worse than now a side that was to become better may be, likewise, and how far from the
            front a choice may be, in percent of itself.
        first_share: Share of the days that the holdout chooses on.
    """

    balance: tuple[str, ...] = ("deviation",)
    disruption: tuple[str, ...] = ("unloads", "topics", "clients", "thrashing")
    weight: float | None = None
    loss_percent: float = 10.0
    first_share: float = 0.6

    def objectives(self, side: Side) -> tuple[Objective, ...]:
        """Return the objectives of a side.

        Raises:
            SettingError: There is none, one is unknown or of the other side.
        """
        names = self.balance if side == "balance" else self.disruption
        found = tuple(objective_by_name(name) for name in names)
        if not found:
            raise SettingError(f"No objective of {side} is chosen.", remedy="Choose at least one.")
        for objective in found:
            if objective.side != side:
                raise SettingError(
                    f"{objective.name} is an objective of {objective.side}, not of {side}.",
                    remedy=f"Choose it as an objective of {objective.side}.",
                )
        return found

    def check(self) -> None:
        """Refuse what cannot be answered.

        Raises:
            SettingError: A number is out of bounds, or a side has no objective.
        """
        for side in SIDES:
            self.objectives(side)
        for name, value, high in (
            ("weight", 0.5 if self.weight is None else self.weight, 1.0),
            ("loss_percent", self.loss_percent, 1000.0),
            ("first_share", self.first_share, 1.0),
        ):
            if not 0 <= value <= high:
                raise SettingError(f"{value} is out of range.", where=name, remedy=f"Use a number from 0 to {high:g}.")
