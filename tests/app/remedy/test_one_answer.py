"""One page gives one answer: no finding or action contradicts, or rests on, what another finding says."""

import pytest

from planner.explain.setting_rules import setting_findings
from tests.app.remedy.operator_reports import Asked, bundles, cluster

APART = bundles("p/d", (1,) * 10 + (2,) * 2 + (3,) * 2, 8.0)
MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"


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
