"""Pages with scenarios drawn at random: whatever somebody asks for, no page ends in a traceback."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.advice import random_cluster
from planner.share.link import encode_link
from planner.web import registry, state
from planner.web.page import Subject
from tests.app.plan.random_scenarios import random_scenario

Page = Callable[..., AppTest]
ABOUT_A_CLUSTER = [name for name in registry.NAMES if registry.page(name).subject is not Subject.NOTHING]


@pytest.mark.parametrize(("seed", "draw"), [(37, 0), (38, 0), (104, 1)])
def test_no_page_fails_after_a_scenario(page: Page, seed: int, draw: int) -> None:
    """Bundles stood elsewhere after it, a namespace had been made anew, or no broker was left."""
    cluster, _ = random_cluster(seed)
    numbers = Random(f"{seed}/{draw}")  # noqa: S311
    scenario = replace(random_scenario(cluster, numbers.randrange(10**9)), cycles=numbers.randint(8, 20))
    one = state.workspace().add(cluster, "random")
    link = encode_link(scenario, one.digest, "random")
    for name in ABOUT_A_CLUSTER:
        test = page(name, snapshot=one.digest[:12], scenario=link, **{"with": "1"})
        assert not test.exception, name
