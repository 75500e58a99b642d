"""How fast every page answers a person, once a scenario is simulated.

    python benchmarks/pages.py [--reruns 20] [--profile what_if]

Every page is run as Streamlit runs it, without a browser, over the generated sample of 100 brokers and 10,000 bundles.
Each rerun follows a change that a person makes: another cycle, another quantity, another broker. Prints the median and
the 95th percentile of a whole rerun in milliseconds, by the clock and in processor time, which depends less on what the
machine does besides. In a browser scrubbing and playing are faster still: only the part with the cycle is drawn again.
"""

import argparse
import cProfile
import os
import pstats
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import streamlit as st
from streamlit.testing.v1 import AppTest

from planner.web.registry import NAMES
from planner.workspace.samples import samples

WAIT_S = 600


def changes(page: str) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield what a person does on a page, over and over: its name, and how it is done."""

    def slide(test: object, at: int) -> None:
        next(s for s in test.slider if s.label == "Cycle").set_value(1 + at % 30)  # type: ignore[attr-defined]

    def pick(label: str, test: object, at: int) -> None:
        box = next(s for s in test.selectbox if s.label == label)  # type: ignore[attr-defined]
        box.set_value(box.options[at % len(box.options)])

    def segment(label: str, values: Sequence[str], test: object, at: int) -> None:
        group = next(g for g in test.button_group if g.label == label)  # type: ignore[attr-defined]
        group.set_value(values[at % len(values)])

    offered: dict[str, list[tuple[str, Callable[..., object]]]] = {
        "what_if": [
            ("scrub", slide),
            ("quantity", partial(segment, "Quantity", ("msg_rate_per_s", "throughput_bytes_per_s", "usage"))),
            ("heat map", partial(segment, "Show as", ("map", "lines"))),
        ],
        "why": [("broker", partial(pick, "Broker"))],
        "brokers": [("broker", partial(pick, "Broker"))],
        "split_lab": [("algorithm", partial(pick, "Algorithm"))],
    }
    yield from (*offered.get(page, ()), ("nothing", lambda _t, _i: None))


@contextmanager
def profiled(profiler: cProfile.Profile) -> Iterator[None]:
    """Profile the page, which runs in a thread of its own."""

    def start(*_: object) -> None:
        threading.setprofile(None)
        profiler.enable()

    threading.setprofile(start)
    try:
        yield
    finally:
        threading.setprofile(None)


def measure(page: str, reruns: int, *, profile: bool) -> None:
    """Run a page, change something many times, and print how long the reruns take."""
    digest = next(s.digest for s in samples() if s.file == "generated-100.zip")
    script = f"from planner.web.registry import page\npage({page!r}).show()\n"
    test = AppTest.from_string(script, default_timeout=WAIT_S)
    test.query_params["snapshot"] = digest[:12]
    test.run()
    until = time.monotonic() + WAIT_S
    while any(button.label == "Stop" for button in test.button) and time.monotonic() < until:
        time.sleep(0.5)
        test.run()
    for name, change in changes(page):
        taken: list[tuple[float, float]] = []
        profiler = cProfile.Profile()
        for at in range(reruns + 1):
            change(test, at + 1)
            start = time.perf_counter(), time.process_time()
            with profiled(profiler) if profile else nullcontext():
                test.run()
            taken.append((time.perf_counter() - start[0], time.process_time() - start[1]))
            if test.exception:
                raise SystemExit(f"{page}, {name}: {test.exception[0].value}")
        clock, processor = (np.array(column[1:]) * 1000 for column in zip(*taken, strict=True))
        print(
            f"{page:15} {name:10} clock: median {np.median(clock):5.0f}, p95 {np.percentile(clock, 95):5.0f} ms;"
            f" processor: median {np.median(processor):5.0f}, p95 {np.percentile(processor, 95):5.0f} ms"
        )
        if profile:
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reruns", type=int, default=20)
    parser.add_argument("--profile", metavar="PAGE")
    options = parser.parse_args()
    os.environ["PLANNER_WORKSPACE"] = str(Path(tempfile.mkdtemp()) / "planner.duckdb")
    warnings.filterwarnings("ignore")
    st.page_link = lambda *_, **__: None  # type: ignore[assignment] # links need the router
    for page in NAMES:
        if options.profile in {None, page}:
            measure(page, options.reruns, profile=options.profile is not None)


if __name__ == "__main__":
    main()
