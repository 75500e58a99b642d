"""What the leader of a real cluster decided, reproduced from the raw capture that was made seconds before.

`test_recorded_cycles` begins with what the strategy was handed; this begins with what the admin API and the metadata
store said. The small captures hold neither settings nor policies; those are as recorded.
"""

import json
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.cluster.snapshot import Snapshot
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from planner.pulsar.manager.cycle import CycleDecision, next_cycle
from planner.pulsar.manager.splits import next_splits
from tests.app.simulate.test_recorded_cycles import GOLDENS, before, recorded

CAPTURES = GOLDENS[0].parents[1] / "captures"
THRESHOLD = ("threshold-shedder", "threshold-shedder-vetoed", "threshold-shedder-same-broker")


def captured(name: str) -> Snapshot:
    with zipfile.ZipFile(CAPTURES / f"modular-before-{name}.zip") as archive:
        return snapshot_of_capture({info.filename: archive.read(info) for info in archive.infolist()})


def case_of(name: str) -> dict[str, Any]:
    return recorded(next(path for path in GOLDENS if path.name == f"{name}.json.gz"))


def decided(snapshot: Snapshot, case: dict[str, Any]) -> CycleDecision:
    handed, memory, config = before(case)
    info = replace(snapshot.info, leader=case["leader"])
    return next_cycle(replace(snapshot, policies=handed.policies, info=info, settings=config), memory, config, seed=0)[
        1
    ]


def check(decision: CycleDecision, case: dict[str, Any]) -> None:
    assert decision.shedding.unload() == case["chosen"]
    sent = [unload.acceptable for unload in decision.unloads if unload.selection is not None]
    assert sent == [(call["result"],) for call in case["placements"]]


@pytest.mark.parametrize("name", THRESHOLD)
def test_threshold_shedder(name: str) -> None:
    case = case_of(name)
    check(decided(captured(name), case), case)


def test_avg_shedder() -> None:
    """The leader stores the averages of the ten busiest bundles of each report; the others are as it had them."""
    case = case_of("avg-shedder")
    snapshot = captured("avg-shedder")
    handed = before(case)[0]
    known = np.array([name in handed.bundle_position for name in snapshot.bundle_names])
    rows = np.array([handed.bundle_position.get(name, 0) for name in snapshot.bundle_names])
    names = [name for name in vars(snapshot.bundles) if name.startswith(("short_term_", "long_term_"))]
    averages = {
        name: np.where(known, getattr(handed.bundles, name)[rows], getattr(snapshot.bundles, name)) for name in names
    }
    assert len(averages) >= 8
    check(decided(replace(snapshot, bundles=replace(snapshot.bundles, **averages)), case), case)


def test_automatic_split() -> None:
    snapshot = captured("auto-split")
    after = json.loads((CAPTURES / "decided-auto-split.json").read_text())
    settings = {name: json.loads(value) for name, value in after["settings"].items()}
    decision = next_splits(snapshot, snapshot.settings.changed(**settings))
    assert [order.bundle for order in decision.splits] == after["split_in_this_order"]
    new: dict[str, list[str]] = {}
    for order in decision.splits:
        new.setdefault(order.bundle.rpartition("/")[0], []).extend(f"0x{cut:08x}" for cut in order.boundaries or ())
    assert new == after["new_boundaries"]
