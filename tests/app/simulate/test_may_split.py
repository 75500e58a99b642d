"""The modular leader looks for bundles to split only when there is one."""

from collections import Counter

import pytest

from planner.pulsar.splitting import automatic_modular
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.leader_view import LeaderView
from tests.app.simulate.small_runs import run, small

_LIMITS = {
    "loadBalancerNamespaceBundleMaxTopics": 14,
    "loadBalancerNamespaceBundleMaxSessions": 52,
    "loadBalancerNamespaceBundleMaxMsgRate": 20_000,
}
_BEYOND = 1_000_000


@pytest.mark.parametrize("limit", _LIMITS)
def test_the_leader_looks_for_splits_just_when_it_finds_one(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    may_split, seen = LeaderView.may_split, Counter[tuple[bool, bool]]()

    def asked(view: LeaderView) -> bool:
        may = may_split(view)
        found = automatic_modular.decide_cycle(view.view(0), view.config, explain=False)
        seen[may, bool(found.splits)] += 1
        return may

    monkeypatch.setattr(LeaderView, "may_split", asked)
    limits = {name: value if name == limit else _BEYOND for name, value in _LIMITS.items()}
    run(small(), ScaleTraffic(factor=3, shape="growth", duration_min=12), cycles=15, settings=limits)
    assert seen[True, True]
    assert seen[False, False] > 2
    assert not seen[False, True]
    assert seen[True, False] <= seen[True, True], "it looks far too often"
