"""One answer to which placement runs beside a strategy, whoever asks: Compare, Replay, Why, What-if and the search."""

import itertools

import pytest

from planner.advise.advice import Configured
from planner.advise.search import _with_placement, space_of
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_PLACEMENT_STRATEGY
from planner.cluster.settings import Settings
from planner.pulsar.manager.pairing import PAIRED, placement_beside
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.scenario import Scenario
from planner.simulate.scene import configured
from planner.simulate.strategies import under_strategy

MODULAR = [one for one in SHEDDERS if one.load_manager is LoadManager.MODULAR]
PLACES = [one.name for one in PLACEMENTS if one.load_manager is LoadManager.MODULAR]


@pytest.mark.parametrize("shedder", MODULAR, ids=lambda one: str(one.name))
@pytest.mark.parametrize(("own", "scenario"), list(itertools.product(PLACES, ["", *PLACES])))
def test_everybody_places_alike(shedder: Shedder, own: str, scenario: str) -> None:
    cluster = Settings({LOAD_PLACEMENT_STRATEGY: own})
    base = Scenario(settings={LOAD_PLACEMENT_STRATEGY: scenario} if scenario else {})
    config = cluster.changed(**base.settings)
    place = placement_beside(shedder, config, cluster)
    compared = under_strategy(base, cluster, LoadManager.MODULAR, shedder.name)
    assert compared.settings[LOAD_PLACEMENT_STRATEGY] == place
    assert configured(config, cluster, shedder).text(LOAD_PLACEMENT_STRATEGY) == place
    space = space_of(base, Configured(cluster, LoadManager.MODULAR), [one.name for one in MODULAR])
    searched = config.changed(**_with_placement(space, shedder.name))
    assert searched.text(LOAD_PLACEMENT_STRATEGY).rpartition(".")[2] == place


def test_a_pair_stays_together_and_nobody_else_takes_it() -> None:
    for shedder, own, placed in itertools.product(MODULAR, PLACES, PLACES):
        place = placement_beside(
            shedder, Settings({LOAD_PLACEMENT_STRATEGY: placed}), Settings({LOAD_PLACEMENT_STRATEGY: own})
        )
        pair = shedder.profile.paired_placement
        assert place == pair if pair else place not in PAIRED
        if not pair and (placed not in PAIRED or own not in PAIRED):
            assert place == (own if placed in PAIRED else placed)
