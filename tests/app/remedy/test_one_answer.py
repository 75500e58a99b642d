"""One page gives one answer: no finding or action contradicts, or rests on, what another finding says."""

from dataclasses import replace

import numpy as np
import pytest

from planner.cluster.snapshot import Snapshot
from planner.explain.doubt import doubt_about
from planner.explain.setting_rules import setting_findings
from planner.simulate.edits.registry import MachineChange
from planner.simulate.scenario import Scenario, Step
from tests.app.remedy.operator_reports import Asked, bundles, cluster, isolation

APART = bundles("p/d", (1,) * 10 + (2,) * 2 + (3,) * 2, 8.0)
MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"


def test_a_gate_that_waits_for_a_value_is_not_said_to_have_none() -> None:
    """The one finding said that no value opens it, the other one which value does."""
    made = cluster(3, APART, manager="extensible", settings={"loadBalancerBrokerLoadDataTTLInSeconds": 5})
    seen = replace(made.brokers, weighted_max_ema=np.array([0.85, 0.21, 0.21]))
    asked = Asked(replace(made, brokers=replace(seen, updated_at_ms=np.full(3, made.info.captured_at_ms))))
    assert "held_by_gate" not in asked.codes
    finding = asked.tried("load_data_expires").finding
    assert finding.changes == {"loadBalancerBrokerLoadDataTTLInSeconds": 1800}
    assert "The finding is gone." in finding.tried


@pytest.mark.parametrize("std", [0.5, 0.9, 25])
def test_no_value_is_offered_that_a_finding_objects_to(std: float) -> None:
    """Of a deviation that no cluster exceeds, twice as much was advised."""
    rows = bundles("p/d", (1, 2, 3) * 8, 5.0)
    made = cluster(4, rows, manager="extensible", settings={"loadBalancerBrokerLoadTargetStd": std})
    asked = Asked(made)
    assert "threshold_never_acts" in asked.codes
    fix = asked.fix()
    offered = [dict(one.changes) for one in asked.findings]
    offered += [dict(one.action.settings) for one in (fix.best, fix.pair, *fix.others) if one is not None]
    for changes in offered:
        config = made.settings.changed(**changes)
        codes = {one.code for one in setting_findings(config) if not changes.keys().isdisjoint(one.settings)}
        assert "threshold_never_acts" not in codes, changes


def without(made: Snapshot, column: str, at: int) -> Snapshot:
    values = getattr(made.brokers, column).copy()
    values[at] = 0
    return replace(made, brokers=replace(made.brokers, **{column: values}))


@pytest.mark.parametrize("column", ["cpu_limit_percent", "cpu_usage_percent"])
def test_moves_onto_a_broker_whose_cpu_is_not_seen_are_doubted(column: str) -> None:
    """It looked idle, and bundles of all others were to be moved there."""
    made = without(cluster(3, bundles("p/d", (1, 2, 3) * 6, 9.0, msg_per_s=1_000.0)), column, 1)
    asked = Asked(made)
    assert "b2:8080" in asked.fix().doubt
    doubt = doubt_about(made)
    assert "b2:8080" in doubt.sentence
    assert not doubt.everywhere
    assert "impossible_measurement" in asked.codes
    assert not doubt_about(cluster(3, bundles("p/d", (1, 2, 3) * 6, 9.0, msg_per_s=1_000.0))).sentence


def test_a_network_that_is_not_seen_is_doubted_where_it_would_count() -> None:
    made = cluster(3, bundles("p/d", (1, 2, 3) * 6, 9.0), cpu_percent=(30, 20, 30))
    assert not doubt_about(without(made, "bandwidth_in_limit_kbit_per_s", 1)).sentence
    slow = np.full(3, 1e6)
    made = replace(made, brokers=replace(made.brokers, bandwidth_in_limit_kbit_per_s=slow))
    assert "b2:8080" in doubt_about(without(made, "bandwidth_in_limit_kbit_per_s", 1)).sentence


def test_a_scenario_that_says_how_many_cores_there_are_is_believed() -> None:
    made = without(cluster(3, bundles("p/d", (1, 2, 3) * 6, 9.0)), "cpu_limit_percent", 1)
    edit = MachineChange(brokers=("b2:8080",), cores=4)
    assert doubt_about(made).sentence
    assert not doubt_about(made, Scenario(steps=(Step(edit),))).sentence


@pytest.mark.parametrize("manager", ["modular", "extensible"])
def test_brokers_of_another_load_manager_are_why_nothing_is_placed_there(manager: str) -> None:
    """No rule of placement was to blame, and no command moves a bundle there."""
    rows = bundles("p/d", (1,) * 12, 6.0)
    made = cluster(3, rows, manager=manager, settings={"loadBalancerBundleUnloadMinThroughputThreshold": 0})
    leads, other = (MODULAR, EXTENSIBLE) if manager == "modular" else (EXTENSIBLE, MODULAR)
    mixed = replace(made, brokers=replace(made.brokers, load_manager_class=(leads, other, other)))
    codes = Asked(mixed).codes
    assert "unlike_machines" in codes
    assert "held_by_gate" not in codes
    assert "idle_broker" not in codes


@pytest.mark.parametrize("manager", ["modular", "extensible"])
def test_a_policy_that_leaves_no_broker_is_why_nothing_leaves_a_hot_one(manager: str) -> None:
    """No value opens the gate, which was said beside the expression that matches nobody."""
    rows = bundles("vip/a", (1,) * 10, 8.0) + bundles("p/d", (2, 3) * 4, 1.0)
    made = cluster(4, rows, manager=manager, policies=isolation(["B1"]))
    made = replace(made, brokers=replace(made.brokers, weighted_max_ema=np.array([0.85, 0.09, 0.09, 0.05])))
    codes = Asked(made).codes
    assert "policy_matches_no_broker" in codes
    assert "held_by_gate" not in codes


@pytest.mark.parametrize("manager", ["modular", "extensible"])
def test_bundles_of_pulsars_own_are_named_where_they_keep_a_broker_busy(manager: str) -> None:
    """The number of reported bundles was blamed, and no bundle that can be reported carries the traffic."""
    rows = bundles("pulsar/system", (1,) * 4, 20.0) + bundles("p/d", (1, 2, 3, 2), 1.0)
    made = cluster(3, rows, manager=manager)
    made = replace(made, brokers=replace(made.brokers, weighted_max_ema=np.array([0.86, 0.07, 0.06])))
    found = [one for one in Asked(made).findings if one.code == "held_by_gate"]
    if manager == "modular":
        assert all("pulsar/system" not in one.title for one in found)
        return
    (finding,) = found
    assert "by bundles of pulsar/system, which are never shed" in finding.title
    assert "99 % of its traffic" in finding.evidence
    assert "unload pulsar/system --bundle 0x" in finding.remedy
