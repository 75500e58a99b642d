"""Asks the classes of other releases about fresh random cases of every kind, and for the settings that they have."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from planner.cluster.files import packaged_rows
from planner.cluster.releases import NOT_RUN, REFERENCE, RELEASES, release, settings_of
from planner.conform.kinds import KINDS
from planner.pulsar.shedding.avg import ABSENT
from tests.oracle import test_extensible_oracle as extensible
from tests.oracle import test_split_oracle as splits
from tests.oracle.cases import (
    PLACEMENTS,
    SHEDDERS,
    Case,
    broker_load_data_case,
    broker_time_average_case,
    dispatch_throttle_case,
    modular_case,
    placement_case,
    resource_usage_case,
    seeded,
    topic_to_bundle_case,
)
from tests.oracle.harness import LACKS, MIXED, Oracle, available, compare

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(3600)]

POLICIES = ("isolated", "antiAffinity", "filterKeeps", "filterFails")


@pytest.fixture(scope="module", params=[name for name in RELEASES if name not in {REFERENCE.name, *NOT_RUN}])
def other(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    if not available():
        pytest.skip("Java and Maven are needed")
    return Oracle(tmp_path_factory.mktemp("oracle"), str(request.param))


def transfer_case(rng: random.Random, number: int) -> Case:
    case = extensible.random_transfer(rng, number)
    return {**case, "input": {name: part for name, part in case["input"].items() if name not in POLICIES}}


DRAWS: dict[str, Callable[[random.Random, int], Case]] = {
    **{kind: partial(modular_case, kind) for kind in SHEDDERS},
    **{f"placement {name}": partial(placement_case, name) for name in PLACEMENTS},
    "placement extensible": extensible.random_placement,
    "shedder_transfer": transfer_case,
    "top_k_bundles": extensible.random_report,
    "auto_split_extensible": extensible.random_split,
    "auto_split_modular": splits.random_cycle,
    "bundle_split": splits.random_split,
    "time_average": splits.random_samples,
    "broker_load_data": broker_load_data_case,
    "broker_time_average": broker_time_average_case,
    "dispatch_throttle": dispatch_throttle_case,
    "resource_usage": resource_usage_case,
    "topic_to_bundle": topic_to_bundle_case,
}


def asked(draw: str) -> Iterator[Case]:
    rng = seeded()
    for number in range(1000):
        case = DRAWS[draw](rng, number)
        if case["input"].get("strategy") != "RoundRobinBrokerSelectionStrategy":  # a class that older releases lack
            yield case


def test_every_kind_is_drawn() -> None:
    assert {draw.split()[0] for draw in DRAWS} == set(KINDS)


@pytest.mark.parametrize("draw", DRAWS)
def test_decides_as_that_release(other: Oracle, draw: str) -> None:
    if draw == "dispatch_throttle" and "Throttling" in LACKS[other.version]:
        pytest.skip("This release has no such classes.")
    if draw in {"shedder_avg", "placement AvgShedder"} and release(other.version).has(ABSENT):
        pytest.skip("This release has no AvgShedder.")
    cases = list(asked(draw))
    answers = other(cases)
    for answer in answers:
        answer.pop("order", None)
    compare([{**case, "release": other.version} for case in cases], answers)


def test_settings_are_those_of_the_class(other: Oracle) -> None:
    if "pulsar-broker-common" in MIXED.get(other.version, {}):
        pytest.skip("The settings of this release were not published.")
    names = sorted({row["name"] for row in packaged_rows("planner.cluster", "settings.csv")})
    (told,) = other([{"kind": "settings", "id": "settings", "config": {}, "input": {"names": names}}])

    def plain(value: Any) -> Any:
        return sorted(value) if isinstance(value, list | tuple) else value or None

    known = settings_of(other.version)[0]
    assert {name: (plain(said["default"]), said["dynamic"]) for name, said in told.items()} == {
        name: (plain(setting.default), setting.dynamic) for name, setting in known.items()
    }
