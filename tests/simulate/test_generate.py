"""Generated clusters hold together as real ones do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.formats.validate import validate
from planner.model.digest import snapshot_digest
from planner.model.errors import SettingError
from planner.model.snapshot import LoadManager
from planner.simulate.generate import ClusterSpec, generate

SPECS = st.builds(
    ClusterSpec,
    brokers=st.integers(1, 12),
    bundles=st.integers(1, 80),
    topics=st.integers(0, 300),
    load_manager=st.sampled_from(LoadManager),
    topic_skew=st.floats(0, 3),
    ownership_skew=st.floats(0, 1),
    heterogeneity=st.floats(0, 1),
    partitioned=st.floats(0, 1),
    idle=st.floats(0, 1),
)


@given(spec=SPECS, seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_valid_consistent_and_repeatable(spec: ClusterSpec, seed: int) -> None:
    snapshot = generate(spec, seed)
    validate(snapshot)
    assert (len(snapshot.brokers), len(snapshot.bundles), len(snapshot.topics)) == (
        spec.brokers,
        spec.bundles,
        spec.topics,
    )
    assert snapshot_digest(generate(spec, seed)) == snapshot_digest(snapshot)
    of_topics = snapshot.topics.msg_rate_in_per_s.sum()
    of_bundles = snapshot.bundles.msg_rate_in_per_s.sum()
    of_brokers = snapshot.brokers.msg_rate_in_per_s.sum()
    assert of_bundles == pytest.approx(of_topics, abs=0.01 * spec.bundles + 1e-6)
    assert of_brokers == pytest.approx(of_bundles)
    assert int(snapshot.brokers.topics.sum()) == spec.topics


def test_seeds_differ() -> None:
    spec = ClusterSpec(brokers=3, bundles=10, topics=50)
    assert snapshot_digest(generate(spec, 1)) != snapshot_digest(generate(spec, 2))


def test_skew_concentrates_traffic() -> None:
    flat = generate(ClusterSpec(topic_skew=0.0), 3).topics.msg_rate_in_per_s
    steep = generate(ClusterSpec(topic_skew=1.5), 3).topics.msg_rate_in_per_s
    assert np.sort(steep)[-10:].sum() / steep.sum() > 5 * np.sort(flat)[-10:].sum() / flat.sum()


@pytest.mark.parametrize("field", ["brokers", "bundles", "topic_skew", "idle"])
def test_bounds_name_the_field(field: str) -> None:
    with pytest.raises(SettingError, match=field):
        generate(replace(ClusterSpec(), **{field: -1}), 1)  # type: ignore[arg-type]
