"""Regular expressions, asked of `java.util.regex` itself: random ones."""

import pytest

from planner.pulsar.load.java_pattern import java_pattern
from tests.oracle.cases import SEED
from tests.oracle.java_patterns import SUBJECTS, ask_java, random_expressions

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]


def test_random_expressions_are_read_as_java_does() -> None:
    expressions = random_expressions(10_000, SEED)
    evaluated = 0
    for expression, java in zip(expressions, ask_java(expressions), strict=True):
        pattern = java_pattern(expression)
        assert java == "refused" or not pattern.invalid, expression
        if java == "refused":
            assert pattern.problem or "(?<" in expression, expression
        elif not pattern.problem:
            evaluated += 1
            assert "".join("01"[pattern.matches(subject)] for subject in SUBJECTS) == java, expression
    assert evaluated > len(expressions) / 4
