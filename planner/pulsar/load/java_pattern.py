"""Java's regular expressions over short names, safe with any expression.

Pulsar matches namespaces and broker hosts with `String.matches`. Python's `re` reads another dialect, and an expression
such as `(a+)+b` can keep it busy for years. Here an expression is read by Java's rules and tried with a memory of what
has failed, so that the time grows with its size times the length of the name. Checked against `java.util.regex` of
OpenJDK 17. It differs in that back references and a few rare constructs are refused, with their name.
"""

import contextlib
import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

_MAX_LENGTH = 10_000
"""Characters of an expression."""

_MAX_PROGRAM = 20_000
"""Steps an expression may come to; `(a{1000}){1000}` would come to a million."""

_MAX_DEPTH = 100
"""Groups inside groups; Java's own stack ends somewhat later."""

_MAX_WORK = 500_000
"""Steps of one match, which only look-arounds inside repetitions come near; beyond that it counts as none."""

_PLAIN = re.compile(r"(?:[\w/:@,-]|\\[.\-/]|\.[*+?]?|\[[a-zA-Z0-9]+(?:-[a-zA-Z0-9])?\][*+?]?|\\d[*+?]?)*", re.ASCII)
"""Expressions that Java and Python read alike, without groups."""
_PLAIN_REPETITIONS = 2
"""More than these could make Python slow."""

_Test: TypeAlias = Callable[[str], bool]
_Program: TypeAlias = list["_Step"]


class _BadExpressionError(Exception):
    """An expression that Java refuses, or that is not evaluated here; the text says which."""


class _TooMuchWorkError(Exception):
    """A match that takes more steps than allowed."""


@dataclass(frozen=True, slots=True)
class JavaPattern:
    """A regular expression as Java reads it.

    Attributes:
        text: The expression.
        problem: Why it cannot be used, as part of a sentence; empty when it can. Such an expression matches nothing.
    """

    text: str
    problem: str

    def matches(self, subject: str) -> bool:
        """Say whether the whole subject matches."""
        return not self.problem and _matches(self.text, subject)


@lru_cache(maxsize=4096)
def java_pattern(text: str) -> JavaPattern:
    """Read an expression. It never raises: what is wrong is in `problem`."""
    try:
        _compiled(text)
    except _BadExpressionError as error:
        return JavaPattern(text, str(error))
    return JavaPattern(text, "")


@lru_cache(maxsize=4096)
def _compiled(text: str) -> "re.Pattern[str] | _Program":
    if len(text) > _MAX_LENGTH:
        raise _BadExpressionError(f"it is longer than {_MAX_LENGTH:,} characters")
    if _PLAIN.fullmatch(text) and sum(text.count(sign) for sign in "*+?") <= _PLAIN_REPETITIONS:
        translated = re.sub(r"\\.|\[.*?\]|\.", lambda found: f"[^{_LINE_ENDS}]" if found[0] == "." else found[0], text)
        with contextlib.suppress(re.error):
            return re.compile(translated, re.ASCII)
    return _Reader(text).program()


@lru_cache(maxsize=65536)
def _matches(text: str, subject: str) -> bool:
    compiled = _compiled(text)
    if isinstance(compiled, re.Pattern):
        return compiled.fullmatch(subject) is not None
    try:
        return _Run(subject).end(compiled, 0, len(subject)) is not None
    except _TooMuchWorkError:
        return False


