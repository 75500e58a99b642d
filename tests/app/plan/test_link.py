"""Scenario links: round trips bit for bit, hostile text, sizes."""

import base64
import hashlib
import random
import string
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import PlannerError, ScenarioError
from planner.cluster.releases import REFERENCE
from planner.cluster.snapshot import Snapshot
from planner.share.link import (
    MOST_ADDRESS_CHARACTERS,
    LinkError,
    canonical_text,
    decode_link,
    dictionary,
    encode_link,
    encode_reference,
    read_json,
    scenario_digest,
    scenario_link,
)
from planner.simulate.edits.change_capacity import ChangeCapacity
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.scenario import Scenario, Step, scenario_from_json, scenario_to_json
from tests.app.plan.random_scenarios import random_scenario

DIGEST = hashlib.sha256(b"a snapshot").hexdigest()
SAFE = set(string.ascii_letters + string.digits + "-_.~")


def _sealed(body: bytes, version: bytes = b"1.") -> str:
    """Return a link with a right checksum around any body: what a forger would make."""
    check = hashlib.sha256(version + body).digest()[:6]
    return version.decode() + base64.urlsafe_b64encode(
        (8 + len(body)).to_bytes(2, "big") + check + body
    ).decode().rstrip("=")


def _deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=dictionary())
    return packer.compress(content) + packer.flush()


def _whole(content: bytes) -> str:
    return _sealed(b"\0" + bytes(32) + _deflated(content))


def test_a_thousand_scenarios_come_back_bit_for_bit(small: Snapshot) -> None:
    for seed in range(1_000):
        scenario = random_scenario(small, seed)
        text = encode_link(scenario, DIGEST, "Zürich ✓")
        assert set(text) <= SAFE
        assert len(text) <= MOST_ADDRESS_CHARACTERS
        back = decode_link(text)
        assert back.scenario == scenario
        assert canonical_text(back.scenario) == canonical_text(scenario)
        assert (back.snapshot_digest, back.snapshot_name) == (DIGEST, "Zürich ✓")
        assert back.scenario_digest == scenario_digest(scenario)
        assert encode_link(back.scenario, DIGEST, "Zürich ✓") == text


def test_equal_scenarios_have_one_written_form() -> None:
    whole = Scenario(steps=(Step(RemoveBroker(broker="a:1", at_min=3)),))
    split = Scenario(steps=(Step(RemoveBroker(at_min=3.0, broker="a:1")),))
    assert canonical_text(whole) == canonical_text(split)
    one = Scenario(settings={"minUnloadMessage": 5, "maxUnloadPercentage": 0.5})
    two = Scenario(settings={"maxUnloadPercentage": 0.5, "minUnloadMessage": 5})
    assert encode_link(one, DIGEST) == encode_link(two, DIGEST)
    assert scenario_digest(one) != scenario_digest(Scenario())


def test_a_usual_scenario_is_short() -> None:
    scenario = Scenario(
        settings={"loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"},
        steps=(Step(RemoveBroker(broker="broker-3.pulsar.example:8080", at_min=5.0)),),
        cycles=60,
    )
    assert len(encode_link(scenario, DIGEST, "production")) < 200


def test_a_link_of_this_version_stays_readable() -> None:
    """Version 1 as it was given to people; when this fails, the version has to be raised."""
    text = PINNED
    back = decode_link(text)
    assert back.snapshot_digest == DIGEST
    assert back.snapshot_name == "kept"
    assert back.scenario == Scenario(
        name="pinned",
        steps=(Step(MoveBundle(bundle="public/default/0x00000000_0x40000000", destination="b:1"), on=False),),
        settings={"loadBalancerBrokerThresholdShedderPercentage": 7},
        seed=42,
        pulsar_version=REFERENCE.name,
    )


def test_every_cut_is_recognised(small: Snapshot) -> None:
    text = encode_link(random_scenario(small, 5), DIGEST, "x")
    for length in range(2, len(text)):
        with pytest.raises(LinkError, match="incomplete"):
            decode_link(text[:length])
    with pytest.raises(LinkError, match=f"{len(text) - 7} of {len(text) - 2} characters"):
        decode_link(text[:-5])
    with pytest.raises(LinkError, match="not a link"):
        decode_link("")
    with pytest.raises(LinkError, match="not a link"):
        decode_link("1")
    with pytest.raises(LinkError, match="extra characters"):
        decode_link(text + "AAAA")
    assert decode_link(f"  {text}\n") == decode_link(text)


def test_every_change_of_one_character_is_recognised(small: Snapshot) -> None:
    text = encode_link(random_scenario(small, 11), DIGEST, "x")
    draw = random.Random(3)  # noqa: S311
    for place in range(2, len(text)):
        other = draw.choice([c for c in string.ascii_letters + string.digits + "-_" if c != text[place]])
        with pytest.raises(LinkError, match=r"altered|incomplete"):
            decode_link(text[:place] + other + text[place + 1 :])


@given(st.integers(0, 999), st.lists(st.tuples(st.integers(0, 3_000), st.characters()), min_size=1, max_size=6))
def test_changed_links_raise_nothing_else(number: int, changes: list[tuple[int, str]]) -> None:
    text = list(encode_link(Scenario(seed=number, name="n" * (number % 50)), DIGEST, "name"))
    before = "".join(text)
    for place, sign in changes:
        text[place % len(text)] = sign
    after = "".join(text)
    if after.strip() == before:
        assert decode_link(after).scenario is not None
    else:
        with pytest.raises(PlannerError):
            decode_link(after)


