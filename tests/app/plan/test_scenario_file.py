"""Scenario files come back as they were, and say what is wrong with them."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import PlannerError
from planner.cluster.releases import REFERENCE
from planner.cluster.snapshot import Snapshot
from planner.share.link import canonical_text, encode_link, encode_reference, scenario_digest
from planner.share.scenario_file import MOST_BYTES, read_scenario_file, scenario_file
from planner.simulate.scenario import Scenario, scenario_to_json
from tests.app.plan.random_scenarios import random_scenario

DIGEST = "ab" * 32


def test_round_trip(small: Snapshot) -> None:
    for seed in range(50):
        scenario = random_scenario(small, seed, most_edits=40)
        text = scenario_file(scenario, DIGEST, "Zürich")
        for data in (text.encode(), b"\xef\xbb\xbf" + text.encode()):
            back = read_scenario_file(data, "x.json")
            assert back.scenario == scenario
            assert canonical_text(back.scenario) == canonical_text(scenario)
            assert (back.snapshot_digest, back.snapshot_name) == (DIGEST, "Zürich")
        assert scenario_file(scenario, DIGEST, "Zürich") == text


def test_a_scenario_alone_and_a_link_are_read_too(small: Snapshot) -> None:
    scenario = replace(random_scenario(small, 1), pulsar_version=REFERENCE.name)
    alone = read_scenario_file(json.dumps(scenario_to_json(scenario)).encode())
    assert (alone.scenario, alone.snapshot_digest) == (scenario, "")
    document = {"kind": "pulsar-bundle-planner scenario", "scenario": scenario_to_json(scenario)}
    assert read_scenario_file(json.dumps(document).encode()) == alone
    link = read_scenario_file(f"{encode_link(scenario, DIGEST, 'n')}\n".encode())
    assert (link.scenario, link.snapshot_digest) == (scenario, DIGEST)
    kept = read_scenario_file(encode_reference(scenario_digest(scenario), DIGEST).encode())
    assert (kept.scenario, kept.scenario_digest) == (None, scenario_digest(scenario))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x.json: The file cannot be read"),
        (b"\xff\xff", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"{} {}", "cannot be read"),
        (b"[]", "This is not a scenario"),
        (b"{}", "format version"),
        (b"x" * (MOST_BYTES + 1), "at most"),
        (b'{"kind":"pulsar-bundle-planner scenario"}', "This is not a scenario"),
        (
            b'{"kind":"pulsar-bundle-planner scenario","snapshot":null,"scenario":{"version":1}}',
            "does not name its snapshot",
        ),
        (b'{"kind":"pulsar-bundle-planner scenario","snapshot":{"digest":"zz"},"scenario":{"version":1}}', "snapshot"),
        (b'{"kind":"pulsar-bundle-planner scenario","snapshot":{},"scenario":{"version":9}}', "Update the planner"),
        (b'{"version":1,"cycles":"many"}', "cycles"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, message: str) -> None:
    with pytest.raises(PlannerError, match=message):
        read_scenario_file(data, "x.json")


def test_a_scenario_without_a_snapshot_fits_any() -> None:
    assert read_scenario_file(scenario_file(Scenario()).encode()).snapshot_digest == ""


@given(st.binary(max_size=100) | st.text(st.characters(exclude_categories=["Cs"]), max_size=100).map(str.encode))
def test_any_bytes_raise_nothing_else(data: bytes) -> None:
    with pytest.raises(PlannerError):
        read_scenario_file(data)