# What an expression is compiled to


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a program.

    Attributes:
        kind: `one` (a character that passes `test`), `fork` (go to `to`, and if that fails to `other`), `if` (go on
            where `where` holds), `look` (go on when `inner` matches from here, or up to here when `behind`, or when it
            does not if `negated`), `once` (go to where `inner` ends, and try no other way through it), `end`.
    """

    kind: str
    test: _Test | None = None
    where: "Callable[[str, int], bool] | None" = None
    to: int = 0
    other: int = 0
    inner: "_Program | None" = None
    behind: bool = False
    negated: bool = False


class _Run:
    """One match: goes through a program, remembering where it has been."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.left = _MAX_WORK

    def end(self, program: _Program, start: int, must_end: int | None) -> int | None:
        """Return where the first way through a program ends; None when there is none."""
        seen: set[tuple[int, int]] = set()
        todo = [(0, start)]
        while todo:
            here = todo.pop()
            if here in seen:
                continue
            seen.add(here)
            self.left -= 1
            if self.left < 0:
                raise _TooMuchWorkError
            at, place = here
            step = program[at]
            if step.kind == "end":
                if must_end is None or place == must_end:
                    return place
            elif step.kind == "fork":
                todo += [(step.other, place), (step.to, place)]
            elif (after := self.after(step, place)) is not None:
                todo.append((at + 1, after))
        return None

    def after(self, step: _Step, place: int) -> int | None:
        """Return where a step leads; None when it fails."""
        if step.kind == "one":
            assert step.test is not None  # noqa: S101 - narrows the type
            return place + 1 if place < len(self.subject) and step.test(self.subject[place]) else None
        if step.kind == "if":
            assert step.where is not None  # noqa: S101
            return place if step.where(self.subject, place) else None
        assert step.inner is not None  # noqa: S101
        if step.kind == "once":
            return self.end(step.inner, place, None)
        starts = range(place + 1) if step.behind else (place,)
        found = any(self.end(step.inner, start, place if step.behind else None) is not None for start in starts)
        return place if found is not step.negated else None


# Characters and places

_LINE_ENDS = "\n\r\u0085\u2028\u2029"
_CLASSES: dict[str, _Test] = {
    "d": lambda c: "0" <= c <= "9",
    "w": lambda c: c.isascii() and (c.isalnum() or c == "_"),
    "s": lambda c: c in " \t\n\x0b\f\r",
    "h": lambda c: c in " \t\xa0\u1680\u180e\u202f\u205f\u3000" or "\u2000" <= c <= "\u200a",
    "v": lambda c: c in "\n\x0b\f\r\x85\u2028\u2029",
}
_POSIX: dict[str, _Test] = {
    "Lower": lambda c: "a" <= c <= "z",
    "Upper": lambda c: "A" <= c <= "Z",
    "ASCII": str.isascii,
    "Alpha": lambda c: c.isascii() and c.isalpha(),
    "Digit": lambda c: "0" <= c <= "9",
    "Alnum": lambda c: c.isascii() and c.isalnum(),
    "Punct": lambda c: c.isascii() and c.isprintable() and not c.isalnum() and c != " ",
    "Graph": lambda c: "!" <= c <= "~",
    "Print": lambda c: " " <= c <= "~",
    "Blank": lambda c: c in " \t",
    "Cntrl": lambda c: c < " " or c == "\x7f",
    "XDigit": lambda c: c in "0123456789abcdefABCDEF",
    "Space": lambda c: c in " \t\n\x0b\f\r",
}
_CATEGORIES = re.compile(r"L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfson]?")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_HEX = frozenset("0123456789abcdefABCDEF")


def _not(test: _Test) -> _Test:
    return lambda c: not test(c)


def _any_of(tests: list[_Test]) -> _Test:
    return tests[0] if len(tests) == 1 else lambda c: any(test(c) for test in tests)


def _all_of(tests: list[_Test]) -> _Test:
    return tests[0] if len(tests) == 1 else lambda c: all(test(c) for test in tests)


def _between(low: str, high: str, *, fold: bool) -> _Test:
    if not fold:
        return lambda c: low <= c <= high
    return lambda c: low <= c <= high or (c.isascii() and (low <= c.lower() <= high or low <= c.upper() <= high))


def _word(subject: str, place: int) -> bool:
    return 0 <= place < len(subject) and (subject[place] == "_" or subject[place].isalnum())


def _at_start(subject: str, place: int) -> bool:
    del subject
    return place == 0


def _at_end(subject: str, place: int) -> bool:
    return place == len(subject)


def _before_last_line_end(subject: str, place: int) -> bool:
    rest = subject[place:]
    if place and subject[place - 1] == "\r" and rest == "\n":
        return False
    return rest in {"", "\r\n", *_LINE_ENDS}


def _before_last_newline(subject: str, place: int) -> bool:
    return subject[place:] in {"", "\n"}


def _after_line_end(subject: str, place: int) -> bool:
    if place == 0:
        return True
    if place == len(subject) or (subject[place - 1] == "\r" and subject[place] == "\n"):
        return False
    return subject[place - 1] in _LINE_ENDS


