"""Reads files of conformance vectors: one JSON object a line, plain or compressed with gzip."""

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from planner.cluster.errors import VectorError
from planner.cluster.files import opened
from planner.cluster.pulsar_json import Json
from planner.cluster.releases import REFERENCE
from planner.cluster.units import MIB

_GZIP_MAGIC = b"\x1f\x8b"
_LONGEST_LINE: Final = 8 << 20
_MOST_BLANK_BYTES: Final = MIB
_COUNTS: Final = frozenset({"topics", "producerCount", "consumerCount", "bundleCount", "numSamples"})


@dataclass(frozen=True, slots=True)
class Vector:
    """One recorded decision.

    Attributes:
        kind: What was decided, such as `shedder_threshold`.
        id: Its name in messages.
        config: Settings that differ from their default, by `broker.conf` name.
        input: What Pulsar was asked.
        expected: What Pulsar answered.
        where: File and line it came from.
        release: Release of Pulsar whose rules and defaults decide.
    """

    kind: str
    id: str
    config: Json
    input: Json
    expected: Json
    where: str
    release: str = REFERENCE.name

    def question(self) -> Json:
        """Return the vector as recorded, without the answer."""
        return {"kind": self.kind, "id": self.id, "config": self.config, "input": self.input, "release": self.release}


def read_vectors(path: Path, release: str = "") -> Iterator[Vector]:
    """Yield the vectors of a file in its order; empty lines are passed over.

    Args:
        path: A `.jsonl` file, or a `.gz` one.
        release: Release to decide them by, whatever they say; empty for what each says.

    Raises:
        VectorError: The file cannot be opened, is no gzip although it is named so, or has a line that is not UTF-8, not
            JSON or no vector. It names the file and the line. Vectors before that line have been yielded.
    """
    number, blank_bytes, found = 0, 0, False
    try:
        with _open(path) as lines:
            for number, line in enumerate(iter(lambda: lines.readline(_LONGEST_LINE + 1), b""), start=1):
                if len(line) > _LONGEST_LINE:
                    what = f"The line has more than {_LONGEST_LINE >> 20} MiB."
                    remedy = "Write one vector per line."
                    raise VectorError(what, where=f"{path}, line {number}", remedy=remedy)
                if line.strip():
                    found = True
                    yield _vector(line, f"{path}, line {number}", release)
                elif (blank_bytes := blank_bytes + len(line)) > _MOST_BLANK_BYTES:
                    what = f"There is more than {_MOST_BLANK_BYTES >> 20} MiB of blank lines."
                    raise VectorError(what, where=f"{path}, line {number}", remedy="Remove them.")
    except OSError as error:
        if isinstance(error, gzip.BadGzipFile):
            raise _bad_gzip(path, number, error) from error
        remedy = "Use a path of a readable file of vectors."
        raise VectorError(f"Cannot read the file: {error.strerror}.", where=str(path), remedy=remedy) from error
    except (EOFError, zlib.error) as error:
        raise _bad_gzip(path, number, error) from error
    if not found:
        raise VectorError("The file contains no vector.", where=f"{path}, line 1", remedy="Write one vector per line.")


def _bad_gzip(path: Path, lines_read: int, error: Exception) -> VectorError:
    what = f"Not gzip, or damaged: {error}."
    remedy = "Compress the file with gzip again, or drop .gz from its name if it is plain text."
    return VectorError(what, where=f"{path}, line {lines_read + 1}", remedy=remedy)


def refuse_long_counts(given: Any) -> None:
    """Refuse counts that Pulsar, whose own have 32 bits, cannot have been asked about, or cannot add up.

    Args:
        given: What it was asked.

    Raises:
        VectorError: A count is beyond 32 bits, or those of one bundle are together.
    """
    inner: Iterable[Any] = ()
    if isinstance(given, list):
        inner = given
    elif isinstance(given, dict):
        inner = given.values()
        counts = [value for key, value in given.items() if key in _COUNTS and isinstance(value, int)]
        for count in (*counts, sum(counts), *given.get("namespaceBundleCounts", {}).values()):
            if not -(2**31) <= count < 2**31:
                what = f"{count} is not a valid count: Pulsar's counts have 32 bits."
                raise VectorError(what, remedy="Record what a broker reports.")
    for value in inner:
        refuse_long_counts(value)


@contextmanager
def _open(path: Path) -> Iterator[io.BufferedReader | gzip.GzipFile]:
    with opened(path, stream=True) as file:
        if path.suffix == ".gz":
            with gzip.open(file) as lines:
                yield lines
        elif file.peek(2)[:2] == _GZIP_MAGIC:
            what = "The file is compressed with gzip, but its name does not end in .gz."
            raise VectorError(what, where=f"{path}, line 1", remedy=f"Rename it to {path.name}.gz.")
        else:
            yield file


def _vector(line: bytes, where: str, release: str) -> Vector:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        what = f"Not UTF-8: byte 0x{line[error.start]:02x} at column {error.start + 1}."
        raise VectorError(what, where=where, remedy="Save the file as UTF-8.") from error
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        what = f"Not valid JSON: {error.msg} at column {error.colno}."
        raise VectorError(what, where=where, remedy="Write one whole JSON object per line.") from error
    except (ValueError, RecursionError) as error:
        what = "Not readable JSON: a number is too long or values are nested too deeply."
        raise VectorError(what, where=where, remedy="Write vectors in the form of the documentation.") from error
    return _checked(data, where, release)


def _checked(data: Any, where: str, release: str) -> Vector:
    def wrong(what: str) -> VectorError:
        remedy = 'A vector is {"kind": text, "id": text, "config": {...}, "input": {...}, "expected": {...}}.'
        return VectorError(what, where=where, remedy=remedy)

    if not isinstance(data, dict):
        raise wrong(f"Not a vector: the line holds {_json_type(data)}, not an object.")
    for key, kind in (("kind", str), ("id", str), ("input", dict), ("expected", dict)):
        if key not in data:
            raise wrong(f"Not a vector: '{key}' is missing.")
        if not isinstance(data[key], kind):
            raise wrong(f"Not a vector: '{key}' is {_json_type(data[key])}.")
    config = data.get("config") or {}
    if not isinstance(config, dict):
        raise wrong(f"Not a vector: 'config' is {_json_type(config)}.")
    name = release or str(data.get("release") or REFERENCE.name)
    return Vector(data["kind"], data["id"], config, data["input"], data["expected"], where, name)


def _json_type(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
