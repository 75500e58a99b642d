"""The answers of a raw capture: files, and an index that says who was asked what, when, and with which status."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from planner.cluster.errors import FormatError
from planner.cluster.moments import LAST_MS
from planner.formats.encoding import parse_json
from planner.formats.validate import MAX_ROWS

INDEX = "index.json"
"""Name of the file that lists the others."""

_OK = 200
_FORBIDDEN = (401, 403)
_NOT_FOUND = 404
_NONE_SET = frozenset({"isolation-policies"})
"""Stems for which HTTP 404 means that nothing was ever set."""
_TAG = re.compile(r"(?:load-report|owned|topics|metrics|prometheus|runtime-config)\.(b[0-9]+)\.(?:json|txt)")
_ENDINGS = (".json", ".+follow.json", ".txt")
_MAX_WARNINGS = 200
_KINDS = {dict: "an object", list: "a list", str: "a text", type(None): "empty"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the index.

    Attributes:
        file: The file that holds the answer.
        path: Path of the request, such as `/admin/v2/brokers/leaderBroker`.
        asked: Address that was asked; `zookeeper` for the dump of the metadata store.
        status: HTTP status; None where there was none.
        note: What the capturing program remarked.
        time_ms: When, in ms since 1970; None unknown.
    """

    file: str
    path: str = ""
    asked: str = ""
    status: int | None = None
    note: str = ""
    time_ms: int | None = None


