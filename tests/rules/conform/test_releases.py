"""Other releases: recorded decisions, what tells a person about them, and the command."""

import json
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.cluster.java import ContradictoryOrderError, tim_sort, to_int
from planner.cluster.release_notes import differing, release_notes
from planner.cluster.releases import ALIKE, NOT_RUN, REFERENCE, RELEASES, Switch, release
from planner.cluster.settings import Settings
from planner.conform.kinds import KINDS
from planner.conform.mismatches import mismatches
from planner.conform.reader import read_vectors
from planner.pulsar.release_rules import RELEASE_RULES
from planner.pulsar.shedding.avg import ABSENT, AvgShedder

GOLDENS = Path(__file__).parent.parent.parent / "goldens" / "releases"
RUN = [name for name in RELEASES if name not in NOT_RUN]
OTHERS = [name for name in RUN if name != REFERENCE.name]


@pytest.mark.parametrize("name", OTHERS)
def test_recorded_decisions_of_a_release(name: str) -> None:
    vectors = list(read_vectors(GOLDENS / f"{name}.jsonl", name))
    lacks = {"dispatch_throttle", *(["shedder_avg"] if release(name).has(ABSENT) else [])}
    assert {vector.kind for vector in vectors} >= set(KINDS) - lacks
    assert [line for vector in vectors for line in mismatches(vector)] == []


def test_a_map_that_grew_and_a_requirement_that_is_no_number() -> None:
    """Equal brokers are visited as a `ConcurrentHashMap` that doubled visits them; nothing is less than NaN."""
    vectors = list(read_vectors(GOLDENS / f"{REFERENCE.name}.jsonl"))
    assert len(vectors) == 3
    assert [line for vector in vectors for line in mismatches(vector)] == []


