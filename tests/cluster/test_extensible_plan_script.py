"""A plan's script does on a real extensible cluster what it says."""

from pathlib import Path

import pytest

from tests.cluster.plan_script import run_a_plan
from tests.cluster.scene import Scene

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_script(extensible: Scene, tmp_path: Path) -> None:
    run_a_plan(extensible, tmp_path, {"loadBalancerBrokerLoadTargetStd": 10.0})
