"""Several brokers behind one address: their series are told apart by pod or host, or left out with a note."""

from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.history.gateways import Gateways, Targets, add_target
from planner.history.ingest import IngestResult
from planner.history.labels import packed
from planner.history.manifest import DayManifest
from planner.history.records import DayFacts, Tally, batches
from tests.data.history.test_history_assemble import DAY, START, assemble, owner_of
from tests.data.history.test_history_labels import answer, one, read

GATEWAY = {"instance": "gateway:80"}
LOW, HIGH = "shop/orders/0x00000000_0x80000000", "shop/orders/0x80000000_0xffffffff"


def series(broker: int, own: dict[str, str], usage: dict[str, str] | None = None, minutes: int = 4) -> list[Any]:
    """Return what a broker says of itself and of its bundle, at the address that all of them have."""
    there = GATEWAY | own
    bundle = LOW if broker == 0 else HIGH
    load = there | ({} if usage is None else usage)
    return [
        one("pulsar_lb_cpu_usage", [10.0 + broker] * minutes, 0, **load),
        one("pulsar_bundle_msg_rate_in", [100.0 + broker] * minutes, 0, **load, bundle=bundle),
        one("jvm_memory_direct_bytes_max", [2.0**30 * (1 + broker)] * minutes, 0, **there),
    ]


def usage(snapshot: Snapshot) -> dict[str, tuple[float, float]]:
    table = snapshot.brokers
    pairs = zip(table.cpu_usage_percent.tolist(), table.direct_memory_limit_mib.tolist(), strict=True)
    return dict(zip(table.name, pairs, strict=True))


@pytest.mark.parametrize("label", ["pod", "kubernetes_pod_name", "exported_pod", "exported_instance"])
def test_pods_behind_one_address_are_brokers_of_their_own(label: str) -> None:
    """The usage of one broker was shown for a broker called like the gateway, which owned all bundles."""
    every = [found for broker in (0, 1) for found in series(broker, {label: f"mq-{broker}"})]
    assembler, snapshots = assemble([answer(*every)])
    assert usage(snapshots[-1]) == {"mq-0:8080": (10.0, 1_024.0), "mq-1:8080": (11.0, 2_048.0)}
    assert [owner_of(snapshots[-1], name) for name in (LOW, HIGH)] == ["mq-0", "mq-1"]
    rows = assembler.rows()
    assert (rows.used, rows.outdated, rows.not_placed) == (24, 0, 0)
    assert "gateway:80 is the address of several brokers: mq-0:8080, mq-1:8080." in " ".join(assembler.notes())


def test_a_broker_is_called_as_it_calls_itself() -> None:
    every = [
        found for broker in (0, 1) for found in series(broker, {"pod": f"mq-{broker}"}, {"broker": f"10.2.0.{broker}"})
    ]
    assembler, snapshots = assemble([answer(*every)])
    assert usage(snapshots[-1]) == {"10.2.0.0:8080": (10.0, 1_024.0), "10.2.0.1:8080": (11.0, 2_048.0)}
    assert "gateway:80 is the address of several brokers: 10.2.0.0:8080, 10.2.0.1:8080." in " ".join(assembler.notes())


def test_an_unknown_label_that_goes_with_a_host_tells_brokers_apart() -> None:
    """Series without the label `broker` were left out, although `hostname` says whose they are."""
    every = [
        found for broker in (0, 1) for found in series(broker, {"hostname": f"n{broker}"}, {"broker": f"mq-{broker}"})
    ]
    assembler, snapshots = assemble([answer(*every)])
    assert usage(snapshots[-1]) == {"mq-0:8080": (10.0, 1_024.0), "mq-1:8080": (11.0, 2_048.0)}
    assert assembler.rows().not_placed == 0
    assert not any("do not say which" in note for note in assembler.notes())


@pytest.mark.parametrize("label", ["hostname", "server"])
def test_the_only_label_that_tells_brokers_apart_names_them(label: str) -> None:
    """It was named as a conflict, and the load of the first broker was that of all."""
    every = [found for broker in (0, 1) for found in series(broker, {label: f"n{broker}", "job": "pulsar"})]
    assembler, snapshots = assemble([answer(*every)])
    assert usage(snapshots[-1]) == {"n0:8080": (10.0, 1_024.0), "n1:8080": (11.0, 2_048.0)}
    assert [owner_of(snapshots[-1], name) for name in (LOW, HIGH)] == ["n0", "n1"]
    rows = assembler.rows()
    assert (rows.used, rows.outdated, rows.not_placed) == (24, 0, 0)
    assert (
        f"gateway:80 is the address of several brokers: n0:8080, n1:8080. The label {label} distinguishes them."
        in assembler.notes()
    )


def test_labels_of_which_each_tells_brokers_apart_are_named_with_the_option() -> None:
    every = [found for broker in (0, 1) for found in series(broker, {"hostname": f"n{broker}", "server": f"s{broker}"})]
    assembler, _ = assemble([answer(*every)])
    assert assembler.rows().used == 0
    [note] = [one for one in assembler.notes() if one.startswith("Not placed")]
    assert "each of the labels hostname, server distinguishes these. Choose one with --broker-names" in note