def _before_line_end(subject: str, place: int) -> bool:
    if place == len(subject):
        return True
    inside = place > 0 and subject[place - 1] == "\r" and subject[place] == "\n"
    return subject[place] in _LINE_ENDS and not inside


def _at_word_edge(subject: str, place: int) -> bool:
    return _word(subject, place - 1) != _word(subject, place)


def _inside_word_or_gap(subject: str, place: int) -> bool:
    return not _at_word_edge(subject, place)


# Programs of parts: no step refers outside its own part, so that parts are joined by moving them


def _moved(part: _Program, by: int) -> _Program:
    if not by:
        return part
    return [
        _Step(s.kind, s.test, s.where, s.to + by, s.other + by, s.inner, s.behind, s.negated) if s.kind == "fork" else s
        for s in part
    ]


def _fork(to: int, other: int) -> _Step:
    return _Step("fork", to=to, other=other)


def _check_size(size: int) -> None:
    if size > _MAX_PROGRAM:
        raise _BadExpressionError("it comes to more steps than are tried here")


def _join(parts: list[_Program]) -> _Program:
    _check_size(sum(map(len, parts)))
    joined: _Program = []
    for part in parts:
        joined += _moved(part, len(joined))
    return joined


def _either(parts: list[_Program]) -> _Program:
    """Try one part after the other: before each but the last goes a fork, behind it a way out."""
    leave = sum(map(len, parts)) + 2 * (len(parts) - 1)
    _check_size(leave)
    whole: _Program = []
    for part in parts[:-1]:
        here = len(whole)
        whole += [_fork(here + 1, here + len(part) + 2), *_moved(part, here + 1), _fork(leave, leave)]
    return whole + _moved(parts[-1], len(whole))


def _any_number(part: _Program, *, lazy: bool) -> _Program:
    leave = len(part) + 2
    return [_fork(leave, 1) if lazy else _fork(1, leave), *_moved(part, 1), _fork(0, 0)]


def _up_to(part: _Program, times: int, *, lazy: bool) -> _Program:
    leave = (len(part) + 1) * times
    whole: _Program = []
    for _ in range(times):
        inside = len(whole) + 1
        whole += [_fork(leave, inside) if lazy else _fork(inside, leave), *_moved(part, inside)]
    return whole


def _repeated(part: _Program, low: int, high: int | None, *, lazy: bool) -> _Program:
    _check_size(((low if high is None else high) + 1) * (len(part) + 1))
    tail = _any_number(part, lazy=lazy) if high is None else _up_to(part, high - low, lazy=lazy)
    return _join([*[part] * low, tail])


def _finished(part: _Program) -> _Program:
    return [*part, _Step("end")]


def _may_be_empty(part: _Program) -> bool:
    """Say whether a part can be gone through without a character; places and look-arounds count as if they held."""
    seen: set[int] = set()
    todo = [0]
    while todo:
        at = todo.pop()
        if at == len(part):
            return True
        if at in seen:
            continue
        seen.add(at)
        step = part[at]
        if step.kind == "fork":
            todo += [step.to, step.other]
        elif step.kind != "one" and not (step.kind == "once" and step.inner and not _may_be_empty(step.inner[:-1])):
            todo.append(at + 1)
    return False


def _is_unbounded(part: _Program) -> bool:
    """Say whether a part can go through any number of characters."""
    return any(
        (step.kind == "fork" and step.to <= at) or (step.kind == "once" and step.inner and _is_unbounded(step.inner))
        for at, step in enumerate(part)
    )


# Reading


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    multiline: bool = False
    dot_all: bool = False
    comments: bool = False
    unix_lines: bool = False


_LOOKS = (
    ("=", _Step("look")),
    ("!", _Step("look", negated=True)),
    ("<=", _Step("look", behind=True)),
    ("<!", _Step("look", behind=True, negated=True)),
    (">", _Step("once")),
)
_FLAG_NAMES = {"i": "fold", "m": "multiline", "s": "dot_all", "x": "comments", "d": "unix_lines"}


