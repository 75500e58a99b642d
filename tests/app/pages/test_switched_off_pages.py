"""Pages say first that shedding is off."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from planner.cluster.names import SHEDDING_ENABLED
from planner.cluster.text import plain
from planner.web import state
from planner.workspace.opening import open_snapshot


@pytest.mark.parametrize("name", ["overview", "best_plan"])
def test_shedding_that_is_off_comes_first(page: Callable[..., AppTest], name: str) -> None:
    five = open_snapshot("pip-364.json")[1]
    dynamic = {SHEDDING_ENABLED: "false.held-by-6ee77aa694a4.since-20261125T033100Z.was-unset-true"}
    off = replace(
        five,
        settings=five.settings.changed(**{SHEDDING_ENABLED: False}),
        info=replace(five.info, dynamic_settings=dynamic),
    )
    saved = state.workspace().add(off, "off")
    test = page(name, snapshot=saved.digest[:12])
    assert not test.exception
    first = str(test.warning[0].value)
    assert first.startswith(plain(f"Shedding is off: a script (6ee77aa694a4) has held {SHEDDING_ENABLED} since 2026"))
    test = page(name, snapshot=state.workspace().add(five, "on").digest[:12])
    assert not [one for one in test.warning if "Shedding is off" in str(one.value)]
    assert any("Automatic splits are off" in str(one.value) for one in test.info)
