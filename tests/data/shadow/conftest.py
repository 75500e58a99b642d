"""A busy cluster, and what its leader sheds."""

import pytest

from planner.cluster.snapshot import Snapshot
from planner.shadow.follow import shadow_step
from planner.shadow.state import ShadowState
from tests.app.simulate.traces import cluster
from tests.data.shadow.captures import BUSY, THRESHOLD, at


@pytest.fixture
def busy() -> Snapshot:
    """Three brokers, the first one of which is too busy."""
    return cluster((0.8, 0.2, 0.2), BUSY, settings=THRESHOLD)


@pytest.fixture
def chosen(busy: Snapshot) -> dict[str, int]:
    """What the leader sheds, and to where."""
    _, result = shadow_step(ShadowState(), at(busy, 0), at(busy, 10))
    moves = result.prediction.decision.moves
    assert moves
    return {m.bundle: busy.brokers.position[m.destination or ""] for m in moves}
