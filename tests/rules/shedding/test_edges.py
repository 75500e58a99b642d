"""What strategies do exactly at their borders."""

from planner.pulsar.placement.filters import parse_version
from planner.pulsar.shedding import threshold
from tests.rules.shedding.test_modular_shedders import cluster, moved, why


def test_the_lower_boundary_sheds_at_exactly_the_minimum_throughput() -> None:
    """ThresholdShedder: half the threshold of its throughput leaves the highest broker; the minimum is strict."""
    # 200 MiB/s x 10 % x 0.5 = 10 MiB/s, the default of loadBalancerBundleUnloadMinThroughputThreshold.
    usages, sizes = [50.0, 48.0, 46.0, 20.0], [[20.0] * 10, [20.0] * 5, [20.0] * 5, [1.0]]
    asked = {"lowerBoundarySheddingEnabled": True}
    snapshot = cluster(usages, sizes)
    assert float(snapshot.brokers.throughput_bytes_per_s(0)) * 0.1 * 0.5 == 10 * 2**20
    assert [source for source, _ in moved(threshold.SHEDDER, snapshot, **asked)] == ["b0:8080"]
    above = moved(threshold.SHEDDER, snapshot, **asked, loadBalancerBundleUnloadMinThroughputThreshold=10.001)
    assert above == []
    told = why(threshold.SHEDDER, snapshot, "b0:8080", **asked, loadBalancerBundleUnloadMinThroughputThreshold=10.001)
    assert "10.00 MiB/s" in told


def test_previews_are_compared_identifier_by_identifier() -> None:
    """Semantic versions: of two previews with equal identifiers the one with more of them is later."""
    order = ["4.2.4-alpha", "4.2.4-alpha.1", "4.2.4-alpha.beta", "4.2.4-rc", "4.2.4-rc.1", "4.2.4-rc.1.1", "4.2.4-rc.2"]
    versions = [parse_version(text, "b1:8080") for text in [*order, "4.2.4"]]
    for at, one in enumerate(versions):
        for place, other in enumerate(versions):
            compared = one.compare(other)
            assert (compared > 0) - (compared < 0) == (at > place) - (at < place), (at, place)
