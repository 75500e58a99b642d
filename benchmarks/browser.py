"""How a large cluster feels in a browser: a real server, real Chromium, every page, then visitors at the same time.

    python -m benchmarks.browser [--brokers 1000 --bundles 100000 --topics 2000000 --visitors 3] [--only what-if]
    python -m benchmarks.browser --only namespaces --brokers 100 --bundles 10000 --topics 200000

For each page, opened by its address in a new window on a server that has the cluster in its workspace: seconds by the
clock until everything is drawn, processor seconds of the server, megabytes sent, and the memory of the server, now and
at most. `cold` is the first visit of all, `again` the second. Then visitors open What-if and Compare at the same time,
each with a scenario of their own. On Namespaces, three namespaces are chosen one after the other, twice: milliseconds
from the choice until its verdict is in view (what it is, what happens to it, and its advice if that is known), until
all is drawn, and processor milliseconds of the server and of the window. The second time, answers that take long are
there already. Needs `/proc` (Linux).
"""

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from planner.share.link import encode_link
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.generate import generate
from planner.simulate.scenario import Scenario, Step
from planner.workspace.database import open_workspace
from tests.chromium import bring_chromium
from tests.e2e.conftest import AS_A_PERSON, Server, Visitor

# What a page shows when it is done.
PAGES = {
    "": "Bundles",
    "brokers": "Brokers",
    "bundle-map": "Bundle map",
    "shedding": "Shedding",
    "split-lab": "Split lab",
    "hit-counters": "Hit counters",
    "throttling": "Throttling",
    "what-if": "Plan digest",
    "moves": "Export, report",
    "namespaces": "How many bundles",
    "compare": "All measures",
    "why": "What would have to change",
    "failure-review": "Worst: losing",
    "best-plan": "Digest of the plan",
}
_PATIENCE_S = 300.0
_RESTS = (
    "() => document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')"
    " && !document.querySelector('[data-testid=stSkeleton], [data-testid=stElementContainer][data-stale=true]')"
)
"""Whether the script has run to its end, and everything is drawn."""
_VERDICT = """([name, known]) => {
    const shown = [...document.querySelectorAll('h2')].some((one) => one.innerText.trim() === name);
    const words = [...document.querySelectorAll('[data-testid=stElementContainer]:has([data-testid=stMarkdown])')];
    const fresh = (one) => one && one.dataset.stale !== 'true';
    const advice = words.find((one) => [...document.querySelectorAll('h3')].some((heading) =>
        heading.innerText.trim() === 'How many bundles' && heading.compareDocumentPosition(one) & 4));
    return shown && fresh(words.find((one) => one.innerText.includes('Without any change')))
        && (!known || fresh(advice));
}"""
"""Whether what happens to a namespace is in view, and its advice if that is known."""
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    """Return the processor time of the server and of the children that it waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def memory(pid: int) -> str:
    """Return how much memory the server has, and the most that it ever had."""
    words = [line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    gib = {name: int(rest[0]) / 2**20 for name, *rest in words if name in {"VmRSS:", "VmHWM:"}}
    return f"{gib['VmRSS:']:6.2f} {gib['VmHWM:']:6.2f} GiB"


class Window(Visitor):
    """A window that counts the bytes it was sent."""

    def __init__(self, browser: Browser) -> None:
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.set_default_timeout(300_000)
        super().__init__(context.new_page())
        self.context = context
        self.sent = 0
        self.page.on("websocket", lambda s: s.on("framereceived", self._received))

    def _received(self, frame: str | bytes) -> None:
        self.sent += len(frame)


def visit(browser: Browser, server: Server, path: str, query: str, label: str) -> None:
    """Open a page and print what it took."""
    window = Window(browser)
    before, start = processor_seconds(server.process.pid), time.perf_counter()
    window.open(f"{server.url}/{path}?{query}", PAGES[path])
    seconds = time.perf_counter() - start
    worked = processor_seconds(server.process.pid) - before
    failed = "  TRACEBACK" if window.page.locator('[data-testid="stException"]').count() else ""
    print(
        f"  {path or 'overview':15} {label:6} {seconds:7.1f} s {worked:7.1f} s {window.sent / 1e6:6.2f} MB"
        f" {memory(server.process.pid)}{failed}",
        flush=True,
    )
    window.context.close()


class Clock:
    """What a change takes until a page rests: by the clock, and processor time of the server and of the window."""

    def __init__(self, window: Window, server: Server) -> None:
        self._window, self._server = window, server
        self._tools = window.context.new_cdp_session(window.page)
        self._tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._before = self._now()

    def _now(self) -> tuple[float, float, float]:
        found = {one["name"]: one["value"] for one in self._tools.send("Performance.getMetrics")["metrics"]}
        return time.perf_counter(), processor_seconds(self._server.process.pid), found["TaskDuration"]

    def start(self) -> None:
        """Begin to measure."""
        self._before = self._now()

    def reads(self) -> float:
        """Return milliseconds by the clock since the start."""
        return (time.perf_counter() - self._before[0]) * 1000

    def stop(self) -> str:
        """Return milliseconds since the start."""
        taken = [(now - before) * 1000 for now, before in zip(self._now(), self._before, strict=True)]
        return "all drawn {:6.0f} ms, server {:6.0f} ms, window {:6.0f} ms".format(*taken)


def choices(browser: Browser, server: Server, query: str) -> None:
    """Choose namespaces on their page, and print how long each takes: once while it is worked out, once again."""
    window = Window(browser)
    page = window.open(f"{server.url}/namespaces?{query}", PAGES["namespaces"])
    clock = Clock(window, server)
    for label in ("first", "again"):
        for at in (1, 3, 5):
            page.get_by_role("combobox", name="Namespace").click()
            option = page.get_by_role("option").nth(at)
            name = option.inner_text()
            page.wait_for_timeout(500)
            clock.start()
            option.click()
            page.wait_for_function(_VERDICT, arg=[name, label == "again"])
            verdict_ms = clock.reads()
            page.wait_for_function(_RESTS)
            print(f"  {name:20} {label:6} verdict {verdict_ms:6.0f} ms, {clock.stop()}", flush=True)
            wanted = page.get_by_role("button", name="Work out the advice")
            if wanted.count():
                wanted.click()
            page.get_by_text("All numbers of bundles").wait_for()
            page.wait_for_function(_RESTS)
    window.context.close()


def together(browser: Browser, server: Server, digest: str, visitors: int) -> None:
    """Open What-if, then Compare, in as many windows at once, each with another scenario."""
    for path in ("what-if", "compare"):
        windows = [Window(browser) for _ in range(visitors)]
        before, start = processor_seconds(server.process.pid), time.perf_counter()
        for at, window in enumerate(windows):
            scenario = Scenario(steps=(Step(ScaleTraffic(factor=1.1 + at / 10)),), cycles=30)
            window.page.goto(f"{server.url}/{path}?scenario={encode_link(scenario, digest)}")
        for window in windows:
            window.settled(PAGES[path], timeout_s=_PATIENCE_S)
        seconds = time.perf_counter() - start
        worked = processor_seconds(server.process.pid) - before
        print(
            f"  {path:15} x {visitors} {seconds:9.1f} s {worked:7.1f} s {'':10}{memory(server.process.pid)}", flush=True
        )
        for window in windows:
            window.context.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate, serve, visit, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=1_000)
    parser.add_argument("--bundles", type=int, default=100_000)
    parser.add_argument("--topics", type=int, default=2_000_000)
    parser.add_argument("--visitors", type=int, default=3)
    parser.add_argument(
        "--only", choices=[*PAGES, "together"], help="one page, or the visitors at the same time, alone"
    )
    args = parser.parse_args(arguments)
    spec = ClusterSpec(
        brokers=args.brokers,
        bundles=args.bundles,
        topics=args.topics,
        msg_rate_per_s=3_000 * args.brokers,
        ownership_skew=0.6,
    )
    program = bring_chromium(print)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        workspace = open_workspace(Path(folder) / "planner.duckdb")
        digest = workspace.add(generate(spec, 1), "large").digest
        workspace.close()
        server = Server(Path(folder) / "planner.duckdb")
        browser = playwright.chromium.launch(args=AS_A_PERSON, executable_path=program or None)
        try:
            print("  page                    by clock  server      sent    memory now and at most")
            for path in PAGES if args.only is None else [args.only] if args.only in PAGES else []:
                for label in ("cold", "again"):
                    visit(browser, server, path, f"snapshot={digest}", label)
            if args.only in {None, "namespaces"}:
                choices(browser, server, f"snapshot={digest}")
            if args.only in {None, "together"}:
                together(browser, server, digest, args.visitors)
        finally:
            browser.close()
            server.stop()


if __name__ == "__main__":
    main()
