"""Settings: `broker.conf`, variables, options of commands, `get-runtime-config` and `get-all-dynamic-config`."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile, pairwise
from pathlib import PurePath
from typing import Final

import msgspec

from planner.cluster.releases import REFERENCE
from planner.cluster.text import count
from planner.doors.chunks import Chunk
from planner.doors.kind import LIKELY, NO, SURE, Kind, no_chunk
from planner.doors.kinds.manifests import is_other
from planner.doors.pieces import Configuration, NotUsed, Piece
from planner.doors.terminal import SETS, letters_of
from planner.doors.vocabulary import KNOWN, NAMED, PREFIX, configuration, is_known, unprefixed_in
from planner.history.assumed import listed

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_.-]*"
_SET: Final = r"(?:export\s+|declare\s+-x\s+|-e\s+|--env\s+|[-*]\s+|Environment=)?[\"']?"
_KNOWN: Final = "|".join(sorted(KNOWN))
_OF_SHELL: Final = re.compile(r"\s*(?:export\s|declare\s|-e\s|--env\s|-\s|Environment=|[\"'])")
# Java's properties may also be written with a colon or a space.
_CONF_LINE: Final = re.compile(
    rf"\s*(?:{_SET}(?!Environment=)({_NAME})\s*=(?!=)\s*(.*?)|({_KNOWN})(?:\s*:\s*| {{1,2}}(?=\S))(.*?)|"
    rf"(?:[^\s=:]+:)?(?:[0-9]+:)?({NAMED})\s*=\s*(.*?))\s*"
)
_OPTION: Final = r"(?:^|\s)(?:-e|--env|--set(?:-string|-literal)?)[ =]"
_OPTIONS_LINE: Final = re.compile(
    rf"(?!\s*(?:-e|--env)[ =]\S+\s*\\?$).*{_OPTION}[\"']?(?:[^\s\"']*[.,])?{NAMED}=.*|\s*\[(?:.*\s)?{NAMED}=.*\]\s*"
)
_SHELL_LINE: Final = re.compile(
    rf"\s*(?:ENV\s+(?:.*\s)?{NAMED}(?:=|\s).*|set\s+(?:-\w+\s+)+{NAMED}\s+.*|"
    r"(?:FROM|COPY|ADD|WORKDIR|USER|EXPOSE|LABEL|ARG|ENTRYPOINT|CMD|VOLUME) \S.*)"
)
"""`ENV` and what else a Dockerfile has, and `set -x` of the shell `fish`."""
_OF_OPTION: Final = re.compile(rf"{_OPTION}(?:\"([^\"]*)\"|'([^']*)'|(\S+))")
_VARIABLE: Final = re.compile(r"(?:^|\s)([A-Za-z_]\w*)=((?:(?!\s[A-Za-z_]\w*=).)*)")
_TABLE_LINE: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9_.]*)(?: {3,}|\t+)(\S.*)|\s*([a-z]+[A-Z][A-Za-z0-9]*)")
_ROW: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9_.]*)(?: {1,2}|( {3,}|\t+))([^\s=:].*?)\s*")
"""A row of a table: a name, what parts it widely from its value, and the value."""
_DYNAMIC: Final = "dynamic-config"
_RUNTIME: Final = "runtime"
_GREPPED: Final = re.compile(rf"([^\s=:]+):(?:[0-9]+:)?#?\s*{NAMED}\s*=")
"""A line of a file that `grep` found."""
_BROKER_CONF: Final = "broker.conf"
_OF_BROKER: Final = re.compile(r"get-runtime-config|dynamic-config|configuration/(?:runtime|values)")
_MOST_DYNAMIC: Final = 60
"""A runtime configuration has hundreds of settings; overrides are few."""
_ASSIGNED: Final = re.compile(rf"(?<![^\s;,])({NAMED}\s*=(?!=))")
_SYSTEMD: Final = "Environment="
_OF_IMAGES: Final = "PULSAR_"
"""How names begin that only containers have: of memory, of options, of settings."""
_LIKE_SETTING: Final = re.compile(r"[a-z]+[A-Z][A-Za-z0-9]*")
_IN_FORCE: Final = "use brokers get-runtime-config for the values in force, or write NAME=VALUE to try one"
_UNQUOTED: Final = re.compile(r"([\"'])(.*)\1")


def _plain(value: str) -> str:
    """Return a value of a shell, a list or a container without quotes around it."""
    value = value.removesuffix("\\").strip()
    found = _UNQUOTED.fullmatch(value)
    return found[2] if found else value.strip("\"'") if value.count('"') == 1 or value.count("'") == 1 else value


_LISTED: Final = re.compile(r", ?(?=[A-Za-z]\w*=)")
"""Between the fields of an object, as Java prints it."""
_AS_READ: Final = re.compile(r"\bproperties=\{[^{}]*\}")
_CUT_NAME: Final = re.compile(r", ?[A-Za-z]\w*$")
"""The beginning of a name, where a line of fields was broken."""
_NOTHING: Final = ("=<null>", "=null")


def _units(line: str) -> list[str]:
    """Return the assignments of a line of systemd or of a message, which may have several; another line alone."""
    given = line.strip()
    if len(_LISTED.findall(given)) > 1:
        parts = [part for part in _LISTED.split(_AS_READ.sub("", given)) if not part.endswith(_NOTHING)]
        return [_CUT_NAME.sub("", part).rstrip(" ,)") for part in parts]
    if not given.startswith(_SYSTEMD):
        places = [found.start(1) for found in _ASSIGNED.finditer(line)]
        parts = [line[low:high].rstrip("; ,\t") for low, high in pairwise([0, *places[1:], len(line)])]
        return parts if len(places) > 1 else [line]
    return [f"{_SYSTEMD}{word}" for word in _words(given.removeprefix(_SYSTEMD))]


def _words(line: str) -> list[str]:
    """Return the words of a line as a shell parts them."""
    try:
        return shlex.split(line)
    except ValueError:  # a quotation mark without its end
        return line.split()


def pairs_of(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Return names and values of the lines of a settings file that have both.

    Quotation marks are part of a value in `broker.conf`; shells and containers take them away.
    """
    matches = [found for line in lines for one in _units(line) if (found := _CONF_LINE.fullmatch(one))]
    given = [next((one, two) for one, two in zip(*[iter(found.groups())] * 2, strict=True) if one) for found in matches]
    of_shell = any(_OF_SHELL.match(found[0]) for found in matches) or any(name.startswith(PREFIX) for name, _ in given)
    return [(name, _plain(value) if of_shell else value) for name, value in given]


