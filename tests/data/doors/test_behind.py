"""Which broker and cluster series are of where their address does not say it: a label that tells them apart."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from planner.cluster.errors import FormatError
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading

AT_S = 1_795_225_795
SPANS = ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff")
Labels = Callable[[int], dict[str, str]]


def series_of(labels_of: Labels, brokers: int = 2, namespace: str = "shop/orders") -> list[dict[str, Any]]:
    """Return series of brokers at one address, each with a bundle of its own."""
    found = []
    for number in range(brokers):
        values = {"pulsar_lb_cpu_usage": 10.0, "pulsar_lb_memory_usage": 20.0, "pulsar_bundle_msg_rate_in": 100.0}
        for name, value in values.items():
            bundle = {"bundle": f"{namespace}/{SPANS[number]}"} if "bundle" in name else {}
            metric = {"__name__": name, "instance": "gateway:80", "cluster": "pulsar", **labels_of(number), **bundle}
            found.append({"metric": metric, "value": [AT_S, str(value * (number + 1))]})
    return found


def fixed(labels: dict[str, str]) -> Labels:
    return lambda _: labels


def numbered(name: str, form: str, labels: dict[str, str]) -> Labels:
    return lambda at: {**labels, name: form.format(at)}


def answer(series: list[dict[str, Any]]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}})


def export(series: list[dict[str, Any]]) -> str:
    rows = [
        {"metric": one["metric"], "values": [float(one["value"][1])], "timestamps": [one["value"][0] * 1_000]}
        for one in series
    ]
    return "\n".join(map(json.dumps, rows))


def federate(series: list[dict[str, Any]]) -> str:
    rows = []
    for one in series:
        labels = ",".join(f'{name}="{value}"' for name, value in one["metric"].items() if name != "__name__")
        rows.append(f"{one['metric']['__name__']}{{{labels}}} {one['value'][1]} {AT_S * 1_000}")
    return "\n".join(rows) + "\n"


FORMS = {"answer": answer, "export": export, "federate": federate}


def read(text: str, cluster: str = "", names: tuple[str, ...] = ()) -> Reading:
    return read_given([Given("x.json", io.BytesIO(text.encode()))], cluster=cluster, broker_names=names)


def rates(reading: Reading) -> dict[str, float]:
    assert reading.snapshot is not None
    bundles = reading.snapshot.bundles
    names = reading.snapshot.brokers.name
    every = zip(bundles.owner.tolist(), bundles.msg_rate_in_per_s.tolist(), strict=True)
    return {names[owner]: rate for owner, rate in every if owner >= 0}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("label", ["hostname", "nodename", "server", "ordinal_of_set"])
def test_the_only_label_that_tells_brokers_apart_names_them(form: Callable[[Any], str], label: str) -> None:
    """All were one broker, with the load of the last one."""
    reading = read(form(series_of(lambda at: {label: f"mq-{at}", "job": "pulsar", "team": "platform"})))
    assert rates(reading) == {"mq-0:8080": 100.0, "mq-1:8080": 200.0}
    assert f"gateway:80 is the address of several brokers: mq-0, mq-1. The label {label} distinguishes them." in (
        reading.assumed
    )
    assert not any("differ from another" in one for one in reading.not_used)


def test_brokers_without_any_address_are_told_apart() -> None:
    """A query with `sum by (hostname, ...)` leaves no instance."""
    series = series_of(lambda at: {"hostname": f"mq-{at}"})
    for one in series:
        del one["metric"]["instance"]
    assert rates(read(answer(series))) == {"mq-0:8080": 100.0, "mq-1:8080": 200.0}


def test_where_several_labels_tell_brokers_apart_the_option_chooses() -> None:
    text = answer(series_of(lambda at: {"hostname": f"mq-{at}", "node": f"n-{at}"}))
    reading = read(text)
    assert reading.snapshot is None
    [why] = [one for one in reading.not_used if "left out" in one]
    assert "each of the labels hostname, node distinguishes these" in why
    assert "--broker-names '{hostname}:8080'" in why
    assert rates(read(text, names=("{node}.east:8080",))) == {"n-0.east:8080": 100.0, "n-1.east:8080": 200.0}


def test_names_of_brokers_count_before_their_addresses() -> None:
    series = series_of(lambda at: {"instance": f"10.0.0.{at}:8080", "hostname": f"mq-{at}"})
    assert rates(read(answer(series))) == {"10.0.0.0:8080": 100.0, "10.0.0.1:8080": 200.0}
    reading = read(answer(series), names=("{pod}:8080", "{hostname}.svc:8080"))
    assert rates(reading) == {"mq-0.svc:8080": 100.0, "mq-1.svc:8080": 200.0}
    reading = read(answer(series), names=("{pod}:8080",))
    assert any("none of the labels of --broker-names" in one for one in reading.assumed)
    with pytest.raises(FormatError, match="is not an address with a label in braces"):
        read(answer(series), names=("mq",))


@pytest.mark.parametrize("label", ["job", "hostname", "scraper"])
def test_copies_of_a_broker_are_no_brokers(label: str) -> None:
    """Two jobs scrape one broker, a moment apart: the same bundles twice."""
    series = [one for at in range(2) for one in series_of(fixed({label: f"x-{at}"}), brokers=1)]
    series[3]["value"][1] = "11"
    reading = read(answer(series))
    assert rates(reading) == {"gateway:80": 100.0}
    assert any("1 value of pulsar_lb_cpu_usage differ from another" in one for one in reading.not_used)


def test_jobs_without_bundles_are_copies() -> None:
    series = [one for at in range(2) for one in series_of(fixed({"job": f"x-{at}"}), brokers=1)]
    usage = [one for one in series if "bundle" not in one["metric"]]
    owned = "$ pulsar-admin brokers namespaces c --url gateway:80\nshop/orders/0x00000000_0xffffffff  [x=y]\n"
    reading = read(f"{answer(usage)}\n{owned}")
    assert reading.snapshot is not None
    assert reading.snapshot.brokers.name == ("gateway:80",)


def test_series_that_lack_the_label_are_left_out() -> None:
    series = series_of(lambda at: {"hostname": f"mq-{at}"})
    topic = {"__name__": "pulsar_rate_in", "instance": "gateway:80", "cluster": "pulsar", "topic": "persistent://a/b/t"}
    reading = read(answer([*series, {"metric": topic, "value": [AT_S, "7"]}]))
    assert rates(reading) == {"mq-0:8080": 100.0, "mq-1:8080": 200.0}
    assert any("do not say which of them they are of" in one for one in reading.assumed)


@pytest.mark.parametrize("label", ["__tenant_id__", "vm_account_id", "k8s_cluster"])
def test_a_label_of_clusters_chooses_a_cluster(label: str) -> None:
    """Two clusters of one name, whose brokers have the same private addresses, were one cluster."""
    series = [
        one
        for name, space in (("east", "shop/orders"), ("west", "shop/carts"))
        for one in series_of(numbered("instance", "10.0.0.{}:8080", {label: name}), 2, space)
    ]
    reading = read(answer(series))
    assert rates(reading) == {"10.0.0.0:8080": 100.0, "10.0.0.1:8080": 200.0}
    assert f"The label {label} is taken for the name of the cluster: east, west." in reading.assumed
    assert any("of several clusters: east, west. Those of east count" in one for one in reading.contradictions)
    west = read(answer(series), "west").snapshot
    assert west is not None
    assert west.info.cluster == "west"
    assert list(west.namespaces) == ["shop/carts"]


def test_clusters_behind_one_address_are_not_one_cluster() -> None:
    """One endpoint, two tenants with a cluster each, whose pods are called alike."""
    series = [
        one
        for name, count in (("east", 3), ("west", 2))
        for one in series_of(numbered("pod", "mq-{}", {"tenant_id": name}), count, f"{name}/a")
    ]
    reading = read(answer(series))
    assert rates(reading) == {f"mq-{at}:8080": 100.0 * (at + 1) for at in range(3)}
    assert rates(read(answer(series), "west")) == {"mq-0:8080": 100.0, "mq-1:8080": 200.0}


def test_a_label_of_one_cluster_that_is_called_like_one_changes_nothing() -> None:
    """Brokers of one cluster in two environments serve different bundles at different addresses."""
    reading = read(answer(series_of(lambda at: {"instance": f"10.0.0.{at}:8080", "environment": f"zone-{at}"})))
    assert rates(reading) == {"10.0.0.0:8080": 100.0, "10.0.0.1:8080": 200.0}
    assert not any("is taken for the name" in one for one in reading.assumed)