def test_copies_and_labels_of_clusters_name_no_brokers() -> None:
    """Two jobs scrape one broker; two tenants have brokers at the same addresses."""
    jobs = [found for job in ("a", "b") for found in series(0, {"job": job})]
    _, snapshots = assemble([answer(*jobs)])
    assert snapshots[-1].brokers.name == ("gateway:80",)
    tenants = [
        one("pulsar_lb_cpu_usage", [10.0] * 4, 0, instance=f"10.0.0.{at}:8080", tenant=tenant)
        for at in range(2)
        for tenant in ("a", "b")
    ]
    _, snapshots = assemble([answer(*tenants)])
    assert sorted(snapshots[-1].brokers.name) == ["10.0.0.0:8080", "10.0.0.1:8080"]


@pytest.mark.parametrize("own", [{}, {"job": "brokers"}])
def test_series_that_do_not_name_their_broker_are_left_out_with_a_note(own: dict[str, str]) -> None:
    every = [found for broker in (0, 1) for found in series(broker, own, {"broker": f"mq-{broker}"})]
    assembler, snapshots = assemble([answer(*every)])
    assert {name: cpu for name, (cpu, _) in usage(snapshots[-1]).items()} == {"mq-0:8080": 10.0, "mq-1:8080": 11.0}
    assert assembler.rows().not_placed > 0
    assert "Some series at gateway:80, the address of several brokers, do not say which" in " ".join(assembler.notes())


@pytest.mark.parametrize("minutes", [1, 3, 4, 8])
def test_a_pod_that_lived_shortly_is_no_second_broker(minutes: int) -> None:
    """A server shows its series for five minutes more, which is most of its time."""
    before = one("pulsar_lb_cpu_usage", [10.0] * (minutes + 5), 0, **GATEWAY, pod="mq-6d7f")
    after = one("pulsar_lb_cpu_usage", [11.0] * 20, 60 * minutes, **GATEWAY, pod="mq-9b2c")
    _, snapshots = assemble([answer(before, after)])
    assert {name for snapshot in snapshots for name in snapshot.brokers.name} == {"gateway:80"}


@pytest.mark.parametrize("late", [0, 1, 3])
def test_brokers_of_a_short_recording_are_several(late: int) -> None:
    """A broker that came later, and is there to the end, replaces none."""
    first = one("pulsar_lb_cpu_usage", [10.0] * 8, 0, **GATEWAY, pod="mq-0")
    second = one("pulsar_lb_cpu_usage", [11.0] * (8 - late), 60 * late, **GATEWAY, pod="mq-1")
    _, snapshots = assemble([answer(first, second)])
    assert sorted(snapshots[-1].brokers.name) == ["mq-0:8080", "mq-1:8080"]


@pytest.mark.parametrize("overlap", [0, 1])
def test_a_pod_that_replaces_another_one_is_the_same_broker(overlap: int) -> None:
    """The old series lives on for a few minutes after its pod, as Prometheus shows it."""
    before = one("pulsar_lb_cpu_usage", [10.0] * 10, 0, **GATEWAY, pod="mq-6d7f")
    after = one("pulsar_lb_cpu_usage", [11.0] * 10, 60 * (10 - overlap), **GATEWAY, pod="mq-9b2c")
    assembler, snapshots = assemble([answer(before, after)])
    assert {name for snapshot in snapshots for name in snapshot.brokers.name} == {"gateway:80"}
    assert not any("several brokers" in note for note in assembler.notes())


def test_a_pod_at_an_address_of_its_own_is_called_by_it() -> None:
    every = [
        one("pulsar_lb_cpu_usage", [10.0 + n] * 4, 0, instance=f"10.0.0.{n}:8080", pod=f"mq-{n}") for n in range(2)
    ]
    _, snapshots = assemble([answer(*every)])
    assert sorted(snapshots[-1].brokers.name) == ["10.0.0.0:8080", "10.0.0.1:8080"]


def test_what_is_known_of_addresses_passes_the_stages() -> None:
    records = read(*(found for broker in (0, 1) for found in series(broker, {"pod": f"mq-{broker}"})))
    rows = [row for batch in batches(iter(records), 0, 0, Tally()) for row in batch.to_pylist()]
    hint = DayFacts()
    for row in rows:
        if row["lane"] == "hint" and row["day"] == DAY:
            hint.take(row)
    assert Gateways(hint.targets).brokers == {"gateway:80": ("mq-0", "mq-1")}


def test_a_host_without_a_port_and_labels_of_no_broker_say_nothing() -> None:
    found: Targets = {}
    add_target(found, "mq-0", packed("", '{"pod": "a"}'), (START, START))
    add_target(found, "mq-0:8080", packed("", '{"zone": "pod"}'), (START, START))
    add_target(found, "mq-0:8080", packed("", '{"broker": "mq-0:8080"}'), (START, START))
    assert found == {}


def test_the_command_says_what_the_days_note() -> None:
    """It printed how many rows were not placed, and not why."""
    note = "gateway:80 is the address of several brokers: mq-0:8080, mq-1:8080. Their pods or hosts distinguish them."
    days = tuple(
        DayManifest(cluster="east", day=day, made_by="ingest", notes=[note]) for day in ("2026-11-25", "2026-11-26")
    )
    said = IngestResult(1, 0, 8, 8, 0, days, 0, 0, ()).lines
    assert [line for line in said if note in line] == [f"note: east 2026-11-25 and 1 more day: {note}"]