def _of_one_file(lines: Sequence[str]) -> tuple[Sequence[str], list[str]]:
    """Return the lines of `broker.conf` where `grep` printed those of several files, and the names of the others."""
    names = [found[1] if (found := _GREPPED.match(line)) else "" for line in lines]
    every = list(dict.fromkeys(filter(None, names)))
    brokers = [name for name in every if PurePath(name).name == _BROKER_CONF]
    if len(brokers) != 1 or len(every) == 1:
        return lines, []
    kept = [line for line, name in zip(lines, names, strict=True) if name in ("", brokers[0])]
    return kept, [name for name in every if name != brokers[0]]


def _read_conf(chunk: Chunk) -> Iterator[Piece]:
    lines, others = _of_one_file(chunk.lines)
    if others:
        yield NotUsed(source=chunk.source, why=f"lines of {listed(others)} left out: those of {_BROKER_CONF} count")
    pairs = pairs_of(lines)
    if any(line.lstrip().startswith(_SYSTEMD) and line.count('"') % 2 for line in chunk.lines):
        why = "a line ends inside quotation marks, so that settings may be missing; save the output to a file"
        yield NotUsed(source=chunk.source, why=why)
    if any(name.startswith(PREFIX) for name, _ in pairs):  # other variables of a container are no settings
        pairs = [(name, value) for name, value in pairs if name.startswith(PREFIX) or is_known(name)]
        pairs.sort(key=lambda one: one[0].startswith(PREFIX))  # images write these last
    is_of_broker = is_asked(chunk.source.command)
    yield _of_broker(chunk, pairs) if is_of_broker else configuration(pairs, chunk.source, "file")


