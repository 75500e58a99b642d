"""Java's regular expressions: its dialect, and no expression that hangs or raises."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.snapshot import IsolationPolicy, Policies
from planner.pulsar.load.java_pattern import java_pattern
from planner.pulsar.load.namespace_policies import expression_notes, isolation_failure, isolation_policy
from tests.oracle.java_patterns import SUBJECTS

RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "goldens" / "java_patterns" / "constructs.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize(
    ("expression", "yes", "no"),
    [
        ("broker-[0-9]+\\.x", ["broker-12.x"], ["broker-.x", "broker-12-x", "broker-1.x.y"]),
        ("broker-1", ["broker-1"], ["broker-11", "a-broker-1"]),
        (".*", ["", "a-b.c"], ["a\n", "a\r", "a\u2028"]),
        ("(?s).*", ["a\n"], []),
        ("(?!broker-1\\.).*", ["broker-2.x", "broker-10.x"], ["broker-1.x"]),
        (".*(?<!-east)", ["b-west"], ["b-east"]),
        ("\\Qa.b\\E+", ["a.b", "a.bb"], ["axb", "a.ba.b"]),
        ("[a-z&&[^bc]]+", ["adz"], ["ab"]),
        ("[a[0-3]-]+", ["a-2"], ["a4"]),
        ("[^a&&b]", ["b", "c", "a"], [""]),
        ("[]a]+", ["]a"], ["b"]),
        ("\\p{Alpha}\\p{Digit}\\P{Upper}\\pL", ["a1bé"], ["a1Bb"]),
        ("\\w+\\d", ["a_1"], ["é1", "a٣"]),
        ("(?i)BROKER-(?-i)A", ["broker-A"], ["broker-a"]),
        ("(?i:[a-c]x)Y", ["BXY"], ["bxy"]),
        ("a++a", [], ["aa", "a"]),
        ("(?>a|ab)c", ["ac"], ["abc"]),
        ("(?<host>a|b){2,3}?", ["ab", "bab"], ["a", "abab"]),
        ("(?x) a b # c", ["ab"], ["a b"]),
        ("\\x61\\u0062\\0143\\x{64}", ["abcd"], ["abc"]),
        ("^a$|\\Ab\\z", ["a", "b"], ["ab"]),
        ("a$", ["a"], ["a\n"]),
        ("(?m)a$.^b", [], ["a\nb"]),
        ("(?sm)a$.^b", ["a\nb"], ["axb"]),
        ("\\ba\\b-\\Ba?", ["a-"], ["a-a"]),
        ("a\\R", ["a\r\n", "a\n"], ["a"]),
        ("{2}a", ["a"], [""]),
        ("a}]", ["a}]"], []),
        ("", [""], ["a"]),
        ("a|", ["a", ""], ["b"]),
    ],
)
def test_reads_as_java_does(expression: str, yes: list[str], no: list[str]) -> None:
    pattern = java_pattern(expression)
    assert pattern.problem == ""
    assert [text for text in yes if not pattern.matches(text)] == []
    assert [text for text in no if pattern.matches(text)] == []


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("[", "'['"),
        ("(", "not closed"),
        (")", "has no opening"),
        ("*a", "precedes '*'"),
        ("a**", "precedes '*'"),
        ("a{", "'{'"),
        ("a{2,1}", "upper limit"),
        ("[b-a]", "reversed"),
        ("[a-\\d]", "ends in a set"),
        ("\\", "backslash"),
        ("\\y", "unknown escape"),
        ("(?q)", "unknown kind, name or flag"),
        ("(?<1>a)", "name"),
        ("(?<n>a)(?<n>b)", "two groups"),
        ("\\x{110000}", "character code"),
        ("(?", "unknown kind"),
        ("\\1(a)", "back reference"),
        ("a\\b{g}", "not evaluated"),
        ("\\p{javaMirrored}", "javaMirrored"),
        ("(a{1000}){1000}", "more than"),
        ("((a{0,50}){0,50}){0,9}", "more than"),
        ("a{99999999999}", "more than"),
        ("(" * 500 + ")" * 500, "groups inside groups"),
        ("[" * 500, "classes inside classes"),
        ("a" * 10_001, "longer"),
    ],
)
def test_what_cannot_be_used_says_why_and_matches_nothing(expression: str, why: str) -> None:
    pattern = java_pattern(expression)
    assert why in pattern.problem
    assert not pattern.matches("a")


@pytest.mark.parametrize("line", RECORDED, ids=lambda line: repr(line["expression"]))
def test_every_construct_as_recorded_from_java(line: dict[str, str]) -> None:
    pattern = java_pattern(line["expression"])
    assert bool(pattern.problem) is (line["java"] == "refused"), pattern.problem
    if line["java"] != "refused":
        assert "".join("01"[pattern.matches(subject)] for subject in SUBJECTS) == line["java"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("expression", "subject", "matches"),
    [
        ("(a+)+", "a" * 250 + "!", False),
        ("(a|aa)*b", "a" * 250, False),
        ("(.*)*x", "y" * 250, False),
        (".*.*.*.*.*.*.*x", "y" * 250, False),
        ("(((((.*)*)*)*)*)*", "a" * 250, True),
        ("(?:(?=(?:(?=.*z).)*).)*", "y" * 250, True),
        ("(?=.*x)" * 500 + ".*", "y" * 250 + "x", True),
        ("a|" * 4_000, "b", False),
        ("a{0,9999}", "a" * 200, True),
    ],
)
def test_no_expression_takes_long(expression: str, subject: str, *, matches: bool) -> None:
    assert java_pattern(expression).matches(subject) is matches


@given(st.text("ab1.*+?[](){}|\\^$-&,dwQE:=!<> \n", max_size=12), st.text("ab1-.", max_size=8))
def test_any_expression_ends_in_an_answer(expression: str, subject: str) -> None:
    pattern = java_pattern(expression)
    assert pattern.matches(subject) in {True, False}
    if pattern.problem:
        assert not pattern.matches(subject)


@given(st.text(max_size=20))
def test_quoted_text_matches_itself_alone(text: str) -> None:
    quoted = "\\Q" + text.replace("\\E", "\\E\\\\E\\Q") + "\\E"
    assert java_pattern(quoted).matches(text)
    assert not java_pattern(quoted).matches(text + "x")


@given(st.from_regex(re.compile(r"(?:[ab]|\(a\|b\)|a[*+?]|\.|\[ab\])*", re.ASCII), fullmatch=True), st.text("ab"))
def test_agrees_with_python_where_the_dialects_do(expression: str, subject: str) -> None:
    assert java_pattern(expression).matches(subject) is (re.fullmatch(expression, subject) is not None)


def test_search_for_a_policy_ends_at_an_expression_that_java_cannot_read() -> None:
    """As `NamespaceIsolationPolicies.getPolicyByNamespace` does, which stores such policies and raises there."""
    first = IsolationPolicy("first", namespaces=("t/a",), primary=("b1",))
    bad = IsolationPolicy("p", namespaces=("t/n", "[", "t/m"), primary=("b1",))
    last = IsolationPolicy("last", namespaces=("t/z",), primary=("b1",))
    policies = Policies(isolation=(first, bad, last))
    found = {name: isolation_policy(policies, name) for name in ("t/a", "t/n", "t/m", "t/z", "[")}
    assert found == {"t/a": first, "t/n": bad, "t/m": None, "t/z": None, "[": None}
    assert not isolation_failure(policies, "t/a")
    assert not isolation_failure(policies, "t/n")
    assert "'[' in the isolation policy p" in isolation_failure(policies, "t/z")


def test_a_policy_s_bad_expressions_are_named() -> None:
    bad = IsolationPolicy("p", namespaces=("[", "t/n"), primary=("b1", "\\1(a)"), secondary=("x" * 20_000,))
    policies = Policies(isolation=(bad,))
    notes = expression_notes(policies)
    assert len(notes) == 3
    assert "policy p" in notes[0]
    assert "the namespace expression '[' is not a valid regular expression" in notes[0]
    assert "the filter of the extensible load manager fails and keeps every candidate" in notes[0]
    assert "back reference" in notes[1]
    assert len(notes[2]) < 250