@given(st.text(max_size=200) | st.from_regex(r"[0-9]{1,5}\.[A-Za-z0-9_-]{0,300}", fullmatch=True))
def test_any_text_raises_nothing_else(text: str) -> None:
    with pytest.raises(PlannerError):
        decode_link(text)


@given(st.binary(max_size=200))
def test_forged_bodies_raise_nothing_else(body: bytes) -> None:
    with pytest.raises(PlannerError):
        decode_link(_sealed(body))
    with pytest.raises(PlannerError):
        decode_link(_sealed(b"\0" + bytes(32) + body))
    with pytest.raises(PlannerError):
        decode_link(_whole(body))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"name":"x"}', "not a scenario"),
        (b'{"name":"x","scenario":{"version":1,"cycles":0}}', "cycles"),
        (b'{"name":"x","scenario":{"version":1,"cycles":NaN}}', "not JSON"),
        (b'{"name":"x","scenario":{"version":1,"cycles":1,"cycles":2}}', "not JSON"),
        (b'{"name":"x","scenario":{"version":1,"steps":[{"edit":{"kind":"run"}}]}}', "steps.0.edit"),
        (b'{"name":"x","scenario":{"version":1,"settings":{"minUnloadMessage":1e999}}}', "minUnloadMessage"),
        (b'{"name":"x","scenario":{"version":1,"settings":{"noSuch":1}}}', "noSuch"),
        (b'{"name":"x","scenario":{"version":2}}', "Update the planner"),
        (b'{"name":"x","scenario":{"version":0}}', "Create the scenario again"),
        (b'{"name":"x","scenario":{"version":1,"evil":1}}', "evil"),
        (b'{"name":5}', "snapshot"),
        (b"[]", "snapshot"),
        (b"[" * 20_000, "not JSON"),
        (b"[" * 200 + b"]" * 200, "not JSON"),
        (b'{"name":"x","scenario":' + b"9" * 5_000 + b"}", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"name":"\\ud800","scenario":{"version":1,"name":"\\ud800"}}', "name"),
    ],
)
def test_forged_content_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(PlannerError, match=message):
        decode_link(_whole(content))


def test_a_bomb_is_not_unpacked() -> None:
    bomb = _deflated(b" " * 1_200_000)
    with pytest.raises(LinkError, match="too large"):
        decode_link(_sealed(b"\0" + bytes(32) + bomb))


def test_versions_are_told_apart() -> None:
    text = encode_link(Scenario(), DIGEST)
    with pytest.raises(LinkError, match=r"newer planner.*Update"):
        decode_link("2" + text[1:])
    with pytest.raises(LinkError, match="older planner"):
        decode_link("0" + text[1:])
    with pytest.raises(LinkError, match="altered"):  # the same bytes, sealed for another version
        decode_link("1." + _sealed(b"\0" + bytes(40), b"2.")[2:])


def test_a_large_scenario_is_named_by_its_digest() -> None:
    names = tuple(hashlib.sha256(str(n).encode()).hexdigest()[:40] for n in range(100))
    large = Scenario(steps=(Step(ChangeCapacity(brokers=names, cores=4.0)),))
    kept: list[Scenario] = []

    def keep(scenario: Scenario) -> str:
        kept.append(scenario)
        return scenario_digest(scenario)

    address = "https://planner.example/what-if?scenario="
    small = scenario_link(Scenario(), DIGEST, "prod", address=address, keep=keep)
    assert kept == []
    assert decode_link(small.removeprefix(address)).scenario == Scenario()
    link = scenario_link(large, DIGEST, "prod", address=address, keep=keep)
    assert kept == [large]
    assert len(link) <= MOST_ADDRESS_CHARACTERS
    back = decode_link(link.removeprefix(address))
    assert back.scenario is None
    assert (back.scenario_digest, back.snapshot_digest) == (scenario_digest(large), DIGEST)
    assert back.snapshot_name == "prod"
    with pytest.raises(LinkError, match="too long to come from"):
        decode_link(encode_link(large, DIGEST))
    with pytest.raises(LinkError, match="too long"):
        scenario_link(Scenario(), DIGEST, "prod", address="https://" + "a" * 1_990, keep=keep)


def test_what_cannot_be_read_is_not_written() -> None:
    with pytest.raises(ScenarioError, match="cycles"):
        encode_link(Scenario(cycles=0), DIGEST)
    with pytest.raises(LinkError, match="not a valid digest"):
        encode_link(Scenario(), "short")
    with pytest.raises(LinkError, match="not a valid digest"):
        encode_reference("x" * 64, DIGEST)
    assert decode_link(encode_link(Scenario(), DIGEST, "a\ud800b" + "c" * 500)).snapshot_name == ("a?b" + "c" * 57)


def test_written_form_has_no_defaults() -> None:
    document = scenario_to_json(Scenario(steps=(Step(RemoveBroker(broker="a:1")),)))
    assert document == {"version": 1, "steps": [{"edit": {"kind": "remove_broker", "broker": "a:1"}}]}
    assert scenario_from_json(document) == Scenario(steps=(Step(RemoveBroker(broker="a:1")),))


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a":1,"a":1}', "[" * 30 + "]" * 30, "Infinity"])
def test_strict_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


PINNED = (
    "1.AGYSfd6fXdcAT9JDguamD0KptKhfgTX9KcEJ3mPYxgQTi2gXzex308CDq8lOLShBUwe"
    "VAQZYHtApMBeZGOngdAvBVGtlDgwTTAfDowEtLrEHPHr8JFkZAsWgnkaOSJTwj9VB8TgA"
)
