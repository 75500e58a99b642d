"""A name that an edit cannot be about is refused in the form and in the simulation, or said to change nothing."""

from typing import Any

import pytest

from planner.cluster.errors import ScenarioError
from planner.explain.diagnosis import diagnose
from planner.explain.outcome import Outcome
from planner.simulate.edits.edit import EditContext
from planner.simulate.edits.registry import KINDS
from tests.app.simulate.small_runs import quiet, run, small

CLUSTER = small()
SPACE, OTHER = CLUSTER.namespaces[:2]
TOPIC = next(name for name in CLUSTER.topics.name.to_pylist() if f"/{SPACE}/" in name and "-partition-" not in name)


def edit(kind: str, **said: Any) -> Any:
    return KINDS[kind](**said)


def refused(made: Any) -> str:
    """Return what the form says of an edit; the simulation refuses it, too."""
    with pytest.raises(ScenarioError):
        quiet(CLUSTER, made, cycles=1)
    return str(made.lacks(EditContext(CLUSTER)))


@pytest.mark.parametrize("name", [" ", "a b", "-1", "tenant", "tenant/", "a/b/c", "a\nb/c", "\u202eab/c", "ü/b", "*/b"])
def test_a_successor_has_the_name_of_a_namespace(name: str) -> None:
    assert "letters, digits and -=:._" in refused(edit("move_namespace", namespace=SPACE, successor=name))


@pytest.mark.parametrize(
    "name", [" ", "x", "orders/x", "http://a/b/c", f"persistent://{SPACE}/", "persistent://a b/c/d"]
)
def test_a_new_topic_has_the_name_of_a_topic(name: str) -> None:
    wrong = refused(edit("set_partitions", topic=TOPIC, partitions=4, new_topic=name))
    assert "is not a topic name" in wrong


def test_a_new_topic_is_in_the_namespace_of_the_old_one() -> None:
    """Its partitions were placed in the bundles of the old one's namespace, whatever its name said."""
    wrong = refused(edit("set_partitions", topic=TOPIC, partitions=4, new_topic=f"persistent://{OTHER}/new"))
    assert wrong == f"The new topic would be in the namespace {OTHER}. Name one in {SPACE}, where the old topic is."


def test_traffic_of_the_cluster_has_no_target() -> None:
    """A file without `scope` multiplied all traffic and said that it multiplied that of the target."""
    with pytest.raises(ScenarioError, match=f"names {SPACE}") as caught:
        quiet(CLUSTER, edit("scale_traffic", target=SPACE), cycles=1)
    assert caught.value.where == "edit 1: target"


@pytest.mark.parametrize("target", ["no/such", f"persistent://{SPACE}/no-such"])
def test_a_dispatch_limit_of_what_is_not_there_says_that_nothing_changes(target: str) -> None:
    limit = edit("set_dispatch_rate", target=target, msg_per_period=1)
    kind = "topic" if "://" in target else "namespace"
    (note,) = quiet(CLUSTER, limit, cycles=1).notes
    assert note == f"No load changes, as the snapshot lists no {kind} {target}: {limit.phrase()}."


@pytest.mark.parametrize("target", [SPACE, TOPIC])
def test_a_dispatch_limit_of_what_is_there_says_nothing(target: str) -> None:
    assert not quiet(CLUSTER, edit("set_dispatch_rate", target=target, msg_per_period=1), cycles=1).notes


def test_a_blank_group_removes_a_namespace_from_its_group_and_says_so() -> None:
    assert edit("set_anti_affinity", namespace=SPACE, group=" ").what() == (
        f"remove {SPACE} from its anti-affinity group"
    )
    assert edit("set_anti_affinity", namespace=SPACE, group=" ").lacks(EditContext(CLUSTER)) == "Name the group."


def test_a_policy_has_a_name() -> None:
    policy = edit("set_isolation", name=" ", namespaces=(SPACE,), primary=("broker.*",))
    assert policy.lacks(EditContext(CLUSTER)) == "Name the policy."


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "a_b", "ü", "x" * 62])
def test_added_brokers_have_names_that_brokers_can_have(name: str) -> None:
    assert edit("add_brokers", name_prefix=name).lacks(EditContext(CLUSTER)).startswith("Name the brokers with letters")


def test_added_brokers_have_names_that_no_other_broker_has() -> None:
    once = edit("add_brokers", count=2)
    assert "already has a broker added-1:8080" in once.lacks(EditContext(CLUSTER, [once]))
    assert not once.lacks(EditContext(CLUSTER))


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        ((), "Enter the moves."),
        ((("nonsense", ""),), "Move 1 (nonsense) names no broker"),
        (((CLUSTER.bundle_names[0], CLUSTER.brokers.name[0]), (CLUSTER.bundle_names[1], "other:8080")), "Move 2: "),
        (((CLUSTER.bundle_names[0], CLUSTER.brokers.name[0]),), ""),
    ],
)
def test_a_line_that_is_no_move_is_named_in_the_form(moves: tuple[tuple[str, str], ...], words: str) -> None:
    """The page said "moves.0.1: it should have at least 1 character" of a scenario that cannot be read."""
    said = edit("move_bundles", moves=moves).lacks(EditContext(CLUSTER))
    assert said.startswith(words)
    assert bool(said) is bool(words)


@pytest.mark.parametrize("position", [-1, 2**32])
def test_a_position_outside_the_hash_space_is_refused_in_the_form(position: int) -> None:
    split = edit("split_bundle", bundle=CLUSTER.bundle_names[0], positions=(position,))
    assert split.lacks(EditContext(CLUSTER)).startswith("A split position is a number from 0 to 0xffffffff")


def test_traffic_never_grows_beyond_what_can_be_counted() -> None:
    """Two of the largest factors are still diagnosed; with more of them, a page ended in a traceback."""
    most = edit("scale_traffic", factor=1e6)
    assert diagnose(Outcome(run(CLUSTER, most, most, cycles=2)))
    with pytest.raises(ScenarioError, match="multiply it by more than"):
        run(CLUSTER, most, most, most, cycles=2)
