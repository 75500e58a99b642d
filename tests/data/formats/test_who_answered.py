"""Answers of another broker than the one that was meant, as one address for several gives them, are nobody else's."""

from collections.abc import Callable
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from tests.data.formats.test_partial_captures import B1, B2, B3, Files, drop, edit_index


@pytest.fixture
def files(capture: Callable[[str], Files]) -> Files:
    return capture("modular")


def known(snapshot: Snapshot) -> set[str]:
    """Return the brokers whose load is known."""
    return {name for name, has in zip(snapshot.brokers.name, snapshot.brokers.has_load_data, strict=True) if has}


def test_a_load_report_of_another_broker_is_that_brokers(files: Files) -> None:
    """Behind a load balancer, each request may lead to another one."""
    whole = snapshot_of_capture(dict(files))
    drop(files, *(name for name in files if name.startswith(("zookeeper", "metrics", "prometheus"))), listed=False)
    files["load-report.b1.json"], files["load-report.b2.json"] = files["load-report.b3.json"], b""
    found = snapshot_of_capture(files)
    assert known(found) == {B3}
    at = found.brokers.name.index(B3)
    assert found.brokers.cpu_usage_percent[at] == whole.brokers.cpu_usage_percent[at]
    assert f"load-report.b1 is about {B3}, not about {B1}: another broker answered" in " ".join(found.info.warnings)


def test_topics_of_another_broker_are_that_brokers(files: Files) -> None:
    """The answer does not say whose it is; the owners of its bundles do."""
    whole = snapshot_of_capture(dict(files))
    files["topics.b1.json"], files["topics.b2.json"] = files["topics.b2.json"], files["topics.b1.json"]
    found = snapshot_of_capture(files)
    said = " ".join(found.info.warnings)
    assert f"topics.b1 has bundles of {B2} and none of {B1}: another broker answered" in said
    assert f"topics.b2 has bundles of {B1} and none of {B2}: another broker answered" in said
    assert found.bundles.owner.tolist() == whole.bundles.owner.tolist()


def test_topics_that_nobody_vouches_for_give_no_bundle_an_owner(files: Files) -> None:
    def forwarded(index: list[dict[str, Any]]) -> None:
        for entry in index:
            if entry["file"] == "topics.b1.json":
                entry["asked"] = "http://10.9.9.9:8080"

    drop(files, "zookeeper.json", "owned.b1.json", "load-report.b1.json", listed=False)
    itself = snapshot_of_capture(dict(files))
    assert (itself.bundles.owner == itself.brokers.name.index(B1)).any()
    edit_index(files, forwarded)
    found = snapshot_of_capture(files)
    assert not (found.bundles.owner == found.brokers.name.index(B1)).any()
    assert f"nothing shows that {B1} answered at http://10.9.9.9:8080" in " ".join(found.info.warnings)


@pytest.mark.parametrize("stem", ["metrics", "prometheus"])
def test_metrics_of_another_broker_are_left_out(capture: Callable[[str], Files], stem: str) -> None:
    files = capture("extensible")
    ending = {"metrics": "json", "prometheus": "txt"}[stem]
    drop(files, "system-topics.json", listed=False)
    drop(files, *(f"{other}.b{at}.{end}" for at in (1, 2, 3) for other, end in
                  (("metrics", "json"), ("prometheus", "txt")) if other != stem), listed=False)  # fmt: skip
    files[f"{stem}.b1.{ending}"] = files[f"{stem}.b3.{ending}"]
    found = snapshot_of_capture(files)
    assert known(found) == {B2, B3}
    assert f"{stem}.b1 is of 127.0.0.3, not of {B1}: another broker answered" in " ".join(found.info.warnings)
