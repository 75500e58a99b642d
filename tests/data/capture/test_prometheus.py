"""What a Prometheus may answer, and what must not come of it."""

import gzip
import io
import json
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from planner.capture.prometheus import Wanted, answers_at, fetch
from planner.capture.prometheus_options import PrometheusOptions, PrometheusSecrets
from planner.capture.prometheus_survey import survey
from planner.cluster.errors import CaptureError
from planner.history.gateways import names_in
from planner.history.labels import BrokerRule, broker_of, normalised, topic_of
from planner.history.prometheus import records_of_export
from planner.history.records import Record, Tally
from tests.data.capture.recorded_prometheus import Answer, Recorded, serving

START_S = 1_795_226_400
STEPS = 120
SECRET = "s3cr3t-token-of-prometheus"  # noqa: S105 - of this test alone


def series() -> list[dict[str, object]]:
    """A broker with a usage and a topic, scraped each minute."""
    base = {"cluster": "east", "instance": "broker-0:8080"}
    metrics: list[dict[str, str]] = [
        {"__name__": "pulsar_lb_cpu_usage", "broker": "broker-0", **base},
        {"__name__": "pulsar_rate_in", "topic": "persistent://a/b/c", **base},
    ]
    values = [[START_S + 60 * i, str(i)] for i in range(STEPS)]
    return [{"metric": metric, "values": values} for metric in metrics]


WANTED = Wanted(START_S * 1_000, (START_S + 60 * STEPS) * 1_000, 60_000)


def samples(folder: Path) -> set[tuple[str, int, float]]:
    """Everything that the files of a folder say."""
    found: list[tuple[str, int, float]] = []
    for path in folder.glob("*.json.gz"):
        data = io.BytesIO(gzip.decompress(path.read_bytes()))
        for record in records_of_export(data, "x", Tally()):
            assert isinstance(record, Record)
            assert record.times is not None
            assert record.values is not None
            found += zip([record.metric] * len(record.times), record.times, record.values, strict=True)
    assert len(found) == len(set(found))
    return set(found)


EVERYTHING = {
    (str(name), (START_S + 60 * i) * 1_000, float(i))
    for name in ("pulsar_lb_cpu_usage", "pulsar_rate_in")
    for i in range(STEPS)
}


def ranges(recorded: Recorded) -> list[dict[str, str]]:
    """The queries for series over time."""
    return [
        given for path, given in recorded.asked if path.endswith("query_range") and "last_over" not in given["query"]
    ]


def quick(recorded: Recorded) -> PrometheusOptions:
    return PrometheusOptions(recorded.url, back_off_s=0.001)


def test_what_is_refused_is_asked_in_halves(tmp_path: Path) -> None:
    def too_much(_: Recorded, path: str, given: Mapping[str, str], __: Mapping[str, str]) -> Answer | None:
        if path.endswith("query_range") and float(given["end"]) - float(given["start"]) > 1_200:
            return 422, b'{"status":"error","error":"query processing would load too many samples"}', {}
        return None

    with serving(Recorded(series(), too_much)) as recorded:
        done = fetch(quick(recorded), WANTED, tmp_path)
    assert samples(done.folder) == EVERYTHING
    assert done.files > 4


def test_a_killed_fetch_goes_on_and_a_longer_one_adds(tmp_path: Path) -> None:
    class KilledError(BaseException):
        pass

    def kill(line: str) -> None:
        if line.startswith("bundles"):
            raise KilledError

    with serving(Recorded(series())) as recorded:
        options = quick(recorded)
        short = replace(WANTED, end_ms=WANTED.start_ms + 30 * 60_000)
        with pytest.raises(KilledError):
            fetch(options, short, tmp_path, kill)
        (unfinished := next(tmp_path.glob("fetched/*")) / ".topics-x.json.gz.999").touch()
        recorded.asked.clear()
        fetch(options, short, tmp_path)
        assert not unfinished.exists()
        assert [given["query"][:40] for given in ranges(recorded) if "pulsar_lb" in given["query"]] == []
        recorded.asked.clear()
        done = fetch(options, WANTED, tmp_path)
        assert {float(given["start"]) for given in ranges(recorded)} == {START_S + 30 * 60}
        assert samples(done.folder) == EVERYTHING
        recorded.asked.clear()
        assert fetch(options, WANTED, tmp_path).fetched == 0
        assert ranges(recorded) == []