class _Reader:
    """Reads one expression by Java's rules."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags = _Flags()
        self.depth = 0
        self.names: set[str] = set()
        self.empty_loops = 0
        """Repetitions so far of a part that may be empty; Java leaves such a loop in a way of its own."""

    def program(self) -> _Program:
        part = self.choice()
        if self.at < len(self.text):
            raise self.refused("a ')' closes no group")
        return _finished(part)

    def refused(self, why: str) -> _BadExpressionError:
        return _BadExpressionError(f"Java refuses it: {why}, at position {min(self.at, len(self.text)) + 1}")

    def unsupported(self, what: str) -> _BadExpressionError:
        return _BadExpressionError(f"it uses {what}, which is not evaluated here")

    def peek(self, ahead: int = 0) -> str:
        """Return a character, empty at the end. Comments are skipped where they are allowed."""
        if self.flags.comments and not ahead:
            self.skip_comments()
        return self.text[self.at + ahead : self.at + ahead + 1]

    def skip_comments(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] in " \t\n\x0b\f\r":
                self.at += 1
            elif self.text[self.at] == "#":
                while self.at < len(self.text) and self.text[self.at] not in _LINE_ENDS:
                    self.at += 1
            else:
                return

    def take(self, wanted: str) -> bool:
        """Go past a text when it comes next."""
        self.peek()
        if self.text.startswith(wanted, self.at):
            self.at += len(wanted)
            return True
        return False

    def one(self, char: str) -> _Program:
        if self.flags.fold and char.isascii() and char.isalpha():
            return [_Step("one", test=lambda c: c.isascii() and c.lower() == char.lower())]
        return [_Step("one", test=lambda c: c == char)]

    def choice(self) -> _Program:
        """Read alternatives up to a ')' or the end."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _BadExpressionError("it has more groups inside groups than are tried here")
        ways = [self.sequence()]
        while self.take("|"):
            ways.append(self.sequence())
        self.depth -= 1
        return _either(ways)

    def sequence(self) -> _Program:
        parts: list[_Program] = []
        while (char := self.peek()) and char not in "|)":
            if self.take("\\Q"):
                parts += self.quoted()
                continue
            before = self.empty_loops
            part = self.piece(char)
            if part is not None:
                parts.append(self.repetition(part, before))
        return _join(parts)

    def quoted(self) -> list[_Program]:
        """Read up to the end of a quotation; a repetition after it is of its last character."""
        end = self.text.find("\\E", self.at)
        chars = self.text[self.at : end if end >= 0 else len(self.text)]
        self.at = len(self.text) if end < 0 else end + 2
        parts = [self.one(char) for char in chars]
        if parts:
            parts[-1] = self.repetition(parts[-1], self.empty_loops)
        return parts

    def piece(self, char: str) -> _Program | None:  # noqa: PLR0911 - one case for each sign
        """Read what a repetition may follow; None after flags that stand alone."""
        if char == "(":
            return self.group()
        if char == "[":
            self.at += 1
            return [_Step("one", test=self.char_class())]
        if char in "*+?":
            raise self.refused(f"nothing stands before '{char}'")
        if char == "{":
            return []  # what it repeats is empty
        self.at += 1
        if char == ".":
            return [_Step("one", test=self.dot())]
        if char in "^$":
            return [_Step("if", where=self.line_edge(char))]
        if char == "\\":
            return self.escape()
        return self.one(char)

    def dot(self) -> _Test:
        if self.flags.dot_all:
            return lambda _: True
        ends = "\n" if self.flags.unix_lines else _LINE_ENDS
        return lambda c: c not in ends

    def line_edge(self, char: str) -> Callable[[str, int], bool]:
        if self.flags.unix_lines and self.flags.multiline:
            raise self.unsupported("the flags d and m together")
        if char == "^":
            return _after_line_end if self.flags.multiline else _at_start
        if self.flags.multiline:
            return _before_line_end
        return _before_last_newline if self.flags.unix_lines else _before_last_line_end

    def repetition(self, part: _Program, empty_loops_before: int) -> _Program:
        """Read a repetition, if one comes next.

        Args:
            part: What it repeats.
            empty_loops_before: `empty_loops` before the part was read.
        """
        sign = self.peek()
        if not sign or sign not in "*+?{":
            return part
        self.at += 1
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign) or self.counts()
        self.empty_loops += _may_be_empty(part)
        lazy = self.take("?")
        repeated = _repeated(part, low, high, lazy=lazy)
        if not lazy and self.take("+"):
            self.check_loops(empty_loops_before)
            return [_Step("once", inner=_finished(repeated))]
        return repeated

    def check_loops(self, before: int) -> None:
        if self.empty_loops > before:
            raise self.unsupported("a possessive repetition of what may be empty")

    def counts(self) -> tuple[int, int | None]:
        found = re.compile(r"([0-9]+)(,([0-9]*))?\}").match(self.text, self.at)
        if not found:
            raise self.refused("a '{' without a number of repetitions")
        if any(len(number) > len(str(_MAX_PROGRAM)) for number in (found[1], found[3] or "")):
            raise _BadExpressionError("it comes to more steps than are tried here")
        self.at = found.end()
        low = int(found[1])
        high = low if found[2] is None else int(found[3]) if found[3] else None
        if high is not None and high < low:
            raise self.refused("a repetition that ends before it starts")
        return low, high

    def group(self) -> _Program | None:
        self.at += 1
        outer, empty_loops = self.flags, self.empty_loops
        step: _Step | None = None
        if self.take("?"):
            step = next((step for sign, step in _LOOKS if self.take(sign)), None)
            if step is None and self.take("<"):
                self.name()
            elif step is None and not self.take(":") and self.read_flags():
                return None
        inner = self.choice()
        if not self.take(")"):
            raise self.refused("a group is not closed")
        self.flags = outer
        if step is None:
            return inner
        if step.kind == "once":
            self.check_loops(empty_loops)
        if step.behind and _is_unbounded(inner):
            raise self.unsupported("a look-behind of any length")
        return [_Step(step.kind, inner=_finished(inner), behind=step.behind, negated=step.negated)]

    def name(self) -> None:
        found = re.compile(r"([a-zA-Z][a-zA-Z0-9]*)>").match(self.text, self.at)
        if not found:
            raise self.refused("a group without a proper name")
        if found[1] in self.names:
            raise self.refused(f"two groups are named {found[1]}")
        self.names.add(found[1])
        self.at = found.end()

    def read_flags(self) -> bool:
        """Read `ims-x)` or `ims-x:`; say whether they stand alone."""
        found = re.compile(r"([a-zA-Z]*)(?:-([a-zA-Z]*))?([):])").match(self.text, self.at)
        if not found:
            raise self.refused("a group of an unknown kind")
        flags = {name: getattr(self.flags, name) for name in _FLAG_NAMES.values()}
        for letters, value in ((found[1], True), (found[2] or "", False)):
            for letter in letters:
                if letter in "uU":
                    raise self.unsupported(f"the flag {letter}")
                if letter not in _FLAG_NAMES:
                    self.at = found.start()
                    raise self.refused(f"an unknown flag '{letter}'")
                flags[_FLAG_NAMES[letter]] = value
        self.flags = _Flags(**flags)
        self.at = found.end()
        return found[3] == ")"

    def escape(self) -> _Program:
        """Read what follows a backslash outside of a class."""
        char = self.text[self.at : self.at + 1]
        places: dict[str, Callable[[str, int], bool]] = {
            "b": _at_word_edge,
            "B": _inside_word_or_gap,
            "A": _at_start,
            "G": _at_start,
            "z": _at_end,
            "Z": _before_last_newline if self.flags.unix_lines else _before_last_line_end,
        }
        if char in places and not (char == "b" and self.text.startswith("b{", self.at)):
            self.at += 1
            return [_Step("if", where=places[char])]
        if char == "R":
            self.at += 1
            pair = [_Step("one", test=lambda c: c == "\r"), _Step("one", test=lambda c: c == "\n")]
            return _either([pair, [_Step("one", test=_CLASSES["v"])]])
        if char and char in "123456789k":
            raise self.unsupported("a back reference")
        if char and char in "XNb":
            raise self.unsupported(f"\\{char}")
        literal, test = self.escaped()
        return self.one(literal) if test is None else [_Step("one", test=test)]

    def escaped(self) -> tuple[str, _Test | None]:
        """Read an escape that stands for one character, or for a set of them."""
        char = self.text[self.at : self.at + 1]
        if not char:
            raise self.refused("a backslash at the end")
        self.at += 1
        if char.lower() in _CLASSES:
            test = _CLASSES[char.lower()]
            return "", test if char.islower() else _not(test)
        if char in "pP":
            test = self.property_class()
            return "", test if char == "p" else _not(test)
        if char in _ESCAPED:
            return _ESCAPED[char], None
        if char in "0xuc":
            return self.coded(char), None
        if char.isascii() and char.isalpha():
            raise self.refused(f"an unknown escape '\\{char}'")
        return char, None

    def coded(self, kind: str) -> str:
        if kind == "c":
            char = self.text[self.at : self.at + 1]
            if not char:
                raise self.refused("an unfinished control character")
            self.at += 1
            return chr(ord(char) ^ 64)
        forms = {
            "0": r"([0-3][0-7]{2}|[0-7]{1,2})",
            "x": r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\}",
            "u": r"([0-9a-fA-F]{4})",
        }
        found = re.compile(forms[kind]).match(self.text, self.at)
        digits = next((d for d in found.groups() if d), "") if found else ""
        code = int(digits, 8 if kind == "0" else 16) if digits else -1
        if found is None or not 0 <= code <= sys.maxunicode:
            raise self.refused("an unfinished character code")
        self.at = found.end()
        return chr(code)

    def property_class(self) -> _Test:
        found = re.compile(r"\{([^{}]+)\}|([A-Za-z])").match(self.text, self.at)
        if not found:
            raise self.refused("an unfinished character property")
        self.at = found.end()
        name = found[1] or found[2]
        bare = name.removeprefix("Is")
        plain = bare if _CATEGORIES.fullmatch(bare) else name
        if self.flags.fold and plain in {"Lower", "Upper", "Lu", "Ll", "Lt"}:
            raise self.unsupported(f"the character property {name} without regard to case")
        if name in _POSIX:
            return _POSIX[name]
        if _CATEGORIES.fullmatch(plain):
            return lambda c: unicodedata.category(c).startswith(plain)
        raise self.unsupported(f"the character property {name}")

    def char_class(self) -> _Test:
        """Read a class after its '['."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _BadExpressionError("it has more classes inside classes than are tried here")
        negated = self.take("^")
        met: list[_Test] = []
        tests: list[_Test] = []
        while True:
            char = self.peek()
            if not char:
                raise self.refused("a '[' is not closed")
            if char == "]" and (tests or met):
                self.at += 1
                break
            if self.take("&&"):
                if not tests and not met:
                    raise self.unsupported("a class that starts with '&&'")
                met += [_any_of(tests)] if tests else []
                tests = []
            else:
                tests.append(self.member(char))
        self.depth -= 1
        met += [_any_of(tests)] if tests else []
        test = _all_of(met)
        return _not(test) if negated else test

    def member(self, char: str) -> _Test:
        """Read one member of a class: a class inside it, a range, or a character."""
        if self.take("["):
            return self.char_class()
        if self.take("\\Q"):
            end = self.text.find("\\E", self.at)
            chars = self.text[self.at : end if end >= 0 else len(self.text)]
            self.at = len(self.text) if end < 0 else end + 2
            if not chars:
                raise self.unsupported("an empty quotation in a class")
            return _any_of([_between(c, c, fold=self.flags.fold) for c in chars])
        self.at += 1
        low, test = (char, None) if char != "\\" else self.escaped()
        if test is not None:
            return test
        if self.peek() != "-" or (after := self.peek_second()) in {"[", "]", ""}:
            return _between(low, low, fold=self.flags.fold)
        if after == "&":
            raise self.unsupported("a range up to '&' in a class")
        self.at += 1
        high = self.peek()
        self.at += 1
        if high == "\\":
            high, test = self.escaped()
            if test is not None:
                raise self.refused("a range that ends in a set")
        if high < low:
            raise self.refused("a range that ends before it starts")
        return _between(low, high, fold=self.flags.fold)

    def peek_second(self) -> str:
        """Return the character after the next one."""
        if not self.flags.comments:
            return self.peek(1)
        here = self.at
        self.at += 1
        char = self.peek()
        self.at = here
        return char
