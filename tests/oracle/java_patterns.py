"""Expressions for `java.util.regex`: one for each construct, and random ones; and what Java says of them."""

import random
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

PROGRAM = Path(__file__).parent / "src" / "main" / "java" / "planner" / "oracle" / "Patterns.java"

SUBJECTS = (
    "", "a", "b", "A", "ab", "ba", "aa", "abab", "aab", "a1", "1", "12", "_", "-", "a-b", "b-a", "a.b", "a b", " ",
    "\t",
    "a\n", "\n", "a\r\n", "a\nb", "a\u2028", "é", "aé", "É", "ß", "x", "ax", "broker-1.x", "Broker-1.X", "k", "K",
    "\u212a",
    "]", "[", "}", "{", "^", "$", "&", "\\", "Q", "E", "abc", "cab", "c", "d", "0", "9", "٣", "\U0001d400", "aaa",
    "bbb", "tenant/ns",
)  # fmt: skip

PIECES = (
    "a", "b", "A", "1", "-", ".", "^", "$", "|", "(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?<n>", ")", ")",
    ")",
    "(?i)", "(?s)", "(?m)", "(?x)", "(?-i)", "(?i:", "(?iu)", "(?d)", "*", "+", "?", "*?", "+?", "??", "*+", "++",
    "?+", "{2}",
    "{1,2}", "{2,}", "{0,1}?", "{", "}", "[", "[^", "]", "]", "[ab]", "[^a]", "[a-c]", "[a-c&&[bc]]", "[^a&&b]",
    "[a[1-3]]",
    "&&", "[]a]", "[\\d-]", "[a-\\d]", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\h", "\\v", "\\V", "\\R", "\\b",
    "\\B", "\\A",
    "\\z", "\\Z", "\\G", "\\Q", "\\E", "\\Qa.b\\E", "\\1", "\\2", "\\k<n>", "\\x61", "\\u0062", "\\x{63}", "\\0141",
    "\\t",
    "\\n", "\\e", "\\cA", "\\.", "\\-", "\\\\", "\\y", "\\p{Alpha}", "\\p{Lu}", "\\P{L}", "\\pL", "\\p{IsLatin}",
    "\\p{InGreek}",
    "\\p{IsAlphabetic}", "\\p{Punct}", "\\p{Lower}", "\\p{Upper}", "\\p{XDigit}", "\\p{javaLowerCase}", "\\X", " ",
    "#", "\n",
    "é", "ß", "k", "[k]", "[K-L]", "\\N{LATIN SMALL LETTER A}", "\\p{Nope}", "\\p{sc=Latin}", "\\p{L1}",
    "\\p{ASCII}", "x",
)  # fmt: skip


def random_expressions(number: int, seed: int) -> list[str]:
    """Return expressions of a few pieces each."""
    draw = random.Random(seed)  # noqa: S311
    return ["".join(draw.choice(PIECES) for _ in range(draw.randint(1, 7))) for _ in range(number)]


def ask_java(expressions: Iterable[str], subjects: Sequence[str] = SUBJECTS) -> list[str]:
    """Return what Java says of each expression: `refused`, `slow`, or a 1 or 0 for each subject."""
    rest = "".join(f" {subject.encode().hex()}" for subject in subjects)
    done = subprocess.run(
        ["java", PROGRAM],
        input="".join(f"{expression.encode().hex()}{rest}\n" for expression in expressions),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()
