"""What Thanos answers where it has no raw samples, or does not reach a store; recorded from Thanos 0.40."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from planner.capture.prometheus import answers_at, fetch, snapshot_outputs
from planner.capture.prometheus_options import PrometheusOptions
from planner.capture.prometheus_survey import survey
from planner.cluster.errors import CaptureError
from tests.data.capture.recorded_prometheus import Answer, Recorded, serving
from tests.data.capture.test_prometheus import EVERYTHING, WANTED, quick, samples, series

DOWN = (
    "receive series from Addr: 127.0.0.1:19291 MinTime: 1767571200000 MaxTime: 9223372036854775807: rpc error: "
    'code = Unknown desc = query Prometheus: send request: Post \\"http://127.0.0.1:19191/api/v1/read\\": dial tcp '
    "127.0.0.1:19191: connect: connection refused"
)
REFUSED = (
    '{"status":"error","errorType":"execution","error":"expanding series: proxy Series(): rpc error: code = Aborted '
    f'desc = {DOWN}"}}'
)
TOO_MUCH = (
    '{"status":"error","errorType":"execution","error":"expanding series: proxy Series(): rpc error: code = Aborted '
    "desc = receive series from Addr: 127.0.0.1:19782: rpc error: code = ResourceExhausted desc = exceeded series "
    'limit: rpc error: code = ResourceExhausted desc = limit 10 violated (got 26)"}'
)
STORES = """{"status":"success","data":{"sidecar":[
{"name":"127.0.0.1:19290","lastCheck":"2026-11-27T00:13:35.116851014Z","lastError":null,
"labelSets":[{"monitor":"test","prometheus_replica":"a"}],"minTime":1767571200000,"maxTime":9223372036854775807},
{"name":"127.0.0.1:19291","lastCheck":"2026-11-27T00:13:25.115786172Z","lastError":"rpc error: code = DeadlineExceeded",
"labelSets":[{"monitor":"test","prometheus_replica":"b"}],"minTime":1767571200000,"maxTime":9223372036854775807}]}}"""
AT_MS = WANTED.end_ms - 60_000


def averages_alone(_: Recorded, __: str, given: Mapping[str, str], ___: Mapping[str, str]) -> Answer | None:
    """Answer as Thanos where the retention of raw samples has passed: only who asks for averages gets them."""
    if "query" in given and given.get("max_source_resolution") not in {"5m", "1h"}:
        kind = "matrix" if "step" in given else "vector"
        body = {"status": "success", "data": {"resultType": kind, "result": [], "analysis": {}}}
        return 200, json.dumps(body).encode(), {}
    return None


def test_raw_samples_are_asked_for_by_name(tmp_path: Path) -> None:
    """Without the parameter, a query frontend may answer with averages, and nothing in the answer says so."""
    with serving(Recorded(series())) as recorded:
        fetch(quick(recorded), WANTED, tmp_path)
        answers_at(quick(recorded), AT_MS)
        survey(quick(recorded), AT_MS)
        asked = {given["max_source_resolution"] for _, given in recorded.asked}
    assert asked == {"0s"}


def test_averages_are_named_and_not_taken(tmp_path: Path) -> None:
    said = "Raw samples are gone from some times; Thanos has averages. Use --coarsest 5m."
    with serving(Recorded(series(), averages_alone)) as recorded:
        for ask in (lambda: fetch(quick(recorded), WANTED, tmp_path), lambda: answers_at(quick(recorded), AT_MS)):
            with pytest.raises(CaptureError) as refused:
                ask()
            assert said in refused.value.remedy
        assert said in list(survey(quick(recorded), AT_MS).lines())
    with serving(Recorded([])) as recorded, pytest.raises(CaptureError) as refused:
        fetch(quick(recorded), WANTED, tmp_path / "none")
    assert "--matchers" in refused.value.remedy


def test_averages_are_taken_on_request_with_a_note(tmp_path: Path) -> None:
    note = "only averages over up to 5m are left of some times"
    with serving(Recorded(series(), averages_alone)) as recorded:
        options = replace(quick(recorded), coarsest="5m")
        done = fetch(options, WANTED, tmp_path)
        assert samples(done.folder) == EVERYTHING
        assert [note in one for one in done.notes] == [True]
        assert all(note.encode() in gzip.decompress(path.read_bytes()) for path in done.folder.glob("*.gz"))
        assert done.folder != fetch(replace(options, coarsest="1h"), WANTED, tmp_path).folder
        answers, _ = answers_at(options, AT_MS)
        assert sum(note.encode() in data for _, data in answers) == 1
    with serving(Recorded(series())) as recorded:  # where there are raw samples, they count
        done = fetch(replace(quick(recorded), coarsest="5m"), WANTED, tmp_path / "raw")
    assert not done.notes


def test_a_store_that_is_down_is_no_question_of_size(tmp_path: Path) -> None:
    """Both are status 422; asking for shorter times helps against one alone."""
    with serving(Recorded(series(), lambda *_: (422, REFUSED.encode(), {}))) as recorded:
        with pytest.raises(CaptureError, match="A store of Thanos does not answer") as refused:
            fetch(quick(recorded), WANTED, tmp_path)
        assert "--accept-partial" in refused.value.remedy
        assert len(recorded.asked) == 1
    with (
        serving(Recorded(series(), lambda *_: (422, TOO_MUCH.encode(), {}))) as recorded,
        pytest.raises(CaptureError, match="limit") as refused,
    ):
        fetch(quick(recorded), WANTED, tmp_path)
    assert "fewer series" in refused.value.remedy


def partial(recorded: Recorded, path: str, given: Mapping[str, str], headers: Mapping[str, str]) -> Answer | None:
    """Answer as a server that may leave a store out: Thanos warns then, VictoriaMetrics marks the answer."""
    if given.get("partial_response") != "true" or given.get("deny_partial_response") != "0":
        return 422, REFUSED.encode(), {}
    status, body, more = Recorded(recorded.series).answer(path, dict(given), dict(headers))
    value = json.loads(body) if status == 200 else {}
    return status, json.dumps({**value, "warnings": ["store 1 is down"], "isPartial": True}).encode(), more


def test_partial_answers_are_accepted_on_request(tmp_path: Path) -> None:
    with serving(Recorded(series(), partial)) as recorded:
        options = replace(quick(recorded), accept_partial=True)
        done = fetch(options, WANTED, tmp_path)
        assert samples(done.folder) == EVERYTHING
        assert sum("the answer is partial" in note for note in done.notes) == 1
        assert sum("store 1 is down" in note for note in done.notes) == 1
        warnings = snapshot_warnings(options)
    assert sum("store 1 is down" in text for text in warnings) == 1


def snapshot_warnings(options: PrometheusOptions) -> tuple[str, ...]:
    reading = snapshot_outputs(options, AT_MS)
    return (*reading.not_used, *reading.assumed)


def test_a_store_that_is_not_reached_is_named(tmp_path: Path) -> None:
    """Thanos answers without it and without a warning, even where partial answers are forbidden."""

    def unreached(_: Recorded, path: str, __: Mapping[str, str], ___: Mapping[str, str]) -> Answer | None:
        return (200, STORES.encode(), {}) if path.endswith("/stores") else None

    said = "Thanos does not reach its store 127.0.0.1:19291. What it alone has is missing."
    with serving(Recorded(series(), unreached)) as recorded:
        assert fetch(quick(recorded), WANTED, tmp_path).notes == (said,)
        assert survey(quick(recorded), AT_MS).notes == (said,)
        assert answers_at(quick(recorded), AT_MS)[1] == (said,)
        assert said in snapshot_outputs(quick(recorded), AT_MS).assumed


def test_the_tenant_of_thanos_has_a_header_of_its_own(tmp_path: Path) -> None:
    with serving(Recorded(series())) as recorded:
        fetch(replace(quick(recorded), org_id="team-a"), WANTED, tmp_path)
        assert {one.get("thanos-tenant") for one in recorded.headers} == {"team-a"}
        recorded.headers.clear()
        fetch(quick(recorded), WANTED, tmp_path / "none")
        assert {one.get("thanos-tenant") for one in recorded.headers} == {None}


def test_counters_are_asked_for_where_topics_have_no_rates() -> None:
    """Bundles may have rates of their own where topics have counters alone."""
    base = {"cluster": "east", "instance": "broker-0:8080"}
    span = {"bundle": "a/b/0x00000000_0xffffffff", **base}
    rows: list[dict[str, object]] = [
        *series()[:1],
        {"metric": {"__name__": "pulsar_bundle_msg_rate_in", **span}, "values": [[AT_MS / 1_000, "5"]]},
        {
            "metric": {"__name__": "pulsar_in_messages_total", "topic": "persistent://a/b/c", **base},
            "values": [[AT_MS / 1_000 - 60, "0"], [AT_MS / 1_000, "300"]],
        },
    ]
    with serving(Recorded(rows)) as recorded:
        reading = snapshot_outputs(quick(recorded), AT_MS)
    assert reading.snapshot is not None
    assert reading.snapshot.topics is not None
    assert reading.snapshot.topics.msg_rate_in_per_s.tolist() == [5.0]
