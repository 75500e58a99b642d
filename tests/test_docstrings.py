"""What docstrings promise: functions that return arrays give the shape."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = [*sorted((ROOT / "pages").glob("*.py")), *sorted((ROOT / "planner").rglob("*.py"))]


def public_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield public functions of a module and public methods of its public classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from (inner for inner in node.body if isinstance(inner, ast.FunctionDef))


def silent(path: Path) -> Iterator[str]:
    """Yield the functions of a module that return an array of which nobody says the shape."""
    for node in public_functions(ast.parse(path.read_text(encoding="utf-8"))):
        returned = ast.unparse(node.returns) if node.returns is not None else ""
        text = ast.get_docstring(node) or ""
        # A method that answers a protocol says whose contract it keeps.
        told = "shape" in text.lower() or text.startswith("See `")
        if not node.name.startswith("_") and ("Array" in returned or "NDArray" in returned) and not told:
            yield node.name


def test_functions_that_return_arrays_give_the_shape() -> None:
    assert [(str(path.relative_to(ROOT)), name) for path in FILES for name in silent(path)] == []
