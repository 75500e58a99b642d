"""Mutates a random sample of places in what explains, optimizes and shares, and counts which ones the tests kill.

python tools/mutants.py --sample 300 --seed 7

Each mutant of Cosmic Ray is made in a copy of the last commit; one of the tests that run its line has to fail. Ends
with 1 when fewer than 85 % are killed. 300 mutants take an hour or two.
"""

import argparse
import multiprocessing
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec
from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "planner/explain",
    "planner/optimize",
    "planner/share",
    "planner/simulate/failure_review.py",
    "planner/simulate/what_if.py",
)
"""What is mutated."""
TESTS = "tests/app/plan tests/app/optimize tests/app/cli tests/app/figures tests/app/simulate tests/stories"
"""The tests that have to notice."""

ENOUGH_PERCENT = 85.0
_LONGEST_S = 600.0
_SAME = re.compile(r"_Is(Not)?(_|$)")
"""Operators that change nothing: `is` and `==` agree on small numbers and on None."""
_PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def copy_of_the_commit(target: Path) -> None:
    """Clone the checkout at its last commit."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(target)], check=True)


def files_of(rooms: Iterable[str]) -> list[Path]:
    """Return the modules of rooms, each a folder or a file."""
    return [path for room in map(Path, rooms) for path in (sorted(room.glob("*.py")) if room.is_dir() else [room])]


def tests_by_line(files: Iterable[Path]) -> dict[str, dict[int, set[str]]]:
    """Run all tests once; return which of them run each line of each file.

    Raises:
        CalledProcessError: A test fails without any mutant.
    """
    measured = ["-n", "auto", "--dist", "loadgroup", "--cov=planner", "--cov-context=test", "--cov-report="]
    subprocess.run([*_PYTEST, *measured, *TESTS.split()], check=True)
    data = CoverageData(".coverage")
    data.read()
    return {
        str(path): {
            line: {name.removesuffix("|run") for name in names if name.endswith("|run")}
            for line, names in data.contexts_by_lineno(str(path.resolve())).items()
        }
        for path in files
    }


def tests_of(mutation: MutationSpec, lines: Mapping[int, set[str]]) -> list[str]:
    """Return the tests that run a mutant, specific ones first; those of its file when no test alone runs it."""
    first, last = mutation.start_pos[0], mutation.end_pos[0]
    found = set[str]().union(*(lines.get(line, set()) for line in range(first, last + 1)))
    size = Counter(name for names in lines.values() for name in names)
    return sorted(found or size, key=lambda name: (size[name], name))


def _enter(folder: Path, numbers: "multiprocessing.Queue[int]") -> None:
    """Give a process a checkout of its own."""
    checkout = folder / f"checkout-{numbers.get()}"
    copy_of_the_commit(checkout)
    os.chdir(checkout)
    os.environ["PYTHONPATH"] = str(checkout)


def survivor(mutation: MutationSpec, tests: Sequence[str]) -> str:
    """Return what a mutant that survives changes; nothing for one that is killed."""
    if tests:
        Path("tests.txt").write_text("\n".join(tests), encoding="utf-8")
        command = shlex.join([*_PYTEST, "-x", "-p", "no:xdist", "@tests.txt"])
        result = mutate_and_test([mutation], command, _LONGEST_S)
        if result.is_killed:
            return ""
        return f"survives: {mutation.module_path}:{mutation.start_pos[0]}\n{result.diff}"
    return f"never run: {mutation.module_path}:{mutation.start_pos[0]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sample; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--room", choices=sorted(ROOMS), action="append", default=[])
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_of_the_commit(folder / "checkout")
        os.chdir(folder / "checkout")
        os.environ["PYTHONPATH"] = str(folder / "checkout")
        files = files_of(args.room or ROOMS)
        with use_db(folder / "mutants.sqlite", WorkDB.Mode.create) as known:
            init(files, known, {})
            made = (item.mutations[0] for item in known.work_items)
            mutants = sorted((one for one in made if not _SAME.search(one.operator_name)), key=str)
        chosen = random.Random(args.seed).sample(mutants, min(args.sample, len(mutants)))  # noqa: S311 - no secret
        print(f"{len(chosen):,} of {len(mutants):,} mutants", flush=True)
        lines = tests_by_line(files)
        tests = [tests_of(one, lines[str(one.module_path)]) for one in chosen]
        context = multiprocessing.get_context("spawn")
        numbers = context.Queue()
        for number in range(args.processes):
            numbers.put(number)
        killed = 0
        with ProcessPoolExecutor(args.processes, context, partial(_enter, folder, numbers)) as pool:
            for number, words in enumerate(pool.map(survivor, chosen, tests), start=1):
                killed += not words
                print(*([words] if words else []), f"{killed} of {number} killed", sep="\n", flush=True)
    return 0 if killed >= ENOUGH_PERCENT / 100 * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
