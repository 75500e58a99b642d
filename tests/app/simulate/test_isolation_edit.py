"""A policy that is set again keeps what the edit does not say: Pulsar replaces the whole policy."""

from dataclasses import replace

from planner.cluster.snapshot import IsolationPolicy, Snapshot
from planner.share.commands import plan_commands
from planner.simulate.edits.set_isolation import SetIsolation
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from tests.app.remedy.operator_reports import bundles, cluster


def guarded() -> Snapshot:
    made = cluster(3, bundles("vip/a", (1, 2, 3)))
    policy = IsolationPolicy("vip", ("vip/.*",), ("b1",), (), 1, 70)
    return replace(made, policies=replace(made.policies, isolation=(policy,)))


def test_the_usage_threshold_stays() -> None:
    edit = SetIsolation(name="vip", namespaces=("vip/.*",), primary=("b1", "b2"))
    trace = simulate(guarded(), unchanged("4.2.4", steps=(Step(edit),), cycles=1))
    (policy,) = trace.end.policies.isolation
    assert (policy.primary, policy.usage_threshold_percent) == (("b1", "b2"), 70)
    assert any("min_limit=1,usage_threshold=70" in one.line for one in plan_commands(trace))


def test_one_that_is_named_is_taken_and_a_new_policy_has_the_usual_one() -> None:
    named = SetIsolation(name="vip", namespaces=("vip/.*",), primary=("b1",), usage_threshold_percent=90)
    new = SetIsolation(name="new", namespaces=("x/.*",), primary=("b1",))
    trace = simulate(guarded(), unchanged("4.2.4", steps=(Step(named), Step(new)), cycles=1))
    assert {one.name: one.usage_threshold_percent for one in trace.end.policies.isolation} == {"vip": 90, "new": 100}
