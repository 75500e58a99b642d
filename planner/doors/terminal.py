"""What terminals and tools print around an answer: prompts with commands, logs, warnings, headings, progress.

None of it is an answer, so none of it is reported as unread; a prompt and a heading say what follows them.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

WORDS: Final = r"pulsar-admin|pulsar-client|pulsar-perf|pulsarctl|zookeeper-shell(?:\.sh)?|etcdctl|curl|kubectl"
"""Tools whose commands are recognised wherever they stand in a line."""

WIDTHS: Final = (80, 100, 120, 132, 160, 200)
"""How wide terminals often are."""
SETS: Final = re.compile(
    r"(?:pulsar-admin|pulsarctl)\s(?:.*\s)?brokers\s+(?:update|delete)-dynamic-config\s.*|"
    r"kubectl\s(?:.*\s)?set\s+env\s.*"
)
"""Commands that change settings of brokers."""

_AT: Final = r"(?:\([\w.-]+\) ?)?(?:I have no name!|[\w.-]+)@[\w.-]+"
PROMPT: Final = (
    rf"(?:\[{_AT}[^\]\n]{{0,80}}\][$#%>]|{_AT}:[^\s$#%>\"{{}}]{{0,120}} ?[$#%>]|"
    rf"\[?{_AT} [~/][^\s\"{{}}]{{0,120}}\]? ?[$#%>]|"
    r"\$(?= [A-Za-z./~])|(?:ba|a|da)?sh-[0-9.]+[$#]|[\w.-]+:[~/][^\s\"{}$#]{0,80} ?[$#]|[~/][\w./-]{0,80} [$#]|"
    r"PS [A-Z]:[^>\n]{0,120}>|[A-Z]:\\[^>\n]{0,120}>)"
)
"""A prompt that cannot be anything else."""

_COMMAND: Final = re.compile(
    rf"^(?:[^{{}}\"']{{0,120}}?[\s/])?((?:{WORDS})\s.*|(?:get|ls)\s+(?:-s\s+)?/\S+.*)$|^{PROMPT}[ \t]*(.*)$"
)
_NODE: Final = r"/(?:loadbalance|admin|namespace)/"
"""How the path of a node of the metadata store begins, as `etcdctl` prints it above each value."""
_HEADING: Final = re.compile(
    r"^(?:={2,}>? *([^=\s].*?) *<?={2,}|\*{2,} *([^*\s].*?) *\*{2,}|>{2,} *([^>\s].*?)(?: *<{2,})?|"
    r"-{2,} *([\w.%-]+[/:][\w.:/%=-]+) *-{2,}|-{2,} +([\w.-]+) +-{2,}|"
    rf"({_NODE}\S+)|(\S+) \| (?:CHANGED|SUCCESS|FAILED!?) \| rc=\d+ >>)\s*$"
)
_SURE_WORDS: Final = tuple(
    f"{word} ".encode() for word in (*WORDS.replace("(?:\\.sh)?", "").split("|"), "zookeeper-shell.sh")
)
_LISTING: Final = (b"get ", b"ls ")
_LISTED: Final = re.compile(rb"(?m)^(?:.{0,80}\] )?(?:get|ls) ")
_AT_STARTS: Final = tuple(
    re.compile(f"(?m)^{start}".encode()) for start in (PROMPT, r"(?:==|\*\*|>>|--)", _NODE, r"\S+ \| \w+ \| rc=")
)
_MAY_BE_COMMAND: Final = re.compile(
    b"|".join([rf"(?:{WORDS}) ".encode(), _LISTED.pattern[4:], *(one.pattern[4:] for one in _AT_STARTS)]), re.MULTILINE
)
GLUED: Final = re.compile(
    rf"[ \t]*(?:%\s*$|(?:{PROMPT}|[$#])(?:\s|$)|\* Connection |Connection to )".encode(), re.MULTILINE
)
"""What follows on the line of an answer that has no line end, as answers to `curl` have none."""

_CLOCK: Final = r"\d\d:\d\d:\d\d"
_NOISE: Final = re.compile(
    r"^(?:SLF4J(?:\(\w\))?:|log4j:(?:WARN|ERROR)|(?:\S+ )?(?:WARN|ERROR|INFO) StatusLogger|main (?:WARN|ERROR|INFO) |"
    r"WARNING: |Warning: |(?:NOTE: )?Picked up \w+_OPTIONS:|(?:OpenJDK|Java HotSpot).{0,40} VM warning:|"
    r"\[[0-9.]+s\]\[\w+ *\]\[|\[AppClassLoader@\w+\] |"
    # ZooKeeper's shell
    r"WATCHER::|WatchedEvent |Connecting to |Welcome to ZooKeeper|JLine support is |\[zk: |"
    r"(?:cZxid|ctime|mZxid|mtime|pZxid|cversion|dataVersion|aclVersion|ephemeralOwner|dataLength|numChildren) = |"
    # kubectl, docker, ssh
    r"Default(?:ed|ing) container |Use 'kubectl describe |Unable to use a TTY|the input device is not a TTY|"
    r"Handling connection for |Forwarding from |Emulate Docker CLI using podman|"
    r"All commands and output from this session|"
    r"<<K9s-Shell>>|\[sudo\] password for |\*\* (?:WARNING: |This session may|The server may)|nohup: |"
    r"(?:WARN|INFO|DEBU)\[\d{4}\] |time=\"\S+\" level=(?:warning|info|debug) |"
    rf"If you don't see a command prompt|pod \"\S+\" deleted|\S+/\S+ env updated$|[IWEF]\d{{4}} {_CLOCK}\.\d+ |"
    r"Connection to \S+ closed\.|Last login: |logout$|exit$|"
    # curl: progress, and what it says with --verbose
    r"% Total +% Received|Dload +Upload|\d[\d.kMG]* .*(?:--:--:--|\d+:\d\d:\d\d)|"
    r"\*   Trying |\* (?:Connect|Host |TCP_|ALPN|TLS|SSL|Server |Using |Mark |Clos|Request |HTTP|Expire|Re-using|IPv)|"
    r"> (?:GET|HEAD) |> [A-Z][\w-]*: |[<>]$|[{}] \[\d+ bytes data\]|"
    # shells
    rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,? .{{4,20}}{_CLOCK}.{{0,20}}$|(?:real|user|sys)\s+[\d.]+(?:m[\d.]+)?s?$|"
    rf"Every [\d.]+s: .*{_CLOCK}|Script (?:started|done) on |\++ (?:set|echo|for|sleep|cd|export|read|test|date|\[)\b|"
    r"\{(?:code|noformat|quote|panel)(?::[\w|=. ]{0,80})?\}\s*$|\(END\)\s*$|"
    r"(?:```|~~~)\w*\s*$|</?(?:details|summary|p|pre|code|br|div)\b[^{}=]*>\s*$|\+[-+]+\+\s*$|[=*_#]{3,}\s*$|-{4,}\s*$|(?:\[.{1,60}\]|\S{0,60})[$#>]\s*$|%\s*$|"
    # logs, those of java.util.logging with a line for the place
    rf"[A-Z][a-z]{{2}} \d{{1,2}}, \d{{4}} \d{{1,2}}:\d\d:\d\d [AP]M [\w.$]+ \w+$|(?:INFO|SEVERE): |"
    rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}|\[\d{{4}}-\d\d-\d\d|{_CLOCK}[.,]\d{{3}} \[)"
)
LOGGED_SETTINGS: Final = "ServiceConfiguration"
"""The class whose fields a broker logs when it starts."""
LOGGED_RELEASE: Final = "Starting Pulsar Broker service"
"""What a broker logs before its release."""
_STATUS: Final = re.compile(r"(?:< )?HTTP/[\d.]+ [123]\d\d\b")
_FIELD: Final = re.compile(r"(?:< )?[A-Za-z][\w-]*: ?")
_EDGES: Final = ("|", "│")
"""What parts the columns of tables as `pulsarctl` draws them."""
_QUOTED_ROW: Final = re.compile(r'\s*"([^"\s][^"]* {4}[^"]*)"')
"""A row as releases before 2.10 print it: `"NAME    VALUE"`."""
_TITLES: Final = re.compile(r"[|│](?:\s*[A-Z][A-Z _-]*[|│])+")
"""What stands above its columns."""
_LOOKED_AT: Final = 400
"""Longest heading, and how much of a line shows that it is part of no answer."""


_PERCENT: Final = re.compile(r"\s*[\w.]+\s*[=:]\s*[\d.,]+%")
"""A setting in per cent, which ends a file as it stands; behind a prompt, the sign may be that of a shell."""


def said(text: str) -> list[str]:
    """Return the lines of a text that are part of an answer, without blanks at their ends."""
    kept: list[str] = []
    in_header = headed = False
    for given in text.split("\n"):
        line = given.rstrip()
        start = line.lstrip()
        in_header = bool(_STATUS.match(start)) or (in_header and bool(_FIELD.match(start)))
        is_noise = _NOISE.match(start, 0, _LOOKED_AT) and LOGGED_SETTINGS not in line and LOGGED_RELEASE not in line
        is_heading = bool(_heading_of(start))
        headed = headed or is_heading
        if is_heading and kept:
            kept[-1] = _without_mark(kept[-1])
        if start and not in_header and not is_noise and not is_heading and not _TITLES.fullmatch(line):
            kept.append(_cells(line))
    if kept and not headed and _PERCENT.fullmatch(kept[-1]):
        return kept
    return [*kept[:-1], *map(_without_mark, kept[-1:])]


def letters_of(lines: Iterable[str]) -> int:
    """Return how many signs lines have that are no blanks: as many as when they are joined."""
    return sum(len(line) - line.count(" ") for line in lines)


def _heading_of(line: str) -> str:
    found = _HEADING.match(line) if len(line) <= _LOOKED_AT else None
    return next((str(group) for group in found.groups() if group), "") if found else ""


def _cells(line: str) -> str:
    """Return the cells of a row with blanks between them; another line as it is."""
    if quoted := _QUOTED_ROW.fullmatch(line):
        return quoted[1]
    edge = line[:1]
    if edge not in _EDGES or line[-1:] != edge or line[1:2] == edge:
        return line
    return "    ".join(cell.strip() for cell in line[1:-1].split(edge)).strip()


def _without_mark(line: str) -> str:
    """Return the last line of an answer without the `%` with which `zsh` marks that it has no end."""
    return line[:-1] if line.endswith("%") and not line[-2:-1].isspace() else line


def command_of(line: str) -> str | None:
    """Return the command of a line, or the heading; None where the line is neither."""
    if heading := _heading_of(line):
        return heading
    found = _COMMAND.match(line)
    if found is None:
        return None
    if found[1] is None:
        return found[2] or ""
    return (
        found[1]
        if line.startswith("[zk: ") or re.match(PROMPT, line) or not _NOISE.match(line, 0, _LOOKED_AT)
        else None
    )


def sets_settings(command: str) -> bool:
    """Say whether a command changes settings, so that it says something itself."""
    return SETS.match(command) is not None


def may_have_commands(text: bytes) -> bool:
    """Say quickly whether a text may have a command or a heading."""
    # One thing at a time is many times faster in a large text, and faster still for what stands there as it is.
    if any(word in text for word in _SURE_WORDS) or any(found.search(text) for found in _AT_STARTS):
        return True
    return any(word in text for word in _LISTING) and _LISTED.search(text) is not None


def places_of_commands(text: bytes, start: int) -> Iterator[int]:
    """Yield the places from a place on that may be in the line of a command or a heading."""
    yield from (found.start() for found in _MAY_BE_COMMAND.finditer(text, start))
