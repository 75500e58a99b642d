"""Every page, light and dark, wide and narrow: of use to everybody, nothing cut off; with pictures for people."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from planner.cluster.releases import REFERENCE
from planner.share.link import encode_link
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.registry import TrafficGrowth
from planner.simulate.generate import generate
from planner.simulate.scenario import Step, unchanged
from planner.web import registry
from planner.web.registry import NAMES
from planner.workspace.database import open_workspace
from planner.workspace.samples import samples
from tests.e2e.conftest import Server, Visitor

_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# What Streamlit itself draws, and no page can change: its menu on top, the grid behind the picture of a table, and the
# points of a sparkline.
_STREAMLITS = [["[data-testid=stHeader]"], ["[data-testid=stDataFrame]"], ["[data-testid=stMetricChart]"]]
_WIDE, _NARROW = 1440, 390
_THREE_SCREENS = 3 * 900
_HEIGHT = "main => main.scrollHeight"
_BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(16, 21, 28)"}
# Colours of buttons fade from one scheme to the other, and have too little contrast half way.
_STILL = "() => !document.getAnimations().some(one => one instanceof CSSTransition)"
_OUTSIDE = """() => [...document.querySelectorAll('[data-testid=stMain] :is(button, input, a, p, h1, h2, h3, label)')]
  .filter(e => e.checkVisibility({opacityProperty: true}))
  .filter(e => !e.closest('[data-testid=stDataFrame], .js-plotly-plot, pre, [role=tablist]'))
  .map(e => [e, e.getBoundingClientRect()])
  .filter(([e, r]) => r.width > 1 && (r.right > innerWidth + 1 || r.left < -1))
  .map(([e, r]) => `${e.tagName} ${Math.round(r.left)}..${Math.round(r.right)}: ${e.innerText.slice(0, 60)}`)"""


def faults(page: Page, axe: Axe) -> list[str]:
    """What axe finds that is serious, each with the first places."""
    options: dict[str, Any] = {"runOnly": {"type": "tag", "values": _TAGS}, "resultTypes": ["violations"]}
    found = axe.run(page, {"exclude": _STREAMLITS}, options).response["violations"]
    serious = [fault for fault in found if fault["impact"] in {"serious", "critical"}]
    firsts = [(fault["id"], len(fault["nodes"]), fault["nodes"][0]) for fault in serious]
    return [f"{name} ({many}): {first['html'][:300]} {first['failureSummary']}" for name, many, first in firsts]


@pytest.mark.parametrize("name", NAMES)
def test_every_page(server: Server, visitor: Callable[..., Visitor], name: str) -> None:
    window = visitor(width=_WIDE, height=900)
    page, axe = window.page, Axe()
    page.goto(f"{server.url}/{name.replace('_', '-')}?snapshot={samples()[0].digest[:12]}")
    window.drawn(registry.page(name).title)
    expect(page.get_by_role("button", name=re.compile("^Stop"))).to_have_count(0, timeout=90_000)
    window.drawn(registry.page(name).title)
    assert page.get_by_test_id("stMain").evaluate(_HEIGHT) <= _THREE_SCREENS
    said = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        expect(page.get_by_test_id("stApp")).to_have_css("background-color", _BACKGROUNDS[scheme])
        page.wait_for_function(_STILL)
        said[scheme] = faults(page, axe)
        window.shot(f"{name}-{scheme}-{_WIDE}", width=_WIDE)
    window.shot(f"{name}-dark-{_NARROW}", width=_NARROW)
    said["narrow"] = page.evaluate(_OUTSIDE)
    page.emulate_media(color_scheme="light")
    window.shot(f"{name}-light-{_NARROW}", width=_NARROW)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.locator('[data-testid="stException"]').count() == 0
    assert {where: found for where, found in said.items() if found} == {}
    assert window.foreign == []


_OPENED = [*((name, "") for name in NAMES), ("hit_counters", "&strategy=AvgShedder")]
_LARGE = ClusterSpec(brokers=100, bundles=2_000, topics=40_000, msg_rate_per_s=1e6)
"""As many brokers and namespaces as the largest sample, more findings, and a fifth of the bundles to simulate."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """A server that has a large cluster, and the digest of that."""
    path = tmp_path_factory.mktemp("large") / "planner.duckdb"
    workspace = open_workspace(path)
    digest = workspace.add(generate(_LARGE, 1), "large").digest
    workspace.close()
    running = Server(path)
    yield running, digest
    running.stop()


@pytest.mark.xdist_group("a large cluster")  # what one server has simulated, it shows on the next page
@pytest.mark.parametrize("third", range(3))
def test_no_page_of_a_large_cluster_is_longer_than_three_screens(
    large: tuple[Server, str], visitor: Callable[..., Visitor], third: int
) -> None:
    server, digest = large
    window = visitor(width=_WIDE, height=900)
    page = window.page
    scenario = encode_link(unchanged(REFERENCE.name).with_steps(Step(TrafficGrowth(factor=1.3))), digest)
    tall = {}
    for name, more in _OPENED[third::3]:
        address = f"{name.replace('_', '-')}?snapshot={digest[:12]}&scenario={scenario}{more}"
        page.goto(f"{server.url}/{address}")
        window.drawn(registry.page(name).title)
        expect(page.get_by_role("button", name=re.compile("^Stop"))).to_have_count(0, timeout=180_000)
        expect(page.get_by_text("hourglass_top")).to_have_count(0, timeout=180_000)
        window.drawn(registry.page(name).title)
        tall[f"{name}{more}"] = page.get_by_test_id("stMain").evaluate(_HEIGHT)
    assert {name: px for name, px in tall.items() if px > _THREE_SCREENS} == {}
