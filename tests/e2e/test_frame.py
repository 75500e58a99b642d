"""What all pages have, as only a browser shows it: the head, the drawer of small screens, addresses, links of cells."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from planner.share.link import encode_link
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.scenario import Scenario, Step
from planner.web import registry
from planner.workspace.samples import samples
from tests.e2e.conftest import Server, Visitor, by_menu

Window = Callable[..., Visitor]
MOST_PX = 90


def rectangle(page: Page, selector: str) -> dict[str, float]:
    found: dict[str, float] = page.locator(selector).first.evaluate("e => e.getBoundingClientRect().toJSON()")
    return found


def drawer_is_open(page: Page) -> bool:
    return rectangle(page, "[data-testid=stSidebar]")["right"] > 0


def wait_for_drawer(page: Page, *, opened: bool) -> None:
    page.wait_for_function(
        "opened => (document.querySelector('[data-testid=stSidebar]').getBoundingClientRect().right > 0) === opened",
        arg=opened,
    )


def test_the_head_is_low_with_a_scenario_too(server: Server, visitor: Window) -> None:
    window = visitor(width=1440, height=900)
    page = window.open(f"{server.url}/what-if", "bundles shed")
    assert 30 < rectangle(page, ".st-key-page-head")["height"] <= MOST_PX
    page.get_by_role("button", name="Add", exact=True).first.click()
    expect(page.locator(".st-key-scenario-bar")).to_contain_text("2x traffic of the cluster")
    for title, text in (("Shedding", "in the first cycle"), ("Brokers", "Resources of each broker")):
        by_menu(page, title)
        window.settled(text)
        expect(page.locator(".st-key-scenario-bar")).to_contain_text("2x traffic of the cluster")
        assert 30 < rectangle(page, ".st-key-page-head")["height"] <= MOST_PX
        facts = rectangle(page, ".st-key-page-line [data-testid=stCaptionContainer]")
        assert facts["bottom"] < rectangle(page, ".st-key-scenario-bar")["top"], "the facts end above the scenario"


def test_a_long_scenario_stays_in_one_line(server: Server, visitor: Window) -> None:
    strategies = dict.fromkeys(("loadBalancerLoadSheddingStrategy", "loadBalancerLoadPlacementStrategy"), "AvgShedder")
    steps = (Step(ScaleTraffic(factor=1.3)), Step(AddBrokers(count=1)), Step(ScaleTraffic(factor=1.1)))
    digest = next(sample.digest for sample in samples() if sample.file == "pip-364.json")
    link = encode_link(Scenario(steps=steps, settings=strategies), digest, "PIP-364")
    page = visitor(width=1100, height=900).open(f"{server.url}/what-if?scenario={link}", "bundles shed")
    expect(page.locator(".st-key-scenario-bar")).to_contain_text("AvgShedder instead of ThresholdShedder")
    assert 30 < rectangle(page, ".st-key-page-head")["height"] <= MOST_PX
    page.locator(".st-key-scenario-bar [data-testid=stTooltipIcon]").first.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("1.1x traffic of the cluster")


def test_the_drawer_opens_at_its_form_and_closes_at_a_link(server: Server, visitor: Window) -> None:
    window = visitor(width=390, height=844)
    page = window.open(f"{server.url}/what-if", "bundles shed")
    assert not drawer_is_open(page)
    facts = rectangle(page, ".st-key-page-line [data-testid=stCaptionContainer]")
    assert facts["top"] >= rectangle(page, ".st-key-page-line h1")["bottom"], "the facts have a line of their own"
    edit = page.locator(".st-key-open-drawer button")
    edit.click()
    wait_for_drawer(page, opened=True)
    form = rectangle(page, "[data-testid=stSidebarUserContent]")
    assert form["top"] < rectangle(page, "[data-testid=stSidebarNav]")["top"]
    assert form["top"] < 844 / 2
    page.locator("[data-testid=stSidebarCollapseButton] button").click()
    wait_for_drawer(page, opened=False)
    edit.click()
    wait_for_drawer(page, opened=True)
    page.get_by_role("link", name="Shedding").first.click()
    window.settled("in the first cycle")
    wait_for_drawer(page, opened=False)
    page.locator("[data-testid=stExpandSidebarButton]").click()
    wait_for_drawer(page, opened=True)
    assert rectangle(page, "[data-testid=stSidebarNav]")["top"] < 844 / 2
    assert not [error for error in window.errors if "Content Security Policy" in error]


def test_a_wide_window_has_no_button_for_the_drawer(server: Server, visitor: Window) -> None:
    page = visitor(width=1400).open(f"{server.url}/what-if", "bundles shed")
    expect(page.locator(".st-key-open-drawer button")).to_have_count(1)
    expect(page.locator(".st-key-open-drawer button")).to_be_hidden()


@pytest.mark.parametrize("name", [name for name in registry.NAMES if "_" in name])
def test_the_file_name_of_a_page_is_an_address_too(server: Server, visitor: Window, name: str) -> None:
    page = visitor().open(f"{server.url}/{name}", registry.page(name).title)
    expect(page).to_have_url(re.compile(rf"/{name.replace('_', '-')}(\?|$)"))
    expect(page.get_by_role("heading", name=registry.page(name).title, level=1)).to_be_visible()


def test_an_unknown_address_says_so(server: Server, visitor: Window) -> None:
    page = visitor().open(f"{server.url}/no-such-page", "Page not found")
    expect(page.get_by_role("dialog")).to_contain_text("does not seem to exist")


def test_what_a_cell_names_appears_beside_it(server: Server, visitor: Window) -> None:
    window = visitor(width=1440, height=1000)
    page = window.open(f"{server.url}/overview", "The next cycle")
    page.get_by_role("tab", name="Hottest bundles").click()
    table = ".st-key-beside-hottest-bundles [data-testid=stDataFrame]"
    page.locator(table).scroll_into_view_if_needed()
    around = rectangle(page, table)
    page.mouse.click(around["left"] + 60, around["top"] + 55)
    panel = page.locator(".st-key-panel-hottest-bundles")
    expect(panel.get_by_role("link", name="Map")).to_be_visible()
    beside = panel.evaluate("e => e.getBoundingClientRect().toJSON()")
    around = rectangle(page, table)
    assert beside["left"] >= around["right"]
    assert around["top"] - 20 <= beside["top"] <= around["bottom"]
    page.get_by_role("tab", name="Why each broker").click()
    other = ".st-key-beside-broker-scores [data-testid=stDataFrame]"
    page.locator(other).scroll_into_view_if_needed()
    around = rectangle(page, other)
    page.mouse.click(around["left"] + 60, around["top"] + 55)
    expect(page.locator(".st-key-panel-broker-scores").get_by_role("link", name="Broker").first).to_be_visible()
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)
