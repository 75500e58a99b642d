"""The JSON document: one file that a person can read and edit, for small clusters.

It says what the tables say, in their words: every key is the name of a column, with its unit. Only these differ:

- a bundle has `namespace` and `range` (`0x00000000_0x40000000`), and its `owner` is a broker id;
- usage and limit of a resource stand together, as in `"cpu_percent": {"usage": 120, "limit": 400}`;
- averages stand together, as in `"short_term": {"samples": 10, "msg_rate_in_per_s": 5}`;
- hash and bundle of a topic follow from its name and are not written.

What is at its default is left out. Topics may be left out altogether.
"""

import difflib
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from planner.cluster.errors import FormatError
from planner.cluster.hashing import topic_hashes
from planner.cluster.ranges import format_range, parse_range
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import (
    BundleTable,
    ColumnInfo,
    TopicTable,
    column_info,
    make_brokers,
    make_bundles,
    make_topics,
)
from planner.formats.encoding import head_to_json, parse_json, read_head
from planner.formats.rows import bundle_of_topics
from planner.formats.validate import MAX_ROWS, TABLES, Findings, validate

FORMAT = "pulsar-bundle-planner document"
"""Value of the field `format` of a document."""

MOST_BYTES = 64_000_000
"""Limits of a document."""

_VERSION = 1
_FIELDS = ("format", "version", "info", "settings", "policies", *TABLES)
_SHOWN = 80
_HEAD_BYTES = 4_096

_OTHERWISE: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "brokers": {"name": "name"},
        "bundles": {"namespace": "namespace", "low": "range", "high": "range", "owner": "owner"},
        "topics": {"name": "name", "hash": "", "bundle": ""},
    }
)
"""Columns that are written under another key."""


def is_document(data: bytes) -> bool:
    """Say whether a text is a document, or one that was damaged, by its beginning."""
    return f'"{FORMAT}"'.encode() in data[:_HEAD_BYTES]


def _is_whole(value: Any, bits: int) -> bool:
    return type(value) is int and -(1 << bits) <= value < 1 << bits  # True is an int


_KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "text": ("text", lambda value: isinstance(value, str)),
    "float": ("finite number", lambda value: type(value) in (int, float) and abs(value) <= sys.float_info.max),
    "int": ("whole number", lambda value: _is_whole(value, 63)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "id": ("whole number", lambda value: _is_whole(value, 31)),
}
"""Name of the values of each kind of column, and a check of one value."""


@lru_cache(maxsize=3)
def _layout(part: str) -> Mapping[tuple[str, ...], ColumnInfo]:
    """Return the columns of a part by where they stand in a row: `(key,)` or `(group, key)`."""
    infos = {info.name: info for info in column_info(TABLES[part]) if info.name not in _OTHERWISE[part]}
    return MappingProxyType({_place(name, infos): info for name, info in infos.items()})


@lru_cache(maxsize=3)
def _groups(part: str) -> frozenset[str]:
    return frozenset(place[0] for place in _layout(part) if len(place) > 1)


def _place(name: str, names: Iterable[str]) -> tuple[str, ...]:
    for this, other in (("usage", "limit"), ("limit", "usage")):
        if f"_{this}_" in name and name.replace(f"_{this}_", f"_{other}_") in names:
            return name.replace(f"_{this}_", "_"), this
    for group in ("short_term", "long_term"):
        if name.startswith(f"{group}_"):
            return group, name.removeprefix(f"{group}_")
    return (name,)


