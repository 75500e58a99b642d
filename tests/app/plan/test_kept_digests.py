"""What earlier versions named by a digest keeps its name: snapshots, links, plans; and their workspaces open."""

import gzip
import json
from functools import cache
from pathlib import Path

import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.snapshot import Snapshot
from planner.formats.reading import read_snapshot
from planner.share.link import decode_link, encode_link, scenario_digest
from planner.simulate.run import simulate
from planner.workspace.database import open_workspace

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "tests" / "goldens" / "digests"
LINES = [json.loads(line) for line in (KEPT / "digests.jsonl").read_text(encoding="utf-8").splitlines()]


@cache
def sample(name: str) -> Snapshot:
    return read_snapshot(ROOT / "sample_snapshots" / name)


@pytest.mark.parametrize("line", [line for line in LINES if "digest" in line], ids=lambda line: str(line["sample"]))
def test_samples_keep_their_digests(line: dict[str, str]) -> None:
    assert snapshot_digest(sample(line["sample"])) == line["digest"]


@pytest.mark.parametrize("name", sorted({line["sample"] for line in LINES if "link" in line}))
def test_links_open_to_the_plans_they_were_made_for(name: str) -> None:
    snapshot = sample(name)
    for line in LINES:
        if line["sample"] == name and "link" in line:
            linked = decode_link(line["link"])
            assert linked.scenario is not None
            assert encode_link(linked.scenario, snapshot_digest(snapshot), name) == line["link"]
            assert scenario_digest(linked.scenario) == line["scenario_digest"]
            assert simulate(snapshot, linked.scenario).digest() == line["plan_digest"]


def test_a_workspace_of_the_first_version_opens(tmp_path: Path) -> None:
    file = tmp_path / "planner.duckdb"
    file.write_bytes(gzip.decompress((KEPT / "workspace.duckdb.gz").read_bytes()))
    workspace = open_workspace(file)
    try:
        digests = {saved.name: saved.digest for saved in workspace.saved()}
        assert digests == {
            line["sample"]: line["digest"]
            for line in LINES
            if "digest" in line and line["sample"] in {"pip-364.json", "real-modular.json"}
        }
        (kept,) = workspace.scenarios.list()
        assert scenario_digest(workspace.scenarios.load(kept.digest)) == kept.digest
    finally:
        workspace.close()
