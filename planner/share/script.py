"""A plan as a script for a POSIX shell that is safe to run: it asks, checks, restores, and can be run again.

At each step by hand it stops and asks. Before each split and unload it checks that the bundle is still where the plan
expects it, and skips it otherwise. Before it changes a setting it notes, in a file beside itself, what the dynamic
configuration says; unless everything succeeds, every setting goes back to that, and an override that did not exist is
deleted. While it holds shedding and splits, their values say so (`planner.cluster.switches`). What is done is noted
beside the script, so that a second run continues. `--dry-run` prints all and does nothing.

Names come from clusters and links, so they are hostile: every word is quoted, and the rest stands in comments or is
printed as it is. `script.sh` is what all scripts have in common, with places in it that are filled in here.
"""

import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Final

from planner.cluster.names import SHEDDING_ENABLED
from planner.cluster.switches import HELD_SWITCHES
from planner.simulate.admin_commands import Command, DynamicChange, Role, Section, quoted, setting_command

SECTIONS: Final[Mapping[Section, str]] = {
    "notes": "Assumptions of this plan, and steps that Pulsar has no command for",
    "brokers": "Brokers that join or change",
    "hold": "Hold automatic shedding and splits, so that they do not interfere with these steps",
    "policies": "Policies",
    "splits": "Splits",
    "unloads": "Unloads, in batches",
    "leaving": "Brokers that leave",
    "settings": "Settings, once all steps above have succeeded",
    "release": "Shedding and splits, restored",
}
"""Purpose of each part, in the order to follow them."""

_ANNOUNCED: Final[Mapping[Role, str]] = {
    "asked": "At the end it changes these settings, if every step was carried out:",
    "offered": "At the end it asks whether to change these settings:",
    "undone": "At the end it takes back these settings, where the plan has set them:",
}
_WIDTH = 118
_DIGEST = 12


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
        "Nothing in this script has been run. Read it first; it was written for the cluster as captured.",
        (
            "Run it with --dry-run to print every step. It asks at each manual step, skips bundles that "
            "have moved since the capture, stops at the first error, and can be run again to continue. "
            "Unless everything succeeds, every setting goes back to what it was before."
        ),
        *_announced(commands),
    )
    on = DynamicChange(name=SHEDDING_ENABLED, value="true", before="false", role="asked")
    off = f"SHEDDING IS OFF. To turn it on: {setting_command('release', program, on).line}"
    parts = {
        "REMARKS": "\n".join(map(comment, remarks)),
        "ADMIN": quoted(program),
        "CLUSTER": shlex.quote(cluster),
        "SWITCHES": quoted([*HELD_SWITCHES]),
        "SHEDDING": SHEDDING_ENABLED,
        "OFF": shlex.quote(off),
        "DIGEST": digest,
        "BODY": "\n".join(body),
    }
    frame = resources.files("planner.share").joinpath("script.sh").read_text(encoding="utf-8")
    return re.sub("@@([A-Z]+)@@", lambda place: parts[place[1]], frame)


def _announced(commands: Sequence[Command]) -> Iterator[str]:
    """Yield what a script says at its top about the settings that it leaves changed."""
    changes = [one.setting for one in commands if one.setting is not None]
    for role, text in _ANNOUNCED.items():
        listed = [
            f"{one.name}: {one.before or 'not set'} -> {one.value or 'not set'}" for one in changes if one.role == role
        ]
        if listed:
            yield f"{text} {'; '.join(listed)}."


def _body(commands: Sequence[Command]) -> Iterator[str]:
    """Yield the steps of a plan, section by section."""
    names, section = _Names(commands), ""
    if any(command.setting for command in commands):
        yield "look_at_settings"
    moving = any(command.bundle for command in commands)
    for number, command in enumerate(commands, start=1):
        if command.section != section:
            section = command.section
            yield from ("", comment(f"=== {SECTIONS[section]}"))
            if section == "settings" and moving:
                yield "settings_next"
        switched = command.setting is not None and command.section in {"hold", "release"}
        if command.note and not (command.by_hand or switched or command.wave_s is not None):
            yield comment(command.note)
        yield from _step(command, number, names)


def _step(command: Command, number: int, names: _Names) -> Iterator[str]:
    """Yield what one step does."""
    if command.wave_s is not None:
        yield f"batch {command.wave_s} {shlex.quote(clean(command.note))}"
    if command.by_hand:
        shown = [clean(command.note), *([command.line] if command.words else [])]
        if command.stops:
            yield f"before_stop {names.word(command.stops)}"
        yield f"once {number} by_hand {quoted(shown)}"
        for name in command.asks:
            yield f"ask_name {shlex.quote(name)} ; {names.asked[name]}=$broker"
    elif command.setting:
        yield _setting(command.setting, command.words)
    elif command.words and command.bundle and command.destination:
        places = f"{names.broker(command.source)} {names.broker(command.destination)}"
        yield f"move {places} {shlex.quote(command.bundle)} {names.line(command.words)}"
    elif command.words and command.bundle:
        place = f"{names.broker(command.source)} {shlex.quote(command.bundle)}"
        yield f"once {number} divide {place} {names.line(command.words)}"
    elif command.words:
        yield f"once {number} run {names.line(command.words)}"


def _setting(change: DynamicChange, words: Sequence[str]) -> str:
    """Return the step that changes a setting."""
    if change.role == "held":
        return quoted(["hold", change.name, change.before])
    if change.role == "released":
        return quoted(["offer_on", change.name, HELD_SWITCHES[change.name]])
    if change.role == "undone":
        kind = {True: "set", False: "unset", None: "unknown"}[change.overridden]
        return quoted(["undo", change.name, change.value, kind, change.before])
    verb = "change" if change.role == "asked" else "offer"
    return quoted([verb, change.name, change.value, change.before, *words])
