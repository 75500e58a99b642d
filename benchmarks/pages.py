"""How fast every page answers a person, whatever is changed on it.

    python -m benchmarks.pages [--reruns 3] [--only what_if] [--profile]

Every page is run as Streamlit runs it, without a browser, over the generated sample of 100 brokers and 10,000 bundles.
Each box of a page is set to other values; where that starts a simulation, what is drawn after its end counts as well.
Prints for each page the median and the 95th percentile of a whole rerun, and the slowest one with the box that it
followed: processor time of the rerun's own thread in milliseconds, which depends less on what the machine does besides.
The goal is a 95th percentile below 500. In a browser scrubbing and playing are faster still: only the part with the
cycle is drawn again.
"""

import argparse
import cProfile
import logging
import os
import pstats
import tempfile
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from streamlit.testing.v1 import AppTest

from planner.web.registry import NAMES, page
from planner.web.tasks import WAITS
from planner.workspace.samples import samples
from tests.app.pages.test_every_widget import another, boxes

WAIT_S = 600


class Timed:
    """Draws a page, and notes the processor time of the thread in which it runs."""

    def __init__(self, name: str, profiler: cProfile.Profile | None) -> None:
        self.name, self.profiler = name, profiler
        self.taken_ms: list[float] = []

    def __call__(self) -> None:
        """Draw it once."""
        start = time.thread_time()
        with self.profiler or nullcontext():
            page(self.name).show()
        self.taken_ms.append((time.thread_time() - start) * 1000)


def _script(draw: object) -> None:
    draw()  # type: ignore[operator]


def _waits(test: AppTest) -> bool:
    stops = any(button.label == "Stop" for button in test.button)
    return stops or any(str(caption.value).startswith(WAITS) for caption in test.caption)


def settled(test: AppTest, timed: Timed) -> float:
    """Run a page until nothing is simulated any more; return the longest rerun in milliseconds."""
    timed.taken_ms.clear()
    test.run()
    until = time.monotonic() + WAIT_S
    while _waits(test) and time.monotonic() < until:
        time.sleep(0.5)
        test.run()
    if test.exception:
        raise SystemExit(str(test.exception[0].value))
    return max(timed.taken_ms)


def changed(box: Any) -> bool:
    """Set a box to another value, if it has one."""
    value = another(box)
    if value is None:
        return False
    box.set_value(value[0] if type(box).__name__ == "ButtonGroup" else value)
    return True


def measure(name: str, reruns: int, *, profile: bool) -> None:
    """Run a page, change everything on it, and print how long the reruns take."""
    digest = next(s.digest for s in samples() if s.file == "generated-100.zip")
    timed = Timed(name, cProfile.Profile() if profile else None)
    test = AppTest.from_function(_script, default_timeout=WAIT_S, kwargs={"draw": timed})
    test.query_params["snapshot"] = digest[:12]
    first = settled(test, timed)
    taken = [(settled(test, timed), "nothing") for _ in range(reruns)]
    for box in boxes(test):
        again = (box in (now := boxes(test)) and changed(now[box]) for _ in range(reruns))
        taken.extend((settled(test, timed), box) for did in again if did)
    times = np.array([ms for ms, _ in taken])
    slowest, box = max(taken)
    print(
        f"{name:15} first {first:5.0f}, then {len(taken):3} reruns: median {np.median(times):4.0f},"
        f" p95 {np.percentile(times, 95):4.0f}, most {slowest:5.0f} ms ({box})",
        flush=True,
    )
    if timed.profiler is not None:
        pstats.Stats(timed.profiler).sort_stats("cumulative").print_stats(45)


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reruns", type=int, default=3, help="how often each box is changed")
    parser.add_argument("--only", choices=NAMES, help="one page alone")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    os.environ["PLANNER_WORKSPACE"] = str(Path(tempfile.mkdtemp()) / "planner.duckdb")
    warnings.filterwarnings("ignore")
    logging.disable()
    st.page_link = lambda *_, **__: None  # type: ignore[assignment] # links need the router
    for name in NAMES:
        if options.only in {None, name}:
            measure(name, options.reruns, profile=options.profile)


if __name__ == "__main__":
    main()
