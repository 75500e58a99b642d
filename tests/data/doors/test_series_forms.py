"""Series as Grafana, promtool and CSV show them are the same cluster, and what cannot be read of them is named."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.snapshot import Snapshot
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading

INPUTS = Path(__file__).parent / "inputs"
WHOLE = (
    "promtool/range_2_42.txt",
    "promtool/dump_2_42.txt",
    "grafana/query_11.json",
    "grafana/panel_data_9.json",
    "grafana/frames_of_a_table_10.json",
    "grafana/tsdb_query_7.json",
    "grafana/inspected_query_10.json",
    "grafana/dashboard_snapshot_11.json",
    "series_csv/grafana_joined_by_time_11.csv",
    "series_csv/grafana_for_excel_9.csv",
    "series_csv/grafana_table_10.csv",
    "series_csv/victoria_terminal.txt",
)


def read(text: str | bytes, name: str = "x.txt") -> Reading:
    data = text if isinstance(text, bytes) else text.encode()
    return read_given([Given(name, io.BytesIO(data))], cluster="east", now_ms=1_795_225_800_000)


def text_of(name: str) -> str:
    return (INPUTS / name).read_text(encoding="utf-8-sig")


def cluster_of(name: str) -> Snapshot:
    snapshot = read(text_of(name)).snapshot
    assert snapshot is not None
    return snapshot


def test_all_forms_give_one_cluster() -> None:
    """The inputs show the same series at the same moment, each in another form; the dump has a moment of its own."""
    made = {name: cluster_of(name) for name in WHOLE}
    first = made[WHOLE[0]]
    assert first.topics is not None
    assert first.topics.msg_rate_in_per_s.sum() == pytest.approx(194.5)
    assert first.brokers.cpu_usage_percent.tolist() == [71.5, 31.5]
    times = {name: one.info.captured_at_ms - first.info.captured_at_ms for name, one in made.items()}
    assert {name for name, apart_ms in times.items() if apart_ms} <= {WHOLE[1]}
    alike = {snapshot_digest(one) for name, one in made.items() if not times[name]}
    assert len(alike) == 1


def test_one_form_in_text_is_the_same_as_in_json() -> None:
    """`promtool -o json` prints the list of an answer."""
    value = json.loads(text_of("grafana/tsdb_query_7.json"))["results"]["A"]["series"]
    rows = [{"metric": one["tags"], "values": [[at / 1e3, str(v)] for v, at in one["points"]]} for one in value]
    snapshot = read(json.dumps(rows)).snapshot
    assert snapshot is not None
    assert snapshot_digest(snapshot) == snapshot_digest(cluster_of("promtool/range_2_42.txt"))


def test_names_that_a_server_changed_are_changed_back() -> None:
    """As in a history: what the broker wrote itself counts."""
    text = text_of("grafana/tsdb_query_7.json")
    moved = text.replace('"topic":', '"exported_topic":').replace('"namespace":', '"exported_namespace":')
    assert moved != text
    snapshot = read(moved).snapshot
    assert snapshot is not None
    assert snapshot.topics is not None
    assert len(snapshot.topics) == 3


TIMES = {"name": "Time", "type": "time", "values": [1763719200000]}


def said(text: str | bytes, name: str = "x.txt") -> str:
    return " ".join(read(text, name).not_used)


def test_what_grafana_shows_without_the_names_of_metrics_is_named() -> None:
    frames = json.loads(text_of("grafana/query_11.json"))
    for frame in frames["results"]["A"]["frames"]:
        field = frame["schema"]["fields"][1]
        field["name"], field["labels"], field["config"] = "Value", {"instance": "a:8080"}, {"displayNameFromDS": "mq"}
    assert "mq left out: series without the name of their metric" in said(json.dumps(frames))
    legends = text_of("series_csv/grafana_joined_by_time_11.csv").splitlines()
    shown = '"Time","pulsar_lb_cpu_usage{instance=""a:8080""}","mq-0"\n' + "".join(
        ",".join(line.split(",")[:3]) + "\n" for line in legends[1:]
    )
    assert '"mq-0"' not in said(shown)
    assert "mq-0 left out: columns without the name of a metric" in said(shown)


@pytest.mark.parametrize(
    "text",
    [
        '[{"Time": 1763719200000, "mq-0": 40.5, "mq-1": 30.5}]',
        '[{"Time": "2025-11-21 10:00:00", "mq-0": "40.5%"}]',
        "Time,mq-0,mq-1\n2025-11-21 10:00:00,40.5,30.5\n2025-11-21 10:01:00,40.5,30.5\n",
        json.dumps([{"fields": [TIMES, {"name": "Value", "type": "number", "values": [41]}], "length": 1}]),
        json.dumps(
            {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [9, "4"]}]}}
        ),
    ],
)
def test_series_without_metrics_say_how_to_ask_prometheus_for_them(text: str) -> None:
    """Panels show rates, sums and legends, in rows of *Inspect*, *Data* as well; those rows were of an unknown kind."""
    shown = said(text)
    assert "curl -sG PROMETHEUS/api/v1/query --data-urlencode 'query={__name__=~" in shown
    assert "unknown kind" not in shown


def test_values_with_units_are_named() -> None:
    text = text_of("series_csv/grafana_joined_by_time_11.csv").replace('"71.5"', '"71.5%"', 1)
    assert "1 value left out: not plain numbers; switch Formatted data off" in said(text)


def test_times_without_a_zone_are_named() -> None:
    assert "no zone, and are taken for UTC" in said(text_of("series_csv/grafana_for_excel_9.csv"))
    assert "no zone" not in said(text_of("series_csv/grafana_joined_by_time_11.csv"))


def test_errors_warnings_and_definitions_of_grafana_are_named() -> None:
    assert "without data: bad_data: parse error" in said(
        '{"results":{"A":{"error":"bad_data: parse error","status":400}}}'
    )
    frames = json.loads(text_of("grafana/query_11.json"))
    frames["results"]["A"]["frames"][0]["schema"]["meta"]["notices"] = [{"severity": "warning", "text": "store down"}]
    assert "the server warns, so series may be missing or inexact: store down" in said(json.dumps(frames))
    panel = {"id": 2, "type": "timeseries", "gridPos": {"h": 8}, "targets": [{"expr": "pulsar_rate_in"}]}
    assert "has no data; use Inspect, Data" in said(json.dumps(panel))
    assert "has no data; use Inspect, Data" in said(json.dumps({"panels": [panel], "schemaVersion": 39}))


@pytest.mark.parametrize(
    "change", ["\ufeff", "sep=,\n", "2026-11-25T03:12:11,004+0000 [main] INFO  a.B - started\n"], ids=repr
)
def test_what_stands_before_a_table_changes_nothing(change: str) -> None:
    text = text_of("series_csv/grafana_table_10.csv")
    for other in (change + text, (change + text).encode("utf-16"), (change + text).replace("\n", "\r\n")):
        snapshot = read(other).snapshot
        assert snapshot is not None
        assert snapshot_digest(snapshot) == snapshot_digest(cluster_of("series_csv/grafana_table_10.csv"))


def test_only_what_an_ingest_reads_is_recommended_to_it() -> None:
    assert "history ingest" not in said(text_of("promtool/range_2_42.txt"))
    assert "history ingest" not in said(text_of("grafana/query_11.json"))
    assert "history ingest" in said(text_of("prometheus/range_partition_label.json"))


def values_of(text: str) -> tuple[dict[str, str], str]:
    reading = read(text, "main.tf")
    values = {name: value for one in reading.configurations for name, value in one.values.items()}
    return values, " ".join(reading.not_used)


def test_what_counts_in_terraform() -> None:
    """`set` counts above `values`, a later one above an earlier one, as in Helm; quotation marks are HCL's."""
    values, _ = values_of("""
resource "helm_release" "pulsar" {
  values = [
    yamlencode({ broker = { configData = { loadBalancerEnabled = "false", maxUnloadPercentage = 0.1 } } }),
    yamlencode({ broker = { configData = { loadBalancerSheddingEnabled = "true", maxUnloadPercentage = 0.3 } } }),
  ]
  set {
    name  = "broker.configData.loadBalancerEnabled"
    value = "true"
  }
  set {
    name  = "proxy.configData.loadBalancerSheddingEnabled"
    value = "false"
  }
}
""")
    assert values == {
        "loadBalancerEnabled": "true",
        "maxUnloadPercentage": "0.3",
        "loadBalancerSheddingEnabled": "true",
    }


