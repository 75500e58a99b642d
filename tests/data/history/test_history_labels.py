"""Labels that tell Prometheus series apart are never dropped, and what has to be assumed is said."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.hashing import topic_hash
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import bundle_name, parse_bundle
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.history.assemble import DayAssembler
from planner.history.assumed import Hosts, roundest
from planner.history.day_writer import DayWriter
from planner.history.days import read_day, snapshot_at
from planner.history.labels import packed, unpacked
from planner.history.lines import records_of_lines
from planner.history.manifest import DayManifest, day_of
from planner.history.records import Record, RowSetAside, Tally
from tests.data.history.test_history_assemble import DAY, START, assemble

TOPIC = "persistent://shop/orders/t"
NOTE = "differ only in the label"


def answer(*series: Mapping[str, Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}


def one(metric: str, values: list[float], start: int = 0, /, **labels: str) -> dict[str, Any]:
    """Return a series with a sample every minute, from a second of the day on."""
    at = START // 1_000 + start
    named = {"instance": "a:8080"} | labels
    return {
        "metric": {"__name__": metric} | {k: v for k, v in named.items() if v},
        "values": [[at + 60 * i, str(value)] for i, value in enumerate(values)],
    }


def rate(values: list[float], start: int = 0, /, **labels: str) -> dict[str, Any]:
    return one("pulsar_rate_in", values, start, **({"topic": TOPIC} | labels))


def read(*series: Mapping[str, Any]) -> list[Record | RowSetAside]:
    return list(records_of_lines([json.dumps(answer(*series)).encode()], "c", Tally()))


def names(snapshot: Snapshot) -> list[str]:
    found: list[str] = snapshot.topics.name.to_pylist()
    return [name.rpartition("/")[2] for name in found]


def rates(snapshot: Snapshot) -> dict[str, float]:
    """Return the publish rate of the bundles of each broker."""
    table = snapshot.bundles
    found: dict[str, float] = dict.fromkeys(snapshot.brokers.name, 0.0)
    for owner, value in zip(table.owner.tolist(), table.msg_rate_in_per_s.tolist(), strict=True):
        if owner >= 0:
            found[snapshot.brokers.name[owner]] += value
    return found


# --- partitions


def test_partition_label_names_the_topic_and_minus_one_is_none() -> None:
    found = [rate([100, 100], partition=str(n), instance="a:8080" if n < 2 else "b:8080") for n in range(4)]
    plain = rate([7, 7], topic="persistent://shop/orders/plain", partition="-1")
    assembler, snapshots = assemble([answer(*found, plain)])
    assert names(snapshots[-1]) == ["plain", *(f"t-partition-{n}" for n in range(4))]
    assert rates(snapshots[-1]) == {"a:8080": 207.0, "b:8080": 200.0}
    rows = assembler.rows()
    assert (rows.used, rows.duplicate, rows.outdated) == (10, 0, 0)


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"topic": TOPIC, "partition": "12"}, f"{TOPIC}-partition-12"),
        ({"topic": TOPIC, "partition": "-1"}, TOPIC),
        ({"topic": TOPIC, "partition": ""}, TOPIC),
        ({"topic": TOPIC}, TOPIC),
        ({"topic": f"{TOPIC}-partition-2"}, f"{TOPIC}-partition-2"),
        # `TopicStats.writeTopicMetric` cuts at the first `-partition-`, whatever follows
        ({"topic": TOPIC, "partition": "3-partition-2"}, f"{TOPIC}-partition-3-partition-2"),
        ({"topic": TOPIC, "partition": "x"}, f"{TOPIC}-partition-x"),
        # Pulsar escapes no backslash: Prometheus reads backslash and n as the end of a line
        ({"topic": "persistent://shop/orders/back\\slash"}, "persistent://shop/orders/back\\slash"),
        ({"topic": "persistent://shop/orders/a\nb"}, "persistent://shop/orders/a\\nb"),
    ],
)
def test_topic_of_a_series(labels: dict[str, str], name: str) -> None:
    (record,) = read(one("pulsar_rate_in", [1], **labels))
    assert isinstance(record, Record)
    assert list(record.names) == [name]


def test_counters_of_partitions_are_counters_of_their_own() -> None:
    def counter(partition: int, per_s: int) -> dict[str, Any]:
        values = [float(60 * per_s * i) for i in range(4)]
        return one("pulsar_in_messages_total", values, topic=TOPIC, partition=str(partition))

    _, found = assemble([answer(*(counter(n, 10 * (n + 1)) for n in range(3)))])
    assert dict(zip(names(found[-1]), found[-1].topics.msg_rate_in_per_s.tolist(), strict=True)) == {
        "t-partition-0": 10.0, "t-partition-1": 20.0, "t-partition-2": 30.0,
    }  # fmt: skip


# --- who serves what


def test_each_broker_gets_its_own_traffic_where_bundles_are_assumed() -> None:
    found = [rate([100, 100], topic=f"{TOPIC}-{n}", instance=f"{'ab'[n * 7 % 11 % 2]}:8080") for n in range(40)]
    assembler, snapshots = assemble([answer(*found)])
    mine = sum(n * 7 % 11 % 2 == 0 for n in range(40))
    for snapshot in snapshots:
        assert rates(snapshot) == {"a:8080": 100.0 * mine, "b:8080": 100.0 * (40 - mine)}
    assert "more where brokers serve topics of the same range" in " ".join(assembler.notes())
    assert assembler.state.layout.changes == 0  # nothing was split, as far as anybody said


@pytest.mark.parametrize(
    "metric", ["jvm_memory_bytes_max", "jvm_memory_direct_bytes_max", "process_start_time_seconds"]
)
@pytest.mark.parametrize("order", ["first", "last"])
def test_other_java_programs_are_no_brokers(metric: str, order: str) -> None:
    """A Prometheus has these series of ZooKeeper, bookies and proxies as well."""
    java = [one(metric, [2e9] * 3, instance=name, area="heap") for name in ("zookeeper-0:8000", "a:8080")]
    found = [rate([100] * 3), *java]
    assembler, snapshots = assemble([answer(*(reversed(found) if order == "first" else found))])
    assert {snapshot.brokers.name for snapshot in snapshots} == {("a:8080",)}
    assert rates(snapshots[-1]) == {"a:8080": 100.0}
    assert "zookeeper-0:8000 left out" in " ".join(assembler.notes())


def test_bundles_are_cut_no_finer_than_owners_alternate() -> None:
    """Topics of a namespace with 16 bundles: at most those 16 are found, whatever is assumed."""
    owner = [n * 5 % 3 for n in range(16)]
    found = []
    for n in range(300):
        topic = f"{TOPIC}-{n}"
        found.append(rate([1, 1], topic=topic, instance=f"{'abc'[owner[topic_hash(topic) >> 28]]}:8080"))
    _, (snapshot, *_) = assemble([answer(*found)])
    low = snapshot.bundles.low.tolist()
    assert low == [n << 28 for n in range(16) if n % 4 == 0 or owner[n] != owner[n - 1]]


def test_topic_that_its_broker_no_longer_lists_proves_nothing() -> None:
    """A bundle moves from a to b; an idle topic is loaded nowhere until somebody uses it."""
    busy = [f"{TOPIC}-{n}" for n in range(30)]
    series = [rate([1, 1, 1], topic=t) for t in busy]
    series += [rate([1, 1, 1], 180, topic=t, instance="b:8080") for t in busy]
    series += [rate([0, 0, 0], topic=f"{TOPIC}-idle-{n}") for n in range(10)]
    series += [one("pulsar_lb_cpu_usage", [50] * 6, instance=f"{b}:8080") for b in "ab"]
    _, found = assemble([answer(*series)])
    assert [len(s.bundles) for s in found] == [4] * len(found)
    assert rates(found[-1]) == {"a:8080": 0.0, "b:8080": 30.0}


def base_snapshot(*bundles: str) -> Snapshot:
    ranges = [parse_bundle(name) for name in bundles]
    return Snapshot(
        SnapshotInfo(
            "c",
            LoadManager.MODULAR,
            START - 60_000,
            settings_from="brokers",
            dynamic_settings={"loadBalancerSheddingEnabled": "false"},
        ),
        Settings({}),
        make_brokers(["a:8080", "b:8081"]),
        ("shop/orders",),
        make_bundles([low for _, low, _ in ranges], high=[high for *_, high in ranges], namespace=0, owner=0),
        make_topics(),
    )


def test_bundle_of_an_older_snapshot_that_two_brokers_serve_was_split_since() -> None:
    whole = bundle_name("shop/orders", 0, 0xFFFFFFFF)
    found = [
        rate([10, 10], topic=f"{TOPIC}-{n}", instance="a:8080" if topic_hash(f"{TOPIC}-{n}") < 1 << 31 else "b:8081")
        for n in range(20)
    ]
    assembler, snapshots = assemble([answer(*found)], base=base_snapshot(whole))
    assert [parse_bundle(name)[1] for name in snapshots[0].bundle_names] == [0, 1 << 31]
    assert sum(rates(snapshots[-1]).values()) == 200.0
    assert snapshots[-1].info.settings_from == "brokers"
    assert snapshots[-1].info.dynamic_settings == {"loadBalancerSheddingEnabled": "false"}
    assert min(rates(snapshots[-1]).values()) > 0
    assert "it was split after the last report" in " ".join(assembler.notes())


def test_reported_bundle_is_not_cut() -> None:
    whole = bundle_name("shop/orders", 0, 0xFFFFFFFF)
    found = [rate([10, 10], topic=f"{TOPIC}-{n}", instance=f"{'ab'[n % 2]}:8080") for n in range(20)]
    said = one("pulsar_bundle_msg_rate_in", [200, 200], bundle=whole)
    _, snapshots = assemble([answer(*found, said)])
    assert snapshots[-1].bundle_names == (whole,)
    assert rates(snapshots[-1]) == {"a:8080": 200.0, "b:8080": 0.0}


@pytest.mark.parametrize(
    ("after", "upto", "best"),
    [(0, 0xFFFFFFFE, 1 << 31), (1, 3, 2), (2, 3, 3), (0x3FFFFFFF, 0x40000001, 0x40000000), (5, 6, 6)],
)
def test_a_cut_goes_where_the_boundary_most_likely_is(after: int, upto: int, best: int) -> None:
    assert roundest(after, upto) == best


# --- labels without a meaning


@pytest.mark.parametrize("label", ["prometheus_replica", "replica", "__replica__", "prometheus"])
def test_copies_of_another_server_are_duplicates(label: str) -> None:
    assembler, found = assemble([answer(*(rate([5, 5, 5], **{label: name}) for name in ("0", "1")))])
    assert found[-1].topics.msg_rate_in_per_s.tolist() == [5.0]
    assert assembler.rows().duplicate == 3
    assert NOTE not in " ".join(assembler.notes())


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("start", "overruled"), [(0, 3), (15, 2)])
def test_series_that_differ_in_an_unknown_label_are_not_merged_in_silence(
    order: int, start: int, overruled: int
) -> None:
    both = [rate([5, 5, 5], colour="blue"), rate([9, 9, 9], start, colour="green")][::order]
    assembler, found = assemble([answer(*both)])
    assert [s.topics.msg_rate_in_per_s.tolist() for s in found[:3]] == [[5.0]] * 3
    (note,) = [note for note in assembler.notes() if NOTE in note]
    assert "colour" in note
    assert "blue" in note
    rows = assembler.rows()
    assert (rows.kept, rows.used, rows.outdated) == (6, 6 - overruled, overruled)


def test_series_with_and_without_an_unknown_label_are_not_merged_either() -> None:
    assembler, found = assemble([answer(rate([5, 5]), rate([9, 9], colour="green"))])
    assert found[-1].topics.msg_rate_in_per_s.tolist() == [5.0]
    assert "without it" in next(note for note in assembler.notes() if NOTE in note)


def test_counters_that_differ_in_an_unknown_label_do_not_reset_each_other() -> None:
    def counter(colour: str, first: float) -> dict[str, Any]:
        return one("pulsar_in_messages_total", [first + 600 * i for i in range(4)], topic=TOPIC, colour=colour)

    assembler, found = assemble([answer(counter("blue", 0), counter("green", 90_000))])
    assert found[-1].topics.msg_rate_in_per_s.tolist() == [10.0]
    assert assembler.rows().counter_resets == 0
    assert NOTE in " ".join(assembler.notes())


def test_series_that_follow_one_another_are_one() -> None:
    """A pod is replaced: the address stays, its label is another one."""
    pods = [rate([5, 5, 5], pod="z"), rate([9, 9, 9], 180, pod="a")]
    cpus = [one("pulsar_lb_cpu_usage", [50] * 3, pod="z"), one("pulsar_lb_cpu_usage", [60] * 3, 180, pod="a")]
    assembler, found = assemble([answer(*pods, *cpus)])
    assert [s.topics.msg_rate_in_per_s.tolist()[0] for s in found] == [5.0, 5.0, 5.0, 9.0, 9.0, 9.0]
    assert NOTE not in " ".join(assembler.notes())
    assert assembler.rows().used == 12


def test_gauge_of_a_subscription_is_not_the_topic_s() -> None:
    both = [one("pulsar_consumers_count", [n, n], topic=TOPIC, subscription=f"s{n}") for n in (1, 2)]
    assembler, _ = assemble([answer(*both)])
    assert "subscription" in next(note for note in assembler.notes() if NOTE in note)


def test_series_of_a_consumer_is_put_aside() -> None:
    """With exposeConsumerLevelMetricsInPrometheus Pulsar counts a consumer under the name of its subscription."""
    labels = {"topic": TOPIC, "subscription": "s"}
    found = read(
        one("pulsar_out_messages_total", [1, 2], **labels),
        one("pulsar_out_messages_total", [1, 2], **labels, consumer_name="c", consumer_id="0"),
    )
    assert [type(item) for item in found] == [Record, RowSetAside]
    assert isinstance(found[1], RowSetAside)
    assert "about a single consumer" in found[1].reason


@pytest.mark.parametrize(("subscription", "others"), [("", ""), ("s", ""), ("s", '{"a": "b"}'), ("\x00s", "")])
def test_subscription_and_labels_come_back(subscription: str, others: str) -> None:
    assert unpacked(packed(subscription, others)) == (subscription, others)


# --- brokers without a port


def test_host_alone_is_the_broker_there() -> None:
    cpu = one("pulsar_lb_cpu_usage", [83, 83], instance="", broker="10.0.0.1")
    _, found = assemble([answer(cpu, rate([1, 1], instance="10.0.0.1:8081"))])
    assert found[-1].brokers.name == ("10.0.0.1:8081",)
    assert found[-1].brokers.cpu_usage_percent.tolist() == [83.0]


def test_host_alone_without_a_known_port_gets_pulsar_s_default_and_a_note() -> None:
    assembler, found = assemble([answer(one("pulsar_lb_cpu_usage", [83, 83], instance="", broker="broker-1.example"))])
    assert found[-1].brokers.name == ("broker-1.example:8080",)
    assert "broker-1.example without a port; 8080 is assumed" in " ".join(assembler.notes())


def test_host_with_two_brokers_is_of_neither() -> None:
    series = [rate([1, 1], topic=f"{TOPIC}-{port}", instance=f"h:{port}") for port in (8080, 8081)]
    assembler, found = assemble([answer(*series, one("pulsar_lb_cpu_usage", [83, 83], instance="", broker="h"))])
    assert found[-1].brokers.name == ("h:8080", "h:8081")
    assert assembler.rows().not_placed == 2
    assert "several brokers run there" in " ".join(assembler.notes())


def test_ipv6_host_is_no_address_with_a_port() -> None:
    (record,) = read(one("pulsar_lb_cpu_usage", [1], instance="", broker="2001:db8::1"))
    assert isinstance(record, Record)
    assert record.broker == "2001:db8::1"
    (aside,) = read(one("pulsar_lb_cpu_usage", [1], instance="", broker="two words"))
    assert isinstance(aside, RowSetAside)


@pytest.mark.parametrize("label", ["pod", "kubernetes_pod_name"])
@pytest.mark.parametrize("instance", ["", "node-7"])
def test_a_pod_stands_for_a_broker_whose_address_no_label_has(label: str, instance: str) -> None:
    """Series of topics have no label `broker`, and were set aside; those of the broker have the whole host there."""
    pods = [{"instance": instance, label: f"mq-{at}"} for at in range(2)]
    loads = [
        one("pulsar_lb_cpu_usage", [cpu, cpu], broker=f"mq-{at}.mq.svc", **pods[at]) for at, cpu in enumerate((83, 20))
    ]
    topics = [rate([at + 1, at + 1], topic=f"{TOPIC}-{at}", **pods[at]) for at in range(2)]
    assembler, found = assemble([answer(*loads, *topics)])
    assert found[-1].brokers.name == ("mq-0:8080", "mq-1:8080")
    assert found[-1].brokers.cpu_usage_percent.tolist() == [83.0, 20.0]
    assert rates(found[-1]) == {"mq-0:8080": 1.0, "mq-1:8080": 2.0}
    assert "mq-0, mq-1 without a port; 8080 is assumed" in " ".join(assembler.notes())


@pytest.mark.parametrize("is_export", [False, True])
def test_times_in_another_unit_are_read_with_a_warning(*, is_export: bool) -> None:
    """Times in ms were set aside as none, and those of an export in seconds made a day of 1970."""
    series = rate([1, 1])
    times, values = zip(*series["values"], strict=True)
    if is_export:
        lines = [json.dumps({"metric": series["metric"], "timestamps": times, "values": [1.0, 1.0]}).encode()]
    else:
        lines = [json.dumps(answer(series | {"values": [[at * 1_000, "1"] for at in times]})).encode()]
    tally = Tally()
    (record,) = records_of_lines(lines, "c", tally)
    assert isinstance(record, Record)
    assert list(record.times) == [at * 1_000 for at in times]
    assert "in seconds instead of ms" in " ".join(tally.warnings)
    assert values == ("1", "1")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_pod_is_the_host_whose_name_begins_with_it(*, is_first: bool) -> None:
    cpu = one("pulsar_lb_cpu_usage", [83, 83], instance="", broker="mq-0.mq.svc")
    series = [cpu, rate([1, 1], instance="", pod="mq-0")]
    _, found = assemble([answer(*(series if is_first else series[::-1]))])
    [name] = found[-1].brokers.name
    assert rates(found[-1]) == {name: 1.0}
    assert found[-1].brokers.cpu_usage_percent.tolist() == [83.0]


def test_a_pod_is_the_known_broker_of_that_name() -> None:
    cpu = one("pulsar_lb_cpu_usage", [83, 83], instance="mq-0.mq.svc:8081")
    _, found = assemble([answer(cpu, rate([1, 1], instance="", pod="mq-0"))])
    assert found[-1].brokers.name == ("mq-0.mq.svc:8081",)


def test_hosts_that_begin_alike_are_apart() -> None:
    hosts = Hosts(())
    names = ["mq-0.east.svc", "mq-0.west.svc", "10.0.0.1", "10.0.0.2", "mq-0"]
    assert [hosts.broker_of(name) for name in names] == [
        *(f"{name}:8080" for name in names[:-1]),
        "mq-0.east.svc:8080",
    ]


# --- notes


def written(tmp_path: Path, assembler: DayAssembler, snapshots: list[Snapshot]) -> Path:
    with DayWriter(tmp_path, "c", day_of(DAY * 86_400_000)) as writer:
        for snapshot in snapshots:
            writer.add(snapshot)
        manifest = DayManifest(cluster="c", day=day_of(START), made_by="ingest", notes=assembler.notes())
        writer.commit(manifest)
    return next(tmp_path.glob("cluster=*/day=*"))


def test_what_a_day_notes_is_a_warning_of_each_of_its_snapshots(tmp_path: Path) -> None:
    assembler, snapshots = assemble([answer(rate([1, 1, 1]))])
    assert any("assumed" in note for note in assembler.notes())
    folder = written(tmp_path, assembler, snapshots)
    assert {snapshot.info.settings_from for snapshot in snapshots} == {"defaults"}
    for snapshot in read_day(folder, topics=False):
        assert list(snapshot.info.warnings) == assembler.notes()
    again = snapshot_at(folder, snapshots[0].info.captured_at_ms)
    assert again.info == replace(snapshots[0].info, warnings=tuple(assembler.notes()))


# --- a snapshot, and what a Prometheus says after it


def test_what_is_sampled_after_a_snapshot_counts_and_not_the_snapshot() -> None:
    """For 20 minutes after a capture, replays went on with its rates and owners, though brokers said otherwise."""
    whole = bundle_name("shop/orders", 0, 2**32 - 1)
    captured = Snapshot(
        SnapshotInfo("c", LoadManager.MODULAR, START + 30_000),
        Settings({}),
        make_brokers(["a:8080", "b:8080"], has_load_data=True, msg_rate_in_per_s=[500.0, 0.0]),
        ("shop/orders",),
        make_bundles([0], high=[2**32 - 1], namespace=0, owner=[0], has_stats=True, msg_rate_in_per_s=[500.0]),
        make_topics(),
    )
    series = [rate([20.0] * 3, 60), rate([30.0] * 6, 240, instance="b:8080")]
    alive = [one("process_start_time_seconds", [1.0] * 10, 60, instance=broker) for broker in ("a:8080", "b:8080")]
    _, found = assemble([answer(*series, *alive)], first=captured)
    by_minute = {(one.info.captured_at_ms - START) // 60_000: one for one in found}
    assert rates(by_minute[2]) == {"a:8080": 20.0, "b:8080": 0.0}
    assert rates(by_minute[5]) == {"a:8080": 0.0, "b:8080": 30.0}
    assert whole in by_minute[5].bundle_position
    assert by_minute[2].brokers.msg_rate_in_per_s.tolist() == [20.0, 0.0]
    assert by_minute[5].brokers.msg_rate_in_per_s.tolist() == [0.0, 30.0]
