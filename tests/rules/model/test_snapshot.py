"""What tables work out from their columns, and keep while these change."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.arrays import frozen
from planner.cluster.tables import make_topics


@given(bundles=st.lists(st.integers(-1, 5), max_size=40), chance=st.randoms(use_true_random=False), takes=st.booleans())
def test_topics_stay_sorted_when_bundles_are_renumbered_and_one_is_split(
    bundles: list[int], chance: object, *, takes: bool
) -> None:
    names = pa.array([str(i) for i in range(len(bundles))], pa.large_string())
    before = make_topics(range(len(bundles)), name=names, bundle=np.array(bundles, dtype=np.int32))
    assert before.by_bundle.tolist() == sorted(range(len(bundles)), key=lambda i: bundles[i])
    # Bundle 2 becomes 2 and 3, the ones behind it are renumbered.
    changed = np.array([i for i, b in enumerate(bundles) if b == 2], dtype=np.int64)
    after = np.array([b + (b > 2) for b in bundles], dtype=np.int32)
    after[changed] += np.array([chance.randint(0, 1) for _ in changed], dtype=np.int32)  # type: ignore[attr-defined]
    order = before.by_bundle
    made = before.with_bundles(frozen(after), changed, take_order=takes)
    assert (made.by_bundle is order) == takes
    for table in (made, before):
        assert table.by_bundle.tolist() == sorted(range(len(after)), key=table.bundle.tolist().__getitem__)
    for bundle in range(-1, 7):
        assert made.of_bundle(bundle).tolist() == np.flatnonzero(after == bundle).tolist()


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(0, 5), st.integers(0, 5))
def test_topics_that_go_far_away_are_sorted_anew(bundles: list[int], left: int, to: int) -> None:
    names = pa.array([str(i) for i in range(len(bundles))], pa.large_string())
    before = make_topics(range(len(bundles)), name=names, bundle=np.array(bundles, dtype=np.int32))
    assert len(before.by_bundle) == len(bundles)
    changed = np.flatnonzero(before.bundle == left)
    after = np.where(before.bundle == left, to, before.bundle).astype(np.int32)
    made = before.with_bundles(frozen(after), changed)
    assert made.by_bundle.tolist() == sorted(range(len(after)), key=lambda i: after[i])
