"""What only a real browser shows."""

import io
import json
import re
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from playwright.sync_api import expect

from planner.cluster.snapshot import Snapshot
from planner.formats.archive import write_zip
from planner.formats.document import write_document
from planner.simulate.losses import simulate_losses
from planner.simulate.scenario import unchanged
from planner.web.headers import COOKIE
from planner.workspace.samples import load_sample, samples
from tests.e2e.conftest import Server, Visitor, by_menu

Window = Callable[..., Visitor]

REAL = next(sample for sample in samples() if sample.file == "real-modular.json")
# Streamlit's own page asks for these below the address of a sub page before it asks at the root.
PROBES = ("_stcore/health", "_stcore/host-config", "status of 404")


def unexpected(errors: list[str]) -> list[str]:
    return [e for e in errors if not any(p in e for p in PROBES)]


def test_first_start(fresh_server: Server, visitor: Window) -> None:
    window = visitor()
    page = window.open(fresh_server.url, "The next cycle")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.get_by_role("combobox", name="Snapshot")).to_have_value(re.compile("Story"))
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    window.shot("first-start")
    assert window.foreign == []
    assert unexpected(window.errors) == []


def test_each_browser_opens_what_it_looked_at_last(server: Server, visitor: Window) -> None:
    mine, theirs = visitor(), visitor()
    sample = next(s for s in samples() if s.file == "pip-364.json")
    mine.open(f"{server.url}/why?snapshot={sample.digest[:12]}", "What would change the answer")
    theirs.open(f"{server.url}/brokers?snapshot={samples()[0].digest[:12]}", "Broker details")
    another_tab = mine.page.context.new_page()
    another_tab.goto(server.url)
    expect(another_tab.get_by_role("combobox", name="Snapshot")).to_have_value(re.compile("PIP-364"))
    named, other = (next(c for c in window.page.context.cookies() if c["name"] == COOKIE) for window in (mine, theirs))
    assert named["httpOnly"]
    assert named["value"] != other["value"]


def test_a_scenario_goes_from_page_to_page_and_its_link_to_another_browser(server: Server, visitor: Window) -> None:
    window = visitor()
    sample = next(s for s in samples() if s.file == "pip-364.json")
    page = window.open(f"{server.url}/shedding?snapshot={sample.digest[:12]}", "ThresholdShedder sheds")
    page.get_by_role("combobox", name="Shedding strategy").click()
    page.get_by_role("option", name="AvgShedder").click()
    window.settled("AvgShedder instead of ThresholdShedder")
    by_menu(page, "Brokers")
    window.settled("This page shows the cluster as captured, without the scenario.")
    page.get_by_text("Show with the scenario").click()
    window.settled("This page shows the cluster after 30 cycles of the scenario.")
    page.get_by_role("button", name="Copy link").click()
    copies = page.locator(".st-key-link").get_by_role("button", name="Copy to clipboard")
    assert copies.evaluate("e => e.checkVisibility({opacityProperty: true})")
    link = page.locator(".st-key-link code").inner_text().replace("\n", "").strip()
    assert link.startswith(f"{server.url}/brokers?")
    visitor().open(link, "This page shows the cluster after 30 cycles of the scenario.")
    assert window.foreign == []


