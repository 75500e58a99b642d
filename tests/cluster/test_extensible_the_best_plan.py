"""A best plan ends on a real extensible cluster as it says, and stays where it says so.

The last of the extensible cluster's tests, as it leaves brokers with averages that the others do not expect.
"""

from pathlib import Path

import numpy as np
import pytest

from tests.cluster.best_plan import carry_out_the_best_plan
from tests.cluster.launch import wait_for
from tests.cluster.scene import Scene, shed_layout

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]


def test_best_plan(extensible: Scene, tmp_path: Path) -> None:
    brokers = extensible.cluster.brokers
    layout = shed_layout(extensible.cluster, brokers[0].id, brokers[-1].id)
    extensible.put(layout)
    wait_for("what brokers say of bundles is what flows", lambda: _settled(extensible, layout), seconds=240, every=5.0)
    carry_out_the_best_plan(extensible, tmp_path, {"loadBalancerBrokerLoadTargetStd": 10.0})


def _settled(scene: Scene, layout: dict[str, str]) -> bool:
    """Say whether bundles are in place and have their topics' traffic, and not what came while they were moved.

    A broker takes its load data back when a bundle comes or goes, and sends it again later.
    """
    snapshot = scene.snapshot()
    names = [*snapshot.brokers.name, ""]
    owners = dict(zip(snapshot.bundle_names, [names[at] for at in snapshot.bundles.owner.tolist()], strict=True))
    if not layout.items() <= owners.items() or not snapshot.brokers.has_load_data.all():
        return False
    bundles = dict(zip(snapshot.topics.name.to_pylist(), snapshot.topics.bundle.tolist(), strict=True))
    if not scene.flows.keys() <= bundles.keys():
        return False
    rates = snapshot.bundles.msg_rate_in_per_s[[bundles[topic] for topic in scene.flows]]
    share = rates / [flow.msg_per_s for flow in scene.flows.values()]
    return bool(share.min() > 0) and bool(np.allclose(share, np.median(share), rtol=0.07))