def _read_options(chunk: Chunk) -> Iterator[Configuration]:
    """Read `docker run -e NAME=VALUE`, `helm --set broker.configData.NAME=VALUE` and lists of variables in brackets."""
    pairs: list[tuple[str, str]] = []
    for line in chunk.lines:
        if line.lstrip().startswith("["):
            pairs += _VARIABLE.findall(line.strip().strip("[]"))
            continue
        for quoted in _OF_OPTION.findall(line):
            for part in next(filter(None, quoted), "").split(","):
                name, _, value = part.partition("=")
                *path, setting = name.split(".")
                if not any(map(is_other, path)):
                    pairs.append((setting, _plain(value)))
    known = [(name, value) for name, value in pairs if is_known(name)]
    yield configuration(known, chunk.source, "file", unprefixed=unprefixed_in(name for name, _ in known))


def _read_changes(chunk: Chunk) -> Iterator[Piece]:
    """Read `kubectl set env TARGET NAME=VALUE`.

    Named instead: variables that it removes, as what counts then stands elsewhere, and `brokers update-dynamic-config`,
    which is one override of several.
    """
    for line in chunk.lines:
        words = _words(line)
        if "set" not in words:
            yield NotUsed(source=chunk.source, why=_why_no_override(words))
            continue
        words = [word.removeprefix("--env=") for word in words]
        pairs = [(name, value) for name, equals, value in (word.partition("=") for word in words) if equals]
        removed = [word[:-1] for word in words if word.endswith("-") and is_known(word[:-1])]
        used = [(name, value) for name, value in pairs if is_known(name)]
        target = next((word for word in words if "/" in word and "=" not in word), "")
        if any(map(is_other, re.split(r"[/-]", target))):
            yield NotUsed(source=chunk.source, why=f"a command that changes {target}, which is not of brokers")
            continue
        if removed:
            why = f"a command that removes {listed([name.removeprefix(PREFIX) for name in removed])}; {_IN_FORCE}"
            yield NotUsed(source=chunk.source, why=why)
        if used:
            yield configuration(used, chunk.source, "file")
        elif not removed:
            yield NotUsed(source=chunk.source, why="a command that sets nothing that the planner uses")


def _why_no_override(words: Sequence[str]) -> str:
    """Return why a command is not read that overrides a setting, or takes an override away."""
    options = [part for word in words for part in (word.split("=", 1) if word.startswith("-") else [word])]
    given = dict(pairwise(options))
    name = given.get("--config", given.get("-c", ""))
    name = name if is_known(name) else "a setting that the planner does not use"
    setting = REFERENCE.settings.get(name)
    if setting is not None and not setting.dynamic:
        return f"a command that overrides {name}, which brokers refuse; set it in broker.conf, and restart them"
    return (
        f"a command that changes the override of {name}; use brokers get-all-dynamic-config for those in force, or "
        "write NAME=VALUE to try it"
    )


def _read_shell(chunk: Chunk) -> Iterator[Piece]:
    """Read `ENV NAME=VALUE NAME=VALUE`, `ENV NAME VALUE` and `set -x NAME VALUE`."""
    pairs: list[tuple[str, str]] = []
    for line in chunk.lines:
        words = list(dropwhile(lambda word: word.startswith("-"), _words(line)[1:]))
        if words and "=" not in words[0]:
            pairs.append((words[0], " ".join(words[1:])))
        else:
            pairs += [(name, value) for name, _, value in (word.partition("=") for word in words)]
    pairs = [(name, value) for name, value in pairs if is_known(name)]
    if not pairs:
        yield NotUsed(source=chunk.source, why="lines of a Dockerfile without settings that the planner uses")
        return
    yield configuration(sorted(pairs, key=lambda one: one[0].startswith(PREFIX)), chunk.source, "file")


def is_asked(command: str) -> bool:
    """Say whether a command asks a broker for its settings."""
    return _OF_BROKER.search(command) is not None


