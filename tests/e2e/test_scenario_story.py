"""The whole story in a real browser: load, change, run, understand, compare, share, act."""

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from planner.cluster.digest import snapshot_digest
from planner.cluster.snapshot import Snapshot
from planner.formats.archive import write_zip
from planner.share.link import encode_link
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.workspace.samples import load_sample, samples
from tests.e2e.conftest import Server, Visitor, by_menu

Window = Callable[..., Visitor]


def digest(file: str) -> str:
    return next(s.digest for s in samples() if s.file == file)


def choose(page: Page, label: str, option: str) -> None:
    """Pick an option as a person does: open the list, click."""
    page.get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=option, exact=True).click()


def plan_digest(page: Page) -> str:
    text = page.get_by_text("Plan digest").inner_text()
    found = re.search(r"Plan digest ([0-9a-f]{16})", text)
    assert found is not None, text
    return found[1]


def go(window: Visitor, page: str, text: str) -> None:
    """Go to another page by the menu."""
    by_menu(window.page, page)
    window.settled(text)


def no_traceback(page: Page) -> None:
    assert page.locator('[data-testid="stException"]').count() == 0


@pytest.fixture
def another_server(tmp_path: Path) -> Iterator[Server]:
    """A second server, with a workspace of its own."""
    (tmp_path / "another").mkdir()
    running = Server(tmp_path / "another" / "planner.duckdb")
    yield running
    running.stop()


def load(window: Visitor, server: Server) -> None:
    """Load a sample as a person does."""
    sample = next(s for s in samples() if s.file == "pip-364.json")
    page = window.open(f"{server.url}/snapshots", "In this workspace")
    page.locator("summary").filter(has_text=sample.group).click()
    row = page.locator('[data-testid="stHorizontalBlock"]').filter(has_text=sample.title)
    # By key: while the group still unfolds, a press and its release may meet different elements.
    row.get_by_role("button", name="Open", exact=True).press("Enter")
    window.settled("The next cycle")


