"""A strategy declares the columns that it needs, and a decision names those that a snapshot does not have."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BrokerTable, BundleTable, column_info
from planner.pulsar.manager.cycle import next_cycle
from planner.pulsar.shedding.needs import MESSAGE_RATES, THROUGHPUT, USAGE, lacking
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS
from planner.share.plan_text import plan_text
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged


def without(snapshot: Snapshot, *words: str) -> Snapshot:
    """Return a snapshot in which columns with these words in their names are zero."""
    tables: dict[str, Any] = {"brokers": snapshot.brokers, "bundles": snapshot.bundles}
    for part, table in tables.items():
        gone = [info.name for info in column_info(type(table)) if any(word in info.name for word in words)]
        tables[part] = replace(table, **{name: np.zeros_like(getattr(table, name)) for name in gone})
    return snapshot.with_columns(**tables)


def under(shedder: Shedder) -> Snapshot:
    cluster = generate(ClusterSpec(load_manager=shedder.load_manager, brokers=4, bundles=12, topics=60), 3)
    name = shedder.java_class
    return replace(cluster, settings=cluster.settings.changed(loadBalancerLoadSheddingStrategy=name))


def told(snapshot: Snapshot) -> list[str]:
    notes = next_cycle(snapshot, None, snapshot.settings, 0)[1].notes
    return [note for note in notes if "is decided here without" in note]


@pytest.mark.parametrize("shedder", SHEDDERS, ids=lambda one: one.name)
def test_each_strategy_declares_columns_that_there_are(shedder: Shedder) -> None:
    needs = shedder.profile.needs
    assert needs
    for table, columns in (
        (BrokerTable, {name for need in needs for name in need.brokers}),
        (BundleTable, {name for need in needs for name in need.bundles}),
    ):
        assert columns <= {info.name for info in column_info(table)}


@pytest.mark.parametrize("shedder", SHEDDERS, ids=lambda one: one.name)
def test_nothing_is_said_of_a_snapshot_that_has_it_all(shedder: Shedder) -> None:
    assert told(under(shedder)) == []


@pytest.mark.parametrize("shedder", SHEDDERS, ids=lambda one: one.name)
def test_what_is_missing_is_named_where_the_strategy_needs_it(shedder: Shedder) -> None:
    needs = shedder.profile.needs
    rates = told(without(under(shedder), "msg_rate"))
    assert bool(rates) is (MESSAGE_RATES in needs)
    if rates:
        assert rates == [f"{shedder.name} is decided here without message rates. The snapshot does not contain this."]
    assert bool(told(without(under(shedder), "throughput"))) is any("throughput" in need.what for need in needs)


def test_a_cluster_without_traffic_lacks_nothing() -> None:
    idle = without(under(SHEDDERS[0]), "msg_rate", "throughput")
    assert lacking(idle, (USAGE, MESSAGE_RATES, THROUGHPUT)) == ()


def test_limits_are_needed_for_usage() -> None:
    (avg,) = (one for one in SHEDDERS if one.profile.pairs is not None)
    assert avg.load_manager is LoadManager.MODULAR
    assert "without the CPU and network limits of brokers." in told(without(under(avg), "limit"))[0]


def test_plans_say_it_too() -> None:
    (avg,) = (one for one in SHEDDERS if one.profile.pairs is not None)
    snapshot = without(under(avg), "msg_rate")
    text = plan_text(simulate(snapshot, unchanged(snapshot.info.pulsar_version, cycles=2)), "", ())
    assert "AvgShedder is decided here without message rates." in text
