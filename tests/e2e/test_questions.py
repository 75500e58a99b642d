"""The questions that an operator comes with: answered from the first page, on the default sample, in a few clicks.

Every press of a mouse button counts: an entry of the menu that opens, a field that is entered, each end of a choice.
Typing and scrolling do not.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.conftest import Server, Visitor

TOPIC = "persistent://acme/orders/nobody-listed-this"
_FEW, _SOME = 2, 4

_READ_MS = 120_000
"""Time for what a page simulates in the background, while other tests take both cores."""


class Asker:
    """A newcomer with a mouse."""

    def __init__(self, window: Visitor, first: str) -> None:
        self.window, self.page, self.first, self.clicks = window, window.page, first, 0
        self.main = self.page.get_by_test_id("stMain")

    def begin(self) -> None:
        """Come back to the first page, without a scenario; nothing of this counts.

        A page that is drawn again takes what is typed meanwhile out of its fields, so that it is waited for.
        """
        self.window.open(self.first, "Hottest bundles")
        self.clicks = 0

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def follow(self, name: str, at: int = 0) -> None:
        self.click(self.page.get_by_role("link", name=name, exact=True).nth(at))

    def press(self, name: str) -> None:
        self.click(self.page.get_by_role("button", name=name, exact=True))

    def menu(self, group: str, title: str) -> None:
        self.click(self.page.get_by_test_id("stTopNavSection").filter(has_text=group))
        self.click(self.page.get_by_role("menuitem", name=title, exact=True))

    def find(self, text: str) -> None:
        field = self.page.get_by_role("textbox", name="Find")
        self.click(field)
        field.fill(text)
        field.press("Enter")

    def reads(self, text: str) -> None:
        expect(self.main).to_contain_text(text, timeout=_READ_MS)

    def takes(self, button: str) -> bytes:
        with self.page.expect_download() as waiting:
            self.press(button)
        return waiting.value.path().read_bytes()


def hottest_and_why(one: Asker) -> None:
    highest = one.page.get_by_test_id("stMetric").filter(has_text="Highest usage")
    expect(highest).to_contain_text(re.compile(r"76\.0 %.*broker-14, CPU", re.DOTALL))


def next_cycle(one: Asker) -> None:
    expect(one.main).to_contain_text(re.compile(r"sheds 6 bundles from 3 brokers \(.*\) in the next cycle"))


def why_nothing(one: Asker) -> None:
    one.find("broker-07")
    one.follow("Why")
    one.reads("ThresholdShedder selected no bundle of broker-07")
    one.reads("What would change the answer")


def biggest_bundle(one: Asker) -> None:
    one.menu("Map", "Split lab")
    one.reads("Not worth it.")
    one.reads("split at 0x471c71c1")


def lose_a_broker(one: Asker) -> None:
    one.reads("Worst is the loss of broker-09")
    one.follow("All losses")
    one.reads("Worst is the loss of broker-09")


def half_as_much_again(one: Asker) -> None:
    one.press("Grow 50 %")
    one.reads("Scenario:")
    one.reads("Plan digest")


def avg_shedder_beside(one: Asker) -> None:
    one.menu("Plan", "Compare")
    one.reads("ends best balanced")
    one.reads("AvgShedder")


def when_avg_shedder_fires(one: Asker) -> None:
    one.menu("Explain", "Hit counters")
    one.reads("Instead: AvgShedder acts in cycle")


def commands(one: Asker) -> None:
    one.follow("Commands")
    one.click(one.page.get_by_text("Include Pulsar's own moves and splits"))
    expect(one.page.get_by_test_id("stCode").filter(has_text="namespaces unload").first).to_be_visible()


def share(one: Asker) -> None:
    one.press("Copy link")
    link = one.page.locator(".st-key-link code")
    expect(link).to_contain_text("snapshot=")
    one.click(one.page.locator(".st-key-link").get_by_role("button", name="Copy to clipboard"))


def bundle_of_a_topic(one: Asker) -> None:
    one.find(TOPIC)
    found = one.page.locator(".st-key-found")
    expect(found).to_contain_text(re.compile(r"not in this snapshot.*hash 0x[0-9a-f]{8}, bundle\s+0x[0-9a-f]{8}_0x"))


def report(one: Asker) -> None:
    one.follow("Report")
    assert b"broker-14" in one.takes("HTML")


def replay_and_advice(one: Asker) -> None:
    one.follow("Replay days of history")
    one.press("Generate a small sample history")
    one.reads("4 scenarios")
    one.press("Replay")
    one.page.get_by_text("has the lowest value").wait_for(timeout=180_000)
    one.follow("Open in Advisor")
    one.reads("of 4 settings")


_QUESTIONS: Sequence[Mapping[Callable[[Asker], None], int]] = (
    dict.fromkeys((hottest_and_why, next_cycle, why_nothing, biggest_bundle, lose_a_broker, half_as_much_again), _FEW),
    dict.fromkeys((avg_shedder_beside, when_avg_shedder_fires, share, bundle_of_a_topic), _FEW),
    dict.fromkeys((replay_and_advice, report, commands), _SOME),
)
"""Asked one after the other by one newcomer each, with the clicks that an answer may take."""


@pytest.fixture(scope="module")
def samples_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that nobody has given a snapshot, for all newcomers: to each browser it is new."""
    running = Server(tmp_path_factory.mktemp("newcomers") / "planner.duckdb")
    yield running
    running.stop()


@pytest.mark.parametrize("most", _QUESTIONS)
def test_a_newcomer_finds_every_answer(
    samples_alone: Server, visitor: Callable[..., Visitor], most: Mapping[Callable[[Asker], None], int]
) -> None:
    window = visitor(width=1440, height=900)
    one = Asker(window, samples_alone.url)
    taken = {}
    for question, limit in most.items():
        one.begin()
        question(one)
        if one.clicks > limit:
            taken[question] = one.clicks
    assert taken == {}
    assert window.page.locator('[data-testid="stException"]').count() == 0
    assert window.foreign == []
