"""What a simulation rejects."""

from typing import Any

import pytest

from planner.cluster.errors import ScenarioError
from planner.simulate.assumptions import Assumptions
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.edits.set_anti_affinity import SetAntiAffinity
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from tests.app.simulate.small_runs import QUIET, quiet, run, small


class TestErrors:
    @pytest.mark.parametrize(
        "edit",
        [
            RemoveBroker(broker="nobody:8080"),
            MoveBundle(bundle="no/where/0x00000000_0xffffffff"),
            ScaleTraffic(scope="namespace", target="no/where"),
            ScaleTraffic(scope="topic", target="persistent://no/where/topic"),
            SetAntiAffinity(namespace="no/where", group="g"),
        ],
    )
    def test_what_is_not_there_is_named(self, edit: Any) -> None:
        with pytest.raises(ScenarioError, match="no "):
            quiet(small(), edit)

    def test_a_run_can_be_stopped(self) -> None:
        done: list[int] = []
        trace = simulate(
            small(),
            Scenario(cycles=50),
            progress=lambda cycle, _: done.append(cycle),
            cancelled=lambda: len(done) >= 3,
        )
        assert not trace.complete
        assert len(trace.cycles) == 3
        assert done == [1, 2, 3]

    def test_cpu_costs_can_be_given(self) -> None:
        snapshot = small()
        assumptions = Assumptions(cpu_model="fixed", cpu_percent_per_mb_per_s=0, cpu_percent_per_1000_msg_per_s=0)
        trace = run(snapshot, ScaleTraffic(factor=5), settings=QUIET, assumptions=assumptions)
        used = trace.cycles[0].state.cpu_demand_percent
        assert used == pytest.approx(snapshot.brokers.cpu_usage_percent)
