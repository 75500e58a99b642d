"""A best plan ends on a real modular cluster as it says, and stays where it says so."""

from pathlib import Path

import pytest

from tests.cluster.best_plan import carry_out_the_best_plan
from tests.cluster.scene import Scene

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1500)]


def test_best_plan(modular: Scene, tmp_path: Path) -> None:
    carry_out_the_best_plan(modular, tmp_path, {"loadBalancerBrokerThresholdShedderPercentage": 100})
