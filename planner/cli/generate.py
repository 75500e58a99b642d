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
    from planner.cluster.errors import FormatError
    from planner.cluster.files import whole_file, writing
    from planner.formats.archive import write_zip
    from planner.formats.document import write_document
    from planner.formats.folder import write_folder
    from planner.simulate import generate as module

    snapshot = module.generate(spec, seed)
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