def test_headers(server: Server, visitor: Window) -> None:
    window = visitor()
    # What a browser has already, it is answered with 304, which repeats fewer headers.
    answer = window.page.request.get(server.url, headers={"Cache-Control": "no-cache"})
    assert answer.status == 200
    headers = answer.headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["script-src"].split(" 'sha256-")[0] == "'self'"
    assert "unsafe" not in policy["script-src"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    ahead = re.findall(r"<\./([^>]+)>; rel=modulepreload", headers["link"])
    assert [window.page.request.get(f"{server.url}/{file}").status for file in ahead] == [200, 200, 200]


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", "same", 101),
        ("127.0.0.1", "same", 101),
        ("[::1]", "same", 101),
        ("localhost", "", 101),
        ("evil.example", "same", 403),
        ("evil.example", "", 403),
        ("localhost.evil.example", "same", 403),
        ("127.0.0.1.evil.example", "same", 403),
        ("[", "same", 403),
        ("localhost", "http://evil.example", 403),
        ("localhost", "http://localhost:9", 403),
        ("localhost", "null", 403),
        ("localhost", "http://[", 403),
        ("localhost", "scheme:ftp", 403),
        ("localhost", "scheme:chrome-extension", 403),
    ],
)
def test_handshake(server: Server, host: str, origin: str, status: int) -> None:
    """A page elsewhere, also one whose name was turned to this machine, opens no WebSocket."""
    named = f"{host}:{server.port}"
    headers = {"Host": named, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    headers |= {"Sec-WebSocket-Key": "c2l4dGVlbiBieXRlcyEhIQ==", "Sec-WebSocket-Protocol": "streamlit"}
    if origin:
        scheme = origin.partition("scheme:")[2] or "http"
        headers["Origin"] = f"{scheme}://{named}" if origin == "same" or "scheme:" in origin else origin
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        connection.request("GET", "/_stcore/stream", headers=headers)
        assert connection.getresponse().status == status


@pytest.mark.parametrize("path", ["metrics", "agent/interact", "agent/openapi.json", "agent/mcp"])
def test_what_no_visitor_needs_is_not_there(server: Server, path: str) -> None:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        connection.request("GET", f"/_stcore/{path}", headers={"Host": f"localhost:{server.port}"})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (404, b"Not found")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1", 200),
        ("evil.example", 403),
        ("evil.example@localhost", 403),
        ("localhost/evil", 403),
        ("localhost:abc", 403),
    ],
)
def test_pages_are_given_under_known_names(server: Server, host: str, status: int) -> None:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        connection.request("GET", "/", headers={"Host": f"{host}:{server.port}"})
        answer = connection.getresponse()
        assert answer.status == status
        assert answer.headers["x-frame-options"] == "DENY"
        assert ("--allow NAME" in answer.read().decode()) == (status == 403)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("bundle-map", "Click a row to open a namespace"),
        ("namespaces", "Select a row to open a namespace"),
        ("snapshots", "In this workspace"),
    ],
)
def test_deep_link_on_a_fresh_server(fresh_server: Server, visitor: Window, path: str, text: str) -> None:
    sample = next(s for s in samples() if s.title.startswith("OverloadShedder"))
    window = visitor()
    page = window.open(f"{fresh_server.url}/{path}?snapshot={sample.digest[:12]}", text)
    if path == "snapshots":
        expect(page.get_by_label("Name")).to_have_value(sample.title)
    else:
        expect(page.get_by_role("combobox", name="Snapshot")).to_have_value(re.compile(re.escape(sample.title)))
    assert page.locator('[data-testid="stException"]').count() == 0
    assert window.foreign == []


def test_link_to_a_bundle_survives_another_browser(server: Server, visitor: Window) -> None:
    sample = next(s for s in samples() if s.title.startswith("flow_or_qps"))
    link = f"{server.url}/bundle-map?snapshot={sample.digest[:12]}&namespace=example/split&bundle=0x00000000_0x80000000"
    for _ in range(2):
        page = visitor().open(link, "flow_or_qps_equally_divide would split this bundle")
        expect(page.get_by_text("0x00000000_0x1c800001").first).to_be_visible()


def test_upload_of_good_files(server: Server, visitor: Window, small: Snapshot) -> None:
    window = visitor()
    page = window.open(f"{server.url}/snapshots", "In this workspace")
    packed = io.BytesIO()
    write_zip(small, packed)
    chooser = page.locator('input[type="file"]')
    chooser.set_input_files({"name": "good.zip", "mimeType": "application/zip", "buffer": packed.getvalue()})
    window.settled("“good” loaded: 5 brokers, 60 bundles")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.get_by_role("combobox", name="Snapshot")).to_have_value(re.compile("good"))
    window.shot("upload-good")
    by_menu(page, "Brokers")
    window.settled("Broker details")
    expect(page.get_by_text("“good” loaded")).to_have_count(0)
    by_menu(page, "Snapshots")
    window.settled("In this workspace")
    again = write_document(small).encode()
    page.locator('input[type="file"]').set_input_files(
        {"name": "again.json", "mimeType": "application/json", "buffer": again}
    )
    window.settled("already existed")


