"""Signs that turn text around act nowhere: names of scenarios refuse them, names of topics are shown spelled."""

import pytest

from planner.cluster.errors import HIDDEN, ScenarioError
from planner.cluster.text import plain
from planner.simulate.scenario import Scenario, scenario_from_json, scenario_to_json

SIGNS = ("\u202e", "\u2066", "\u200f", "\u061c", "\x1b", "\x00", "\x9b")


@pytest.mark.parametrize("sign", SIGNS)
def test_the_name_of_a_scenario_refuses_them(sign: str) -> None:
    given = scenario_to_json(Scenario(name="a"))
    assert scenario_from_json(given | {"name": "día ½ 名"}).name == "día ½ 名"
    with pytest.raises(
        ScenarioError, match="name: The scenario cannot be read: it contains control characters or characters that"
    ):
        scenario_from_json(given | {"name": f"a{sign}b"})


@pytest.mark.parametrize("sign", SIGNS)
def test_text_of_a_page_spells_them(sign: str) -> None:
    shown = plain(f"persistent://acme/orders/a{sign}gpj.exe")
    assert not HIDDEN.search(shown)
    assert sign.encode("unicode_escape").decode().replace("\\", "\\\\") in shown
