"""TransferShedder of a real leader moves what the planner predicts, and to where."""

import pytest

from tests.cluster.extensible import moves_as_the_leader
from tests.cluster.scene import Scene

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_transfer_shedder(extensible: Scene) -> None:
    moves_as_the_leader(extensible)
