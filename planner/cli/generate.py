"""`python -m planner generate`: writes a generated cluster."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from planner.simulate.cluster_spec import ClusterSpec


def generate(*, out: Path, seed: int = 1, spec: Annotated[ClusterSpec, Parameter(name="*")] = ClusterSpec()) -> None:
    """Write a generated cluster.

    The same arguments and seed give the same cluster.

    Args:
        out: A folder, or a file that ends in .zip or .json.
        seed: Seed of the random numbers.
        spec: Properties of the cluster.
    """
    from planner.cli.output import write_snapshot
    from planner.simulate import generate as module

    snapshot = module.generate(spec, seed)
    write_snapshot(snapshot, out)
    sys.stdout.write(f"{out}: {snapshot.info.description}\n")