def test_variables_of_terraform_and_truncated_blocks_are_named() -> None:
    start = 'resource "helm_release" "pulsar" {\n  set {\n    name  = "broker.configData.maxUnloadPercentage"\n'
    for value in ("var.share", '"${var.share}"', 'lookup(var.all, "share")'):
        values, not_used = values_of(f"{start}    value = {value}\n  }}\n}}\n")
        assert values == {}
        assert "maxUnloadPercentage left out: variables" in not_used
    values, not_used = values_of(f'{start}    value = "0.3"\n  }}\n')
    assert "the text ends inside a block" in not_used
    assert values == {"maxUnloadPercentage": "0.3"}
    _, not_used = values_of('resource "helm_release" "pulsar" {\n  values = [file("values.yaml")]\n}\n')
    assert "values left out: variables" in not_used


def test_a_namespace_of_terraform_must_have_a_name() -> None:
    text = text_of("terraform/namespaces.tf")
    assert read(text).found == ("anti-affinity group of 1 namespace", "1 dispatch limit")
    reading = read(text.replace('tenant    = "shop"', "tenant    = pulsar_tenant.shop.tenant"))
    assert reading.found == ()
    assert "the name of a namespace left out: variables" in " ".join(reading.not_used)


def test_parameters_of_argo_cd_are_paths() -> None:
    reading = read(text_of("settings_in_yaml/argo_cd_application.yaml"), "application.yaml")
    [found] = reading.configurations
    assert found.values == {
        "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder",
        "loadBalancerSheddingIntervalMinutes": "2",
    }


