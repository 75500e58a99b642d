"""Commands of `pulsar-admin` as words, and the steps of a plan that they are part of. Nothing here talks to a cluster.

Options are those of the `pulsar-admin` of 4.0.8, the nearest one published apart from a distribution; those of dispatch
limits were checked with 4.2.4. Names come from clusters and links, so they are hostile: a word that `pulsar-admin`
itself would misread is refused, and every word is quoted for a POSIX shell.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from planner.cluster.host_names import web_address
from planner.cluster.ranges import middle_of, parse_range
from planner.pulsar.splitting.manual import HOT, LARGEST, SplitCommand
from planner.pulsar.splitting.registry import HALVES

PROGRAM: Final = ("pulsar-admin",)
SHOWN: Final = 20
"""Most names that a step lists."""

Section: TypeAlias = Literal[
    "notes", "brokers", "hold", "policies", "splits", "unloads", "leaving", "settings", "release"
]
"""Part of a plan; `planner.share.script.SECTIONS` has them in their order."""

Role: TypeAlias = Literal["held", "released", "asked", "offered", "undone"]
"""Why a script changes a setting: off while it runs; back at its end; part of what a person asked for; it keeps the
plan, and the script asks first; taken back, where an earlier script set it."""

Word: TypeAlias = str | tuple[str, ...] | None
"""A word, or several; None for what `pulsar-admin` cannot be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicChange:
    """A setting of all brokers that changes while they run, in the dynamic configuration.

    Attributes:
        name: The setting.
        value: The value it gets, as in `broker.conf`; empty to delete its override.
        before: The value that was in force when the cluster was captured, or, of one that is undone, the value before.
        role: Why it changes.
        overridden: Whether the dynamic configuration had a value then; None unknown.
    """

    name: str
    value: str
    before: str
    role: Role
    overridden: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One step of a plan.

    Attributes:
        section: Which part it belongs to.
        words: The command; empty where the note says it all.
        note: Why, or what to do by hand; shown before the command.
        by_hand: A person has to do it, or to decide; the command, where there is one, is only shown.
        bundle: Bundle that it is about; it holds only while `source` owns that.
        source: Broker that owns the bundle before.
        destination: Broker that is to own it after.
        asks: Brokers with invented names whose real ids a person has to give.
        wave_s: It begins a batch of unloads; seconds to wait after the one before.
        wait_s: It waits so many seconds, with shedding and splits still on hold.
        setting: The setting that the command changes; a script notes first what it is, and puts it back if it fails.
        stops: Broker that a person stops in this step.
        topics: Topics that it disconnects.
        clients: Producers and consumers that it disconnects.
    """

    section: Section
    words: tuple[str, ...] = ()
    note: str = ""
    by_hand: bool = False
    bundle: str = ""
    source: str = ""
    destination: str = ""
    asks: tuple[str, ...] = ()
    wave_s: int | None = None
    wait_s: int | None = None
    setting: DynamicChange | None = None
    stops: str = ""
    topics: int = 0
    clients: int = 0

    @property
    def cuts(self) -> tuple[int, ...]:
        """Boundaries that a split makes in a bundle; none for what is no split, and where the broker chooses them."""
        if not {"split-bundle", "--bundle"} <= {*self.words}:
            return ()
        pairs = list(pairwise(self.words))
        given = tuple(int(value) for name, value in pairs if name == "--split-boundaries")
        if not given and ("--split-algorithm-name", HALVES) in pairs:
            low, high = parse_range(self.words[self.words.index("--bundle") + 1])
            given = (middle_of(low, high),)
        return given

    @property
    def line(self) -> str:
        """The command as a shell reads it; empty where there is none."""
        return quoted(self.words) if self.words else ""


def waiting(minutes: float) -> Command:
    """Return the step that keeps shedding and splits on hold after the last other step."""
    note = f"Keep shedding and automatic splits off for {minutes:g} min more, until every broker has reported its load."
    return Command(section="release", note=note, wait_s=round(minutes * 60))


def command_of(section: Section, program: Sequence[str], words: Sequence[Word], what: str, note: str = "") -> Command:
    """Return a command, or a note that says what to do by hand where a word of it cannot be written.

    Args:
        section: Which part of the plan it belongs to.
        program: The words that start `pulsar-admin`.
        words: The rest of it.
        what: What it does, for that note.
        note: Why; shown before the command.
    """
    if any(word is None for word in words):
        text = f"By hand: {what}. pulsar-admin cannot take a name or value in it as it is."
        return Command(section=section, note=text, by_hand=True)
    flat = [part for word in words if word for part in ((word,) if isinstance(word, str) else word)]
    return Command(section=section, words=(*program, *flat), note=note)


def setting_command(section: Section, program: Sequence[str], change: DynamicChange, note: str = "") -> Command:
    """Return the command that changes a setting of all brokers while they run."""
    name, value = change.name, change.value
    if not value:
        words: list[Word] = ["brokers", "delete-dynamic-config", option("--config", name)]
        what = f"delete the dynamic value of {name}"
    else:
        # The value becomes part of an address; pulsar-admin writes a space in it as a plus.
        given = None if " " in value else option("--value", value)
        words = ["brokers", "update-dynamic-config", option("--config", name), given]
        what = f"set {name} to {value}"
    made = command_of(section, program, words, what, note)
    return replace(made, setting=change) if made.words else made


def split_command(command: SplitCommand, program: Sequence[str] = PROGRAM) -> tuple[str, ...]:
    """Return the words that make a request to split a bundle."""
    namespace = positional(command.namespace) or (command.namespace,)
    meant = "--bundle-type" if command.bundle in {LARGEST, HOT} else "--bundle"
    words = [*program, "namespaces", "split-bundle", *namespace, meant, command.bundle]
    if command.unload:
        words.append("--unload")
    if command.algorithm:
        words += ["--split-algorithm-name", command.algorithm]
    for position in command.positions or ():
        words += ["--split-boundaries", str(position)]
    return tuple(words)


def quoted(words: Sequence[str]) -> str:
    """Return words as one line that a POSIX shell reads back as the same words."""
    return shlex.join(words)


def option(name: str, value: str) -> tuple[str, ...] | None:
    """Return an option with its value as words, or None when `pulsar-admin` cannot be given that value.

    `pulsar-admin` (picocli) takes a word that starts with `@` for a file of arguments, and one that starts with `-` for
    an option, unless it is a number; an empty value makes a request to another address.
    """
    number = value.removeprefix("-").replace(".", "", 1).isdecimal()
    if not value or not value.isprintable() or (value.startswith("-") and not number):
        return None
    return (f"{name}={value}",) if value.startswith("@") else (name, value)


def positional(value: str) -> tuple[str, ...] | None:
    """Return a plain argument as words, or None when `pulsar-admin` cannot be given it; see `option`."""
    if not value or not value.isprintable() or value.startswith("-"):
        return None
    return (f"@{value}",) if value.startswith("@") else (value,)


def creation_by_hand(namespace: str, bundles: int, program: Sequence[str], note: str) -> Command:
    """Return the step that creates a namespace, which somebody takes together with what a note says.

    Args:
        namespace: Its name; without words where `pulsar-admin` cannot be given it.
        bundles: How many it gets.
        program: The words that start `pulsar-admin`.
        note: What to do.
    """
    name = positional(namespace)
    words = (*program, "namespaces", "create", *name, "--bundles", str(bundles)) if name else ()
    return Command(section="notes", words=words, by_hand=True, note=note)


def shutdown_command(broker: str, program: Sequence[str], *words: str) -> Command:
    """Return the step that stops a broker in order.

    Args:
        broker: Broker id.
        program: The words that start `pulsar-admin`.
        words: Further options.
    """
    url = option("--admin-url", web_address(broker, program))
    return Command(
        section="leaving",
        words=(*program, *url, "brokers", "shutdown", *words) if url else (),
        by_hand=True,
        note=f"By hand: stop {broker} once it owns no bundles. Check its address first.",
        stops=broker,
    )
