"""No file, class or function grows beyond what one can keep in mind; each exception is named, with its reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("pages", "planner", "tests", "tools")
MOST_LINES, MOST_METHODS, MOST_CODE_LINES = 600, 30, 60

EXCEPTIONS = {
    "planner/pulsar/shedding/transfer.py": "one algorithm of Pulsar, whose parts change each other's numbers",
    "planner/cli/replay.py: replay": "26 options of the command; its body is short",
    "tests/app/simulate/traces.py: cluster": "one call that names every column of the cluster of the tests",
    "tools/make_samples.py: builds": "a table of the samples",
    "tools/make_samples.py: cluster": "one call that names every column of the samples",
}


def files() -> list[Path]:
    return [ROOT / "app.py", *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))]


def code_lines(source: list[str], function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function with its signature, without blanks, comments and its docstring."""
    docstring: set[int] = set()
    if ast.get_docstring(function, clean=False) is not None:
        docstring = set(range(function.body[0].lineno, (function.body[0].end_lineno or 0) + 1))
    rows = range(function.lineno, (function.end_lineno or 0) + 1)
    return sum(bool(line := source[row - 1].strip()) and line[0] != "#" for row in rows if row not in docstring)


def too_large(name: str, text: str) -> Iterator[str]:
    """Yield the name of what is too large in a file, of the file itself first."""
    source = text.splitlines()
    if len(source) > MOST_LINES:
        yield name
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and code_lines(source, node) > MOST_CODE_LINES:
            yield f"{name}: {node.name}"
        if isinstance(node, ast.ClassDef):
            methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
            if sum(not method.startswith("_") for method in methods) > MOST_METHODS:
                yield f"{name}: {node.name}"


def test_nothing_is_too_large() -> None:
    found = {
        name
        for path in files()
        for name in too_large(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    }
    assert sorted(found - EXCEPTIONS.keys()) == []
    assert sorted(EXCEPTIONS.keys() - found) == [], "no longer an exception"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = 1\n" * 601, ["f.py"]),
        ("x = 1\n" * 600, []),
        ("class A:\n" + "".join(f"    def m{i}(self): ...\n" for i in range(31)), ["f.py: A"]),
        ("class A:\n" + "".join(f"    def _m{i}(self): ...\n" for i in range(31)), []),
        ('def f():\n    """Doc."""\n' + "    x = 1\n\n    # Why.\n" * 60, ["f.py: f"]),
        ('def f():\n    """Doc."""\n' + "    x = 1\n\n    # Why.\n" * 59, []),
    ],
)
def test_what_is_too_large_is_found(text: str, found: list[str]) -> None:
    assert list(too_large("f.py", text)) == found