def test_an_upload_is_in_view_though_another_row_was_selected(
    fresh_server: Server, visitor: Window, small: Snapshot
) -> None:
    window = visitor()
    one, other = (sample for sample in samples() if sample.file in {"threshold-shedder.json", "overload-shedder.json"})
    for sample in (one, other):
        window.open(f"{fresh_server.url}/?snapshot={sample.digest[:12]}", "Broker scores")
    page = window.open(f"{fresh_server.url}/snapshots?snapshot={other.digest[:12]}", "Current snapshot")
    page.set_viewport_size({"width": 1400, "height": 2400})
    window.settled("Current snapshot")  # a click while the page is still being drawn leaves two rows open
    box = page.locator('[data-testid="stDataFrame"]').first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 35 * 2 + 18)  # the second row
    page.wait_for_url(f"**snapshot={one.digest[:12]}*")
    window.settled("Current snapshot")  # while it is drawn, fields of before and of now are there
    expect(page.get_by_label("Name", exact=True)).to_have_value(one.title)
    page.locator('input[type="file"]').set_input_files(
        {"name": "mine.json", "mimeType": "application/json", "buffer": write_document(small).encode()}
    )
    window.settled("loaded: 5 brokers, 60 bundles")
    by_menu(page, "Snapshots")
    window.settled("In this workspace")
    expect(page.get_by_label("Name", exact=True)).to_have_value("mine")
    page.get_by_label("Name", exact=True).fill("still mine")
    page.get_by_role("button", name="Rename").click()
    window.settled("still mine")
    expect(page.get_by_label("Name", exact=True)).to_have_value("still mine")


