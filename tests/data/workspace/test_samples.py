"""Every sample loads, is what the index says, and shows what it promises."""

import pytest

from planner.cluster.digest import snapshot_digest
from planner.pulsar.manager.cycle import next_cycle
from planner.pulsar.splitting.registry import default_split_algorithm
from planner.pulsar.splitting.request import split_request
from planner.workspace.samples import FOLDER, Sample, load_sample, sample_by_digest, samples

SMALL = [s for s in samples() if s.file.endswith(".json")]


@pytest.mark.parametrize("sample", samples(), ids=lambda s: s.file)
def test_sample_is_what_the_index_says(sample: Sample) -> None:
    assert snapshot_digest(load_sample(sample)) == sample.digest
    assert sample_by_digest(sample.digest[:12]) == sample


def test_index_lists_every_file_once() -> None:
    files = sorted(s.file for s in samples())
    assert files == sorted(p.name for p in FOLDER.iterdir() if p.name != "index.json")
    assert len({s.digest for s in samples()}) == len(files)
    assert sample_by_digest("") is None


def test_large_sample_is_small_on_disk() -> None:
    sample = next(s for s in samples() if s.file == "generated-100.zip")
    assert (FOLDER / sample.file).stat().st_size < 10_000_000
    snapshot = load_sample(sample)
    assert (len(snapshot.brokers), len(snapshot.bundles), len(snapshot.topics)) == (100, 10_000, 200_000)


MIB = 1024 * 1024
# file: [(source, destination or None, MiB/s)] in the strategy's order
MOVES: dict[str, list[tuple[str, str | None, int]]] = {
    "threshold-shedder.json": [("broker-1:8080", None, 50)],
    "threshold-shedder-80.json": [("broker-1:8080", None, 5_120)],
    "overload-shedder.json": [("broker-1:8080", None, 30)],
    "uniform-shedder-rate.json": [("broker-1:8080", None, 3)],
    "uniform-shedder-throughput.json": [("broker-1:8080", None, 70)],
    "avg-shedder.json": [("broker-5:8080", "broker-1:8080", 2)],
    "transfer-shedder.json": [("broker-3:8080", "broker-1:8080", 30)],
    "transfer-shedder-underloaded.json": [
        ("broker-4:8080", "broker-1:8080", 30),
        ("broker-3:8080", "broker-2:8080", 20),
    ],
    "transfer-shedder-swap.json": [
        ("broker-1:8080", "broker-2:8080", 4),
        ("broker-1:8080", "broker-2:8080", 8),
        ("broker-2:8080", "broker-1:8080", 38),
    ],
}


@pytest.mark.parametrize("file", MOVES)
def test_example_of_a_shedder_moves_what_it_says(file: str) -> None:
    snapshot = load_sample(next(s for s in samples() if s.file == file))
    _, decision = next_cycle(snapshot, None, snapshot.settings, 0)
    moves = [(m.source, m.destination, round(m.throughput_bytes_per_s / MIB)) for m in decision.shedding.moves]
    assert set(moves) == set(MOVES[file])


def test_lower_boundary_helps_the_idle_broker_only_when_it_is_on() -> None:
    snapshot = load_sample(next(s for s in samples() if s.file == "threshold-lower-boundary.json"))
    _, on = next_cycle(snapshot, None, snapshot.settings, 0)
    assert [m.throughput_bytes_per_s / MIB for m in on.shedding.moves] == [100]
    _, off = next_cycle(snapshot, None, snapshot.settings.changed(lowerBoundarySheddingEnabled=False), 0)
    assert off.shedding.moves == ()


CUTS = {
    "split-flow-or-qps.json": (0x1C800001, 0x2E800001, 0x48800001, 0x67000001),
    "split-topic-count.json": (0x4D000000,),
    "split-range.json": (0x40000000,),
}


@pytest.mark.parametrize("file", CUTS)
def test_example_of_a_split_cuts_where_it_says(file: str) -> None:
    snapshot = load_sample(next(s for s in samples() if s.file == file))
    algorithm = default_split_algorithm(snapshot.settings.text("defaultNamespaceBundleSplitAlgorithm"))
    assert algorithm.boundaries(split_request(snapshot, 0), snapshot.settings).boundaries == CUTS[file]


@pytest.mark.parametrize("sample", SMALL, ids=lambda s: s.file)
def test_every_broker_has_a_reason(sample: Sample) -> None:
    snapshot = load_sample(sample)
    _, decision = next_cycle(snapshot, None, snapshot.settings, 0)
    explained = {
        reason.broker
        for group in decision.shedding.reasons
        for reason in group.rows(snapshot.brokers.name, snapshot.bundle_names)
        if reason.bundle is None
    }
    assert explained == set(snapshot.brokers.name)
