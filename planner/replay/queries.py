"""Questions about the results of a replay, answered by DuckDB from its Parquet files, finished or not.

A replay has results for each day of each task. What is told of a scenario as a whole is put together as
`planner.replay.aggregate.AGGREGATION` says, so that it is what the advisor says.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from planner.cluster.errors import StoreError
from planner.cluster.files import plain_file
from planner.cluster.units import MS_PER_MIN
from planner.replay.aggregate import AGGREGATION
from planner.replay.results import FILES
from planner.simulate.measures import MEASURES

Curve: TypeAlias = Literal["std", "highest", "spread", "shed"]
"""Measures that can be shown over time."""

CURVES: Final[Mapping[Curve, str]] = {
    "std": "Deviation of usage (points)",
    "highest": "Highest usage (%)",
    "spread": "Highest minus lowest usage (points)",
    "shed": "Bundles shed so far",
}
"""Label of each curve."""

_CURVE_SQL: Final[Mapping[Curve, str]] = {
    "std": "avg(usage_std_percent)",
    "highest": "max(usage_highest_percent)",
    "spread": "avg(usage_highest_percent - usage_lowest_percent)",
    "shed": "sum(shed)",
}
_POINTS: Final = 400
_MOST_ROWS: Final = 2_000

_NOT_FOR_MANY_DAYS: Final = {"cycles", "duration_min", "settled_after_cycles", "settled_after_min"}

SCENARIO_MEASURES: Final = tuple(measure for measure in MEASURES if measure.name not in _NOT_FOR_MANY_DAYS)
"""The measures that a scenario has over many days."""


def _over_days(name: str) -> str:
    """Return SQL that puts the days of a measure together, as `AGGREGATION` says; what is not finite is no number."""
    known = f"FILTER (isfinite({name}))"
    match AGGREGATION[name]:
        case "sum":
            return f"sum({name})"
        case "max" | "worst":
            return f"max({name})"
        case "min":
            return f"min({name}) {known}"
        case "mean":
            return f"coalesce(avg({name}) {known}, 0)"
        case how:
            weight = "shed_bytes_per_s" if how == "by_shed_traffic" else "cycles"
            return f"coalesce(sum({name} * {weight}) {known} / nullif(sum({weight}) {known}, 0), 0)"


class ReplayResults:
    """The results of one replay, from Parquet files as `planner.replay.results.result_files` finds them.

    Raises:
        StoreError: The files cannot be read; any question may say so.
    """

    def __init__(self, files: Mapping[str, Sequence[Path]]) -> None:
        self._files = {name: [str(path) for path in paths] for name, paths in files.items()}
        self._checked = False

    @property
    def empty(self) -> bool:
        """Whether nothing has been written yet."""
        return not self._files.get("tasks")

    def _ask(self, query: str, *values: object) -> pa.Table:
        try:
            self._check()
            with duckdb.connect(":memory:") as connection:
                for name, paths in self._files.items():
                    connection.read_parquet(paths, union_by_name=True).create_view(name)
                return connection.sql(query, params=list(values)).to_arrow_table()
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            what = f"The results cannot be read: {self._trouble(error)}."
            raise StoreError(what, remedy="Retry the job, or delete it.") from error

    def _trouble(self, error: Exception) -> str:
        """Return why a question failed; where files lie is nothing for a page."""
        files = [(f"{name}.parquet", path) for name, paths in self._files.items() for path in paths]
        for name, path in files:
            if not Path(path).is_file():
                return f"{name} is missing"
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        for name, path in files:
            reason = reason.replace(path, name)
        return reason[:200].rstrip(".")

    def _check(self) -> None:
        """See that every file has the columns that questions are about; a file of an earlier version may lack some."""
        for name, paths in () if self._checked else self._files.items():
            for path in paths:
                try:
                    found = pq.read_schema(plain_file(Path(path)))
                except (pa.ArrowException, OSError) as error:
                    raise pa.ArrowInvalid(f"{name}.parquet is damaged") from error
                for column in FILES[name]:
                    if column.name not in found.names or found.field(column.name).type != column.type:
                        raise pa.ArrowInvalid(f"{name}.parquet has no column {column.name} of the right kind")
        self._checked = True

    def scenarios(self) -> pa.Table:
        """Return one row for each scenario with results, in the order of names.

        Returns:
            Columns scenario, tasks, days, cycles and each of `SCENARIO_MEASURES`.
        """
        measures = ", ".join(f"{_over_days(m.name)} AS {m.name}" for m in SCENARIO_MEASURES)
        query = (
            f"SELECT scenario, count(DISTINCT task) AS tasks, count(*) AS days,"
            f" sum(cycles)::BIGINT AS cycles, {measures}"
            " FROM days GROUP BY scenario ORDER BY scenario"
        )
        return self._ask(query)

    def failed(self, limit: int = 100) -> pa.Table:
        """Return tasks that failed: columns task, error."""
        query = "SELECT task, error FROM tasks WHERE error <> '' ORDER BY task LIMIT ?"
        return self._ask(query, min(limit, _MOST_ROWS))

    def curves(self, which: Curve, scenarios: Sequence[str], cluster: str = "") -> pa.Table:
        """Return a quantity of one cluster over time, at most 400 points for each scenario.

        Without a cluster it is the mean, highest or sum over all.

        Returns:
            Columns scenario, at_ms, value, by scenario and time.
        """
        query = (
            "WITH mine AS (SELECT scenario, at_ms, intervals.* EXCLUDE (task, at_ms) FROM intervals"
            " JOIN (SELECT DISTINCT task, scenario, cluster FROM days) USING (task)"
            " WHERE list_contains(?, scenario) AND (? = '' OR cluster = ?)),"
            f" span AS (SELECT greatest(ceil((max(at_ms) - min(at_ms)) / {_POINTS} / {MS_PER_MIN}), 1)::BIGINT"
            f" * {MS_PER_MIN} AS width FROM mine),"
            f" grouped AS (SELECT scenario, at_ms // width * width AS at_ms, {_CURVE_SQL[which]}::DOUBLE AS value"
            " FROM mine, span GROUP BY ALL)"
        )
        value = "sum(value) OVER (PARTITION BY scenario ORDER BY at_ms)" if which == "shed" else "value"
        query += f" SELECT scenario, at_ms, {value} AS value FROM grouped ORDER BY scenario, at_ms"
        return self._ask(query, list(scenarios), cluster, cluster)

    def moves(self, scenario: str, *, kind: str = "", text: str = "", limit: int = _MOST_ROWS) -> pa.Table:
        """Return events of a scenario, in the order of time: at most `limit` of them, and never more than 2,000.

        Only those of a kind, such as `shed`, when one is given, and whose bundle or broker has the text in its name,
        any case.

        Returns:
            The columns of `moves.parquet` without the task, with the cluster.
        """
        query = (
            "SELECT cluster, moves.* EXCLUDE (task) FROM moves"
            " JOIN (SELECT DISTINCT task, scenario, cluster FROM days) USING (task)"
            " WHERE scenario = ? AND (? = '' OR kind = ?)"
            " AND contains(lower(concat_ws(' ', bundle, source, destination)), lower(?))"
            " ORDER BY at_ms, cluster, bundle LIMIT ?"
        )
        return self._ask(query, scenario, kind, kind, text, min(limit, _MOST_ROWS))

    def kinds(self, scenario: str) -> dict[str, int]:
        """Return how many events of each kind a scenario has."""
        query = (
            "SELECT kind, count(*) AS events FROM moves JOIN (SELECT DISTINCT task, scenario FROM days) USING (task)"
            " WHERE scenario = ? GROUP BY kind ORDER BY kind"
        )
        return {row["kind"]: row["events"] for row in self._ask(query, scenario).to_pylist()}

    def clusters(self) -> list[str]:
        """Return the clusters with results."""
        names: list[str] = self._ask("SELECT DISTINCT cluster FROM days ORDER BY cluster")["cluster"].to_pylist()
        return names
