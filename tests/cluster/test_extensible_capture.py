"""A capture of a real cluster with the extensible load manager, by the admin API alone."""

from pathlib import Path

import pytest

from planner.cluster.releases import REFERENCE
from tests.cluster.extensible import captured_as_answered
from tests.cluster.scene import Scene

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_capture_equals_answers(extensible: Scene, tmp_path: Path) -> None:
    """Nobody reports loads over the admin API; metrics stand in, which the snapshot says."""
    captured_as_answered(extensible, tmp_path, REFERENCE.name)
