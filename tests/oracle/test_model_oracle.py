"""Asks Pulsar's own classes about fresh random usages, averages, hashes and dispatch limits."""

import random
from collections.abc import Callable

import pytest

from tests.oracle.cases import (
    Case,
    broker_load_data_case,
    broker_time_average_case,
    dispatch_throttle_case,
    resource_usage_case,
    seeded,
    topic_to_bundle_case,
)
from tests.oracle.harness import Oracle, check

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "draw",
    [
        broker_load_data_case,
        broker_time_average_case,
        dispatch_throttle_case,
        resource_usage_case,
        topic_to_bundle_case,
    ],
)
def test_computes_as_pulsar(oracle: Oracle, draw: Callable[[random.Random, int], Case]) -> None:
    rng = seeded()
    check(oracle, [draw(rng, number) for number in range(1500)])
