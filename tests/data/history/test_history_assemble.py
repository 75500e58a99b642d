"""A day out of records: gaps, clocks that are off, repeated and late rows, splits, both load managers."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import DAY_MS
from planner.formats.reading import read_snapshot
from planner.formats.validate import validate
from planner.history.assemble import DayAssembler, skew_of
from planner.history.lines import records_of_lines
from planner.history.raw import report_lines
from planner.history.records import DayFacts, Record, RowSetAside, Tally, batches, rows_of_batch
from planner.history.spec import Options

SAMPLES = Path(__file__).parent.parent.parent.parent / "sample_snapshots"
MINUTE = 60_000
DAY = 20_833
START = DAY * DAY_MS
OPTIONS = Options()
WHOLE = "acme/orders/0x00000000_0xffffffff"
LOW, HIGH = "acme/orders/0x00000000_0x80000000", "acme/orders/0x80000000_0xffffffff"


def stats(rate: float = 1.0) -> dict[str, float]:
    return {"msgRateIn": rate, "msgThroughputIn": 100 * rate, "topics": 1}


def report(minute: float, broker: str, bundles: Iterable[str], *, lag_ms: int = 0, **more: Any) -> dict[str, Any]:
    at = START + round(minute * MINUTE)
    content = {
        "cpu": {"usage": 50, "limit": 400},
        "msgRateIn": 1.0,
        "lastUpdate": at - lag_ms,
        "lastStats": {name: stats() for name in bundles},
    }
    return {"time_ms": at, "broker": f"{broker}:8080", "report": content | more}


def assemble(
    rows: Iterable[dict[str, Any]],
    options: Options = OPTIONS,
    base: Snapshot | None = None,
    first: Snapshot | None = None,
) -> tuple[DayAssembler, list[Snapshot]]:
    """Do what the two stages on Spark do, in this process; `first` is a snapshot of the day itself, before all rows."""
    lines = [json.dumps(row).encode() for row in rows]
    found = list(records_of_lines(lines, "c", Tally()))
    assert not any(isinstance(item, RowSetAside) for item in found), found
    hint = DayFacts()
    for item in found:
        assert isinstance(item, Record)
        hint.add(item)
    table = pa.Table.from_batches(list(batches(iter(found), 0, options.carry_ms, Tally()))).to_pylist()
    mine = [row for row in table if row["lane"] == "row" and row["day"] == DAY]
    mine.sort(key=lambda r: (r["time_ms"], r["broker"], r["kind"], r["subject"], r["line"]))
    assembler = DayAssembler("c", DAY, hint, options, base)
    if first is not None:
        assembler.state.apply_snapshot(first)
    schema = next(batches([], 0, 0, Tally())).schema
    rows_of = (pa.RecordBatch.from_pylist(mine[start : start + 3], schema=schema) for start in range(0, len(mine), 3))
    moments = assembler.moments(row for batch in rows_of for row in rows_of_batch(batch))
    snapshots = [moment.snapshot() for moment in moments]
    for snapshot in snapshots:
        validate(snapshot)
    return assembler, snapshots


def minutes(snapshots: Iterable[Snapshot]) -> list[float]:
    return [(s.info.captured_at_ms - START) / MINUTE for s in snapshots]


def owner_of(snapshot: Snapshot, bundle: str) -> str | None:
    owner = int(snapshot.bundles.owner[snapshot.bundle_position[bundle]])
    return snapshot.brokers.name[owner].removesuffix(":8080") if owner >= 0 else None


def test_moments_are_full_minutes_from_the_first_report_to_the_last() -> None:
    assembler, found = assemble([report(3.5, "a", [WHOLE]), report(6.2, "a", [WHOLE])])
    assert minutes(found) == [4, 5, 6, 7]
    assert [(g.from_ms - START, g.to_ms - START) for g in assembler.gaps] == [(0, 4 * MINUTE)]


def test_nothing_is_shown_while_all_are_silent_and_the_gap_is_named() -> None:
    assembler, found = assemble([report(0, "a", [WHOLE]), report(60, "a", [WHOLE])])
    assert minutes(found) == [*range(17), 60]
    gap = assembler.gaps[-1]
    assert ((gap.from_ms - START) / MINUTE, (gap.to_ms - START) / MINUTE) == (16, 60)
    assert {g.broker for g in assembler.gaps} == {"", "a:8080"}


def test_broker_that_falls_silent_is_gone_with_its_bundles() -> None:
    rows = [report(m, "a", [LOW]) for m in range(0, 40, 5)] + [report(0, "b", [HIGH])]
    _, found = assemble(rows)
    by_minute = dict(zip(minutes(found), found, strict=True))
    assert owner_of(by_minute[16], HIGH) == "b"
    assert owner_of(by_minute[17], HIGH) is None
    assert by_minute[17].brokers.registered.tolist() == [True, False]
    assert owner_of(by_minute[17], LOW) == "a"


def test_of_several_reports_between_two_moments_the_last_one_has_a_bundle() -> None:
    rows = [report(0, "a", [LOW]), report(0, "b", [HIGH]), report(0.2, "b", []), report(0.3, "a", [LOW, HIGH])]
    later = [report(0.5, "b", [HIGH]), report(0.7, "a", [LOW])]
    assert owner_of(assemble(rows)[1][-1], HIGH) == "a"
    assert owner_of(assemble(rows + later)[1][-1], HIGH) == "b"
    assert owner_of(assemble(rows + later + [report(0.8, "b", [])])[1][-1], HIGH) is None


def test_bundle_moves_with_the_newest_report() -> None:
    _, found = assemble(
        [report(0, "a", [LOW, HIGH]), report(0, "b", []), report(2, "b", [HIGH]), report(3, "a", [LOW])]
    )
    owners = [owner_of(s, HIGH) for s in found]
    assert owners == ["a", "a", "b", "b"]


def test_repeated_overruled_and_late_rows_are_counted() -> None:
    row = report(5, "a", [WHOLE])
    other = report(5, "a", [WHOLE], lag_ms=10)
    rows = [report(9, "a", [WHOLE]), row, row, other, report(10, "a", [WHOLE])]
    assembler, _ = assemble(rows)
    counts = assembler.rows()
    assert (counts.kept, counts.used, counts.duplicate, counts.outdated) == (5, 3, 1, 1)
    assembler, found = assemble([other, row | {"report": row["report"] | {"msgRateIn": 7.0}}])
    assert assembler.rows().outdated == 1
    assert found[0].brokers.msg_rate_in_per_s.tolist() == [7.0]  # the later report of the two


def test_clocks_that_are_off_are_corrected() -> None:
    rows = [report(m, b, [n], lag_ms=lag) for m in range(3) for b, n, lag in (("a", LOW, 2_000), ("b", HIGH, -90_000))]
    assembler, found = assemble(rows)
    assert assembler.skew_ms == {"b:8080": 90_000}
    assert found[-1].brokers.updated_at_ms.tolist() == [START + 2 * MINUTE - 2_000, START + 2 * MINUTE]
    assert skew_of({"slow": [17 * MINUTE], "fine": [15 * MINUTE]}, OPTIONS) == {"slow": -17 * MINUTE}


def test_split_is_followed_and_a_report_from_before_does_not_undo_it() -> None:
    rows = [
        report(0, "a", [WHOLE]),
        report(5, "b", [HIGH]),
        report(6, "a", [WHOLE]),  # does not know yet
        report(7, "a", [LOW]),
    ]
    assembler, found = assemble(rows)
    by_minute = dict(zip(minutes(found), found, strict=True))
    assert by_minute[4].bundle_names == (WHOLE,)
    assert by_minute[5].bundle_names == by_minute[6].bundle_names == (LOW, HIGH)
    assert (owner_of(by_minute[6], HIGH), owner_of(by_minute[7], LOW)) == ("b", "a")
    assert assembler.state.layout.changes == 1


def test_averages_take_a_sample_whenever_something_was_reported() -> None:
    rows = [report(m, "a", [WHOLE], lastStats={WHOLE: stats(rate)}) for m, rate in ((0, 10.0), (1, 20.0), (4, 30.0))]
    _, found = assemble(rows)
    assert [int(s.bundles.short_term_samples[0]) for s in found] == [1, 2, 2, 2, 3]
    assert found[-1].bundles.long_term_msg_rate_in_per_s.tolist() == [20.0]
    assert found[-1].bundles.averages_estimated.all()


def topics(minute: float, broker: str, listed: dict[str, dict[str, Any]], bundle: str = WHOLE) -> dict[str, Any]:
    namespace, _, span = bundle.rpartition("/")
    answer = {namespace: {span: {"persistent": {f"persistent://{namespace}/{n}": s for n, s in listed.items()}}}}
    return {"time_ms": START + round(minute * MINUTE), "broker": f"{broker}:8080", "topics": answer}


def rates(snapshots: Iterable[Snapshot]) -> list[float]:
    return [float(s.topics.msg_rate_in_per_s[0]) for s in snapshots]


def test_rates_come_from_counters_through_restarts_and_moves() -> None:
    rows = [
        topics(0, "a", {"x": {"msgRateIn": 5.0, "msgInCount": 600}}),
        topics(1, "a", {"x": {"msgRateIn": 5.0, "msgInCount": 1_200}}),
        topics(2, "a", {"x": {"msgRateIn": 5.0, "msgInCount": 120}}),  # restarted
        topics(3, "b", {"x": {"msgRateIn": 5.0, "msgInCount": 1_800}}),  # moved
        topics(3.5, "a", {}),
    ]
    assembler, found = assemble(rows)
    assert rates(found) == [5.0, 10.0, 2.0, 30.0, 30.0]
    assert owner_of(found[-1], WHOLE) == "b"
    assert float(found[-1].bundles.msg_rate_in_per_s[0]) == 30.0
    assert assembler.rows().counter_resets == 2


def test_over_a_gap_the_rate_the_broker_gives_counts() -> None:
    rows = [
        topics(m, "a", {"x": {"msgRateIn": rate, "msgInCount": count}})
        for m, rate, count in ((0, 5.0, 0), (1, 6.0, 600), (9, 7.0, 700), (10, 8.0, 760))
    ]
    _, found = assemble(rows, replace(OPTIONS, report_ms=3 * MINUTE))
    assert dict(zip(minutes(found), rates(found), strict=True)) == {
        **dict.fromkeys((0,), 5.0), **dict.fromkeys((1, 2, 3, 4), 10.0), 9: 7.0, 10: 1.0,
    }  # fmt: skip


def test_topics_of_an_unknown_namespace_are_hashed_into_as_many_bundles_as_a_new_one_has() -> None:
    at = START / 1_000
    series = [
        {
            "metric": {"__name__": "pulsar_rate_in", "instance": "a:8080", "topic": f"persistent://acme/orders/{i}"},
            "values": [[at, "1"], [at + 60, "2"]],
        }
        for i in range(50)
    ]
    assembler, found = assemble([{"status": "success", "data": {"resultType": "matrix", "result": series}}])
    assert len(found[0].bundles) == 4
    assert found[1].bundles.msg_rate_in_per_s.sum() == 100.0
    assert "assumed" in " ".join(assembler.notes())
    assert all(owner_of(found[0], name) == "a" for name in found[0].bundle_names)


def test_what_is_not_known_is_named_with_the_command_that_supplies_it() -> None:
    unnamed = DayAssembler(Options().cluster, DAY, DayFacts(), Options())
    unnamed.state.assumed.append("acme/orders")
    bundles, settings = unnamed.notes()
    for note, answers in ((bundles, "and the answers to namespaces bundles"), (settings, "broker.conf")):
        assert "Ingest an earlier snapshot of the cluster as well: of python -m planner capture, or of " in note
        assert f"python -m planner snapshot FILE... --out with load reports, {answers}" in note
    assert settings.endswith("Rows without a cluster count as recorded; --cluster names it as the snapshot does.")
    assert "--cluster" not in " ".join(DayAssembler("east", DAY, DayFacts(), Options()).notes())
    assembler, _ = assemble([topics(0, "a", {"x": {"msgRateIn": 1.0, "msgInCount": 0}})])
    assert any("Captures with --metadata-store have those" in note for note in assembler.notes())


def message(minute: float, topic: str, key: str, value: Any) -> dict[str, Any]:
    name = f"persistent://pulsar/system/loadbalancer-{topic}"
    return {"topic": name, "key": key, "publish_time_ms": START + round(minute * MINUTE), "value": value}


def test_messages_of_the_extensible_load_manager_make_its_cluster() -> None:
    load = {"cpu": {"usage": 1, "limit": 2}, "weightedMaxEMA": 0.5, "msgThroughputEMA": 9.0, "updatedAt": START}
    rows = [
        message(0, "broker-load-data", "a:8080", load),
        message(0, "broker-load-data", "b:8080", load),
        message(0, "service-unit-state", LOW, {"state": "Owned", "dstBroker": "a:8080"}),
        message(0, "service-unit-state", HIGH, {"state": "Owned", "dstBroker": "a:8080"}),
        message(1, "top-bundles-load-data", "a:8080",
                {"topBundlesLoadData": [{"bundleName": n, "stats": stats()} for n in (HIGH, LOW)]}),
        message(2, "service-unit-state", HIGH, {"state": "Owned", "dstBroker": "b:8080", "sourceBroker": "a:8080"}),
    ]  # fmt: skip
    _, found = assemble(rows)
    assert {s.info.load_manager for s in found} == {LoadManager.EXTENSIBLE}
    assert found[0].brokers.weighted_max_ema.tolist() == [0.5, 0.5]
    assert [found[1].bundles.top_rank[found[1].bundle_position[n]] for n in (HIGH, LOW)] == [0, 1]
    assert [owner_of(s, HIGH) for s in found] == ["a", "a", "b"]
    assert found[2].bundles.top_rank[found[2].bundle_position[HIGH]] == -1


def test_real_cluster_survives_being_recorded() -> None:
    """What a real modular cluster was captured as, written as its brokers report it and read again."""
    real = read_snapshot(SAMPLES / "real-modular.json")
    real = replace(real, info=replace(real.info, captured_at_ms=START, cluster="c"))
    _, (found,) = assemble([json.loads(line) for line in report_lines(real)])
    at = [found.bundle_position[n] for n, o in zip(real.bundle_names, real.bundles.has_stats, strict=True) if o]
    rows = np.flatnonzero(real.bundles.has_stats)
    for name in ("msg_rate_in_per_s", "msg_throughput_out_bytes_per_s", "consumers", "cache_size_bytes"):
        assert np.array_equal(getattr(found.bundles, name)[at], getattr(real.bundles, name)[rows]), name
    order = [found.brokers.position[name] for name in real.brokers.name]
    for name in ("cpu_usage_percent", "memory_limit_mib", "msg_rate_out_per_s", "version", "reported_bundles"):
        there = np.array(getattr(found.brokers, name))[order]
        assert np.array_equal(there, np.array(getattr(real.brokers, name))), name


@pytest.mark.parametrize("count", [1, 7])
def test_empty_and_single_moments(count: int) -> None:
    _, found = assemble([report(0, f"b{i}", []) for i in range(count)])
    assert len(found) == 1
    assert len(found[0].brokers) == count
    assert len(found[0].bundles) == 0


def test_the_release_that_brokers_report_decides() -> None:
    """Before, a snapshot knows the settings; since then, the cluster was upgraded."""
    before = read_snapshot(SAMPLES / "threshold-shedder.json")
    config = Settings({"loadBalancerBrokerThresholdShedderPercentage": 17}, before.settings.release)
    rows = [report(minute, "b1", [WHOLE], brokerVersionString="3.0.0") for minute in (1, 2)]
    for base in (None, replace(before, settings=config)):
        _, (found, *_) = assemble(rows, base=base)
        assert found.info.pulsar_version == found.settings.release.name == "3.0.0"
        assert found.settings["loadBalancerDirectMemoryResourceWeight"] == 1.0
        assert (found.settings["loadBalancerBrokerThresholdShedderPercentage"] == 17) == (base is not None)
