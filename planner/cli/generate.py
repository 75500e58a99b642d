"""`python -m planner generate`: writes a generated cluster."""

import argparse
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from planner.cluster.errors import FormatError
from planner.cluster.files import whole_file, writing
from planner.cluster.snapshot import LoadManager
from planner.formats.archive import write_zip
from planner.formats.document import write_document
from planner.formats.folder import write_folder
from planner.simulate.generate import ClusterSpec, generate

_HELP = {
    "brokers": "how many brokers",
    "namespaces": "how many namespaces; 0 for one for every 100 bundles",
    "bundles": "how many bundles in all",
    "topics": "how many topics, partitions counted",
    "load_manager": "modular or extensible",
    "msg_rate_per_s": "messages published per second in the whole cluster",
    "message_bytes": "mean size of a message",
    "fan_out": "mean number of subscriptions of a topic",
    "topic_skew": "exponent of the Zipf law over the topics' rates; 0 makes all equal",
    "ownership_skew": "how unevenly bundles lie on brokers, 0 to 1",
    "heterogeneity": "share of brokers with half or twice the machine",
    "partitioned": "share of topics that are partitions",
    "idle": "share of topics without traffic",
    "idle_namespaces": "how many namespaces, the last ones, have no traffic",
    "isolated_namespaces": "how many namespaces have an isolation policy",
    "anti_affinity_namespaces": "how many namespaces are in an anti-affinity group, four to a group",
    "cpu_percent_per_mb_per_s": "percent of one core that one MB/s costs",
    "cpu_percent_per_1000_msg_per_s": "percent of one core that 1,000 msg/s cost",
    "captured_at_ms": "the moment, ms since 1970",
    "cluster": "name of the cluster",
}


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "generate",
        help="write a generated cluster",
        description="Write a generated cluster; the same arguments and seed give the same one.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="a folder, or a file that ends in .zip or .json")
    parser.add_argument("--seed", type=int, default=1, help="decides everything that is drawn")
    for field in fields(ClusterSpec):
        default: Any = field.default
        kind = LoadManager if field.name == "load_manager" else type(default)
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=kind,
            default=default,
            metavar=kind.__name__,
            help=_HELP[field.name],
        )


def run(args: argparse.Namespace) -> int:
    """Write the cluster that the arguments describe.

    Raises:
        SettingError: An argument is out of bounds.
        FormatError: The file or folder cannot be written.
    """
    spec = ClusterSpec(**{field.name: getattr(args, field.name) for field in fields(ClusterSpec)})
    snapshot = generate(spec, args.seed)
    out: Path = args.out
    with writing(out, FormatError, "Choose another place with --out."):
        if out.suffix in (".zip", ".json"):
            out.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(out) as target:
                if out.suffix == ".zip":
                    write_zip(snapshot, target)
                else:
                    target.write(write_document(snapshot).encode())
        else:
            write_folder(snapshot, out)
    sys.stdout.write(f"{out}: {snapshot.info.description}\n")
    return 0
