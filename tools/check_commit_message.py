"""Checks a commit message: an imperative subject of at most 72 characters, an empty line, and a body that says why.

python tools/check_commit_message.py .git/COMMIT_EDITMSG
"""

import re
import sys
from pathlib import Path

MOST_CHARACTERS = 72
_SCISSORS = "# ------------------------ >8 ------------------------"
_NO_BODY = re.compile(r"Merge |Revert |fixup! |squash! |amend! ")
_NOT_IMPERATIVE = re.compile(r"[A-Z]\w*(?:ed|ing)\b")
_IMPERATIVE = {
    "Bring",
    "Embed",
    "Exceed",
    "Feed",
    "Need",
    "Ping",
    "Proceed",
    "Seed",
    "Shed",
    "Speed",
    "Spring",
    "String",
}


def problems(message: str) -> list[str]:
    """Return what is wrong with a commit message, one sentence each; an empty list if it is good.

    Args:
        message: The message as in the file that Git passes to a hook, with comments.
    """
    lines = [line.rstrip() for line in message.split(_SCISSORS, maxsplit=1)[0].splitlines() if not line.startswith("#")]
    while lines and not lines[0]:
        del lines[0]
    if not lines:
        return ["The message is empty. Write a subject and a body."]
    subject, rest = lines[0], lines[1:]
    if _NO_BODY.match(subject):
        return []
    found = []
    if len(subject) > MOST_CHARACTERS:
        found.append(f"The subject has {len(subject)} characters. Use at most {MOST_CHARACTERS}.")
    if not subject[0].isupper():
        found.append("The subject does not start with a capital letter.")
    if subject.endswith("."):
        found.append("The subject ends with a full stop. Remove it.")
    first = subject.split()[0]
    if _NOT_IMPERATIVE.fullmatch(first) and first not in _IMPERATIVE:
        found.append(f'"{first}" is not imperative. Write "Add", not "Added" or "Adding".')
    if rest and rest[0]:
        found.append("The second line is not empty.")
    if not any(rest[1:]):
        found.append("There is no body. Say why, after an empty line.")
    return found


def main(path: str) -> int:
    """Print what is wrong with the message in a file.

    Returns:
        The exit status: 0 for a good message, else 1.
    """
    found = problems(Path(path).read_text(encoding="utf-8"))
    for one in found:
        print(one, file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