HEADLESS = text_of("series_csv/victoria.csv")
"""Name, instance, topic, value and time in seconds."""
FORMAT = "__name__,instance,topic,__value__,__timestamp__"
UNCERTAIN = {
    "a label of numbers": HEADLESS.replace(",mq", ",-1,mq"),
    "a label of numbers beside a value that is none": HEADLESS.replace(",mq", ",-1,mq").replace("71.5", "NaN"),
    "two addresses": HEADLESS.replace(",mq", ",vm:8429,mq"),
    "no value": "".join(",".join([*(cells := line.split(","))[:-2], cells[-1]]) for line in HEADLESS.splitlines(True)),
    "two values of a series": HEADLESS.replace(",mq", ",east,mq")
    + HEADLESS.replace(",mq", ",west,mq").replace("71.5", "33.25"),
}


@pytest.mark.parametrize("text", UNCERTAIN.values(), ids=UNCERTAIN.keys())
def test_an_export_without_a_header_is_refused_where_its_columns_are_not_certain(text: str) -> None:
    reading = read(text)
    assert reading.snapshot is None
    assert reading.found == ()
    (why,) = reading.not_used
    assert f"such as {FORMAT}" in why


def test_what_the_columns_of_an_export_without_a_header_are_taken_for_is_said() -> None:
    reading = read(HEADLESS.replace(",mq", ",east,mq"))
    said = "its columns are taken for __name__, not used, instance, topic, __value__, __timestamp__"
    assert [said in one for one in reading.not_used] == [True]
    assert reading.snapshot is not None