def test_upload_of_bad_files(server: Server, visitor: Window, small: Snapshot) -> None:
    document = json.loads(write_document(small))
    whole = io.BytesIO()
    write_zip(small, whole)
    bad: dict[str, tuple[bytes, str]] = {
        "cut.zip": (whole.getvalue()[: len(whole.getvalue()) // 2], "cut.zip"),
        "page.json": (b"<html><body>Sign in</body></html>", "HTML"),
        "latin.json": ('{"x": "é"}'.encode("latin-1"), "UTF-8"),
        "other.json": (json.dumps({"a": 1}).encode(), "other.json"),
        "half.json": (json.dumps(document).encode()[:500], "half.json"),
    }
    window = visitor()
    page = window.open(f"{server.url}/snapshots", "In this workspace")
    tables = page.locator('[data-testid="stDataFrame"]')
    tables.first.wait_for()
    before = tables.count()
    kept = page.url.rpartition("snapshot=")[2]
    for name, (data, said) in bad.items():
        page.locator('input[type="file"]').set_input_files(
            {"name": name, "mimeType": "application/octet-stream", "buffer": data}
        )
        alert = page.locator('[data-testid="stAlert"]').filter(has_text=said).first
        alert.wait_for(timeout=30_000)
        expect(page.get_by_text("Nothing was changed").first).to_be_visible()
        assert "Traceback" not in page.inner_text("body")
        expect(page.get_by_role("heading", name="Snapshots", exact=True)).to_be_visible()
        assert f"snapshot={kept}" in page.url
        page.locator('[data-testid="stFileChipDeleteBtn"] button').first.click()
        page.get_by_text("Nothing was changed").first.wait_for(state="hidden", timeout=30_000)
    expect(tables).to_have_count(before)
    window.shot("upload-bad")


def test_drill_down_by_mouse(server: Server, visitor: Window) -> None:
    sample = REAL
    window = visitor(height=1400)
    page = window.open(f"{server.url}/bundle-map?snapshot={sample.digest[:12]}", "Click a row to open a namespace")
    chart = page.locator(".js-plotly-plot").first
    chart.wait_for()
    box = chart.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    rows = 10
    page.mouse.click(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 1.5 / rows)
    page.wait_for_url("**namespace=globex%2Ftelemetry**", timeout=20_000)
    window.settled("8 bundles")
    bars = page.locator(".js-plotly-plot").nth(1)
    inner = bars.locator(".nsewdrag").first.bounding_box()
    assert inner is not None
    page.mouse.click(inner["x"] + inner["width"] * 0.95, inner["y"] + inner["height"] * 0.9)
    page.wait_for_url("**bundle=0xe0000000_0xffffffff**", timeout=20_000)
    window.settled("by position in the hash space")
    window.shot("drill-down")


def test_a_row_and_a_bar_lead_to_what_they_name(server: Server, visitor: Window) -> None:
    window = visitor(height=2_400)
    page = window.open(f"{server.url}/failure-review?snapshot={samples()[0].digest[:12]}", "Worst is the loss of")
    snapshot = load_sample(samples()[0])
    second = simulate_losses(snapshot, unchanged(snapshot.info.pulsar_version)).simulated[1].broker
    rows = page.locator('[data-testid="stDataFrame"]').first
    rows.locator("canvas").first.wait_for()
    box = rows.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 40, box["y"] + 90)
    told = page.locator('[data-testid="stMain"]').get_by_role("link", name="Broker", exact=True)
    expect(told.first).to_be_visible()
    expect(page.get_by_text(second).first).to_be_visible()
    bars = page.locator(".js-plotly-plot .nsewdrag").first.bounding_box()
    assert bars is not None
    page.mouse.click(bars["x"] + bars["width"] * 0.075, bars["y"] + bars["height"] * 0.9)
    expect(told).to_have_count(3)
    page.get_by_role("link", name="Why", exact=True).first.click()
    page.wait_for_url(f"**/why?**broker={second.partition(':')[0]}*", timeout=30_000)


def test_download(server: Server, visitor: Window, tmp_path: Path) -> None:
    window = visitor(height=2_400)
    page = window.open(f"{server.url}/snapshots?snapshot={samples()[0].digest[:12]}", "Current snapshot")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download as JSON document").click()
    kept = tmp_path / "taken.json"
    waiting.value.save_as(kept)
    assert json.loads(kept.read_text(encoding="utf-8"))["format"] == "pulsar-bundle-planner document"


def test_the_name_of_the_first_page_is_an_address(server: Server, visitor: Window) -> None:
    window = visitor()
    page = window.open(f"{server.url}/overview?snapshot={samples()[0].digest[:12]}", "The next cycle")
    page.wait_for_url(f"{server.url}/?snapshot={samples()[0].digest[:12]}", timeout=20_000)
    assert page.locator('[data-testid="stException"]').count() == 0


def test_back_and_forward_go_through_choices(server: Server, visitor: Window) -> None:
    window = visitor()
    page = window.open(f"{server.url}/brokers?snapshot={samples()[0].digest[:12]}", "Broker details")
    box = page.get_by_role("combobox", name="Broker", exact=True)
    seen = [box.input_value()]
    for at in (1, 2):
        box.evaluate("box => box.scrollIntoView({block: 'center', behavior: 'instant'})")
        expect(box).to_be_in_viewport()
        page.wait_for_timeout(300)  # a list closes while the page still scrolls
        box.click()
        page.get_by_role("option").nth(at).click()
        page.wait_for_url(lambda url: seen[-1].replace(":", "%3A") not in url, timeout=20_000)
        window.settled("Broker details")
        seen.append(box.input_value())
    assert len(set(seen)) == 3
    page.go_back()
    expect(box).to_have_value(seen[1])
    page.go_back()
    expect(box).to_have_value(seen[0])
    page.go_forward()
    expect(box).to_have_value(seen[1])


@pytest.mark.parametrize("title", ["Bundle map", "Split lab", "Why"])
def test_a_page_that_completes_its_address_is_one_step_back(server: Server, visitor: Window, title: str) -> None:
    """Each part that a page added by itself was a step, and Back led to the page, which added it again."""
    window = visitor()
    start = f"{server.url}/?snapshot={samples()[0].digest[:12]}"
    page = window.open(start, "The next cycle")
    by_menu(page, title)
    window.drawn(title)
    page.wait_for_url(re.compile("bundle=|broker="))
    window.drawn(title)
    page.go_back()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page).to_have_url(start)


def test_a_link_or_a_button_to_another_page_is_one_step_back(server: Server, visitor: Window) -> None:
    """A page that had to add the cluster to its address stood in the history up to four times."""
    window = visitor()
    start = f"{server.url}/?snapshot={samples()[0].digest[:12]}"
    page = window.open(start, "The next cycle")
    page.get_by_role("link", name="All losses").click()
    window.settled("Each row is a simulation")
    page.go_back()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert page.url == start
    window.settled("The next cycle")
    page.get_by_role("button", name="Drain a broker").click()
    window.settled("bundles shed")
    expect(page.get_by_role("heading", name="What-if")).to_be_visible()
    page.go_back()  # one step for the page, and one for the scenario
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.go_back()
    expect(page).to_have_url(start)
