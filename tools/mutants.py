"""Mutates a random sample of places in what explains, optimizes and shares, and counts which ones the tests kill.

python tools/mutants.py --sample 300 --seed 7

Each mutant of Cosmic Ray is made in a copy of the last commit, one after the other; the tests of its room have to fail.
Ends with 1 when fewer than 85 % are killed. 300 mutants take some hours.
"""

import argparse
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {
    "planner/explain": "tests/app/plan tests/stories",
    "planner/optimize": "tests/app/optimize",
    "planner/share": (
        "tests/app/plan tests/app/optimize/test_scripts_of_samples.py tests/data/workspace/test_plan_command.py"
    ),
}
"""Folders that are mutated, and the tests that have to notice."""

ENOUGH_PERCENT = 85.0
_LONGEST_S = 600.0
_SAME = re.compile(r"_Is(Not)?(_|$)")
"""Operators that change nothing: `is` and `==` agree on small numbers and on None."""


def copy_of_the_commit(folder: Path) -> Path:
    """Return a clone of the checkout at its last commit."""
    target = folder / "checkout"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(target)], check=True)
    return target


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sample; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--room", choices=sorted(ROOMS), default=None)
    args = parser.parse_args(arguments)
    rooms = [args.room] if args.room else list(ROOMS)
    with tempfile.TemporaryDirectory() as folder:
        checkout = copy_of_the_commit(Path(folder))
        os.chdir(checkout)
        os.environ["PYTHONPATH"] = str(checkout)
        files = [path for room in rooms for path in sorted(Path(room).glob("*.py"))]
        with use_db(Path(folder) / "mutants.sqlite", WorkDB.Mode.create) as known:
            init(files, known, {})
            made = (item for item in known.work_items if not _SAME.search(item.mutations[0].operator_name))
            items = sorted(made, key=lambda item: str(item.mutations))
        chosen = random.Random(args.seed).sample(items, min(args.sample, len(items)))  # noqa: S311 - no secret
        print(f"{len(chosen):,} of {len(items):,} mutants", flush=True)
        killed = 0
        for number, item in enumerate(chosen, start=1):
            mutation = item.mutations[0]
            tests = ROOMS[str(mutation.module_path.parent)]
            command = f"{shlex.quote(sys.executable)} -m pytest -x -q -p no:cacheprovider -p no:xdist {tests}"
            result = mutate_and_test([mutation], command, _LONGEST_S)
            killed += result.is_killed
            if not result.is_killed:
                print(f"survives: {mutation.module_path}:{mutation.start_pos[0]}\n{result.diff}", flush=True)
            print(f"{killed} of {number} killed", flush=True)
    return 0 if killed >= ENOUGH_PERCENT / 100 * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