def _rows_of(snapshot: Snapshot, part: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a part as they are written."""
    table = getattr(snapshot, part)
    layout = _layout(part)
    columns = [getattr(table, info.name) for info in layout.values()]
    values = [c if isinstance(c, tuple) else c.tolist() for c in columns]
    for row, names in enumerate(_names_of(snapshot, part)):
        made: dict[str, Any] = dict(names)
        for (place, info), column in zip(layout.items(), values, strict=True):
            value = column[row]
            if value == info.default or (isinstance(value, float) and math.isnan(value)):
                continue
            home = made if len(place) == 1 else made.setdefault(place[0], {})
            home[place[-1]] = value
        yield made


def _names_of(snapshot: Snapshot, part: str) -> Iterator[dict[str, str]]:
    if part == "brokers":
        yield from ({"name": name} for name in snapshot.brokers.name)
    elif part == "topics":
        yield from ({"name": name} for name in snapshot.topics.name.to_pylist())
    else:
        table = snapshot.bundles
        rows = zip(table.namespace.tolist(), table.low.tolist(), table.high.tolist(), table.owner.tolist(), strict=True)
        for namespace, low, high, owner in rows:
            names = {"namespace": snapshot.namespaces[namespace], "range": format_range(low, high)}
            yield names | ({"owner": snapshot.brokers.name[owner]} if owner >= 0 else {})


def write_document(snapshot: Snapshot) -> str:
    """Return a validated snapshot as a JSON document, one line for each broker, bundle and topic."""
    head = {"format": FORMAT, "version": _VERSION, **head_to_json(snapshot)}
    pieces = [f" {_dump(key)}: {_dump(value, indent=1)}" for key, value in head.items() if value]
    for part in TABLES:
        lines = ",\n".join(f"  {_dump(row)}" for row in _rows_of(snapshot, part))
        if lines or part != "topics":
            pieces.append(f' "{part}": [\n{lines}\n ]')
    return "{\n" + ",\n".join(pieces) + "\n}\n"


def _dump(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent).replace("\n", "\n ")


@dataclass
class _Sheet:
    """The rows of a part while they are read: keys that stand for other columns, and the columns of any row."""

    part: str
    file: str
    names: dict[str, list[Any]] = field(default_factory=dict)
    columns: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.found = Findings({self.part: self.file})

    def refuse(self, row: int, what: str, remedy: str) -> None:
        """Remember what is wrong in a row, counted from 0."""
        self.found.add(self.part, row, what, remedy)

    def read(self, rows: Any) -> None:
        """Read all rows.

        Raises:
            FormatError: There is no list.
            SnapshotError: A row holds what it should not.
        """
        if not isinstance(rows, list):
            raise FormatError(f"'{self.part}' is not a list.", where=self.file, remedy='Write [{"…": …}, …].')
        if len(rows) > MAX_ROWS[self.part]:
            what = f"There are {len(rows):,} {self.part}; the maximum is {MAX_ROWS[self.part]:,}."
            raise FormatError(what, where=self.file, remedy="Capture fewer namespaces.")
        self.names = {key: [None] * len(rows) for key in _OTHERWISE[self.part].values() if key}
        for number, row in enumerate(rows):
            if isinstance(row, dict):
                self._row(number, row, len(rows))
            else:
                self.refuse(number, f"{_shown(row)} is not an object.", 'Write {"…": …}.')
        self.found.check()

    def _row(self, number: int, row: Mapping[str, Any], size: int) -> None:
        for key in self.names:
            value = row.get(key)
            self.names[key][number] = value
            if not isinstance(value, str) and not (key == "owner" and value is None):
                what = f"'{key}' is missing." if key not in row else f"'{key}' is {_shown(value)}."
                self.refuse(number, what, "Use a text.")
        groups = _groups(self.part)
        for key, value in row.items():
            if key in self.names:
                continue
            if key not in groups:
                self._cell(number, (key,), value, size)
            elif isinstance(value, dict):
                for inner, cell in value.items():
                    self._cell(number, (key, inner), cell, size)
            else:
                self.refuse(number, f"'{key}' is {_shown(value)}, not an object.", f"Write {self._example(key)}.")

    def _example(self, group: str) -> str:
        return (
            f"{{{', '.join(f'{chr(34)}{place[1]}{chr(34)}: …' for place in _layout(self.part) if place[0] == group)}}}"
        )

    def _cell(self, number: int, place: tuple[str, ...], value: Any, size: int) -> None:
        info = _layout(self.part).get(place)
        name = ".".join(place)[:_SHOWN]
        if info is None:
            known = [p[-1] for p in _layout(self.part) if p[:-1] == place[:-1]]
            if len(place) == 1:
                known = [*self.names, *dict.fromkeys(p[0] for p in _layout(self.part))]
            near = [k for k in known if k.startswith(place[-1])] or difflib.get_close_matches(place[-1], known, n=1)
            remedy = f"Did you mean '{near[0]}'?" if near else f"Known fields: {', '.join(known)}."
            self.refuse(number, f"The field '{name}' is unknown.", remedy)
            return
        if value is None and info.may_be_unknown:
            return
        word, fits = _KINDS[info.kind]
        if not fits(value):
            self.refuse(number, f"'{name}' is {_shown(value)}.", f"Use a {word}, or leave it out.")
            return
        if info.name not in self.columns:
            self.columns[info.name] = [info.default] * size
        self.columns[info.name][number] = value


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _bundles(sheet: _Sheet, owners: Mapping[str, int]) -> tuple[BundleTable, tuple[str, ...]]:
    low, high, owner = [], [], []
    for row, (span, name) in enumerate(zip(sheet.names["range"], sheet.names["owner"], strict=True)):
        try:
            bounds = parse_range(span)
        except FormatError as error:
            sheet.refuse(row, error.what, error.remedy)
            bounds = (0, 0)
        if name is not None and name not in owners:
            sheet.refuse(
                row, f"The owner {_shown(name)} is not one of the brokers.", "Add that broker, or correct the owner."
            )
        low.append(bounds[0])
        high.append(bounds[1])
        owner.append(-1 if name is None else owners.get(name, -1))
    sheet.found.check()
    namespaces = tuple(dict.fromkeys(sheet.names["namespace"]))
    place = {name: i for i, name in enumerate(namespaces)}
    spaces = [place[name] for name in sheet.names["namespace"]]
    return make_bundles(low, high=high, namespace=spaces, owner=owner, **sheet.columns), namespaces


def _topics(sheet: _Sheet, bundles: BundleTable, namespaces: tuple[str, ...]) -> TopicTable:
    names = sheet.names["name"]
    hashes = topic_hashes((name.encode() for name in names), len(names))
    array = pa.array(names, type=pa.large_string())
    inside = bundle_of_topics(array, hashes, bundles, namespaces)
    return make_topics(hashes, name=array, bundle=inside, **sheet.columns)


def snapshot_of_document(data: bytes, file: str) -> Snapshot:
    """Read and validate a JSON document in UTF-8; messages call it by the file name given.

    Raises:
        FormatError: It is not JSON, or not a document of this format.
        SnapshotError: The content is not a cluster.
    """
    if len(data) > MOST_BYTES:
        raise FormatError(
            f"The document has {len(data) / 1000000.0:,.0f} MB; the maximum is {MOST_BYTES / 1000000.0:,.0f} MB.",
            where=file,
            remedy="Documents are for small clusters. Use a snapshot (zip).",
        )
    value = parse_json(data, file, is_bounded=True)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise FormatError(
            "This JSON is not a snapshot document.",
            where=file,
            remedy=(
                f'A document has "format": "{FORMAT}". For an answer of Pulsar, use the page Load your cluster, or '
                "`python -m planner snapshot`."
            ),
        )
    if value.get("version") != _VERSION:
        raise FormatError(
            f"The document has format version {_shown(value.get('version'))}; this planner reads {_VERSION}.",
            where=file,
            remedy="Use the version of the planner that wrote it, or a newer one.",
        )
    unknown = [key for key in value if key not in _FIELDS]
    if unknown:
        raise FormatError(
            f"The field '{unknown[0][:_SHOWN]}' is unknown.", where=file, remedy=f"Known fields: {', '.join(_FIELDS)}."
        )
    sheets = {part: _Sheet(part, f"{file}: {part}") for part in TABLES}
    for part, sheet in sheets.items():
        sheet.read(value.get(part, []))
    brokers = make_brokers(tuple(sheets["brokers"].names["name"]), **sheets["brokers"].columns)
    bundles, namespaces = _bundles(sheets["bundles"], brokers.position)
    snapshot = Snapshot(
        **read_head(value, file),
        brokers=brokers,
        namespaces=namespaces,
        bundles=bundles,
        topics=_topics(sheets["topics"], bundles, namespaces),
    )
    validate(snapshot, {part: f"{file}: {part}" for part in ("info", "policies", *TABLES)})
    return snapshot