@pytest.mark.parametrize(
    "above",
    [
        f"{FORMAT}\n",
        f"{FORMAT}:unix_s\n",
        f"$ curl -s 'http://vm:8428/api/v1/export/csv?format={FORMAT.replace(',', '%2C')}'\n",
    ],
)
def test_the_format_above_an_export_makes_its_columns_certain(above: str) -> None:
    made = read(above + HEADLESS)
    assert not made.not_used
    assert made.snapshot is not None
    bare = read(HEADLESS).snapshot
    assert bare is not None
    assert snapshot_digest(made.snapshot) == snapshot_digest(bare)
    with_partition = read(above.replace("instance", "partition,instance") + UNCERTAIN["a label of numbers"])
    assert with_partition.snapshot is not None
    assert with_partition.snapshot.topics.name.to_pylist() == bare.topics.name.to_pylist()


def test_a_value_that_is_no_number_is_named_as_such() -> None:
    (said,) = [one for one in read(f"{FORMAT}\n{HEADLESS.replace('71.5', 'NaN')}").not_used if "left out" in one]
    assert "not finite numbers" in said


LABELS = ("pod", "kubernetes_pod_name", "instance", "k8s_pod_name")


def answered(labels_of: Callable[[int], dict[str, str]]) -> Reading:
    """The answers about two brokers, each with a topic."""
    texts = []
    for metric, value in (("pulsar_lb_cpu_usage", 40), ("pulsar_rate_in", 100)):
        found: list[dict[str, object]] = []
        for at in range(2):
            topic = {"topic": f"persistent://shop/orders/t-{at}"} if "rate" in metric else {}
            labels = {"__name__": metric} | labels_of(at) | topic
            found.append({"metric": labels, "value": [1_790_000_000, str(value + at)]})
        texts.append(json.dumps({"status": "success", "data": {"resultType": "vector", "result": found}}))
    return read_given([Given("x", io.BytesIO("\n".join(texts).encode()))], now_ms=1)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("host", ["mq-broker-{}", "10.0.0.{}", "mq-broker-{}.mq.svc"])
def test_brokers_without_a_port_are_not_put_together(label: str, host: str) -> None:
    reading = answered(lambda at: {label: host.format(at)})
    assert reading.snapshot is not None
    assert reading.snapshot.brokers.name == tuple(f"{host.format(at)}:8080" for at in range(2))
    assert reading.snapshot.brokers.cpu_usage_percent.tolist() == [40.0, 41.0]
    assert f"{host.format(1)} without a port; 8080 is assumed" in " ".join(reading.assumed)


def test_pods_behind_one_address_are_brokers_of_their_own() -> None:
    """A gateway or a collector is scraped at one address."""
    reading = answered(lambda at: {"instance": "collector:8889", "pod": f"mq-broker-{at}"})
    assert reading.snapshot is not None
    assert reading.snapshot.brokers.name == ("mq-broker-0:8080", "mq-broker-1:8080")


def test_a_pod_with_an_address_of_its_own_is_called_by_it() -> None:
    reading = answered(lambda at: {"instance": f"10.0.0.{at}:8080", "pod": f"mq-broker-{at}"})
    assert reading.snapshot is not None
    assert reading.snapshot.brokers.name == ("10.0.0.0:8080", "10.0.0.1:8080")


def test_the_definition_of_a_dashboard_is_no_data() -> None:
    text = json.dumps({"dashboard": {"panels": [{"type": "graph"}], "schemaVersion": 16}, "meta": {}})
    assert "the definition of a panel or dashboard" in " ".join(read(text).not_used)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Time,mq-0,mq-1\n2026-11-21 01:49:55,70,30\n", "mq-0, mq-1 left out: columns without the name of a metric"),
        (
            "Time,topic,Value\n2026-11-21 01:49:55,persistent://shop/orders/a,5\n",
            "series without the name of a metric",
        ),
        (
            "Time,__name__,instance,Value\n11/21/2026 01:49:55,pulsar_lb_cpu_usage,mq-0:8080,5\n",
            "1 row left out: the time '11/21/2026 01:49:55' cannot be read",
        ),
    ],
)
def test_what_is_wrong_with_a_table_is_said(text: str, said: str) -> None:
    """Each was of an unknown kind, or no rows of the table."""
    reading = read(text)
    assert reading.snapshot is None
    assert said in " ".join(reading.not_used)


