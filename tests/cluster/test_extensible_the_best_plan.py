"""A best plan ends on a real extensible cluster as it says, and stays where it says so.

The last of the extensible cluster's tests, as it leaves brokers with averages that the others do not expect.
"""

from pathlib import Path

import pytest

from tests.cluster.best_plan import carry_out_the_best_plan
from tests.cluster.scene import Scene

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1500)]


def test_best_plan(extensible: Scene, tmp_path: Path) -> None:
    carry_out_the_best_plan(extensible, tmp_path, {"loadBalancerBrokerLoadTargetStd": 10.0})