@dataclass(frozen=True)
class Answers:
    """The files of a capture and what is known about them.

    A *stem* is a file name without its ending: `owned.b1` stands for `owned.b1.json`, for `owned.b1.+follow.json` (a
    redirect was followed) and for `owned.b1.txt` (an error, or nothing).

    Attributes:
        files: Content by file name, read on demand; other folders inside the capture are not looked at.
        index: Lines of the index by file name.
        noted: What is missing, odd or estimated, one sentence each; grows while the capture is read.
    """

    files: Mapping[str, bytes]
    index: Mapping[str, Entry]
    noted: dict[str, None] = field(default_factory=dict)
    _read: dict[str, Any] = field(default_factory=dict)
    _refused: dict[str, str] = field(default_factory=dict)

    def refuse(self, stem: str, reason: str) -> None:
        """Use an answer no more; `trouble` then gives the reason."""
        self._refused[stem] = reason
        self._read.pop(stem, None)

    def warn(self, text: str) -> None:
        """Remember a warning once."""
        self.noted[text] = None

    def warnings(self) -> tuple[str, ...]:
        """Return the warnings in order; of very many the first ones, and how many there are."""
        texts = tuple(self.noted)
        if len(texts) <= _MAX_WARNINGS:
            return texts
        return (*texts[:_MAX_WARNINGS], f"… and {len(texts) - _MAX_WARNINGS:,} more of this kind.")

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """`b1`, `b2`, …: the brokers that were asked, by number."""
        found = {tag[1] for name in (*self.files, *self.index) if (tag := _TAG.fullmatch(name))}
        return tuple(sorted(found, key=lambda tag: int(tag[1:])))

    def asked(self, pattern: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield stem, and groups of the pattern as plain names, of each request whose whole path matches; each once."""
        wanted = re.compile(pattern)
        seen: set[str] = set()
        for entry in self.index.values():
            match = wanted.fullmatch(entry.path)
            stem = _stem(entry.file)
            if match and stem not in seen:
                seen.add(stem)
                yield stem, tuple(unquote(group) for group in match.groups())

    def time_ms(self, stem: str) -> int:
        """Return when an answer came, 0 unknown."""
        entry = self._entry(stem)
        return (entry.time_ms or 0) if entry else 0

    def _entry(self, stem: str) -> Entry | None:
        return next((self.index[stem + e] for e in _ENDINGS if stem + e in self.index), None)

    def _given(self, name: str) -> bool:
        entry = self.index.get(name)
        return name in self.files and (entry is None or entry.status in {_OK, None})

    def _file(self, stem: str) -> str:
        """Return the file of an answer that was given; empty when there is none."""
        if stem in self._refused:
            return ""
        return next((stem + e for e in _ENDINGS if self._given(stem + e)), "")

    def asked_at(self, stem: str) -> str:
        """Return the address that was asked; empty when nobody says."""
        entry = self._entry(stem)
        return entry.asked if entry else ""

    def trouble(self, stem: str) -> str:
        """Say why an answer cannot be had; empty when it was given, or never asked for."""
        if stem in self._refused:
            return self._refused[stem]
        entry = self._entry(stem)
        if (entry is None and not any(stem + e in self.files for e in _ENDINGS)) or self._file(stem):
            return ""
        if entry is not None and entry.status == _NOT_FOUND and stem in _NONE_SET:
            return ""
        if entry is None or entry.status in {_OK, None}:
            return (
                f"the answer is missing ({entry.note})" if entry is not None and entry.note else "the answer is missing"
            )
        if entry.status in _FORBIDDEN:
            return f"refused with HTTP {entry.status}; capture again with a token that may read it"
        return f"the answer is HTTP {entry.status}"

    def has(self, stem: str) -> bool:
        """Say whether there is an answer."""
        return bool(self._file(stem))

    def json(self, stem: str, kind: type, instead: str = "It was left out.") -> Any:
        """Return an answer, or None where nothing is set or nobody asked.

        One that was asked for and is not there, is no JSON, or of another kind is None as well, and a warning.

        Args:
            stem: Its name without ending.
            kind: What it must be.
            instead: What the snapshot shows without it, one sentence for the warning.
        """
        if stem not in self._read:
            self._read[stem] = self._parse(stem)
        value, reason = self._read[stem]
        if not reason and value is not None and not isinstance(value, kind):
            reason = f"it is {_KINDS.get(type(value), 'a number')}, not {_KINDS[kind]}"
        if reason:
            self.warn(f"{stem}: {reason}. {instead}")
            return None
        return value

    def forget(self, stem: str) -> None:
        """Let go of an answer that is not asked for again; those about topics are long."""
        self._read.pop(stem, None)

    def _parse(self, stem: str) -> tuple[Any, str]:
        name = self._file(stem)
        if not name:
            return None, self.trouble(stem)
        data = self.files[name]
        if not data.strip():
            return None, ""  # what Pulsar answers where nothing is set
        try:
            return parse_json(data, name), ""
        except FormatError as error:
            return None, error.what[:1].lower() + error.what[1:].rstrip(".")

    def text(self, stem: str) -> str:
        """Return an answer as text, empty when there is none."""
        name = self._file(stem)
        return self.files[name].decode("utf-8", "replace") if name else ""


def _stem(name: str) -> str:
    return name.removesuffix(".json").removesuffix(".txt").removesuffix(".+follow")


def read_answers(files: Mapping[str, bytes]) -> Answers:
    """Read the index of a capture, given its files by name.

    Raises:
        FormatError: The index is no list of answers.
    """
    lines = parse_json(files[INDEX], INDEX)
    if not isinstance(lines, list) or not all(isinstance(v, dict) and isinstance(v.get("file"), str) for v in lines):
        raise FormatError(
            "Not a list of answers, each with the key 'file'.", where=INDEX, remedy="Capture the cluster again."
        )
    index = {
        line["file"]: Entry(
            line["file"],
            path=_text(line.get("path")),
            asked=_text(line.get("asked")),
            status=_whole_or_none(line.get("status")),
            note=_text(line.get("note")),
            time_ms=_whole_or_none(line.get("time_ms")),
        )
        for line in lines
    }
    answers = Answers(files, index)
    if (asked := len(answers.tags)) > MAX_ROWS["brokers"]:
        what = f"The capture covers {asked:,} brokers; the maximum is {MAX_ROWS['brokers']:,}."
        raise FormatError(what, where=INDEX, remedy="Capture fewer brokers.")
    if any(line.get("time_ms") is not None and index[line["file"]].time_ms is None for line in lines):
        answers.warn("The index has times that are not milliseconds since 1970. They were left out.")
    return answers


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole_or_none(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LAST_MS else None
