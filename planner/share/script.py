"""A plan as a script for a POSIX shell that is safe to run: it asks, checks, restores, and can be run again.

At each step by hand it stops and asks. Before each split and unload it looks whether the bundle is still where the plan
thinks, and passes it over otherwise. However it ends, shedding and splitting are as they were, or as the plan wants
them. What is done is noted beside the script, so that a second run goes on. `--dry-run` shows all and does nothing.

Names come from clusters and links, so they are hostile: every word is quoted, and the rest stands in comments or is
printed as it is.
"""

import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from planner.pulsar.admin_commands import Command, Section, quoted

SECTIONS: Final[Mapping[Section, str]] = {
    "notes": "What this plan supposes, and what Pulsar cannot do by command",
    "brokers": "Brokers that join or change",
    "hold": "Hold automatic shedding and splitting, so that they do not cross these steps",
    "settings": "Settings",
    "policies": "Policies",
    "splits": "Splits",
    "unloads": "Unloads, in batches",
    "leaving": "Brokers that leave",
    "release": "Shedding and splitting as they should be",
}
"""What each part is for, in the order in which to follow them."""

_WIDTH = 118
_DIGEST = 12

_TOOLS: Final = r"""
dry_run='' ; held='' ; passed=0 ; names=''
usage() {
    say 'Usage: sh SCRIPT [--dry-run] [--broker NAME-IN-THE-PLAN=REAL-ID]...'
    say '  --dry-run  show every step, do nothing'
    say '  --broker   the real id (host:port) of a broker that the plan adds; asked for when it is not given'
    say 'Ends with 0 when all is done, 2 for a wrong option, 3 at a step by hand that was not confirmed, 4 when bundles'
    say 'were passed over, and with the status of a command that failed. Run it again to go on.'
}
say() { printf '%s\n' "$*"; }
run() {
    printf '+' ; printf ' %s' "$@" ; printf '\n'
    [ -n "$dry_run" ] || "$@" </dev/null
}
# once STEP COMMAND...: carry out a step that was not carried out before.
once() {
    number=$1 ; shift
    if [ -z "$dry_run" ] && [ -e "$done_file" ] && grep -qx "$number" "$done_file"; then
        printf 'Done before:' ; printf ' %s' "$@" ; printf '\n'
        return
    fi
    open=''
    "$@"
    [ -n "$dry_run$open" ] || printf '%s\n' "$number" >>"$done_file"
}
by_hand() {
    say ">> $1"
    [ $# -lt 2 ] || say "    $2"
    [ -z "$dry_run" ] || return 0
    printf 'Type yes when that is done; anything else stops here: '
    answer='' ; read -r answer || :
    case $answer in
    y | yes) ;;
    *) say 'Stopped. Run this script again to go on from here.' ; exit 3 ;;
    esac
}
# real NAME: put the real id of a broker that the plan adds into $broker.
real() {
    broker='' ; IFS_before=$IFS
    IFS='
'
    for pair in $names; do
        case $pair in "$1="*) broker=${pair#"$1="} ;; esac
    done
    IFS=$IFS_before
    if [ -n "$dry_run" ] && [ -z "$broker" ]; then broker=$1 ; fi
    while [ -z "$broker" ]; do
        printf 'Real id (host:port) of %s: ' "$1"
        read -r broker || { say 'No id was given. Run this script again.' ; exit 3 ; }
    done
}
# has NUMBER BROKER BUNDLE: whether a broker owns a bundle; each is asked once for each batch.
has() {
    if [ ! -e "$seen/$1" ]; then
        if ! "$@@ADMIN@@" brokers namespaces @@CLUSTER@@ --url "$2" >"$seen/$1" </dev/null; then
            say "Cannot see what $2 owns: its bundles are passed over."
            : >"$seen/$1"
        fi
    fi
    # A line begins with the bundle, bare (pulsar-admin 4.0.8) or, as JSON, in quotes.
    sed 's/^[[:space:]]*"\{0,1\}//; s/["[:space:]].*//' "$seen/$1" | grep -qxF -e "$3"
}
# cut NUMBER BROKER BUNDLE COMMAND...: split a bundle that the broker owns.
cut() {
    if [ -n "$dry_run" ] || has "$1" "$2" "$3"; then
        rm -f "$seen/$1" # it owns the parts afterwards
        shift 3
        run "$@"
    else
        pass_over "$2" "$3"
    fi
}
# move NUMBER FROM NUMBER TO BUNDLE COMMAND...: unload a bundle from one broker to another.
move() {
    if [ -n "$dry_run" ] || has "$1" "$2" "$5"; then
        shift 5
        run "$@"
        worked=1
    elif has "$3" "$4" "$5"; then
        say "There already: $5 is on $4."
    else
        pass_over "$2" "$5"
    fi
}
pass_over() {
    say "Passed over: $2 is not on $1."
    open=1 ; passed=$((passed + 1))
}
# fresh SECONDS TEXT: begin a batch; after one that did something, wait first.
worked=''
fresh() {
    if [ -n "$worked" ] && [ "$1" -gt 0 ]; then run sleep "$1" ; fi
    worked='' ; rm -f "$seen"/*
    say "$2"
}
finish() {
    status=$?
    trap - EXIT ; trap '' HUP INT TERM
    if [ -n "$held" ]; then
        say 'Shedding and splitting go back to what they were.'
        restore || say 'THAT FAILED: do it by hand, see the end of this script.'
    fi
    rm -rf "$seen"
    if [ "$status" -eq 0 ] && [ "$passed" -gt 0 ]; then
        say "Passed over: $passed. Their bundles are not where the plan supposes; capture again, and plan from there."
        status=4
    fi
    [ "$status" -ne 0 ] || [ -n "$dry_run" ] || rm -f "$done_file"
    exit "$status"
}
while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) dry_run=1 ;;
    --broker)
        [ $# -gt 1 ] || { usage ; exit 2 ; }
        shift
        names="$names$1
"
        ;;
    -h | --help) usage ; exit 0 ;;
    *) usage ; exit 2 ;;
    esac
    shift
done
"""


