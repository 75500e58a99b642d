"""How help looks: plain text in two columns, the same in a terminal and in a pipe. Which arguments are no paths."""

import re
import textwrap
from pathlib import Path
from typing import Any, Final

from cyclopts.help import HelpEntry, HelpPanel
from rich.console import Console, ConsoleOptions

_LEFT: Final = 26
_LEAST_WIDTH: Final = 60
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class PlainHelp:
    """A help formatter: no boxes, no colours, no markup."""

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Write the line of usage."""
        _write(console, textwrap.wrap(f"Usage: {usage}", _width(options), subsequent_indent=" " * 7))

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        """Write what a command does, paragraph by paragraph."""
        for paragraph in _plain(description).split("\n\n"):
            _write(console, ["", *textwrap.wrap(paragraph, _width(options))])

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Write commands or options, names on the left and meanings on the right."""
        if not panel.entries:
            return
        _write(console, ["", f"{panel.title}:"])
        if about := _plain(panel.description):
            _write(console, [f"  {about}", ""])
        for entry in panel.entries:
            names = "  " + ", ".join(entry.display_labels_with_metavar)
            lines = textwrap.wrap(_meaning(entry), _width(options) - _LEFT)
            if len(names) <= _LEFT - 2 and lines:
                _write(console, [f"{names:<{_LEFT}}{lines.pop(0)}"])
            else:
                _write(console, [names])
            _write(console, [" " * _LEFT + line for line in lines])


def refuse_no_path(_kind: Any, value: Any) -> None:
    """Refuse `s3a://…`, `hdfs://…` and the like, of which a path would make a folder here, and what no path can be.

    Raises:
        ValueError: It is one.
    """
    for path in value if isinstance(value, list | tuple) else [value]:
        if isinstance(path, Path) and "\0" in str(path):
            raise ValueError("A file name cannot contain this character. Use another name.")
        if isinstance(path, Path) and (found := _ADDRESS.match(str(path))):
            raise ValueError(
                f"{found[0]}/ is an address, but the planner reads and writes only folders of this "
                "machine. Mount the storage."
            )


def _meaning(entry: HelpEntry) -> str:
    more = []
    if entry.choices:
        more.append("one of " + ", ".join(entry.choices))
    if entry.required:
        more.append("required")
    elif entry.default not in {None, "", '""', "()", "[]", "False"}:
        more.append(f"{entry.default} by default")
    text = _plain(entry.description).removesuffix(".").replace("\n", " ")
    return f"{text} ({'; '.join(more)})" if more else text


def _plain(text: Any) -> str:
    """Return the text of what Cyclopts renders, without the marks of a docstring."""
    text = getattr(text, "primary_renderable", text)
    return str(text or "").replace("`", "").strip()


def _width(options: ConsoleOptions) -> int:
    return max(options.max_width, _LEAST_WIDTH)


def _write(console: Console, lines: list[str]) -> None:
    console.file.writelines(f"{line}\n" for line in lines)
