"""The folder of raw answers: each part written whole or not at all, and a journal from which a capture goes on."""

import io
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from planner.capture.catalogue import CATALOGUE
from planner.cluster.errors import CaptureError, FormatError
from planner.cluster.files import PRIVATE, opened, write_whole, writing
from planner.formats.encoding import parse_json
from planner.formats.raw_capture.answers import INDEX

JOURNAL = "journal.jsonl"
"""Name of the file with one line for each part that arrived, in that order; the first line says what was asked for."""

UNSET = "nothing was ever set"
"""Note on an answer with HTTP 404."""

_OK = 200
_NOT_FOUND = 404
_LONGEST_NAME = 80
_JOURNAL_BYTES = 512 << 20
_NAME = re.compile(r"[-\w%~.+=]{1,200}\.(?:json|txt)")
_MINE = re.compile(_NAME.pattern + r"|.{1,250}\.part")
_TAG = re.compile(r"b([0-9]+)\.")
_ORDER = {request.name: place for place, request in enumerate(CATALOGUE)}


@dataclass(frozen=True, slots=True)
class Part:
    """One answer, as a line of `index.json`.

    Attributes:
        file: File name in the folder.
        path: What was asked for.
        asked: Address that was asked; `zookeeper` for any metadata store.
        answered: Address that answered.
        status: HTTP status; None where there was no answer.
        time_ms: When it was asked, ms since 1970.
        took_ms: How long it took.
        bytes: Length of the file.
        note: Why there is none, or what was left out of it.
        method: Always GET; ZK for the metadata store.
        attempts: How often it was asked.
        content_type: As the answer says.
    """

    file: str
    path: str
    asked: str
    answered: str = ""
    status: int | None = None
    time_ms: int = 0
    took_ms: int = 0
    bytes: int = 0
    note: str = ""
    method: str = "GET"
    attempts: int = 1
    content_type: str = ""

    @property
    def good(self) -> bool:
        """Whether it is an answer that can be used, be it that nothing was ever set."""
        return self.status == _OK or (self.status == _NOT_FOUND and self.note == UNSET)


def stem_of(name: str, *about: str) -> str:
    """Return the file name, without ending, of an answer to a request about a broker's tag, or tenant and namespace.

    Dots are escaped, since `.b1` names a broker.
    """
    if not about:
        return name
    text = "~".join(quote(part, safe="").replace(".", "%2E") for part in about)
    if len(text) > _LONGEST_NAME:
        text = f"{text[:40]}~{sha256(text.encode()).hexdigest()[:24]}"
    return f"{name}.{text}"


class Parts:
    """Parts of one capture.

    Args:
        folder: Where they are; made when it does not exist.
        purpose: What is asked for; a folder begun for something else is refused.
        fresh: Names of requests of which no answer is kept from before.

    Attributes:
        kept: How many parts were there from before.

    Raises:
        CaptureError: The folder holds something else, or cannot be written; any method may say so.
    """

    def __init__(self, folder: Path, purpose: Mapping[str, Any], fresh: Collection[str] = ()) -> None:
        self.folder = folder
        self._parts: dict[str, Part] = {}
        self.kept = 0
        journal = folder / JOURNAL
        with writing(folder, CaptureError):
            folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            if journal.exists():
                self._go_on(journal, dict(purpose), fresh)
            elif any(folder.iterdir()):
                raise CaptureError(
                    "The folder contains files that are not a capture.",
                    where=str(folder),
                    remedy="Choose an empty folder.",
                )
            write_whole(journal, "".join(map(_line, [{"purpose": dict(purpose)}, *map(asdict, self)])))
            for path in folder.iterdir():
                if path.name not in self._parts and path != journal and _MINE.fullmatch(path.name):
                    path.unlink()
            self._journal: IO[str] = journal.open("a", encoding="utf-8")

    def _go_on(self, journal: Path, purpose: Mapping[str, Any], fresh: Collection[str]) -> None:
        """Take over the parts of a capture that was cut short; the last line may be cut short as well."""
        if journal.stat().st_size > _JOURNAL_BYTES:
            raise CaptureError("The journal is too long.", where=str(journal), remedy="Choose an empty folder.")
        lines = list(_lines(journal))
        if lines and lines[0].get("purpose") != purpose:
            raise CaptureError(
                "The folder contains a capture with other options.",
                where=str(self.folder),
                remedy="Choose an empty folder, or use the options of that capture.",
            )
        for line in lines[1:]:
            part = _part(line)
            if part is not None and part.good and self._is_whole(part) and part.file.partition(".")[0] not in fresh:
                self._parts[part.file] = part
        self.kept = len(self._parts)

    def _is_whole(self, part: Part) -> bool:
        path = self.folder / part.file
        return path.is_file() and path.stat().st_size == part.bytes

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts.values())

    def find(self, stem: str) -> Part | None:
        """Return a part by its name without ending."""
        return self._parts.get(f"{stem}.json") or self._parts.get(f"{stem}.txt")

    def unfinished(self, stem: str) -> Path:
        """Return where a part is written until it is whole."""
        return self.folder / f"{stem}.part"

    def add(self, stem: str, part: Part) -> Part:
        """Keep a part, whose `file` says the ending: give its file its name, and enter it in the journal."""
        with writing(self.folder, CaptureError):
            unfinished = self.unfinished(stem)
            for name in (f"{stem}.json", f"{stem}.txt"):
                (self.folder / name).unlink(missing_ok=True)
                self._parts.pop(name, None)
            if part.status is None:
                unfinished.unlink(missing_ok=True)
            else:
                unfinished.replace(self.folder / part.file)
            self._journal.write(_line(asdict(part)))
            self._journal.flush()
        self._parts[part.file] = part
        return part

    def only_brokers(self, count: int) -> None:
        """Forget the answers of brokers beyond so many: an earlier capture into this folder asked more of them."""
        for name in [n for n in self._parts if (tag := _TAG.match(n.partition(".")[2])) and int(tag[1]) > count]:
            (self.folder / name).unlink(missing_ok=True)
            del self._parts[name]

    def read(self, part: Part) -> bytes:
        """Return the content of a part."""
        with opened(self.folder / part.file) as file:
            return file.read()

    def json(self, part: Part, kind: type) -> Any:
        """Return a part as JSON.

        Raises:
            FormatError: It is something else.
        """
        where = f"{part.asked}{part.path}"
        value = parse_json(self.read(part), where)
        if not isinstance(value, kind):
            raise FormatError(
                f"The answer is not {'a list' if kind is list else 'an object'}.",
                where=where,
                remedy="Use the admin address of a broker.",
            )
        return value

    def finish(self) -> None:
        """Write the index, in an order that does not depend on which answer came first."""
        text = ",\n".join(json.dumps(asdict(part), ensure_ascii=False) for part in sorted(self, key=_place))
        with writing(self.folder, CaptureError):
            write_whole(self.folder / INDEX, f"[\n{text}\n]\n")

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()


def _place(part: Part) -> tuple[int, int, str]:
    """Return where a part stands: requests as in the catalogue, brokers by their number, all else by name."""
    name, _, rest = part.file.partition(".")
    tag = _TAG.match(rest)
    return _ORDER.get(name, len(_ORDER)), int(tag[1]) if tag else 0, part.file


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with io.TextIOWrapper(opened(path), encoding="utf-8", errors="replace") as journal:
        for text in journal:
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict):
                yield line


def _part(line: Mapping[str, Any]) -> Part | None:
    try:
        part = Part(**line)
    except TypeError:
        return None
    return part if isinstance(part.file, str) and _NAME.fullmatch(part.file) else None
