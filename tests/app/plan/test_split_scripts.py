"""Scripts that split bundles, in every state in which an operator may find a namespace: nothing is split twice."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from planner.cluster.arrays import frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import bundle_name, equal_boundaries, parse_bundle
from planner.cluster.snapshot import Snapshot
from planner.share.script_head import STATUSES
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.generate import generate
from tests.app.plan.scripts import other_broker, script_of, trace_of
from tests.app.plan.stand_in import StandIn

ROW = 40
SHELLS = ("/bin/sh", "/bin/dash", "/bin/bash")


class Plan:
    """A split of one bundle at two places, and the move of the part between them."""

    def __init__(self, snapshot: Snapshot, folder: Path) -> None:
        self.snapshot = snapshot
        self.bundle = snapshot.bundle_names[ROW]
        self.namespace, self.low, self.high = parse_bundle(self.bundle)
        size = self.high - self.low
        self.cuts = (self.low + size // 5, self.low + size // 3)
        self.children = self.parts(self.low, *self.cuts, self.high)
        wholes: list[tuple[str, tuple[int, ...]]] = [(self.bundle, self.cuts)]
        if snapshot.info.load_manager is LoadManager.EXTENSIBLE:  # one boundary for each request
            rest = bundle_name(self.namespace, self.cuts[0], self.high)
            wholes = [(self.bundle, self.cuts[:1]), (rest, self.cuts[1:])]
        splits = [
            SplitBundle(bundle=whole, algorithm="specified_positions_divide", positions=cuts) for whole, cuts in wholes
        ]
        move = MoveBundle(bundle=self.children[1], destination=other_broker(snapshot, ROW))
        self.trace = trace_of(
            snapshot,
            *splits,
            move,
            cycles=1,
            loadBalancerSheddingEnabled=False,
            loadBalancerAutoBundleSplitEnabled=False,
        )
        self.script = script_of(self.trace, pause_s=0, hold=False)
        self.stand_in = StandIn(folder, snapshot)

    def parts(self, *edges: int) -> tuple[str, ...]:
        return tuple(bundle_name(self.namespace, *pair) for pair in pairwise(edges))

    def replaced(self, *edges: int, gone: str = "") -> None:
        """Let somebody else have cut the bundle, or another one, at these places."""
        state = self.stand_in.state()
        owner = state["owners"].pop(gone or self.bundle)
        state["owners"] |= dict.fromkeys(self.parts(*edges), owner)
        self.stand_in.write(state)

    def created_again(self, bundles: int) -> None:
        state = self.stand_in.state()
        kept = {name: owner for name, owner in state["owners"].items() if not name.startswith(f"{self.namespace}/")}
        made = dict.fromkeys(self.parts(*equal_boundaries(bundles)), captured_at(self))
        self.stand_in.write(state | {"owners": kept | made})

    @property
    def owners(self) -> dict[str, str]:
        found: dict[str, str] = self.stand_in.state()["owners"]
        return found

    @property
    def splits(self) -> int:
        return sum("split-bundle" in call for call in self.stand_in.changes())

    def done(self) -> bool:
        end = self.trace.end
        pairs = zip(end.bundle_names, end.bundles.owner.tolist(), strict=True)
        return self.owners == {name: end.brokers.name[owner] for name, owner in pairs}


def captured_at(plan: Plan) -> str:
    """The broker that owns the bundle in the capture."""
    return plan.snapshot.brokers.name[int(plan.snapshot.bundles.owner[ROW])]


@pytest.fixture(params=list(LoadManager), ids=str)
def plan(request: pytest.FixtureRequest, tmp_path: Path) -> Plan:
    spec = ClusterSpec(
        brokers=5, namespaces=4, bundles=64, topics=300, msg_rate_per_s=40_000, load_manager=request.param
    )
    return Plan(generate(spec, 3), tmp_path)


def requests(plan: Plan) -> int:
    """The extensible load manager follows a request for two children only."""
    return 2 if plan.snapshot.info.load_manager is LoadManager.EXTENSIBLE else 1


@pytest.mark.parametrize("shell", SHELLS)
def test_a_plan_that_moves_a_later_part_is_not_taken_for_another_cluster(plan: Plan, shell: str) -> None:
    """That part does not exist before the split, and was looked for before anything was done."""
    done = plan.stand_in.run(plan.script, shell=shell)
    assert done.returncode == 0, done.stdout
    assert f"{plan.bundle}: on {captured_at(plan)}, as expected" in done.stdout
    assert plan.done()
    assert plan.splits == requests(plan)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_second_run_finds_all_done(plan: Plan, shell: str) -> None:
    assert plan.stand_in.run(plan.script, shell=shell).returncode == 0
    again = plan.stand_in.run(plan.script, shell=shell)
    assert again.returncode == 0, again.stdout
    assert f"Already split: {plan.bundle}, at 0x{plan.cuts[0]:08x}" in again.stdout
    assert f"Already there: {plan.children[1]} is on" in again.stdout
    assert "Skipped" not in again.stdout
    assert plan.splits == requests(plan)
    assert plan.done()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("in_effect", [False, True], ids=["refused", "answered too late"])
@pytest.mark.parametrize("forgets", [False, True], ids=["with its notes", "without its notes"])
def test_a_split_that_failed_is_made_once(plan: Plan, shell: str, *, in_effect: bool, forgets: bool) -> None:
    fails = f"namespaces split-bundle {plan.namespace}"
    first = plan.stand_in.run(plan.script, fail_on=fails, in_effect=in_effect, shell=shell)
    assert first.returncode == 1, first.stdout
    assert ("is split all the same." in first.stdout) is in_effect
    made = f"State: {int(in_effect)} of {requests(plan)} splits are made, 0 of 1 bundles are moved, 0 skipped"
    assert made in first.stdout
    if forgets:
        plan.stand_in.forget_runs()
    again = plan.stand_in.run(plan.script, shell=shell)
    assert again.returncode == 0, again.stdout
    assert plan.done()
    assert plan.splits == requests(plan) + (not in_effect)


@pytest.mark.parametrize("shell", SHELLS)
def test_what_another_operator_did_meanwhile_is_said(plan: Plan, shell: str) -> None:
    middle = plan.low + (plan.high - plan.low) // 2
    plan.replaced(plan.low, middle, plan.high)
    done = plan.stand_in.run(plan.script, shell=shell)
    assert done.returncode == 4, done.stdout
    assert f"Skipped: {plan.bundle} does not exist any more. It was split elsewhere" in done.stdout
    assert f"State: 0 of {requests(plan)} splits are made" in done.stdout
    assert "have moved or been split since the capture; capture the cluster again" in done.stdout
    assert plan.splits == 0
    # Another bundle makes no difference.
    plan.stand_in.reset(plan.snapshot)
    rows = [name for name in plan.snapshot.bundle_names if name.startswith(f"{plan.namespace}/")]
    one = next(name for name in rows if name != plan.bundle)
    _, low, high = parse_bundle(one)
    plan.replaced(low, low + (high - low) // 2, high, gone=one)
    assert plan.stand_in.run(plan.script, shell=shell).returncode == 0
    assert set(plan.children) <= set(plan.owners)
    assert plan.splits == requests(plan)


def finer(plan: Plan) -> None:
    first, second = plan.cuts
    plan.replaced(plan.low, first, second, second + (plan.high - second) // 2, plan.high)


@pytest.mark.parametrize(
    ("before", "status", "said"),
    [
        (lambda plan: plan.replaced(plan.low, *plan.cuts, plan.high), 0, "Already split: "),
        (finer, 0, "Already split: "),
        (lambda plan: plan.created_again(2), 7, "not on"),
        (lambda plan: plan.created_again(1_000), 7, "not on"),
    ],
    ids=["as planned", "and once more", "fewer bundles", "more bundles"],
)
def test_the_namespace_has_other_bundles_than_captured(
    plan: Plan, before: Callable[[Plan], None], status: int, said: str
) -> None:
    before(plan)
    had = plan.owners
    done = plan.stand_in.run(plan.script)
    assert done.returncode == status, (STATUSES[done.returncode], done.stdout)
    assert said.format(namespace=plan.namespace) in done.stdout
    assert plan.splits == 0
    assert set(plan.owners) == set(had)


def test_a_bundle_that_moved_is_said_to_have_moved(plan: Plan) -> None:
    state = plan.stand_in.state()
    state["owners"][plan.bundle] = other_broker(plan.snapshot, ROW)
    plan.stand_in.write(state)
    script = plan.script.replace(f"\nexpect_at {plan.bundle}", "\n: ")
    done = plan.stand_in.run(script)
    assert done.returncode == 4, done.stdout
    assert f"Skipped: {plan.bundle} is not on {captured_at(plan)}." in done.stdout
    assert plan.splits == 0


def test_a_split_without_effect_ends_the_script(plan: Plan) -> None:
    """Brokers accept a split for which they find no boundary, and do nothing."""
    plan.stand_in.write(plan.stand_in.state() | {"deaf": True})
    done = plan.stand_in.run(plan.script)
    assert done.returncode == 8, done.stdout
    assert f"Pulsar accepted that command, but {plan.bundle} is not split" in done.stdout
    assert f"State: 0 of {requests(plan)} splits are made" in done.stdout


def test_boundaries_that_cannot_be_read_stop_nothing(plan: Plan) -> None:
    done = plan.stand_in.run(plan.script, fail_on="namespaces bundles")
    assert done.returncode == 0, done.stdout
    assert f"Cannot see the bundles of {plan.namespace}, so this split is not checked." in done.stdout
    assert plan.done()


@pytest.mark.parametrize("as_json", [False, True], ids=["in lines", "in one line"])
def test_a_bundle_that_nobody_owns_is_split_once(plan: Plan, tmp_path: Path, *, as_json: bool) -> None:
    owner = plan.snapshot.bundles.owner.copy()
    owner[ROW] = -1
    bare = plan.snapshot.with_owner(frozen(owner.astype(np.int32)))
    split = SplitBundle(bundle=plan.bundle, algorithm="specified_positions_divide", positions=plan.cuts[:1])
    script = script_of(trace_of(bare, split, cycles=1), pause_s=0, hold=False)
    (tmp_path / "bare").mkdir()
    stand_in = StandIn(tmp_path / "bare", bare)
    stand_in.reset(bare, as_json=as_json)
    assert stand_in.run(script).returncode == 0
    again = stand_in.run(script)
    assert again.returncode == 0, again.stdout
    assert f"Already split: {plan.bundle}" in again.stdout
    assert sum("split-bundle" in call for call in stand_in.changes()) == 1