@pytest.mark.parametrize("name", ["3.0.7", "4.0.8"])
def test_the_reference_decides_otherwise(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = GOLDENS / f"{name}.jsonl"
    noted = sum("note" in json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    assert main(["conform", "--release", REFERENCE.name, str(file)]) == 1
    assert f" {noted} failed" in capsys.readouterr().out
    assert main(["conform", "--release", name, str(file)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", NOT_RUN)
def test_conform_decides_by_a_release_that_was_not_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It says so, and differs from 5.0.0-M1 in nothing but where AvgShedder sends bundles."""
    file = GOLDENS / "5.0.0-M1.jsonl"
    main(["conform", "--release", name, str(file)])
    assert "not run" in capsys.readouterr().err
    wrong = {vector.kind for vector in read_vectors(file, name) if list(mismatches(vector))}
    assert wrong <= {"shedder_avg", "placement"}


def test_a_vector_is_decided_by_the_release_it_names() -> None:
    file = GOLDENS / "4.0.8.jsonl"
    assert [line for vector in read_vectors(file) for line in mismatches(vector)] == []


def test_a_release_between_two_known_ones_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    main(["conform", "--release", "4.1.0", str(GOLDENS / "4.0.8.jsonl")])
    said = capsys.readouterr()
    assert "0 failed" in said.out
    assert "rules and defaults of 4.0.8, the nearest" in said.err


def test_a_rule_that_went_back_to_older_lines() -> None:
    """Of each line from the patch named on, and of no line between."""
    gone = Switch("x", until="4.0.1", backported=("3.0.7", "3.3.5"))
    come = Switch("x", since="4.0.1", backported=("3.0.7", "3.3.5"))
    for name, there in {"3.0.2": 0, "3.0.7": 1, "3.2.3": 0, "3.3.2": 0, "3.3.5": 1, "4.0.0": 0, "4.0.1": 1}.items():
        assert (release(name).has(gone), release(name).has(come)) == (not there, bool(there))


class TestNotes:
    @pytest.mark.parametrize("version", RUN)
    def test_none_about_what_is_exact(self, version: str) -> None:
        assert release_notes(version, Settings({}, release(version)), RELEASE_RULES) == ()

    @pytest.mark.parametrize("version", sorted(ALIKE))
    def test_none_about_what_decides_alike(self, version: str) -> None:
        assert version not in RELEASES
        assert release_notes(version, Settings({}, release(version)), RELEASE_RULES) == ()

    @pytest.mark.parametrize(
        ("version", "there"), [("3.0.2", False), ("3.0.7", True), ("3.2.3", False), ("3.3.2", True)]
    )
    def test_a_strategy_that_a_release_lacks(self, version: str, *, there: bool) -> None:
        config = Settings({"loadBalancerLoadSheddingStrategy": AvgShedder.java_class}, release(version))
        notes = release_notes(version, config, RELEASE_RULES)
        assert notes == () if there else "is replaced by OverloadShedder" in notes[-1]

    def test_another_release_than_the_cluster_runs(self) -> None:
        first, *more = release_notes("3.0.7", Settings(), RELEASE_RULES)
        assert first == "The cluster runs Pulsar 3.0.7. Decisions follow the rules and defaults of 4.2.4."
        assert len(more) >= len(differing(release("3.0.7"), REFERENCE, RELEASE_RULES)) > len(RELEASE_RULES.switches) / 2
        assert all("3.0.7" in one for one in more)

    @pytest.mark.parametrize(
        ("version", "said"),
        [
            ("2.10.5", "the oldest release known"),
            ("4.1.0", "of 4.0.8, the nearest"),
            ("5.0.0", "of 5.0.0-M1, the nearest"),
            ("17", "of 5.0.1, the nearest"),
        ],
    )
    def test_a_release_that_is_not_known(self, version: str, said: str) -> None:
        first, *more = release_notes(version, Settings({}, release(version)), RELEASE_RULES)
        assert said in first
        assert more

    @pytest.mark.parametrize(
        ("version", "is_said"), [("2.8.4", True), ("2.9.1", True), ("2.10.4", False), ("2.11.0", False)]
    )
    def test_the_default_strategy_of_older_releases_is_named(self, version: str, *, is_said: bool) -> None:
        """As `ServiceConfiguration` of these releases answers."""
        notes = release_notes(version, Settings({}, release(version)), RELEASE_RULES)
        assert ("OverloadShedder where no file sets" in " ".join(notes)) == is_said

    @pytest.mark.parametrize("version", NOT_RUN)
    def test_a_release_that_was_read_and_not_run(self, version: str) -> None:
        (note,) = release_notes(version, Settings({}, release(version)), RELEASE_RULES)
        assert note.startswith(f"{version}: ")
        assert "read" in note
        assert "not run" in note

    def test_a_setting_without_effect(self) -> None:
        config = Settings({"loadBalancerSheddingExcludedNamespaces": "a/b"}, release("4.0.8"))
        (note,) = release_notes("4.0.8", config, RELEASE_RULES)
        assert "no effect in Pulsar 4.0.8: loadBalancerSheddingExcludedNamespaces" in note


# fmt: off
GIVES_UP = [
    2.7, 0.4, 0.2, 3.7, 1.4, 3.6, 1.6, 2.4, 1.7, 0.9, 1.3, 1.2, 2.0, 2.2, 2.7, 0.4,
    3.8, 2.8, 0.3, 0.5, 2.1, 0.2, 2.4, 1.8, 0.9, 0.1, 0.7, 0.8, 1.1, 2.5, 0.4, 0.7,
]
# fmt: on


class TestTimSort:
    def test_a_comparator_that_contradicts_itself(self) -> None:
        """By whole points 0 equals 0.6, and 0.6 equals 1.2: what comes of it was asked of Java."""
        points = [1.2, 0.6, 0.0]
        assert tim_sort(points, lambda one, other: to_int(one - other)) == [1.2, 0.6, 0.0]
        assert tim_sort([0.6, 1.2, 0.0], lambda one, other: to_int(one - other)) == [0.6, 0.0, 1.2]

    @pytest.mark.parametrize("size", [0, 1, 2, 31, 32, 33, 64, 100, 1000])
    def test_an_order_is_sorted_stably(self, size: int) -> None:
        items = [(at * 7919 % 13, at) for at in range(size)]
        assert tim_sort(items, lambda one, other: one[0] - other[0]) == sorted(items, key=lambda item: item[0])

    def test_java_gives_up(self) -> None:
        """Drawn at random until Java's own sort raised."""
        with pytest.raises(ContradictoryOrderError):
            tim_sort(GIVES_UP, lambda one, other: to_int(one - other))
