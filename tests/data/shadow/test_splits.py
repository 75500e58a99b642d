"""Splits that shadow mode predicts and sees."""

from dataclasses import replace

import numpy as np

from planner.cluster.ranges import FULL_HIGH
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import make_topics
from planner.pulsar.splitting.factory import apply_split
from planner.shadow.follow import shadow_step
from planner.shadow.record import Cause, Split, score_of
from planner.shadow.splits import actual_splits
from planner.shadow.state import ShadowState
from tests.app.simulate.traces import cluster
from tests.data.shadow.captures import THRESHOLD, at, follow, still


def test_automatic_splits_after_they_are_switched_on() -> None:
    limits = {**THRESHOLD, "defaultNamespaceBundleSplitAlgorithm": "range_equally_divide"}
    limits |= {"loadBalancerNamespaceBundleMaxTopics": 4}
    on = replace(cluster((0.3, 0.3, 0.3), settings=limits, topics=5), topics=make_topics())
    off = replace(on, settings=on.settings.changed(loadBalancerAutoBundleSplitEnabled=False))
    cut = (int(on.bundles.low[0]) + int(on.bundles.high[0])) // 2
    _, cycles, _ = follow([*still(off, (0, 30)), *still(split(on, 0, cut), (30, 120))])
    assert ("split", Cause.SETTINGS) in {(d.what, d.cause) for d in cycles[0].differences}


def split(snapshot: Snapshot, bundle: int, cut: int) -> Snapshot:
    """Return a cluster with one bundle cut in two, before anything is reported of the halves."""
    ends = (int(snapshot.bundles.low[bundle]), int(snapshot.bundles.high[bundle]))
    made = apply_split(ends, ends, (cut,))
    assert len(made.children) == 2
    columns = {}
    for name in snapshot.bundles.__dataclass_fields__:
        column = getattr(snapshot.bundles, name)
        columns[name] = np.insert(column, bundle, column[bundle])
    columns["high"][bundle] = columns["low"][bundle + 1] = cut
    columns["has_stats"][bundle : bundle + 2] = columns["has_data"][bundle : bundle + 2] = False
    return replace(snapshot, bundles=replace(snapshot.bundles, **columns), topics=make_topics())


def test_splits_that_happened_are_seen_from_boundaries(busy: Snapshot) -> None:
    cut = int(busy.bundles.low[3]) + 1000
    assert actual_splits(busy, split(busy, 3, cut))[0].boundaries == (cut,)
    assert actual_splits(busy, busy) == ()
    assert int(busy.bundles.high[-1]) == FULL_HIGH


def test_an_automatic_split_is_predicted_and_seen() -> None:
    limits = {**THRESHOLD, "defaultNamespaceBundleSplitAlgorithm": "range_equally_divide"}
    calm = cluster((0.3, 0.3, 0.3), settings=limits, topics=5)
    calm = replace(calm, topics=make_topics())
    hot = replace(calm, settings=calm.settings.changed(loadBalancerNamespaceBundleMaxTopics=4))
    _, result = shadow_step(ShadowState(), at(calm, 0), at(hot, 10))
    assert {s.bundle for s in result.splits} == set(hot.bundle_names)
    first = result.splits[0]
    assert first.boundaries is not None
    at_row = hot.bundle_position[first.bundle]
    cold = replace(hot, settings=calm.settings)
    _, cycles, _ = follow([at(calm, 0), at(hot, 10), *still(split(cold, at_row, first.boundaries[0]), (20, 110))])
    assert cycles[0].actual_splits == cycles[0].predicted_splits == (first,)
    assert cycles[0].differences == ()
    _, cycles, _ = follow([at(calm, 0), at(hot, 10), *still(split(cold, at_row, first.boundaries[0] + 5), (20, 110))])
    assert [(d.what, d.cause) for d in cycles[0].differences] == [("split elsewhere", Cause.LATE_REPORT)]
    # The next report cut a child of it again before it was captured: the first cut is the predicted one.
    once = split(cold, at_row, first.boundaries[0])
    child = (first.boundaries[0] + int(cold.bundles.high[at_row])) // 2
    _, cycles, _ = follow([at(calm, 0), at(hot, 10), *still(split(once, at_row + 1, child), (20, 110))])
    assert cycles[0].actual_splits == (Split(first.bundle, (first.boundaries[0], child)),)
    assert cycles[0].predicted_splits == (first,)
    assert cycles[0].differences == ()
    assert (score_of(cycles).splits_right, score_of(cycles).splits) == (1, 1)
    _, cycles, _ = follow([at(calm, 0), at(calm, 10), *still(split(calm, at_row, first.boundaries[0]), (20, 110))])
    assert [(d.what, d.cause) for d in cycles[0].differences] == [("split", Cause.MANUAL_SPLIT)]
    _, cycles, _ = follow(still(hot, (0, 110)))
    assert {(d.what, d.cause) for d in cycles[0].differences} == {("not split", Cause.UNKNOWN)}
