"""Words for a POSIX shell, and text that is safe in its comments.

Names come from clusters and links, so they are hostile: every word is quoted, what would end a comment is taken out,
and a word that `pulsar-admin` itself would misread is refused.
"""

import shlex
from collections.abc import Sequence

_WIDTH = 118


def writable(text: str) -> bool:
    """Tell whether a text shows as it is: no control characters, no invisible or direction-changing ones."""
    return text.isprintable()


def quoted(words: Sequence[str]) -> str:
    """Return words as one line that a POSIX shell reads back as the same words."""
    return shlex.join(words)


def comment(text: str) -> str:
    """Return a text as comment lines, whatever is in it; unprintable characters become `?`."""
    clean = "".join(sign if sign.isprintable() else "?" for sign in text.replace("\n", " "))
    lines, line = [], "#"
    for word in clean.split(" "):
        if len(line) + 1 + len(word) > _WIDTH and line != "#":
            lines.append(line)
            line = "#"
        line += f" {word}" if word else ""
    return "\n".join([*lines, line])


def option(name: str, value: str) -> tuple[str, ...] | None:
    """Return an option with its value as words, or None when `pulsar-admin` cannot be given that value.

    `pulsar-admin` (picocli) takes a word that starts with `@` for a file of arguments, and one that starts with `-` for
    an option, unless it is a number; an empty value makes a request to another address.
    """
    number = value.removeprefix("-").replace(".", "", 1).isdecimal()
    if not value or not writable(value) or (value.startswith("-") and not number):
        return None
    return (f"{name}={value}",) if value.startswith("@") else (name, value)


def positional(value: str) -> tuple[str, ...] | None:
    """Return a plain argument as words, or None when `pulsar-admin` cannot be given it; see `option`."""
    if not value or not writable(value) or value.startswith("-"):
        return None
    return (f"@{value}",) if value.startswith("@") else (value,)