def test_passing_failures_are_tried_again(tmp_path: Path) -> None:
    def busy(recorded: Recorded, *_: object) -> Answer | None:
        return (503, b"busy", {"Retry-After": "0"}) if len(recorded.asked) % 3 else None

    with serving(Recorded(series(), busy)) as recorded:
        assert samples(fetch(quick(recorded), WANTED, tmp_path).folder) == EVERYTHING


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((302, b"", {"Location": "http://127.0.0.1:1/api/v1/query"}), "redirects"),
        ((401, b"no", {}), "refuses the request"),
        ((401, b"no org id\n", {}), "--org-id"),
        ((404, b"404 page not found", {}), "status 404"),
        ((400, b'{"error":"parse error"}', {}), "parse error"),
        ((200, b"<html>", {}), "not one of Prometheus"),
        ((200, b'{"status":"success","data":{"resultType":"vector","result":[', {}), "not one of Prometheus"),
        ((200, b'{"status":"success","isPartial":true,"data":{"resultType":"vector","result":[]}}', {}), "incomplete"),
        ((200, b"[" * 100_000, {}), "not one of Prometheus"),
        ((200, f'{{"status":"{SECRET}"}}'.encode(), {}), "repeats a secret"),
    ],
)
def test_odd_answers_are_refused(answer: Answer, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_PROMETHEUS_TOKEN", SECRET)
    with serving(Recorded(series(), lambda *_: answer)) as recorded:
        with pytest.raises(CaptureError, match=said) as refused:
            fetch(quick(recorded), WANTED, tmp_path)
        assert SECRET not in str(refused.value)
    assert not list(tmp_path.rglob("*.gz"))


def test_warnings_of_the_server_become_notes(tmp_path: Path) -> None:
    """Thanos and Mimir answer from the stores that they reach, and warn of the others."""

    def warned(recorded: Recorded, path: str, given: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        _, body, more = Recorded(recorded.series).answer(path, dict(given), dict(headers))
        warnings = ["store sidecar-1: rpc error\n code = Unavailable"]
        return 200, json.dumps({**json.loads(body), "warnings": warnings, "infos": ["a counter?"]}).encode(), more

    with serving(Recorded(series(), warned)) as recorded:
        done = fetch(quick(recorded), WANTED, tmp_path)
        said = "The server warns, so series may be missing or inexact: store sidecar-1: rpc error code = Unavailable."
        assert done.notes.count(said) == 1
        assert said in survey(quick(recorded), WANTED.end_ms).notes


@pytest.mark.parametrize("path", ["/prometheus", "/select/0/prometheus", "/prometheus/"])
def test_the_address_may_have_a_path(path: str, tmp_path: Path) -> None:
    with serving(Recorded(series())) as recorded:
        options = replace(quick(recorded), url=f"{recorded.url}{path}")
        assert samples(fetch(options, WANTED, tmp_path).folder) == EVERYTHING
        assert all(asked.startswith(f"{path.rstrip('/')}/api/v1/") for asked, _ in recorded.asked)


def test_an_answer_without_end_is_cut_off(tmp_path: Path) -> None:
    endless = Recorded(series(), lambda *_: (200, b" " * 2_000_000, {}))
    with serving(endless) as recorded, pytest.raises(CaptureError, match="longer than"):
        fetch(replace(quick(recorded), answer_bytes=1 << 20), WANTED, tmp_path)


def test_secrets_are_sent_and_kept_nowhere(tmp_path: Path) -> None:
    login, token = tmp_path / "login", tmp_path / "token"
    login.write_text(f"me:{SECRET}")
    token.write_text(SECRET)
    with serving(Recorded(series())) as recorded:
        for secrets, expected in (
            (PrometheusSecrets(token_file=token), f"Bearer {SECRET}"),
            (PrometheusSecrets(login_file=login), "Basic bWU6czNjcjN0LXRva2VuLW9mLXByb21ldGhldXM="),
        ):
            options = replace(quick(recorded), secrets=secrets, org_id="tenant-1")
            fetch(options, WANTED, tmp_path / "out" / expected[:5])
            assert {one.get("authorization") for one in recorded.headers} == {expected}
            assert {one.get("x-scope-orgid") for one in recorded.headers} == {"tenant-1"}
            recorded.headers.clear()
            assert SECRET not in repr(options)
    kept = [path for path in (tmp_path / "out").rglob("*.gz") if SECRET.encode() in gzip.decompress(path.read_bytes())]
    assert kept == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "http://user:hunter2@x"},
        {"url": "ftp://x"},
        {"url": "http://x/../y"},
        {"url": "http://x?query=1"},
        {"matchers": 'a="b"} or {x="y"'},
        {"matchers": "a=b"},
        {"org_id": "a\r\nb: c"},
        {"broker_names": ("no labels:8080",)},
        {"broker_names": ("{pod.__class__}:8080",)},
        {"broker_names": ("{pod}",)},
        {"attempts": 0},
    ],
)
def test_odd_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(CaptureError) as refused:
        replace(PrometheusOptions("http://x:9090"), **wrong).check()  # type: ignore[arg-type]
    assert "hunter2" not in str(refused.value)


