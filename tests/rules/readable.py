"""Recorded decisions as text that a person reads and compares: settings, tables of what was given, what was decided."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.conform.reader import Vector

_WIDTH = 110
_MOST_DIGITS = 6
_MOST_COLUMNS = 20


def readable(vectors: Sequence[Vector], answers: Sequence[Any]) -> str:
    """Return recorded decisions and what the planner answers to them."""
    lines: list[str] = []
    for vector, answer in zip(vectors, answers, strict=True):
        lines += [f"=== {vector.kind}: {vector.id}", "", "settings"]
        lines += [f"  {name} = {_scalar(value)}" for name, value in sorted(vector.config.items())] or ["  defaults"]
        lines += ["", "given", *_block(vector.input, "  "), "", "decided", *_block(answer, "  "), ""]
    return "\n".join(lines)


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.{_MOST_DIGITS}g}"
    if isinstance(value, list):
        text = ", ".join(map(_scalar, value))
        return f"[{text}]" if len(text) <= _WIDTH else f"[{text[:_WIDTH]} ... {len(value)} in all]"
    return "-" if value is None else str(value)


def _flat(value: Any) -> bool:
    if isinstance(value, list):
        return not any(isinstance(inner, dict | list) for inner in value)
    return not isinstance(value, dict)


def _columns(row: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the cells of a row, parts of parts named with a dot; None when it holds more than a row can show."""
    found: dict[str, str] = {}
    for name, value in row.items():
        if _flat(value):
            found[name] = _scalar(value)
        elif isinstance(value, dict) and all(_flat(inner) for inner in value.values()):
            found |= {f"{name}.{part}": _scalar(inner) for part, inner in value.items()}
        else:
            return None
    return found if len(found) <= _MOST_COLUMNS else None


def _block(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _mapping(value, indent)
    elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        yield from _rows([(str(i + 1), v) for i, v in enumerate(value)], indent)
    elif isinstance(value, list):
        yield from (f"{indent}{_scalar(v)}" for v in value)
    else:
        yield f"{indent}{_scalar(value)}"


def _mapping(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    rows = list(value.items())
    if len(rows) > 1 and all(isinstance(v, dict) for _, v in rows):
        yield from _rows(rows, indent)
        return
    for name, inner in rows:
        if _flat(inner):
            yield f"{indent}{name}: {_scalar(inner)}"
        else:
            yield f"{indent}{name}"
            yield from _block(inner, f"{indent}  ")


def _rows(rows: Sequence[tuple[str, Mapping[str, Any]]], indent: str) -> Iterator[str]:
    """Yield a table, with what is alike in all rows above it; rows too large for one stand below one another."""
    table = [(name, cells) for name, row in rows if (cells := _columns(row)) is not None]
    columns = list(dict.fromkeys(column for _, cells in table for column in cells))
    shown = {column: [cells.get(column, "-") for _, cells in table] for column in columns}
    same = [column for column, values in shown.items() if len(set(values)) == 1 and len(table) > 1]
    lines = [["", *(c for c in columns if c not in same)]]
    lines += [[name, *(shown[c][i] for c in columns if c not in same)] for i, (name, _) in enumerate(table)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    if len(table) < len(rows) or sum(widths) > 2 * _WIDTH:
        before: dict[str, str] = {}
        for name, row in rows:
            block = list(_block(row, f"{indent}  "))
            same_as = before.setdefault("\n".join(block), name)
            yield f"{indent}{name}" if same_as == name else f"{indent}{name} as {same_as}"
            yield from block if same_as == name else ()
        return
    if same:
        yield from _wrapped(f"{indent}all: ", [f"{column}={shown[column][0]}" for column in same])
    for line in lines if len(lines[0]) > 1 else lines[1:]:
        yield indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _wrapped(start: str, parts: Sequence[str]) -> Iterator[str]:
    line = start
    for part in parts:
        if len(line) + len(part) > _WIDTH and line.strip() != start.strip():
            yield line.rstrip()
            line = " " * len(start)
        line += f"{part}  "
    yield line.rstrip()
