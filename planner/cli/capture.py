"""`python -m planner capture`: captures a running cluster."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from planner.capture.options import CaptureOptions, Credentials, Limits

if TYPE_CHECKING:
    from planner.capture.options import Progress

_NAMES = {"with_topics": "topics", "store_auth_file": "metadata-store-login"}
_LIMITS = {
    "per_second": "rate",
    "connect_s": "connect-timeout",
    "request_s": "request-timeout",
    "total_s": "total-timeout",
    "namespaces": "max-namespaces",
}
_NO_OPTIONS = "out|credentials|limits|back_off_s|.*_bytes|brokers|store_nodes|store_per_second"
_EVERY_S = 1.0


def _flat(names: dict[str, str], **more: Any) -> Parameter:
    return Parameter(
        name="*",
        parse=f"^(?!({_NO_OPTIONS})$)",
        name_transform=lambda name: names.get(name, name.replace("_", "-")),
        **more,
    )


Cluster = Annotated[
    CaptureOptions, _flat(_NAMES, negative_bool="no-", negative_iterable=(), negative=None, consume_multiple=True)
]
"""Options of the cluster and the part to capture: one for each field of `CaptureOptions` except `out`."""
Secrets = Annotated[
    Credentials,
    _flat(
        _NAMES, group=Group("Secrets", sort_key=1, help="In files or in the environment, never on the command line.")
    ),
]
"""Where secrets are: an option for each field of `Credentials`."""
Bounds = Annotated[Limits, _flat(_LIMITS, group=Group("Bounds", sort_key=2))]
"""Options of the limits: one for most fields of `Limits`."""


def capture(*, out: Path, cluster: Cluster, secrets: Secrets = Credentials(), bounds: Bounds = Limits()) -> None:
    """Capture a running cluster.

    Sends only read-only requests, and keeps the raw answers and the snapshot made from them. Run again with the same
    --out, it continues an interrupted capture.

    Args:
        out: Folder for raw/ and snapshot/.
        cluster: The cluster, and what to capture of it.
        secrets: Where secrets are.
        bounds: Limits of the capture.
    """
    from planner.capture.run import capture_cluster

    result = capture_cluster(replace(cluster, out=out, credentials=secrets, limits=bounds), _printer())
    for warning in result.snapshot.info.warnings:
        sys.stderr.write(f"note: {warning}\n")
    sys.stdout.write(f"{result.text}\n")


def _printer() -> Callable[["Progress"], None]:
    """Return a function that reports progress on standard error: once a second, and at each new stage."""
    stage, reported_s = "", 0.0

    def report(progress: "Progress") -> None:
        nonlocal stage, reported_s
        now_s = time.monotonic()
        if progress.stage != stage or now_s - reported_s >= _EVERY_S:
            stage, reported_s = progress.stage, now_s
            failed = f", {progress.failed} without answer" if progress.failed else ""
            sys.stderr.write(f"{progress.stage}: {progress.done:,} of {progress.total:,}{failed}\n")

    return report
