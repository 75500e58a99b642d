"""`python -m planner capture`: captures a running cluster."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planner.capture.collect import Progress
from planner.capture.options import CaptureOptions, Credentials, Limits
from planner.capture.run import SNAPSHOT, CaptureResult, capture_cluster
from planner.capture.stores.registry import EXAMPLE

_LIMITS: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "--in-flight": ("in_flight", "requests under way at once", int),
    "--in-flight-per-broker": ("in_flight_per_broker", "the same of one broker", int),
    "--rate": ("per_second", "requests started in a second", float),
    "--connect-timeout": ("connect_s", "longest wait for a connection, in seconds", float),
    "--request-timeout": ("request_s", "longest time of one request, in seconds", float),
    "--total-timeout": ("total_s", "longest time of a capture, in seconds", float),
    "--attempts": ("attempts", "how often a request is tried", int),
    "--max-namespaces": ("namespaces", "how many namespaces may be asked about", int),
}
_EVERY_S = 1.0


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "capture",
        help="capture a running cluster",
        description="Capture a running cluster with read-only requests: raw answers, and the snapshot they show. Asked"
        " for again with the same --out, it goes on where it was cut short.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for raw/ and snapshot/")
    add_arguments(parser)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what tells a cluster, secrets and bounds; `options_of` reads them."""
    parser.add_argument("--admin-url", required=True, help="admin address of any broker, such as http://broker-1:8080")
    parser.add_argument("--metadata-store", default="", help=f"{EXAMPLE}; averages are only there")
    parser.add_argument(
        "--metrics",
        default="auto",
        help="auto (where load reports are missing), off, admin, prometheus, or an address with {host}",
    )
    parser.add_argument("--namespaces", nargs="+", default=[], metavar="T/N", help="only these; * stands for any text")
    parser.add_argument("--no-topics", action="store_true", help="leave out topics")
    parser.add_argument("--cluster", default="", help="name of the cluster, where nobody says")
    parser.add_argument("--broker-url", default="", help="address of a broker with {host}, such as https://{host}:8443")
    secrets = parser.add_argument_group("secrets", "in files or in the environment, never on the command line")
    secrets.add_argument("--token-file", type=Path, help="file with a token")
    secrets.add_argument("--token-env", default=Credentials().token_env, help="variable with a token (%(default)s)")
    secrets.add_argument("--ca-file", type=Path, help="PEM file of authorities to trust")
    secrets.add_argument("--cert-file", type=Path, help="client certificate, PEM")
    secrets.add_argument("--key-file", type=Path, help="its key, PEM")
    secrets.add_argument("--oauth2-file", type=Path, help="key file of OAuth2 client credentials")
    secrets.add_argument("--oauth2-audience", default="", help="audience to ask for")
    secrets.add_argument("--oauth2-scope", default="", help="scope to ask for")
    secrets.add_argument("--metadata-store-login", type=Path, help="file with user:password for the metadata store")
    bounds = parser.add_argument_group("bounds")
    for flag, (name, text, kind) in _LIMITS.items():
        bounds.add_argument(flag, type=kind, default=getattr(Limits(), name), help=f"{text} (%(default)s)")


def options_of(args: argparse.Namespace, out: Path) -> CaptureOptions:
    """Return the options that the arguments describe."""
    limits = {name: getattr(args, flag[2:].replace("-", "_")) for flag, (name, _, _) in _LIMITS.items()}
    return CaptureOptions(
        admin_url=args.admin_url,
        out=out,
        metadata_store=args.metadata_store,
        metrics=args.metrics,
        namespaces=tuple(args.namespaces),
        with_topics=not args.no_topics,
        cluster=args.cluster,
        broker_url=args.broker_url,
        credentials=Credentials(
            token_file=args.token_file,
            token_env=args.token_env,
            ca_file=args.ca_file,
            cert_file=args.cert_file,
            key_file=args.key_file,
            oauth2_file=args.oauth2_file,
            oauth2_audience=args.oauth2_audience,
            oauth2_scope=args.oauth2_scope,
            store_auth_file=args.metadata_store_login,
        ),
        limits=Limits(**limits),
    )


def printer() -> Callable[[Progress], None]:
    """Return what tells progress on standard error: once a second, and at each new stage."""
    stage, told_s = "", 0.0

    def tell(progress: Progress) -> None:
        nonlocal stage, told_s
        now_s = time.monotonic()
        if progress.stage != stage or now_s - told_s >= _EVERY_S:
            stage, told_s = progress.stage, now_s
            failed = f", {progress.failed} without answer" if progress.failed else ""
            sys.stderr.write(f"{progress.stage}: {progress.done:,} of {progress.total:,}{failed}\n")

    return tell


def describe(result: CaptureResult) -> str:
    """Return a line about a capture."""
    kept = f", {result.kept} parts kept from before" if result.kept else ""
    return (
        f"{result.folder / SNAPSHOT}: {result.snapshot.info.cluster}, {len(result.snapshot.brokers)} brokers,"
        f" {len(result.snapshot.bundles):,} bundles, {len(result.snapshot.topics):,} topics;"
        f" {result.requests:,} requests in {result.took_s:,.1f} s{kept}\n"
    )


def run(args: argparse.Namespace) -> int:
    """Capture the cluster that the arguments describe.

    Raises:
        PlannerError: It cannot be captured.
    """
    result = capture_cluster(options_of(args, args.out), printer())
    for warning in result.snapshot.info.warnings:
        sys.stderr.write(f"note: {warning}\n")
    sys.stdout.write(describe(result))
    return 0