def parted(lines: Sequence[str], command: str) -> Sequence[str]:
    """Return lines with the columns of a table of settings parted as `pulsar-admin` parts them.

    `column -t` and `awk` part them by one or two blanks. Such lines without a table are of a settings file, which a
    broker reads; there, names that the planner does not know are told from sentences by their single value.
    """
    rows = [_ROW.fullmatch(line) for line in lines]
    known = [row for row in rows if row and is_known(row[1])]
    if not known:
        return lines
    is_table = is_asked(command) or any(row[2] for row in known)
    return [
        _widened(row, is_table=is_table) if row and not row[2] else line for row, line in zip(rows, lines, strict=True)
    ]


def _widened(row: re.Match[str], *, is_table: bool) -> str:
    """Return a row whose columns are narrowly parted, as a row of a table or a line of a settings file."""
    if is_table and (is_known(row[1]) or _LIKE_SETTING.fullmatch(row[1])):
        return f"{row[1]}    {row[3]}"
    if not is_known(row[1]) and _LIKE_SETTING.fullmatch(row[1]) and " " not in row[3]:
        return f"{row[1]}={row[3]}"
    return row[0]


def _read_table(chunk: Chunk) -> Iterator[Piece]:
    pairs = [(found[1] or found[3], found[2] or "") for line in chunk.lines if (found := _TABLE_LINE.fullmatch(line))]
    names = [name for name, _ in pairs]
    is_settings = is_asked(chunk.source.command) or any(map(is_known, names))
    if not is_settings and not all(map(_LIKE_SETTING.fullmatch, names)):
        why = f"{count(len(pairs), 'row')} of a table of an unknown kind"
        yield NotUsed(source=chunk.source, why=why, letters=letters_of(chunk.lines))
    elif any(value for _, value in pairs):
        yield _of_broker(chunk, pairs)
    else:
        why = "names of settings without values; use brokers get-all-dynamic-config, or get-runtime-config"
        yield NotUsed(source=chunk.source, why=why)


def _of_broker(chunk: Chunk, pairs: Sequence[tuple[str, object]]) -> Configuration:
    command = chunk.source.command
    if any(name.startswith(_OF_IMAGES) for name, _ in pairs):
        return configuration(sorted(pairs, key=lambda one: one[0].startswith(PREFIX)), chunk.source, "file")
    named = f"{command} {PurePath(chunk.source.file).name}"
    is_dynamic = _DYNAMIC in named or (_RUNTIME not in named and len(pairs) <= _MOST_DYNAMIC and _may_be_dynamic(pairs))
    if is_dynamic:
        return configuration(pairs, chunk.source, "dynamic")
    return configuration(pairs, chunk.source, "runtime", chunk.broker)


def _may_be_dynamic(pairs: Sequence[tuple[str, object]]) -> bool:
    """Say whether Pulsar would accept all of these as overrides; of those that the planner does not know it may."""
    known = [setting for name, _ in pairs if (setting := REFERENCE.settings.get(name))]
    return all(setting.dynamic for setting in known)


def _recognise_json(chunk: Chunk) -> int:
    keys = chunk.keys
    if not keys or not all(bytes(memoryview(part)[:1]) in b'"tfn-0123456789' for part in keys.values()):
        return NO
    known = sum(map(is_known, keys))
    return SURE if known > 1 else LIKELY if known or _DYNAMIC in chunk.source.command else NO


def _read_json(chunk: Chunk) -> Iterator[Configuration]:
    yield _of_broker(chunk, list(msgspec.json.decode(chunk.data, type=dict[str, object]).items()))


CONF = Kind("settings file", "cat conf/broker.conf", no_chunk, _read_conf, _CONF_LINE)
OPTIONS = Kind("options of a command", "docker run -e NAME=VALUE", no_chunk, _read_options, _OPTIONS_LINE)
CHANGES = Kind(
    "commands that change settings",
    "kubectl set env statefulset/NAME NAME=VALUE",
    no_chunk,
    _read_changes,
    SETS,
)
SHELL = Kind("variables", "cat Dockerfile", no_chunk, _read_shell, _SHELL_LINE)
TABLE = Kind("settings of a broker", "pulsar-admin brokers get-runtime-config", no_chunk, _read_table, _TABLE_LINE)
JSON = Kind("settings as JSON", "curl BROKER/admin/v2/brokers/configuration/runtime", _recognise_json, _read_json)