def rescaled(text: str, factor: float) -> str:
    """Return an answer or export with its times in another unit."""
    rows = [json.loads(line) for line in text.splitlines()] if text.count("\n") > 1 else [json.loads(text)]
    for row in rows:
        for one in row["data"]["result"] if "data" in row else [row]:
            if "value" in one:
                one["value"][0] *= factor
            one["timestamps"] = [round(at * factor) for at in one.get("timestamps", [])]
    return "\n".join(map(json.dumps, rows))


@pytest.mark.parametrize(
    ("name", "factor"), [("prometheus/instant.json", 1_000), ("victoria_metrics/export.jsonl", 0.001)]
)
def test_times_in_another_unit_are_said(name: str, factor: float) -> None:
    """Those in ms were left out as no numbers; those in seconds were of 1970."""
    text = json.dumps(json.loads(text_of(name))) if name.endswith("json") else text_of(name)
    before, after = read(text), read(rescaled(text, factor))
    assert before.snapshot is not None
    assert after.snapshot is not None
    apart_ms = before.snapshot.info.captured_at_ms - after.snapshot.info.captured_at_ms
    assert abs(apart_ms) < 1_000
    assert "its times are in seconds instead of ms" in " ".join(after.not_used)


def test_series_of_two_tenants_are_said() -> None:
    answer = json.loads(text_of("prometheus/instant.json"))
    result = answer["data"]["result"]
    others = [
        {"metric": {**one["metric"], "__tenant_id__": "b"}, "value": [one["value"][0], str(float(one["value"][1]) * 3)]}
        for one in result
    ]
    answer["data"]["result"] = [*result, *others]
    reading = read(json.dumps(answer))
    assert "differ from another one of the same broker, bundle or topic" in " ".join(reading.not_used)
    assert "differ from another" not in " ".join(read(text_of("prometheus/instant.json")).not_used)


def gateway_series(labels_of: Callable[[int], dict[str, str]]) -> list[dict[str, Any]]:
    """Return series of two brokers at one address, each with a bundle of its own, and the size of their heap."""
    found = []
    for number, span in enumerate(("0x00000000_0x80000000", "0x80000000_0xffffffff")):
        there = {"instance": "gateway:80", **labels_of(number)}
        values = {"pulsar_lb_cpu_usage": 10.0, "pulsar_bundle_msg_rate_in": 100.0}
        for name, value in values.items():
            bundle = {"bundle": f"shop/orders/{span}"} if "bundle" in name else {}
            metric = {"__name__": name, **there, **bundle}
            found.append({"metric": metric, "value": [1_795_225_795, str(value * (number + 1))]})
    return found


@pytest.mark.parametrize("form", ["answer", "export", "answers"])
@pytest.mark.parametrize("label", ["pod", "exported_instance", "broker"])
def test_brokers_behind_one_address_are_apart_in_every_form(form: str, label: str) -> None:
    """Lines of an export and answers of one metric each made one broker of all, with the load of the last one."""
    series = gateway_series(lambda number: {label: f"mq-{number}"})
    result = [{"status": "success", "data": {"resultType": "vector", "result": [one]}} for one in series]
    whole = {"status": "success", "data": {"resultType": "vector", "result": series}}
    lines = [
        {"metric": one["metric"], "values": [float(one["value"][1])], "timestamps": [one["value"][0] * 1_000]}
        for one in series
    ]
    text = "\n".join(map(json.dumps, {"answer": [whole], "export": lines, "answers": result}[form]))
    snapshot = read_given([Given("x.json", io.BytesIO(text.encode()))]).snapshot
    assert snapshot is not None
    assert snapshot.brokers.name == ("mq-0:8080", "mq-1:8080")
    assert snapshot.brokers.cpu_usage_percent.tolist() == [10.0, 20.0]
    assert snapshot.bundles.owner.tolist() == [0, 1]
    assert snapshot.bundles.msg_rate_in_per_s.tolist() == [100.0, 200.0]


