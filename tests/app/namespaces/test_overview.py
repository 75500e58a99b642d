"""Every namespace in a row, and what simulations do to each: against plain sums over bundles and events."""

import numpy as np
import pytest

from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.explain.isolation import allowed_brokers
from planner.namespaces.impact import growing, impact, split_forecasts
from planner.namespaces.overview import namespaces_frame, owner_shares, tenants_frame
from planner.namespaces.population import population_of
from planner.simulate.moves import disconnections
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from planner.simulate.trace import Trace
from planner.workspace.samples import load_sample, samples


@pytest.fixture(scope="module")
def story() -> Snapshot:
    return load_sample(samples()[0])


@pytest.fixture(scope="module")
def trace(story: Snapshot) -> Trace:
    return simulate(story, unchanged(story.info.pulsar_version))


def test_rows_are_sums_over_the_bundles_and_the_worst_is_first(story: Snapshot) -> None:
    frame = namespaces_frame(story)
    assert sorted(frame["namespace"]) == sorted(story.namespaces)
    above = frame["above an even part (%)"].tolist()
    assert above == sorted(above, reverse=True)
    bundles = story.bundles
    for row in frame.to_dict("records"):
        mine = np.flatnonzero(bundles.namespace == story.namespaces.index(row["namespace"]))
        assert row["bundles"] == len(mine)
        assert row["topics"] == bundles.topics[mine].sum()
        assert row["clients"] == (bundles.producers + bundles.consumers)[mine].sum()
        assert row["brokers"] == len(allowed_brokers(story, row["namespace"]))
        rate, size = bundles.msg_rate_per_s(mine), bundles.throughput_bytes_per_s(mine)
        weight = (rate / rate.sum() + size / size.sum()) / 2
        assert row["largest bundle (%)"] == pytest.approx(weight.max() * 100)
        by_owner = np.bincount(bundles.owner[mine], weights=weight)
        assert row["busiest broker (%)"] == pytest.approx(by_owner.max() * 100)
        assert owner_shares(story, row["namespace"])["share (%)"].sum() == pytest.approx(100)
        topics = population_of(story, row["namespace"])
        assert row["hottest topic"] == topics.name[topics.heaviest()].as_py()
    tenants = tenants_frame(frame)
    assert tenants["topics"].sum() == frame["topics"].sum()
    assert tenants["namespaces"].sum() == len(frame)


def test_what_happens_adds_up_over_the_namespaces(story: Snapshot, trace: Trace) -> None:
    found = [impact(trace, name) for name in story.namespaces]
    closed = [one for cycle in disconnections(trace) for one in cycle]
    assert sum(one.topics for one in found) == sum(one.topics for one in closed) > 0
    assert sum(len(one.events) for one in found) == sum(bool(one.bundle) for one in trace.events)
    assert {one.minutes for one in found} == {30.0}
    assert any("Nothing happens" in one.text for one in found)


def test_forecast_counts_the_splits_of_each_namespace(trace: Trace) -> None:
    found = {one.namespace: one for one in split_forecasts(trace, trace.end)}
    splits = [one for one in trace.events if one.kind == "split"]
    assert {one.bundle.rpartition("/")[0] for one in splits} == set(found)
    for name, one in found.items():
        mine = [event for event in splits if event.bundle.rpartition("/")[0] == name]
        assert one.splits == len(mine)
        assert one.after == one.bundles + sum(len(event.children) - 1 for event in mine)
        assert one.settings[0] in one.text


def test_growth_lasts_as_long_as_asked_and_reaches_its_factor(story: Snapshot) -> None:
    scenario = growing(story, 0.5, 3.0)
    assert scenario.cycles == 30
    grown = simulate(story, scenario)
    assert grown.end.bundles.msg_rate_per_s().sum() > 2.5 * story.bundles.msg_rate_per_s().sum()
    assert sum(one.splits for one in split_forecasts(grown, grown.end)) > 8
    assert growing(story, 1, 1).steps == ()


@pytest.mark.parametrize(("hours", "factor"), [(0, 1), (1_000, 1), (1, -1), (1, 1e9)])
def test_a_forecast_out_of_range_is_refused(story: Snapshot, hours: float, factor: float) -> None:
    with pytest.raises(PlannerError, match="is out of range"):
        growing(story, hours, factor)
