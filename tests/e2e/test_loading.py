"""What is given to *Load your cluster* is read, whatever a person does meanwhile."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.e2e.conftest import Server, Visitor

INPUTS = Path(__file__).parents[1] / "data" / "doors" / "inputs"


def test_a_click_elsewhere_while_it_reads_loses_nothing(server: Server, visitor: Callable[..., Visitor]) -> None:
    """The text was gone and nothing was read: the click ended the run of the page before the result was kept."""
    window = visitor()
    page = window.open(f"{server.url}/load", "What do you have?")
    page.get_by_role("textbox", name="Text").fill((INPUTS / "load_report" / "two_in_a_row_3_3.txt").read_text())
    page.get_by_role("button", name="Read", exact=True).click()
    page.get_by_text("Nothing yet", exact=True).click()
    window.settled("Plan this cluster")
    page.get_by_text("Files or text", exact=True).click()
    window.settled("The ten commands")
    expect(page.get_by_text("load reports of 2 brokers")).to_be_visible()
    expect(page.get_by_role("textbox", name="Text")).to_have_value("")
