"""Brokers that refuse a kind of topic: placement leaves them out, and the diagnosis names broker and setting."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.cluster.tables import make_topics
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.pulsar.load.top_bundles import with_top_ranks
from planner.simulate.edits.registry import BrokerLoss
from tests.app.plan.test_diagnosis_gates import asked, verdict
from tests.app.simulate.traces import cluster

SETTING = "enablePersistentTopics"


def refusing(
    usage: Sequence[float],
    off: Sequence[int],
    bundles: Mapping[int, Sequence[float]],
    *,
    manager: LoadManager = LoadManager.MODULAR,
    column: str = "persistent_topics_enabled",
) -> Snapshot:
    """Some brokers refuse a kind of topic."""
    made = cluster(usage, bundles, load_manager=manager, settings={"loadBalancerAutoBundleSplitEnabled": False})
    flags: dict[str, Any] = {column: np.array([at not in off for at in range(len(usage))])}
    return with_top_ranks(replace(made, brokers=replace(made.brokers, **flags)), made.settings)


def refused(outcome: Outcome) -> Finding:
    (found,) = [one for one in diagnose(outcome) if one.code == "topics_refused"]
    return found


FULL = {0: (10.0,) * 8, 1: (10.0,), 2: (10.0,)}


@pytest.mark.parametrize("manager", list(LoadManager))
def test_brokers_that_take_nothing_are_why_a_hot_one_keeps_its_bundles(manager: LoadManager) -> None:
    """No isolation policy is to blame: there is none."""
    outcome = asked(refusing((0.8, 0.1, 0.1), (1, 2), FULL, manager=manager), cycles=30)
    assert not outcome.summary.shed
    found = refused(outcome)
    assert found.title == f"b2:8080, b3:8080 refuse persistent topics: {SETTING} is false"
    assert found.brokers == ("b2:8080", "b3:8080")
    assert found.settings == (SETTING,)
    assert found.severity == "medium"
    assert "b2:8080 uses 10 %, the brokers that take them 80 % on average." in found.evidence
    assert ("TransferShedder pairs" in found.evidence) == (manager is LoadManager.EXTENSIBLE)
    assert "held_by_gate" not in {one.code for one in diagnose(outcome)}
    assert f"b2:8080, b3:8080 refuse persistent topics: {SETTING} is false." in verdict(outcome).text


@pytest.mark.parametrize("manager", list(LoadManager))
def test_an_idle_one_is_no_broker_that_stays_idle_by_itself(manager: LoadManager) -> None:
    made = refusing((0.8, 0.2, 0.02), (2,), {0: (10.0,) * 8, 1: (10.0,) * 2}, manager=manager)
    outcome = asked(made, cycles=30, steps=(BrokerLoss(broker="b2:8080", at_min=5),))
    assert not (outcome.last.bundles.owner == 2).any(), "nothing is placed there, also when another broker stops"
    assert refused(outcome).title == f"b3:8080 refuses persistent topics: {SETTING} is false"
    assert "idle_broker" not in {one.code for one in diagnose(outcome)}


def test_where_every_broker_refuses_them_nothing_may_be_unloaded() -> None:
    made = refusing((0.4, 0.4), (0, 1), {0: (10.0,) * 2, 1: (10.0,) * 2})
    outcome = asked(made, steps=(BrokerLoss(broker="b2:8080", at_min=1),))
    assert outcome.summary.unserved
    found = refused(asked(made))
    assert found.severity == "high"
    assert found.title == f"Every broker refuses persistent topics: {SETTING} is false"
    assert found.evidence == "Once unloaded, bundles of namespaces without an isolation policy stay without a broker."
    assert "Where" not in found.remedy


def test_a_policy_that_puts_bundles_there_all_the_same_is_critical() -> None:
    made = refusing((0.4, 0.4, 0.4), (2,), {2: (10.0,) * 4})
    made = replace(made, policies=Policies(isolation=(IsolationPolicy("only", ("acme/.*",), ("b3",)),)))
    found = refused(asked(made))
    assert found.severity == "high"
    assert len(found.bundles) == 4
    assert "which refuses its persistent topics, and 3 more." in found.evidence
    assert found.remedy.endswith("Until then, leave it out of isolation policies.")


def test_one_that_is_as_busy_as_others_is_a_note_and_no_cause() -> None:
    outcome = asked(refusing((0.5, 0.5, 0.5), (2,), {0: (10.0,) * 4, 1: (10.0,) * 4, 2: (10.0,) * 4}))
    found = refused(outcome)
    assert found.severity == "low"
    assert "uses" not in found.evidence


def test_non_persistent_topics_count_where_they_are_listed() -> None:
    bundles = {0: (10.0,) * 2, 1: (10.0,) * 2}
    made = refusing((0.4, 0.4), (1,), bundles, column="non_persistent_topics_enabled")
    assert "topics_refused" not in {one.code for one in diagnose(asked(made))}
    names = ["persistent://acme/orders/a", "non-persistent://acme/orders/b"]
    listed = make_topics(np.array([1, 2], np.uint32), name=pa.array(names), bundle=np.array([0, 1], np.int32))
    found = refused(asked(replace(made, topics=listed)))
    assert found.title == "b2:8080 refuses non-persistent topics: enableNonPersistentTopics is false"
    assert found.severity == "low"
    assert found.bundles == (made.bundle_names[1],)
