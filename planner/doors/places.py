"""Where each setting stands in a file, and the shell commands that change it there."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from planner.doors.unpack import MARK, as_written, encoding_beside_utf8
from planner.doors.vocabulary import PREFIX

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_.-]*"
_LINE: Final = re.compile(rf"(\s*(?:export\s+)?(?:{PREFIX})?)({_NAME})\s*=\s*(.*?)\s*")
_YAML_LINE: Final = re.compile(rf"""(\s*(?:-\s+)?(?:name:\s*)?["']?(?:{PREFIX})?)({_NAME})["']?\s*(?:[:=].*)?""")
"""A setting of a chart, a manifest or a Compose file; an item of a list may have its value in the next lines."""
_END: Final = re.compile(r"\r\n|\n|\r")
_NOTHING: Final = re.compile(r"\s*(?:[#!].*)?")
_GOES_ON: Final = re.compile(r"(?:^|[^\\])(?:\\\\)*\\$")
"""A line whose value goes on in the next one."""


class Lines(Mapping[str, Sequence[int]]):
    """Lines of each name in a file, from 1 on.

    Attributes:
        are_properties: Whether each setting is a line `name=value`.
        marked: What keeps Java from reading the file as properties: `a byte order mark` before UTF-8, or an encoding
            such as `UTF-16`; empty where nothing does.
    """

    def __init__(self, path: Path) -> None:
        """Find the settings of a file."""
        data = path.read_bytes()
        text, self._is_as_it_is = as_written(data, path.name)
        self._lines = _END.split(text)
        # `sed` counts ends of lines as Unix has them.
        self._is_as_it_is = self._is_as_it_is and len(self._lines) == text.count("\n") + 1
        self._source = str(path)
        self._prefixed: set[int] = set()
        self.marked = encoding_beside_utf8(data)
        found = self._found(_LINE)
        self.are_properties = bool(found)
        self._at = found or self._found(_YAML_LINE)

    def __getitem__(self, name: str) -> Sequence[int]:
        return self._at[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)

    def last(self, settings: Iterable[str]) -> int:
        """Return the line that counts of the first of some settings that the file has; 0 where it has none.

        It is the last one, or the last one with the prefix of a variable, which images write after the others.
        """
        return next((self[name][-1] for name in settings if name in self), 0)

    def has_prefix(self, at: int) -> bool:
        """Say whether a line has a setting with the prefix that images of Pulsar look for."""
        return at in self._prefixed

    @property
    def are_variables(self) -> bool:
        """Whether they are variables of a container or a shell, which become lines of another file."""
        return bool(self._prefixed) or any(line.lstrip().startswith("export ") for line in self._lines)

    def unmarked(self) -> str:
        """Return the command that takes away a byte order mark; empty where a person has to."""
        return self._sed(r"1s/^\xef\xbb\xbf//") if self.marked == MARK and self._is_as_it_is else ""

    def written(self, name: str, value: str) -> str:
        """Return the command that gives a setting a value: in its line, or in a new one at the end.

        What stands before the name stays: blanks, `export`, the prefix of a variable. A file of another format, such as
        values of a chart, is left to a person.
        """
        at = self.last([name])
        if at and self._can_edit(at):
            return self._sed(f"{at}s|{_in_pattern(name)}[[:space:]]*=.*|{_as_replacement(f'{name}={value}')}|")
        if not at and self._is_a_list:
            start = "" if self._lines[-1] == "" else "\\n"
            line = f"{self._before}{name}={value}"
            return f"printf '{start}%s\\n' {shlex.quote(line)} >> {shlex.quote(self._source)}"
        where = f": line {at}" if at else ""
        return f"# Write {name}={value} the way that {self._source} has its settings{where}."

    def renamed(self, name: str, other: str) -> tuple[str, ...]:
        """Return the command that gives the last line of a setting another name; none where a person has to."""
        at = self.last([name])
        change = f"{at}s|{_in_pattern(name)}|{_as_replacement(other)}|"
        return (self._sed(change),) if at and self._can_edit(at) else ()

    def deleted(self, at: Sequence[int]) -> tuple[str, ...]:
        """Return the command that deletes lines; none where a person has to."""
        if not at or not all(map(self._can_edit, at)):
            return ()
        return (self._sed(";".join(f"{one}d" for one in at)),)

    def _found(self, form: re.Pattern[str]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, line in enumerate(self._lines, start=1):
            if match := form.fullmatch(line):
                found.setdefault(match[2], []).append(number)
                if PREFIX in match[1]:
                    self._prefixed.add(number)
        for at in found.values():
            at.sort(key=self._prefixed.__contains__)  # images write these last
        return found

    def _can_edit(self, at: int) -> bool:
        return self._is_as_it_is and self.are_properties and not _GOES_ON.search(self._lines[at - 1])

    @property
    def _is_a_list(self) -> bool:
        """Whether the file has nothing but settings and comments, so that another line may follow."""
        after = (False, *(_GOES_ON.search(line) is not None for line in self._lines))
        return (
            self._is_as_it_is
            and self.are_properties
            and not after[-1]
            and all(
                goes_on or _NOTHING.fullmatch(line) or _LINE.fullmatch(line)
                for goes_on, line in zip(after, self._lines, strict=False)
            )
        )

    @property
    def _before(self) -> str:
        """What stands before the name in the last setting of the file."""
        return next((found[1] for line in reversed(self._lines) if (found := _LINE.fullmatch(line))), "")

    def _sed(self, change: str) -> str:
        return shlex.join(["sed", "-i", change, self._source])


def _in_pattern(name: str) -> str:
    return name.replace(".", "\\.")


def _as_replacement(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("&", "\\&")