def saved(page: Page, button: str, path: Path) -> str:
    """Press a button that downloads something and return it."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button).click()
    waiting.value.save_as(path)
    return path.read_text(encoding="utf-8")


def test_from_a_sample_to_commands_on_another_server(
    server: Server, another_server: Server, visitor: Window, tmp_path: Path
) -> None:
    window = visitor(height=1800)
    page = window.page
    load(window, server)

    go(window, "What-if", "Plan digest")
    before = plan_digest(page)
    choose(page, "Shedding strategy", "AvgShedder")
    expect(page.get_by_role("combobox", name="Placement strategy")).to_have_value("AvgShedder")
    expect(page.get_by_text("Plan digest")).not_to_contain_text(before)
    window.settled("settled after cycle")
    changed = plan_digest(page)
    snapshot = load_sample(next(s for s in samples() if s.file == "pip-364.json"))
    names = {
        "loadBalancerLoadSheddingStrategy": "AvgShedder",
        "loadBalancerLoadPlacementStrategy": "AvgShedder",
    }
    assert changed == simulate(snapshot, Scenario(settings=names)).digest()[:16]
    window.shot("story-what-if")

    page.get_by_role("button", name="Copy link").click()
    link = page.locator('[data-testid="stPopoverBody"] code').inner_text().replace("\n", "").strip()
    assert link.startswith(f"{server.url}/what-if?scenario=1.")
    assert len(link) <= 2_000
    page.keyboard.press("Escape")

    go(window, "Why", "What would change the answer")
    expect(page.get_by_text("of broker-").first).to_be_visible()
    expect(page.get_by_text("Each answer was verified")).to_be_visible()
    window.shot("story-why")
    go(window, "Compare", "best balanced: highest usage")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    window.shot("story-compare")
    no_traceback(page)
    assert window.foreign == []

    elsewhere = visitor(height=1800)
    other = elsewhere.open(link.replace(server.url, another_server.url), "Plan digest")
    expect(other.get_by_role("combobox", name="Shedding strategy")).to_have_value("AvgShedder")
    assert plan_digest(other) == changed
    go(elsewhere, "Moves", "Moves of bundles")
    other.get_by_role("tab", name="Commands").click()
    expect(other.get_by_text("update-dynamic-config").first).to_be_visible()
    content = saved(other, "Download as a script", tmp_path / "plan.sh")
    # Another strategy wants a restart; what Pulsar moves by itself then is no command.
    assert "impl.AvgShedder" in content
    assert "restart" in content
    assert "\nmove " not in content
    elsewhere.shot("story-commands")
    other.get_by_role("tab", name="Export and report").click()
    assert json.loads(saved(other, "Plan as JSON", tmp_path / "plan.json"))["plan_digest"][:16] == changed
    assert elsewhere.foreign == []


def test_a_link_to_a_missing_snapshot_goes_on_after_its_upload(
    fresh_server: Server, visitor: Window, small: Snapshot
) -> None:
    scenario = Scenario(steps=(Step(ScaleTraffic(factor=2)),), cycles=6)
    wanted = snapshot_digest(small)
    link = f"{fresh_server.url}/what-if?scenario={encode_link(scenario, wanted, 'our production')}"
    window = visitor()
    page = window.open(link, "which is not on this server")
    expect(page.get_by_text("our production").first).to_be_visible()
    expect(page.get_by_text(wanted).first).to_be_visible()
    page.get_by_role("link", name="Load the snapshot").click()
    window.settled("The link that you opened needs")
    packed = io.BytesIO()
    write_zip(small, packed)
    page.locator('input[type="file"]').first.set_input_files(
        {"name": "production.zip", "mimeType": "application/zip", "buffer": packed.getvalue()}
    )
    window.settled("Opened the scenario of the link")
    window.settled("Plan digest")
    expect(page.get_by_role("paragraph").filter(has_text="2x traffic of the cluster").last).to_be_visible()
    assert plan_digest(page) == simulate(small, scenario).digest()[:16]


def test_time_plays_steps_and_stops(server: Server, visitor: Window) -> None:
    window = visitor(height=1600)
    page = window.open(f"{server.url}/what-if?snapshot={digest('pip-364.json')[:12]}", "Cycle 1, minute 0")
    slider = page.get_by_role("slider", name="Cycle")
    expect(slider).to_have_value("1")
    page.get_by_role("button", name="Next", exact=False).click()
    window.settled("Cycle 2, minute 1")
    expect(slider).to_have_value("2")
    page.get_by_role("button", name="Play").click()
    expect(slider).to_have_value(re.compile("^([5-9]|[1-3][0-9])$"), timeout=60_000)  # a busy browser skips some
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.wait_for_timeout(1_000)  # a step that was on its way when the button was pressed is taken back
    stood = slider.input_value()
    window.settled(f"Cycle {stood}, minute {int(stood) - 1}")
    page.wait_for_timeout(3_000)
    expect(slider).to_have_value(stood)
    slider.focus()
    page.keyboard.press("End")
    window.settled("Cycle 30, minute 29")
    no_traceback(page)


def test_the_words_of_an_edit_are_not_cut_off(server: Server, visitor: Window) -> None:
    bundle = "example/orders/0xbffffff4_0xc4444438"
    steps = (Step(ScaleTraffic(scope="bundle", target=bundle, factor=1.5, shape="growth", duration_min=90)),)
    address = encode_link(Scenario(steps=steps, cycles=3), digest("pip-364.json"), "a sample")
    window = visitor()
    page = window.open(f"{server.url}/what-if?scenario={address}", "Plan digest")
    words = page.get_by_test_id("stSidebar").get_by_role("paragraph").filter(has_text="within 90 min")
    whole = "e => e.scrollWidth <= e.clientWidth && getComputedStyle(e).textOverflow !== 'ellipsis'"
    expect(words).to_be_visible()
    assert words.evaluate(whole)
    page.locator(".st-key-scenario-bar").get_by_test_id("stTooltipHoverTarget").first.hover()
    expect(page.get_by_test_id("stTooltipContent")).to_contain_text("within 90 min")
    page.set_viewport_size({"width": 390, "height": 1000})
    page.locator(".st-key-open-drawer button").click()
    expect(words).to_be_in_viewport()
    assert words.evaluate(whole)


def test_undo_and_redo(server: Server, visitor: Window) -> None:
    window = visitor(height=1600)
    page = window.open(f"{server.url}/what-if?snapshot={digest('pip-364.json')[:12]}", "Plan digest")
    choose(page, "Shedding strategy", "OverloadShedder")
    page.wait_for_url("**scenario=1.*", timeout=60_000)
    window.settled("0 bundles shed")
    page.get_by_role("button", name="Undo").click()
    window.settled("3 bundles shed")
    expect(page.get_by_role("combobox", name="Shedding strategy")).to_have_value("ThresholdShedder")
    page.get_by_role("button", name="Redo").click()
    window.settled("0 bundles shed")


def test_a_long_run_is_stopped_and_run_again(server: Server, visitor: Window) -> None:
    address = encode_link(Scenario(cycles=8_000), digest("pip-364.json"), "a sample")
    window = visitor()
    page = window.open(f"{server.url}/what-if?scenario={address}", "Simulating:")
    page.get_by_role("button", name="Stop").click()
    window.settled("Simulation stopped")
    page.get_by_role("button", name="Run again").click()
    window.settled("Simulating:")
    page.get_by_role("button", name="Stop").click()
    window.settled("Simulation stopped")
    page.get_by_role("spinbutton", name="Cycles").fill("5")
    page.keyboard.press("Enter")
    window.settled("of 5.")
    no_traceback(page)