def test_series_of_an_address_of_several_brokers_that_name_none_are_left_out() -> None:
    series = gateway_series(lambda number: {"pod": f"mq-{number}"})
    topic = {"__name__": "pulsar_rate_in", "instance": "gateway:80", "topic": "persistent://shop/orders/t"}
    series.append({"metric": topic, "value": [1_795_225_795, "7"]})
    text = json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}})
    reading = read_given([Given("x.json", io.BytesIO(text.encode()))])
    assert reading.snapshot is not None
    assert reading.snapshot.brokers.name == ("mq-0:8080", "mq-1:8080")
    assert any(
        "Some series at gateway:80, the address of several brokers, do not say" in one for one in reading.assumed
    )


def answer(*hosts: tuple[str, str]) -> bytes:
    """Return an answer of Prometheus with the processor of brokers at addresses, and with a bundle of each."""
    result: list[Any] = []
    for at, (instance, host) in enumerate(hosts):
        own = {"instance": instance, "broker": host, "cluster": "east"}
        span = f"shop/n{at}/0x00000000_0xffffffff"
        rows = {"pulsar_lb_cpu_usage": own, "pulsar_bundle_msg_rate_in": {**own, "bundle": span}}
        result += [{"metric": {"__name__": name, **of}, "value": [1_700_000_000, "40"]} for name, of in rows.items()]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def test_brokers_are_called_as_by_prometheus_itself() -> None:
    """Answers in files named brokers by the address of the scrape, `--prometheus` by the host that they advertise."""
    given = answer(("10.2.0.11:8080", "mq-0.mq.svc"), ("10.2.0.12:8081", "mq-1.mq.svc"))
    reading = read_given([Given("a.json", io.BytesIO(given))], now_ms=1)
    assert reading.snapshot is not None
    assert list(reading.snapshot.brokers.name) == ["mq-0.mq.svc:8080", "mq-1.mq.svc:8081"]
    assert "a.json: 10.2.0.11:8080 is mq-0.mq.svc:8080, as its label 'broker' says." in reading.assumed


def test_a_host_that_two_addresses_give_names_neither() -> None:
    given = answer(("10.2.0.11:8080", "localhost"), ("10.2.0.12:8080", "localhost"))
    reading = read_given([Given("a.json", io.BytesIO(given))], now_ms=1)
    assert reading.snapshot is not None
    assert list(reading.snapshot.brokers.name) == ["10.2.0.11:8080", "10.2.0.12:8080"]


def test_a_rule_counts_above_the_host_that_a_broker_gives() -> None:
    given = answer(("10.2.0.11:8080", "mq-0.mq.svc"))
    reading = read_given([Given("a.json", io.BytesIO(given))], broker_names=["{cluster}-{broker}:80"], now_ms=1)
    assert reading.snapshot is not None
    assert list(reading.snapshot.brokers.name) == ["east-mq-0.mq.svc:80"]


def test_an_address_that_other_answers_use_stays() -> None:
    given = answer(("10.2.0.11:8080", "mq-0.mq.svc"))
    brokers = b"$ pulsar-admin brokers list east\n10.2.0.11:8080\n"
    files = [Given("a.json", io.BytesIO(given)), Given("b.txt", io.BytesIO(brokers))]
    reading = read_given(files, now_ms=1)
    assert reading.snapshot is not None
    assert list(reading.snapshot.brokers.name) == ["10.2.0.11:8080"]
