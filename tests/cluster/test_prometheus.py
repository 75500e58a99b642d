"""A real Prometheus becomes a history and a snapshot."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from planner.__main__ import main
from planner.cluster.moments import iso_moment
from planner.cluster.snapshot import Snapshot
from planner.formats.reading import read_snapshot
from planner.history.days import read_day
from planner.history.generate import snapshots_of_day
from planner.history.manifest import complete_days
from planner.history.raw import prometheus_series
from planner.history.spec import HistorySpec
from planner.simulate.cluster_spec import ClusterSpec
from tests.cluster.prometheus import as_open_metrics, prometheus, target

pytestmark = pytest.mark.cluster

SPEC = HistorySpec(
    cluster=ClusterSpec(brokers=3, namespaces=3, bundles=24, topics=60, cluster="east"),
    first_day="2026-01-05",
    days=1,
    interval_s=300,
    restarts_per_day=0,
    splits_per_day=0,
    topics=True,
)


def snapshots() -> list[Snapshot]:
    return [one for one in snapshots_of_day(SPEC, 5, 0) if one.info.captured_at_ms % 86_400_000 < 3 * 3_600_000]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    text = as_open_metrics(prometheus_series(snapshots(), 300_000))
    with prometheus(tmp_path_factory.mktemp("prometheus"), filled=text) as url:
        yield url


def days_of(history: Path) -> list[Snapshot]:
    return [one for day in complete_days(history) for one in read_day(day.path)]


def test_a_history_has_what_was_scraped(server: str, tmp_path: Path) -> None:
    out = tmp_path / "history"
    arguments = ["--from", "2026-01-05", "--to", "2026-01-05T03:00:00Z", "--step-s", "300", "--out", str(out)]
    assert main(["history", "ingest", "--prometheus", server, *arguments, "--interval-s", "300"]) == 0
    made = {one.info.captured_at_ms: one for one in days_of(out)}
    for wanted in snapshots():
        found = made[wanted.info.captured_at_ms]
        assert found.info.cluster == "east"
        assert found.brokers.name == wanted.brokers.name
        place = [found.bundle_position[name] for name in wanted.bundle_names]
        assert found.bundles.owner[place].tolist() == wanted.bundles.owner.tolist()
        rates = found.bundles.msg_rate_in_per_s[place]
        assert np.allclose(rates, np.where(wanted.bundles.has_stats, wanted.bundles.msg_rate_in_per_s, 0))
        usage = wanted.brokers.cpu_usage_percent / wanted.brokers.cpu_limit_percent * 100
        assert np.allclose(found.brokers.cpu_usage_percent, usage)
    before = {path: path.stat().st_mtime_ns for path in (out / "fetched").rglob("*.gz")}
    assert before
    arguments[3] = "2026-01-05T02:00:00Z"
    assert main(["history", "ingest", "--prometheus", server, *arguments, "--interval-s", "300"]) == 0
    assert {path: path.stat().st_mtime_ns for path in (out / "fetched").rglob("*.gz")} == before


def test_a_moment_becomes_a_snapshot(server: str, tmp_path: Path) -> None:
    wanted = snapshots()[5]
    at = iso_moment(wanted.info.captured_at_ms)
    assert main(["snapshot", "--prometheus", server, "--at", at, "--out", str(tmp_path / "s.zip")]) == 0
    found = read_snapshot(tmp_path / "s.zip")
    assert found.info.captured_at_ms == wanted.info.captured_at_ms
    assert found.brokers.name == wanted.brokers.name
    owned = {
        (name, found.brokers.name[owner])
        for name, owner in zip(found.bundle_names, found.bundles.owner.tolist(), strict=True)
        if owner >= 0
    }
    expected = {
        (name, wanted.brokers.name[owner])
        for name, owner in zip(wanted.bundle_names, wanted.bundles.owner.tolist(), strict=True)
        if wanted.bundles.has_stats[wanted.bundle_position[name]]
    }
    assert expected <= owned


def test_a_dry_run_reports_and_keeps_nothing(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--from", "2026-01-05", "--to", "2026-01-05T02:00:00Z", "--out", str(tmp_path / "out"), "--dry-run"]
    assert main(["history", "ingest", "--prometheus", server, *arguments]) == 0
    said = capsys.readouterr().out
    assert "3 brokers" in said
    assert "Scrape interval: 300 s" in said
    assert "repeats samples; 300 is enough" in said
    assert f"Bundles: {int(snapshots()[0].bundles.has_stats.sum())} bundles with series of their own" in said
    assert "Missing: jvm_memory_bytes_max" in said
    assert not (tmp_path / "out").exists()


BROKER = """\
pulsar_lb_cpu_usage{cluster="east",broker="BROKER",metric="loadBalancing"} 40
pulsar_lb_memory_usage{cluster="east",broker="BROKER",metric="loadBalancing"} 30
pulsar_lb_directMemory_usage{cluster="east",broker="BROKER",metric="loadBalancing"} 10
pulsar_lb_bandwidth_in_usage{cluster="east",broker="BROKER",metric="loadBalancing"} 5
pulsar_lb_bandwidth_out_usage{cluster="east",broker="BROKER",metric="loadBalancing"} 6
jvm_memory_bytes_max{area="heap"} 1073741824
process_start_time_seconds 1700000000
pulsar_bundle_msg_rate_in{cluster="east",broker="BROKER",bundle="acme/orders/RANGE",metric="bundlesData"} 12
pulsar_rate_in{cluster="east",namespace="acme/orders",topic="persistent://acme/orders/TOPIC"} 12
pulsar_topics_count{cluster="east",namespace="acme/orders"} 1
"""


def test_scraped_pods_get_the_names_of_their_brokers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pods are scraped at their IP address; a bookie and a proxy have the same metrics of Java."""
    one = BROKER.replace("BROKER", "b1.svc").replace("RANGE", "0x00000000_0x80000000").replace("TOPIC", "b")
    two = BROKER.replace("BROKER", "b2.svc").replace("RANGE", "0x80000000_0xffffffff").replace("TOPIC", "a")
    bookie = 'process_start_time_seconds 1700000000\njvm_memory_bytes_max{area="heap"} 5\n'
    with (
        target(one) as first,
        target(two) as second,
        target(bookie) as other,
        prometheus(tmp_path / "p", targets=[first, second, other]) as url,
    ):
        _until(url, tmp_path)
        found = read_snapshot(tmp_path / "s.zip")
        ports = [address.rpartition(":")[2] for address in (first, second)]
        assert sorted(found.brokers.name) == [f"b1.svc:{ports[0]}", f"b2.svc:{ports[1]}"]
        assert [found.brokers.name[owner] for owner in found.bundles.owner.tolist()] == [
            f"b1.svc:{ports[0]}",
            f"b2.svc:{ports[1]}",
        ]
        assert found.brokers.memory_limit_mib.tolist() == [1024.0, 1024.0]
        capsys.readouterr()
        named = ["--broker-names", "{pod}.cluster.local:8080", "--matchers", f'instance="{first}"', "--dry-run"]
        assert main(["snapshot", "--prometheus", url, *named]) == 0
        assert "1 broker: pod-127.0.0.1.cluster.local:8080." in capsys.readouterr().out


def _until(url: str, folder: Path) -> None:
    """Make a snapshot as soon as both brokers were scraped."""
    for _ in range(60):
        time.sleep(0.25)
        if main(["snapshot", "--prometheus", url, "--out", str(folder / "s.zip")]) == 0:
            if len(read_snapshot(folder / "s.zip").brokers) == 2:
                return
            (folder / "s.zip").unlink()
    raise AssertionError(json.dumps({"never": url}))
