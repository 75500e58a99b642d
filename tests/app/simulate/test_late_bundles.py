"""What a leader looks at for a moment is what it would keep of that moment."""

from typing import Any

import numpy as np
import pytest

from planner.cluster.snapshot import Snapshot
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.drain_broker import DrainBroker
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.generate import generate
from planner.simulate.late_bundles import LateBundles
from planner.simulate.leader_view import LeaderView
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step

_GLANCE = LeaderView.glance
_START = generate(ClusterSpec(brokers=4, bundles=60, topics=900, msg_rate_per_s=60_000.0, ownership_skew=0.8), seed=3)
_SPLITS = {"loadBalancerNamespaceBundleMaxMsgRate": "400", "loadBalancerNamespaceMaximumBundles": "200"}
_EDITS = (
    Step(KillBroker(broker=_START.brokers.name[1], at_min=3)),
    Step(DrainBroker(broker=_START.brokers.name[2], at_min=9)),
)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Snapshot]:
    """Each look, which is compared with a view of the same moment."""
    found: list[Snapshot] = []

    def compared(self: LeaderView, at_ms: int) -> Snapshot:
        seen, kept = _GLANCE(self, at_ms), self._make(at_ms)
        for name in kept.bundles.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(seen.bundles, name), getattr(kept.bundles, name), name)
        assert tuple(seen.bundle_names) == kept.bundle_names
        assert dict(seen.bundle_position) == dict(kept.bundle_position)
        assert seen.bundle_name_hashes.tolist() == kept.bundle_name_hashes.tolist()
        found.append(seen)
        return seen

    monkeypatch.setattr(LeaderView, "glance", compared)
    return found


def test_each_column_is_that_of_a_view(looks: list[Snapshot]) -> None:
    trace = simulate(_START, Scenario(cycles=12, settings=_SPLITS, steps=_EDITS))
    kinds = {event.kind for cycle in trace.cycles for event in cycle.events}
    assert {"split", "placed"} <= kinds
    assert any(isinstance(seen.bundles, LateBundles) for seen in looks)


def test_a_look_ends_when_the_leader_knows_something_else(looks: list[Snapshot]) -> None:
    simulate(_START, Scenario(cycles=12, settings=_SPLITS, steps=_EDITS))
    first = next(seen for seen in looks if isinstance(seen.bundles, LateBundles))
    del first.bundles.__dict__["owner"]
    with pytest.raises((RuntimeError, ReferenceError)):
        _ = first.bundles.owner


class _Known:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def column(self, name: str, version: int) -> Any:
        """See `Columns`."""
        self.asked.append(f"{name} {version}")
        return np.array([len(self.asked)])


def test_nothing_is_worked_out_before_somebody_asks() -> None:
    known = _Known()
    table = LateBundles.of(known, 7)
    assert table.owner is table.owner
    assert known.asked == ["owner 7"]
    with pytest.raises(AttributeError, match="leader"):
        _ = table.leader
