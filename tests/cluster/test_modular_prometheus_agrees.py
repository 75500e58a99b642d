"""A Prometheus and captures of the same minutes of one real cluster give the same replays, within what the docs say."""

from pathlib import Path

import pytest

from tests.cluster.agreement import compare, record
from tests.cluster.scene import Scene

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1800)]


def test_replays_agree(modular: Scene, tmp_path: Path) -> None:
    found = compare(*record(modular, tmp_path, 7.0))
    # A few minutes of a busy machine; docs/history.md has what two hours come to.
    assert found.minutes > 3, found
    assert found.owners_percent > 95, found
    assert found.rate_percent < 15, found
    assert found.throughput_percent < 15, found
    assert found.usage_points < 1, found
    assert found.peak_points < 1, found
    assert found.std_points < 1, found
    assert found.cycles[0] == found.cycles[1], found
    assert found.shed[0] > 0, found
    assert found.same_moves_percent >= 50, found
