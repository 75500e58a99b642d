r"""Java's regular expressions over short names, translated into the dialect of the `regex` library, with a timeout.

Pulsar matches namespaces and broker hosts with `String.matches`. The translation follows `java.util.regex.Pattern` of
OpenJDK 17, against which every construct is tested. What it leaves out (the flag `U`, `\b{g}`, references to a group
that is not closed yet, rare properties) is named and matches nothing, as what Java itself refuses. A look-behind
without an end is evaluated; Java takes some and refuses others.
"""

import re
import sys
import unicodedata
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final, NoReturn

import regex

_MAX_LENGTH: Final = 10_000
_MAX_DEPTH: Final = 100
_MAX_STEPS: Final = 20_000
_TIMEOUT_S: Final = 0.5
_LAST_ASCII: Final = 127

_LINE_ENDS: Final = "\\n\\r\\x85\\u2028\\u2029"
_VERTICAL: Final = "\\n\\x0b\\f\\r\\x85\\u2028\\u2029"
_HORIZONTAL: Final = " \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000"
_LINE_BREAK: Final = f"(?:\\r\\n|[{_VERTICAL}])"
_WORD: Final = "[\\p{L}\\p{Nd}_]"
_EDGE: Final = f"(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD})"
_CONTROLS: Final = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SHORTHANDS: Final = {"d": "0-9", "s": " \\t\\n\\x0b\\f\\r", "w": "a-zA-Z0-9_", "h": _HORIZONTAL, "v": _VERTICAL}
_POSIX: Final = dict(
    pair.split("=", 1)
    for pair in (
        "Lower=a-z", "Upper=A-Z", "ASCII=\\x00-\\x7f", "Alpha=a-zA-Z", "Digit=0-9", "Alnum=a-zA-Z0-9", "Graph=!-~",
        "Punct=!-/:-@\\[-`{-~", "Print= -~", "Blank= \\t", "Cntrl=\\x00-\\x1f\\x7f", "XDigit=0-9a-fA-F",
        "Space= \\t\\n\\x0b\\f\\r", "L1=\\x00-\\xff", "LD=\\p{L}\\p{Nd}", "LC=\\p{Lu}\\p{Ll}\\p{Lt}", "all=\\s\\S",
        "javaLowerCase=\\p{Lowercase}", "javaUpperCase=\\p{Uppercase}", "javaAlphabetic=\\p{Alphabetic}",
        "javaLetter=\\p{L}", "javaDigit=\\p{Nd}", "javaLetterOrDigit=\\p{L}\\p{Nd}", "javaTitleCase=\\p{Lt}",
    )
)  # fmt: skip
_CASES: Final = {"Lower": "Alpha", "Upper": "Alpha", "Lu": "LC", "Ll": "LC", "Lt": "LC"} | dict.fromkeys(
    ("javaLowerCase", "javaUpperCase", "javaTitleCase"), "LC"
)
"""The properties that replace these when case does not count."""

