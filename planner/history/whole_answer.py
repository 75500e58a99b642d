"""Says whether an answer of Prometheus is whole: VictoriaMetrics marks a part, Thanos and Mimir warn of stores."""

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from planner.cluster.units import MIB

INCOMPLETE: Final = "The answer is incomplete: a part of the storage did not answer."
"""What is wrong with a partial answer."""

_PARTIAL: Final = ("isPartial", "partial")
_MOST_WARNINGS: Final = 5
_SHOWN: Final = 200
# A quotation mark inside a text of JSON has a backslash before it, so neither is found in a label.
_IS_PARTIAL: Final = re.compile(rb'"(?:%s)"\s{0,9}:\s{0,9}true\b' % "|".join(_PARTIAL).encode())
_WARNINGS: Final = re.compile(rb'"warnings"\s{0,9}:\s{0,9}(?=\[)')
_PIECE: Final = MIB
_OVERLAP: Final = 64
_LONGEST_LIST: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Said:
    """What a server says of its own answer.

    Attributes:
        is_partial: Whether it says that a part is missing.
        warnings: What it warns about.
    """

    is_partial: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The warnings as sentences, each once and short."""
        said = dict.fromkeys(" ".join(text.split())[:_SHOWN].rstrip(".") for text in self.warnings)
        shown = list(said)[:_MOST_WARNINGS]
        return tuple(f"The server warns, so series may be missing or inexact: {text}." for text in shown)


def said_in(answer: Mapping[str, Any]) -> Said:
    """Return what is said in an answer that was parsed."""
    return Said(any(answer.get(name) is True for name in _PARTIAL), _texts(answer.get("warnings")))


def said_in_file(data: BinaryIO) -> Said:
    """Return what is said in an answer of any size, without parsing it; the file is then at its beginning again.

    Of a damaged file, the part up to the damage counts; who reads it says that it is damaged.
    """
    is_partial, warnings = False, list[str]()
    before = b""
    data.seek(0)
    with suppress(EOFError, zlib.error, OSError):
        while piece := data.read(_PIECE):
            text = before + piece
            is_partial = is_partial or _IS_PARTIAL.search(text) is not None
            if found := _WARNINGS.search(text):
                text += data.read(_LONGEST_LIST)
                warnings += _list_at(text[found.end() :])
            before = text[-_OVERLAP:]
    data.seek(0)
    return Said(is_partial, tuple(warnings))


def _list_at(text: bytes) -> tuple[str, ...]:
    try:
        value, _ = json.JSONDecoder().raw_decode(text[:_LONGEST_LIST].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return ("its warnings cannot be read",)
    return _texts(value)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, Iterable) else ()