def clean(text: str) -> str:
    """Return a text for one line of a terminal: what is not printable becomes `?`."""
    return "".join(sign if sign.isprintable() else "?" for sign in text.replace("\n", " "))


def comment(text: str) -> str:
    """Return a text as comment lines, whatever is in it; unprintable characters become `?`."""
    lines, line = [], "#"
    for word in clean(text).split(" "):
        if len(line) + 1 + len(word) > _WIDTH and line != "#":
            lines.append(line)
            line = "#"
        line += f" {word}" if word else ""
    return "\n".join([*lines, line])


def command_list(commands: Sequence[Command], section: Section) -> str:
    """Return the steps of a section for a person to read, what is no command as comments; empty when there are none."""
    lines = []
    for command in commands:
        if command.section == section:
            lines += [f"# {clean(command.note)}"] if command.note else []
            lines += [f"# {command.line}" if command.by_hand else command.line] if command.words else []
    return "\n".join(lines)


class _Names:
    """Brokers of a script: their numbers, and the variables of those whose real ids are asked for."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self.asked = {name: f"broker_{at}" for at, name in enumerate(n for c in commands for n in c.asks)}
        self.numbers: dict[str, int] = {}

    def word(self, word: str) -> str:
        """Return a word as the shell reads it back."""
        return f'"${self.asked[word]}"' if word in self.asked else shlex.quote(word)

    def broker(self, name: str) -> str:
        """Return number and name of a broker."""
        return f"{self.numbers.setdefault(name, len(self.numbers) + 1)} {self.word(name)}"

    def line(self, words: Sequence[str]) -> str:
        """Return a command."""
        return " ".join(map(self.word, words))


def command_script(commands: Sequence[Command], title: str, program: Sequence[str], cluster: str) -> str:
    """Return commands as a script for a POSIX shell, with the notes as comments.

    Args:
        commands: As `planner.share.commands.plan_commands` returns them.
        title: What the plan is about; shown at the top.
        program: The words that start `pulsar-admin`, to ask what brokers own.
        cluster: Name of the cluster, for the same.
    """
    body = list(_body(commands))
    digest = hashlib.sha256("\n".join(body).encode()).hexdigest()[:_DIGEST]
    remarks = (
        title,
        "Nothing of this has been run. Read it first; it is written for the cluster as it was captured.",
        (
            "Run it with --dry-run to see every step. It stops and asks at each step by hand, passes bundles over that"
            " are not where the plan supposes, stops at the first error, and can be run again to go on."
        ),
    )
    tools = _TOOLS.replace('"$@@ADMIN@@"', quoted(program)).replace("@@CLUSTER@@", shlex.quote(cluster)).strip()
    restored = [command for command in commands if command.section == "restore"]
    lines = [
        "#!/bin/sh",
        *map(comment, remarks),
        "set -eu",
        tools,
        "restore() {",
        "    ok=0",
        *(f"    run {command.line} || ok=1" for command in restored),
        '    return "$ok"',
        "}",
        f'grep -qs {digest} "$0" || {{',
        "    say 'Save this script as a file, and run that: it reads your answers.' ; exit 2",
        "}",
        f'done_file="$0.{digest}.done"',
        "seen=$(mktemp -d)",
        "trap finish EXIT",
        "trap 'exit 129' HUP ; trap 'exit 130' INT ; trap 'exit 143' TERM",
        *body,
    ]
    return "\n".join(lines) + "\n"


def _body(commands: Sequence[Command]) -> Iterator[str]:
    """Yield the steps of a plan, section by section."""
    names, section = _Names(commands), ""
    for number, command in enumerate(commands, start=1):
        if command.section == "restore":
            continue
        if command.section != section:
            yield from ("", comment(f"=== {SECTIONS[command.section]}"))
            section = command.section
            if section == "hold":
                yield "held=1 ; [ -z \"$dry_run\" ] || held=''"
        if command.note and not (command.by_hand or command.wave_s is not None):
            yield comment(command.note)
        yield from _step(command, number, names)
    yield "held=''"


def _step(command: Command, number: int, names: _Names) -> Iterator[str]:
    """Yield what one step does."""
    if command.wave_s is not None:
        yield f"fresh {command.wave_s} {shlex.quote(clean(command.note))}"
    if command.by_hand:
        shown = [clean(command.note), *([command.line] if command.words else [])]
        yield f"once {number} by_hand {quoted(shown)}"
        for name in command.asks:
            yield f"real {shlex.quote(name)} ; {names.asked[name]}=$broker"
    elif command.words and command.bundle and command.destination:
        places = f"{names.broker(command.source)} {names.broker(command.destination)}"
        yield f"move {places} {shlex.quote(command.bundle)} {names.line(command.words)}"
    elif command.words and command.bundle:
        place = f"{names.broker(command.source)} {shlex.quote(command.bundle)}"
        yield f"once {number} cut {place} {names.line(command.words)}"
    elif command.words and command.section in {"hold", "release"}:
        yield f"run {names.line(command.words)}"
    elif command.words:
        yield f"once {number} run {names.line(command.words)}"