_QUOTE: Final = re.compile(r"(\\[^Q])|\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_QUANTIFIER: Final = re.compile(r"[*+?]|\{(?P<low>[0-9]+)(?P<to>,(?P<high>[0-9]*))?\}")
_GROUP: Final = re.compile(
    r"\?(?:(?P<kind>[:=!>]|<[=!])|<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>|(?P<on>[idmsux]*)(?P<off>-[idmsux]*)?(?P<end>[:)]))"
)
_PROPERTY: Final = re.compile(r"([pP])(?:\{([\w= ]+)\}|(\w))", re.ASCII)
_CHARACTER: Final = re.compile(
    r"x\{(?P<x>[0-9a-fA-F]{1,6})\}|x(?P<xx>[0-9a-fA-F]{2})"
    r"|u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})"
    r"|0(?P<octal>[0-3]?[0-7]{1,2})|c(?P<control>.)|N\{(?P<unicode>[^}]+)\}|(?P<name>[aefnrt])|(?P<itself>[^a-zA-Z0-9])",
    re.DOTALL,
)


class _RefusedError(Exception):
    """An expression that Java refuses; the text says why."""


class _UnknownError(Exception):
    """An expression that is not evaluated here, whatever Java does; the text says why."""


@dataclass(slots=True, eq=False)
class JavaPattern:
    """A regular expression as Java reads it.

    Attributes:
        text: The expression.
        problem: Why it cannot be used, as part of a sentence; empty when it can. Such an expression matches nothing.
            An expression that once took too long on a name is not tried again.
        invalid: Whether Java refuses it, too.
    """

    text: str
    problem: str
    invalid: bool = False
    _compiled: "regex.Pattern[str] | None" = field(default=None, repr=False)

    def matches(self, subject: str) -> bool:
        """Return whether the whole subject matches, as `String.matches` does."""
        if self.problem or self._compiled is None:
            return False
        try:
            return self._compiled.fullmatch(subject, timeout=_TIMEOUT_S) is not None
        except (TimeoutError, MemoryError):
            self.problem = f"it takes longer than {_TIMEOUT_S:g} s on a single name"
            return False


@lru_cache(maxsize=4096)
def java_pattern(text: str) -> JavaPattern:
    """Return an expression, read by the rules of `java.util.regex.Pattern` without flags."""
    if len(text) > _MAX_LENGTH:
        return JavaPattern(text, f"it is longer than {_MAX_LENGTH:,} characters")
    try:
        translated = _Translator(text).whole()
        compiled = regex.compile(translated, regex.VERSION1, cache_pattern=False)
        return JavaPattern(text, "", _compiled=compiled)
    except _RefusedError as refused:
        return JavaPattern(text, str(refused), invalid=True)
    except _UnknownError as unknown:
        return JavaPattern(text, str(unknown))
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        return JavaPattern(text, f"it cannot be evaluated here ({str(error)[:80]})")


def _literal(char: str) -> str:
    return char if char.isascii() and char.isalnum() else f"\\U{ord(char):08x}"


def _other_cases(char: str) -> tuple[str, str]:
    """Return the upper case of a character and the lower case of that, where each is one character, as in Java."""
    upper = char.upper() if len(char.upper()) == 1 else char
    return upper, upper.lower() if len(upper.lower()) == 1 else upper


@cache
def _cased() -> tuple[tuple[str, tuple[str, str]], ...]:
    """Return every character that has another case, with its cases."""
    every = ((char, _other_cases(char)) for char in map(chr, range(sys.maxunicode + 1)))
    return tuple((char, cases) for char, cases in every if cases != (char, char))


def _refuse(why: str) -> NoReturn:
    raise _RefusedError(why)


def _give_up(why: str) -> NoReturn:
    raise _UnknownError(why)


class _Translator:
    """Reads an expression from left to right and returns it in the other dialect."""

    def __init__(self, text: str) -> None:
        # A quoted character is nothing but itself, as its code is.
        self._text = _QUOTE.sub(lambda m: m[1] or "".join(f"\\x{{{ord(char):x}}}" for char in m[2]), text)
        self._at = self._groups = self._depth = self._steps = 0
        self._flags: frozenset[str] = frozenset()
        self._open: set[int] = set()
        self._names: dict[str, int] = {}

    def whole(self) -> str:
        """Return the whole expression in the dialect of `regex`, version 1."""
        found = self._alternatives()
        if self._at < len(self._text):
            _refuse("a ')' has no opening '('")
        return found

    def _peek(self, ahead: int = 0) -> str:
        """Return the next character or nothing, past white space and comments where the flag `x` allows them."""
        ends = "\n" if "d" in self._flags else "\n\r\x85\u2028\u2029"
        while "x" in self._flags and self._text[self._at : self._at + 1] in tuple(" \t\n\v\f\r#"):
            if self._text[self._at] == "#":
                while self._at < len(self._text) and self._text[self._at] not in ends:
                    self._at += 1
            else:
                self._at += 1
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _match(self, what: "re.Pattern[str]") -> "re.Match[str] | None":
        found = what.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MAX_STEPS:
            _give_up(f"it needs more than {_MAX_STEPS:,} steps")

    def _enter(self, what: str) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            _give_up(f"it has more than {_MAX_DEPTH} {what} inside {what}")

    def _alternatives(self) -> str:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence())
        return "|".join(branches)

    def _sequence(self) -> str:
        parts = []
        while (char := self._peek()) not in ("", "|", ")"):
            if char in "*+?":
                _refuse(f"nothing precedes '{char}'")
            before = self._steps
            self._count(1)
            self._at += char != "{"
            atom = self._atom(char)
            # Flags by themselves are no group that could be repeated.
            parts.append(self._repeated(atom, self._steps - before) if atom or char == "{" else "")
        return "".join(parts)

    def _atom(self, char: str) -> str:  # noqa: PLR0911 - one for each kind
        match char:
            case "(":
                return self._group()
            case "[":
                return self._set()
            case "\\":
                return self._escape()
            case ".":
                return "(?s:.)" if "s" in self._flags else "[^\\n]" if "d" in self._flags else f"[^{_LINE_ENDS}]"
            case "^" if "m" in self._flags:
                return f"(?:(?!\\Z)(?:\\A|(?<=[{self._line_ends}])(?!(?<=\\r)\\n)))"
            case "^":
                return "\\A"
            case "$":
                return self._line_end("" if "m" in self._flags else "\\Z")
            case "{":
                return ""  # Java repeats the nothing before it
        return self._char(char)

    @property
    def _line_ends(self) -> str:
        return "\\n" if "d" in self._flags else _LINE_ENDS

    def _line_end(self, then: str) -> str:
        if "d" in self._flags:
            return f"(?=\\n{then}|\\Z)"
        return f"(?:(?!(?<=\\r)\\n)(?=(?:\\r\\n|[{_LINE_ENDS}]){then})|(?=\\Z))"

    def _char(self, char: str) -> str:
        if "i" not in self._flags:
            return _literal(char)
        return f"[{self._range(char, char)}]"

    def _repeated(self, atom: str, steps: int) -> str:
        if self._peek() not in tuple("*+?{"):
            return atom
        found = self._match(_QUANTIFIER) or _refuse("a '{' begins no repetition")
        low, high = {"?": (0, 1), "*": (0, -1), "+": (1, -1)}.get(found[0], (0, 0))
        if found["low"]:
            low, high = int(found["low"]), int(found["high"] or -1) if found["to"] else int(found["low"])
            if 0 <= high < low:
                _refuse("the upper limit of a repetition is below its lower limit")
        self._count(steps * (max(low, high, 1) - 1))
        mode = self._peek() if self._peek() in ("?", "+") else ""
        self._at += len(mode)
        if atom == _LINE_BREAK:
            atom = f"(?>{atom})"  # what is repeated does not give back half of a line break
        return f"(?:{atom}){{{low},{'' if high < 0 else high}}}{mode}"

    def _group(self) -> str:
        self._enter("groups")
        flags, number, head = self._flags, 0, "("
        if self._peek() == "?":
            found = self._match(_GROUP) or _refuse("a group has an unknown kind, name or flag")
            head = f"(?{found['kind'] or ':'}"
            if found["end"]:
                self._flags = (flags | set(found["on"])) - set(found["off"] or "")
            if found["end"] == ")":
                self._depth -= 1
                return ""
            if found["name"]:
                head = "("
                if found["name"] in self._names:
                    _refuse("two groups have the same name")
                self._names[found["name"]] = self._groups + 1
        if head == "(":
            self._groups += 1
            number = self._groups
            self._open.add(number)
        inside = self._alternatives()
        if self._peek() != ")":
            _refuse("a group is not closed")
        self._at += 1
        self._open.discard(number)
        self._flags = flags
        self._depth -= 1
        return f"{head}{inside})"

    def _escape(self) -> str:
        kind = self._text[self._at : self._at + 1]
        fixed = {"A": "\\A", "G": "\\A", "z": "\\Z", "R": _LINE_BREAK, "X": "\\X"}
        fixed |= {"b": f"(?:{_EDGE})", "B": f"(?!{_EDGE})"}
        if kind == "Z":
            self._at += 1
            return self._line_end("\\Z")
        if kind in fixed:
            self._at += 1
            if kind == "b" and self._text.startswith("{g}", self._at):
                _give_up("\\b{g} is not evaluated here")
            return fixed[kind]
        if kind == "k":
            found = self._match(re.compile(r"k<([a-zA-Z0-9]*)>")) or _refuse("\\k names no group")
            return self._reference(self._names.get(found[1], self._groups + 1))
        if kind in tuple("123456789"):
            number, self._at = int(kind), self._at + 1
            # Another digit belongs to the number as long as there are so many groups.
            while (digit := self._text[self._at : self._at + 1]) in tuple("0123456789") and (
                number * 10 + int(digit) <= self._groups
            ):
                number, self._at = number * 10 + int(digit), self._at + 1
            return self._reference(number)
        found_set = self._escaped_set()
        return self._char(self._escaped_char()) if found_set is None else f"[{found_set}]"

    def _reference(self, group: int) -> str:
        if group > self._groups or group in self._open:
            _give_up("a back reference to an open group is not supported here")
        return f"(?i:\\g<{group}>)" if "i" in self._flags else f"\\g<{group}>"

    def _escaped_set(self) -> str | None:
        r"""Return the inside of a set such as `\d` or `\p{L}`; None, with nothing passed, for a character."""
        kind = self._text[self._at : self._at + 1]
        if kind.lower() in _SHORTHANDS:
            self._at += 1
            inside = _SHORTHANDS[kind.lower()]
            return f"[^{inside}]" if kind.isupper() else inside
        if kind not in ("p", "P"):
            return None
        found = self._match(_PROPERTY) or _refuse("a property has no name")
        name = found[2] or found[3] or ""
        name = _CASES.get(name, name) if "i" in self._flags else name
        inside = _POSIX.get(name) or f"\\p{{{name}}}"
        try:
            regex.compile(f"[{inside}]", regex.VERSION1)
        except regex.error:
            _give_up(f"the property {name[:40]} is not known here")
        return f"[^{inside}]" if found[1] == "P" else inside

    def _escaped_char(self) -> str:
        found = self._match(_CHARACTER)
        if not found:
            kind = self._text[self._at : self._at + 1]
            _refuse(f"\\{kind} is an unknown escape or has no character code" if kind else "it ends in a backslash")
        try:
            if found["high"]:
                return bytes.fromhex(found["high"] + found["low"]).decode("utf-16-be")
            if found["unicode"]:
                return unicodedata.lookup(found["unicode"])
            if found["octal"]:
                return chr(int(found["octal"], 8))
            if found["control"]:
                return chr(ord(found["control"]) ^ 64)
            code = found["x"] or found["xx"] or found["u"]
            return chr(int(code, 16)) if code else found["itself"] or _CONTROLS[found["name"]]
        except (KeyError, ValueError, OverflowError):
            _refuse(f"\\{found[0][:40]} is not a character code")

    def _set(self) -> str:
        """Return a set of characters whose '[' has been passed."""
        self._enter("classes")
        negated = self._peek() == "^"
        self._at += negated
        operands: list[str] = []
        items: list[str] = []
        while (char := self._peek()) != "]" or not (items or operands):
            self._at += 1
            if not char:
                _refuse("a '[' is not closed")
            if char == "&" and self._peek() == "&":
                self._at += 1
                operands.extend([f"[{''.join(items)}]"] if items else [])
                if not operands or self._peek() in ("&", "]"):
                    _give_up("a class intersection with only one side is not supported here")
                items = []
            else:
                items.append(self._item(char))
        self._at += 1
        self._depth -= 1
        operands.extend([f"[{''.join(items)}]"] if items else [])
        return f"[{'^' * negated}{'&&'.join(operands)}]"

    def _item(self, char: str) -> str:
        """Return one character, range or nested set, whose first character has been passed."""
        self._count(1)
        if char == "[":
            return self._set()
        if char == "\\":
            found = self._escaped_set()
            if found is not None:
                return f"[{found}]"
            char = self._escaped_char()
        if self._peek() != "-" or self._peek(1) in ("]", "["):
            return self._range(char, char)
        self._at += 1
        last = self._peek()
        self._at += 1
        if last == "\\":
            if self._escaped_set() is not None:
                _refuse("a range ends in a set")
            last = self._escaped_char()
        if last < char:
            _refuse("the bounds of a range are reversed" if last else "a '[' is not closed")
        return self._range(char, last)

    def _range(self, low: str, high: str) -> str:
        found = f"{_literal(low)}-{_literal(high)}"
        if "i" not in self._flags:
            return found
        if "u" not in self._flags:
            letters = (chr(code) for code in range(ord(low), min(ord(high), _LAST_ASCII) + 1))
            return found + "".join(f"{char.lower()}{char.upper()}" for char in letters if char.isalpha())
        if low == high:
            low = high = _other_cases(low)[1]
        # As Java does: by its upper case, and by the lower case of that; a single character by the latter alone.
        same = (char for char, cases in _cased() if any(low <= case <= high for case in cases))
        return found + "".join(map(_literal, same))
