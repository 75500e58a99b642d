"""A plan as a script for a POSIX shell that is safe to run: it asks, checks, restores, and can be run again.

Before anything else it checks that this is the cluster of the plan, and asks. At each step by hand it stops and asks.
Before each split and unload it checks that the bundle is still where the plan expects it, and skips it otherwise. No
bundle is split twice: where its namespace has the boundaries of a split already, that one is done. After each split it
checks that these are there; after each batch, that the bundles have arrived and that no receiver is above the limit.
Before it changes a setting it notes, in a file beside itself, what the dynamic configuration says; unless everything
succeeds, every setting goes back to that, and an override that did not exist is deleted. While it holds shedding and
splits, their values say so (`planner.cluster.switches`). What is done is noted beside the script, so that a second run
continues. `--dry-run` prints all and does nothing.

Names come from clusters and links, so they are hostile: every word is quoted, and the rest stands in comments or is
printed as it is. `script.sh` is what all scripts have in common, with places in it that are filled in here.
"""

import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Final

from planner.cluster.host_names import TLS_PORTS, uses_tls
from planner.cluster.names import LOAD_MANAGER_CLASS_NAME, LOAD_SHEDDING_STRATEGY, SHEDDING_ENABLED
from planner.cluster.switches import HELD_SWITCHES
from planner.cluster.text import moment
from planner.cluster.units import MS_PER_S
from planner.share.script_head import STATUSES, Facts, checks, head_lines
from planner.share.step_table import is_step, steps_text
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
_CALLS: Final[Mapping[str, tuple[str]]] = {
    "splits": ("divide STEP CUTS NAMESPACE BUNDLE BROKER COMMAND",),
    "unloads": ("move STEP BUNDLE FROM TO CLIENTS",),
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
    """Words of a script: the variables of brokers whose real ids are asked for stand in place of their names."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self.asked = {name: f"broker_{at}" for at, name in enumerate(n for c in commands for n in c.asks)}

    def word(self, word: str) -> str:
        """Return a word as the shell reads it back."""
        return f'"${self.asked[word]}"' if word in self.asked else shlex.quote(word)

    def line(self, words: Sequence[str]) -> str:
        """Return a command."""
        return " ".join(map(self.word, words))


def command_script(
    commands: Sequence[Command], title: str, program: Sequence[str], cluster: str, facts: Facts | None = None
) -> str:
    """Return commands as a script for a POSIX shell, with the notes as comments.

    Args:
        commands: As `planner.share.commands.plan_commands` returns them.
        title: What the plan is about; shown at the top.
        program: The words that start `pulsar-admin`, to ask what brokers own.
        cluster: Name of the cluster, for the same.
        facts: What is known of the cluster and the question, to show it and to check it first.
    """
    body = [*_preflight(commands, facts), *_body(commands, program)]
    digest = hashlib.sha256("\n".join(body).encode()).hexdigest()[:_DIGEST]
    on = DynamicChange(name=SHEDDING_ENABLED, value="true", before="false", role="asked")
    off = f"SHEDDING IS OFF. To turn it on: {setting_command('release', program, on).line}"
    parts = {
        "REMARKS": "\n".join(_remarks(commands, title, cluster, facts)),
        "ADMIN": quoted(program),
        "CLUSTER": shlex.quote(cluster),
        "CAPTURED": str(facts.captured_at_ms // MS_PER_S) if facts else "0",
        "LIMIT": str(facts.limit_percent) if facts else "100",
        "WEIGHTS": shlex.quote(facts.weights if facts else ""),
        "MOVES": str(sum(bool(command.destination) for command in commands)),
        "SPLITS": str(sum(_divides(command) for command in commands)),
        "STEPS": str(sum(map(is_step, commands))),
        "STATUSES": shlex.quote(_statuses()),
        "SCHEME": "https" if uses_tls(program) else "http",
        "PROGRAM": shlex.quote(program[0]),
        "TLS": " | ".join(f"*:{port}" for port in TLS_PORTS),
        "SWITCHES": quoted([*HELD_SWITCHES]),
        "SHEDDING": SHEDDING_ENABLED,
        "OFF": shlex.quote(off),
        "DIGEST": digest,
        "BODY": "\n".join(body),
    }
    frame = resources.files("planner.share").joinpath("script.sh").read_text(encoding="utf-8")
    return re.sub("@@([A-Z]+)@@", lambda place: parts[place[1]], frame)


def _statuses() -> str:
    """Return the exit statuses as a text with lines."""
    return "\n".join(["Exit status:", *(f"  {number} {meaning}" for number, meaning in STATUSES.items())])


def _remarks(commands: Sequence[Command], title: str, cluster: str, facts: Facts | None) -> Iterator[str]:
    """Yield the head of a script, comment by comment."""
    yield comment(title)
    for line in head_lines(commands, cluster, facts):
        yield comment(line)
    yield comment(
        "Nothing in this script has been run. Read it first. Run it with --dry-run to print every step. It first checks"
        " that this is the cluster of the plan, and asks before it begins. It stops at each manual step, skips bundles"
        " that have moved or been split since the capture, checks after each split that it has taken effect and after"
        " each batch that the bundles have arrived, stops at the first error, and can be run again to continue. Unless"
        " everything succeeds, every setting goes back to what it was before."
    )
    yield from map(comment, _announced(commands))
    yield from map(comment, _statuses().split("\n"))
    if table := steps_text(commands):
        yield comment("Steps:")
        yield from (f"#   {clean(line)}" for line in table)


def _announced(commands: Sequence[Command]) -> Iterator[str]:
    """Yield what a script says at its top about the settings that it leaves changed."""
    changes = [one.setting for one in commands if one.setting is not None]
    for role, text in _ANNOUNCED.items():
        listed = [
            f"{one.name}: {one.before or 'not set'} -> {one.value or 'not set'}" for one in changes if one.role == role
        ]
        if listed:
            yield f"{text} {'; '.join(listed)}."


def _preflight(commands: Sequence[Command], facts: Facts | None) -> Iterator[str]:
    """Yield what a script looks at, and asks, before it changes anything."""
    yield from ("", comment("=== Is this the cluster of the plan?"))
    yield "check_cluster"
    if facts is not None:
        yield quoted(["expect_release", facts.release])
        yield quoted(["expect_class", "Load manager", LOAD_MANAGER_CLASS_NAME, facts.load_manager])
        if facts.strategy:
            yield quoted(["expect_class", "Shedding strategy", LOAD_SHEDDING_STRATEGY, facts.strategy])
    for bundle, brokers in checks(commands):
        yield quoted(["expect_at", bundle, *brokers])
    if facts is not None and facts.warning:
        yield quoted(["say", clean(f"Warning: {facts.warning}")])
    yield quoted(["confirm", *([moment(facts.captured_at_ms)] if facts else [])])


def _body(commands: Sequence[Command], program: Sequence[str]) -> Iterator[str]:
    """Yield the steps of a plan, section by section."""
    names, section, number, pause_s = _Names(commands), "", 0, None
    if any(command.setting for command in commands):
        yield "look_at_settings"
    moving = any(command.bundle for command in commands)
    for command in commands:
        if pause_s is not None and (command.section != section or command.wave_s is not None):
            yield f"check_batch {pause_s}"
            pause_s = None
        if command.section != section:
            section = command.section
            yield from ("", comment(f"=== {SECTIONS[section]}"))
            yield from map(comment, _CALLS.get(section, ()))
            if section == "settings" and moving:
                yield "settings_next"
        switched = command.setting is not None and command.section in {"hold", "release"}
        shown = command.by_hand or switched or command.wave_s is not None or command.wait_s is not None
        if command.note and not shown:
            yield comment(command.note)
        if command.wave_s is not None:
            pause_s = command.wave_s
            yield f"batch {shlex.quote(clean(command.note))}"
        number += is_step(command)
        yield from _step(command, number, names, program)
    if pause_s is not None:
        yield f"check_batch {pause_s}"


def _step(command: Command, number: int, names: _Names, program: Sequence[str]) -> Iterator[str]:
    """Yield what one step does."""
    if command.by_hand:
        shown = [clean(command.note), *([command.line] if command.words else [])]
        if command.stops:
            yield f"before_stop {names.word(command.stops)}"
        yield f"once {number} by_hand {quoted(shown)}"
        for name in command.asks:
            yield f"ask_id {shlex.quote(name)} ; {names.asked[name]}=$broker"
    elif command.wait_s is not None:
        yield f"once {number} settle {command.wait_s} {shlex.quote(clean(command.note))}"
    elif command.setting:
        yield _setting(command.setting, command.words)
    elif command.words and command.destination:
        if command.words == _unload_words(command, program):
            places = f"{names.word(command.source)} {names.word(command.destination)}"
            yield f"move {number} {shlex.quote(command.bundle)} {places} {command.clients}"
        else:  # a name that `move` would write in another way than `pulsar-admin` reads it
            yield f"once {number} by_hand {quoted(['By hand: run this command.', command.line])}"
    elif _divides(command):
        cuts = shlex.quote(" ".join(f"0x{cut:08x}" for cut in command.cuts))
        space = command.words[len(program) + 2]
        bundle = command.bundle or f"{space}/{command.words[command.words.index('--bundle') + 1]}"
        place = f"{cuts} {shlex.quote(space)} {shlex.quote(bundle)} {names.word(command.source)}"
        yield f"divide {number} {place} {names.line(command.words)}"
    elif command.words:
        yield f"once {number} run {names.line(command.words)}"


def _divides(command: Command) -> bool:
    """Say whether a step splits a bundle."""
    return bool(command.words and command.cuts) and not command.by_hand


def _unload_words(command: Command, program: Sequence[str]) -> tuple[str, ...]:
    """Return the words by which `move` of a script unloads a bundle."""
    namespace, _, bundle_range = command.bundle.rpartition("/")
    unload = ("namespaces", "unload", namespace, "--bundle", bundle_range, "--destinationBroker", command.destination)
    return (*program, *unload)


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
