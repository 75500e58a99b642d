"""The averages of a modular leader are the same whether samples wait, as in large clusters, or are taken at once."""

from dataclasses import fields

import numpy as np
import pytest

from planner.cluster.tables import BundleTable
from planner.simulate import leader_averages
from planner.simulate.trace import Trace
from tests.app.plan.random_scenarios import random_plan
from tests.app.simulate.small_runs import small

_AVERAGES = [one.name for one in fields(BundleTable) if one.name.startswith(("short_term", "long_term"))]


def _is_same(waited: Trace, at_once: Trace) -> None:
    assert waited.events == at_once.events
    for late, early in zip(waited.cycles, at_once.cycles, strict=True):
        np.testing.assert_array_equal(late.view.bundles.has_data, early.view.bundles.has_data)
        for name in _AVERAGES:
            mine, theirs = (getattr(cycle.view.bundles, name) for cycle in (late, early))
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("seed", range(40))
def test_samples_that_wait_come_to_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = small(seed=seed, ownership_skew=seed % 3 / 2)
    at_once = random_plan(snapshot, seed, most_cycles=20)
    monkeypatch.setattr(leader_averages, "_MANY", 0)
    _is_same(random_plan(snapshot, seed, most_cycles=20), at_once)
