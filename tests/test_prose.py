"""Nothing is decided by what a sentence says: wording may change, decisions, commands and findings may not."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from planner.cluster.decisions import Exceeded
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import REFERENCE, RELEASES, Release, release
from planner.explain.bundle_patterns import split_cascade
from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.pulsar.splitting.limits import LIMITS
from planner.share import commands
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.simulate.trace import Trace

ROOT = Path(__file__).parents[1]

FOR_PEOPLE = {"evidence", "label", "meaning", "note", "purpose", "remedy", "sentence", "summary", "title", "why"}
"""Names of what is written for people."""
SEARCHES = {"count", "endswith", "find", "index", "lower", "partition", "rfind", "rpartition", "split", "startswith"}
ALLOWED = {
    ("planner/capture/parts.py", "note"): "the words by which the index of a raw capture marks what is not set",
    ("planner/explain/health.py", "title"): "a title within a sentence begins with a small letter",
    ("planner/workspace/opening.py", "title"): "a sample is opened by its title",
}


def named(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def searched(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the name and the line of each piece of text for people that is searched or compared with words."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES:
            if named(node.func.value) in FOR_PEOPLE:
                yield named(node.func.value), node.lineno
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for at, operator in enumerate(node.ops):
                left, right = sides[at], sides[at + 1]
                if isinstance(operator, ast.In | ast.NotIn) and named(right) in FOR_PEOPLE:
                    yield named(right), node.lineno
                words = [one.value for one in (left, right) if isinstance(one, ast.Constant)]
                if isinstance(operator, ast.Eq | ast.NotEq) and any(isinstance(word, str) and word for word in words):
                    yield from ((named(one), node.lineno) for one in (left, right) if named(one) in FOR_PEOPLE)


def test_no_code_searches_what_is_written_for_people() -> None:
    found = []
    for path in [*sorted((ROOT / "planner").rglob("*.py")), *sorted((ROOT / "pages").glob("*.py"))]:
        where = str(path.relative_to(ROOT))
        found += [
            f"{where}:{line} {name}"
            for name, line in searched(ast.parse(path.read_text()))
            if (where, name) not in ALLOWED
        ]
    assert not found


@pytest.mark.parametrize(
    "code",
    ['"restart" in setting.note', "note.lower()", "event.why.split(' > ')", 'page.title == "What-if"', '" x " in why'],
)
def test_the_search_finds(code: str) -> None:
    assert list(searched(ast.parse(code)))


@pytest.mark.parametrize("note", ["", "No restart needed; not read at start.", "Restart all brokers."])
def test_what_needs_a_restart_hangs_on_no_note(monkeypatch: pytest.MonkeyPatch, note: str) -> None:
    changes = {name: (one.default, one.default) for name, one in REFERENCE.settings.items()}
    before = commands.restarting(changes)
    reworded = {name: replace(one, note=note, meaning=note) for name, one in REFERENCE.settings.items()}
    monkeypatch.setattr(commands, "REFERENCE", Release(REFERENCE.name, reworded))
    assert commands.restarting(changes) == before
    assert {
        "loadBalancerLoadSheddingStrategy",
        "loadBalancerReportUpdateMinIntervalMillis",
        "loadBalancerHostUsageCheckIntervalMinutes",
        "loadManagerClassName",
        "lowerBoundarySheddingEnabled",
    } <= set(before)
    assert "loadBalancerBrokerThresholdShedderPercentage" not in before


def test_when_a_setting_takes_effect() -> None:
    """What is not dynamic waits for a restart; of the dynamic ones, those that are read once wait for that."""
    for version in RELEASES:
        for setting in release(version).settings.values():
            assert setting.dynamic or setting.takes_effect == "restart", setting.name
    late = {n: s.takes_effect for n, s in REFERENCE.settings.items() if s.dynamic and s.takes_effect != "now"}
    assert late == {
        "loadManagerClassName": "migration",
        "loadBalancerLoadSheddingStrategy": "restart",
        "loadBalancerReportUpdateMinIntervalMillis": "restart",
        "loadBalancerHostUsageCheckIntervalMinutes": "restart",
        "loadBalancerSheddingIntervalMinutes": "election",
        "dispatchThrottlingOnBatchMessageEnabled": "reload",
        "preciseDispatcherFlowControl": "reload",
        "dispatcherMaxReadBatchSize": "reload",
        "replicationProducerQueueSize": "reload",
    }


def splitting(manager: LoadManager, name: str) -> Trace:
    """A cluster whose bundles exceed one limit only, and are split until the namespace is full."""
    far = dict.fromkeys(LIMITS, 2_000_000_000)
    far["loadBalancerNamespaceBundleMaxBandwidthMbytes"] = 2_000  # more overflows
    spec = ClusterSpec(brokers=3, bundles=6, namespaces=1, topics=3_000, msg_rate_per_s=60_000, load_manager=manager)
    least = 2 if name.endswith(("Topics", "Sessions", "MsgRate")) else 1
    settings = {**far, name: least, "loadBalancerNamespaceMaximumBundles": 40}
    return simulate(generate(spec, 3), Scenario(cycles=40, settings=settings))


@pytest.mark.parametrize("manager", LoadManager)
@pytest.mark.parametrize("name", LIMITS)
def test_a_split_names_its_limit_as_data(manager: LoadManager, name: str) -> None:
    trace = splitting(manager, name)
    splits = [event for event in trace.events if event.kind == "split"]
    assert splits
    for event in splits:
        assert isinstance(event.exceeded, Exceeded)
        assert event.exceeded.setting == name
        assert event.exceeded.value > event.exceeded.limit == trace.settings.number(name)


def reworded(trace: Trace, why: str) -> Trace:
    cycles = tuple(
        replace(cycle, events=tuple(replace(event, why=why) for event in cycle.events)) for cycle in trace.cycles
    )
    return replace(trace, cycles=cycles)


@pytest.mark.parametrize("name", LIMITS)
def test_findings_hang_on_no_reason(name: str) -> None:
    trace = splitting(LoadManager.MODULAR, name)

    def found(of: Trace) -> list[Finding]:
        return [replace(one, evidence="") for one in split_cascade(Outcome(of))]

    (cascade,) = found(trace)
    assert cascade.settings[0] == name
    for why in ("", "12 topics > 1; 5 msg/s > 2", "too much"):
        assert found(reworded(trace, why)) == [cascade]
