"""What docs/scenarios.md says is what is read."""

import json
import re
from dataclasses import fields
from pathlib import Path

from planner.share.scenario_file import read_scenario_file
from planner.simulate.edits.registry import KINDS

PAGE = Path(__file__).parents[3] / "docs" / "scenarios.md"


def test_the_example_is_read() -> None:
    text = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    document = json.loads(text)
    document["snapshot"]["digest"] = "ab" * 32
    scenario = read_scenario_file(json.dumps(document).encode()).scenario
    assert scenario is not None
    assert [step.on for step in scenario.steps] == [True, False]
    assert (scenario.cycles, scenario.seed) == (60, 7)


def test_the_table_has_every_edit_and_field() -> None:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    told = {kind: set(re.findall(r"`(\w+)`", what)) for kinds, what in rows for kind in re.findall(r"`(\w+)`", kinds)}
    real = {kind: {field.name for field in fields(edit)} - {"kind"} for kind, edit in KINDS.items()}
    assert told == real