def test_rates_of_counters_stand_in_for_missing_gauges() -> None:
    """OpenTelemetry has no rates: two samples of each counter give them."""
    labels = {"pulsar_topic": "persistent://a/b/c", "pulsar_partition_index": "3", "instance": "broker-0:9464"}
    name = "pulsar_broker_topic_message_incoming_count_total"
    values = [[START_S - 60, "0"], [START_S, "600"]]
    with serving(Recorded([{"metric": {"__name__": name, **labels}, "values": values}])) as recorded:
        ((title, answer),), _ = answers_at(quick(recorded), START_S * 1_000)
    (one,) = json.loads(answer)["data"]["result"]
    assert title == "counters from Prometheus"
    assert one["metric"]["__name__"] == "pulsar_in_messages_total"
    assert one["metric"]["instance"] == "broker-0:8080"
    assert topic_of(one["metric"]) == "persistent://a/b/c-partition-3"


def test_labels_as_the_broker_wrote_them() -> None:
    exported = {"instance": "federation:9090", "exported_instance": "broker-1:8080", "exported_cluster": "pulsar"}
    assert broker_of(normalised(exported)) == ("broker-1:8080", "instance")
    assert "cluster" not in normalised(exported)
    rule = BrokerRule("{kubernetes_pod_name}.svc:8080")
    assert rule.of({"kubernetes_pod_name": "broker-2"}) == "broker-2.svc:8080"
    assert rule.of({"pod": "broker-2"}) == rule.of({"kubernetes_pod_name": "a b"}) == ""
    assert BrokerRule("{instance_host}:8443").of({"instance": "broker-3:8080"}) == "broker-3:8443"


def test_why_no_answer_came_is_said_without_numbers_of_the_system() -> None:
    """It began with `[Errno 111]`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        options = PrometheusOptions(url=url, secrets=PrometheusSecrets(token_env=""), attempts=1)
        with pytest.raises(CaptureError, match=r"The address cannot be reached: Connection refused\."):
            answers_at(options, START_S * 1_000)


def test_a_survey_names_brokers_behind_one_address_by_their_pods(tmp_path: Path) -> None:
    """It listed the gateway as the only broker, and so did the history that was fetched."""
    every = [
        {
            "metric": {"__name__": "pulsar_lb_cpu_usage", "instance": "gateway:80", "kubernetes_pod_name": f"mq-{n}"},
            "values": [[START_S + 60 * i, str(10 + n)] for i in range(61)],
        }
        for n in range(2)
    ]
    with serving(Recorded(every)) as recorded:
        assert survey(quick(recorded), WANTED.end_ms).brokers == ("mq-0", "mq-1")
        done = fetch(quick(recorded), WANTED, tmp_path)
    pods: set[str] = set()
    for path in done.folder.glob("*.json.gz"):
        for record in records_of_export(io.BytesIO(gzip.decompress(path.read_bytes())), "x", Tally()):
            assert isinstance(record, Record)
            pods.add(names_in(record.text)[0])
    assert pods == {"mq-0", "mq-1"}
