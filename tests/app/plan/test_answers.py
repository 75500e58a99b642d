"""What the planner says about clusters, word for word and number for number: `--rewrite` writes it anew.

Other tests say why an answer is right. These notice when any of it changes, so that a change of numbers or words is
looked at before it is kept.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

from planner.cluster.errors import ScenarioError
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.explain import cluster_tables, decision_tables
from planner.explain.health import figure_levels, health
from planner.explain.outcome import Outcome
from planner.explain.split_advice import split_advice
from planner.explain.upgrade import next_release
from planner.optimize.absorb import surviving
from planner.optimize.answer import best_plan, peak_without_groups
from planner.optimize.plan import Plan
from planner.optimize.question import COSTS, Question, cost_text
from planner.optimize.stability import stability_of
from planner.optimize.waves import waves_of
from planner.pulsar.manager.cycle import next_cycle
from planner.remedy.tried import diagnosed
from planner.share.carry_out import document, of_groups, steps, steps_back, summary
from planner.share.commands import plan_commands
from planner.share.plan_text import plan_text
from planner.share.report import markdown_report
from planner.share.script import command_script
from planner.share.upgrade import ask_upgrade, upgrade_lines
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.failure_review import FailureReview, review_losses
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.usage_model import standing
from planner.simulate.what_if import Target, what_if
from planner.workspace.samples import load_sample, samples
from tests.app.plan.test_pains import PAINS

FOLDER = Path(__file__).parents[2] / "goldens" / "answers"
FEW: Final = 40
"""Rows of a table that are written."""

POLICIES: Final = ClusterSpec(
    brokers=8, namespaces=12, bundles=160, topics=900, msg_rate_per_s=60_000, heterogeneity=0.6, ownership_skew=0.7
)
SMALL: Final[dict[str, Callable[[], Snapshot]]] = {
    **{
        sample.file.partition(".")[0]: lambda sample=sample: load_sample(sample)  # type: ignore[misc]
        for sample in samples()
        if sample.file != "generated-100.zip"
    },
    "few-bundles": lambda: generate(
        ClusterSpec(brokers=5, namespaces=2, bundles=7, topics=300, msg_rate_per_s=250_000, topic_skew=0.3), 4
    ),
    "policies": lambda: generate(replace(POLICIES, isolated_namespaces=4, anti_affinity_namespaces=8), 5),
    "policies-extensible": lambda: generate(
        replace(
            POLICIES,
            isolated_namespaces=3,
            anti_affinity_namespaces=8,
            joined_brokers=1,
            load_manager=LoadManager.EXTENSIBLE,
        ),
        6,
    ),
}


def plain(value: Any) -> Any:
    """Return a value with numbers of six digits, so that no machine differs in the last ones."""
    match value:
        case bool() | np.bool_():
            return bool(value)
        case float() | np.floating():
            return float(f"{value:.6g}") + 0.0
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
    return value


def table(frame: pd.DataFrame) -> str:
    return frame.head(FEW).to_csv(index=False, float_format="%.6g").strip()


def compared(name: str, parts: Iterator[tuple[str, object]], request: pytest.FixtureRequest) -> None:
    """Compare answers with those of before, or write them."""
    written = ((title, part if isinstance(part, str) else json.dumps(plain(part), indent=1)) for title, part in parts)
    text = "".join(f"## {title}\n{part}\n\n" for title, part in written)
    text = re.sub(r"\d+\.\d{7,}(e-?\d+)?", lambda number: f"{float(number[0]):.6g}", text)
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    path = FOLDER / f"{name}.txt"
    if request.config.getoption("--rewrite"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def tables(snapshot: Snapshot) -> Iterator[tuple[str, object]]:
    memory, decision = next_cycle(snapshot, None, snapshot.settings, 1)
    yield "deciding", cluster_tables.deciding(snapshot)
    yield "brokers", table(cluster_tables.broker_frame(snapshot))
    yield "scores", table(cluster_tables.score_frame(snapshot, decision))
    yield "hottest bundles", table(cluster_tables.hottest_bundles(snapshot))
    yield "resources of a broker", table(cluster_tables.resource_frame(snapshot, 0))
    yield "resources", cluster_tables.resource_text(cluster_tables.resource_shares(snapshot))
    namespace = snapshot.bundle_names[0].rpartition("/")[0]
    rows = cluster_tables.bundles_of_namespace(snapshot, namespace)
    yield "bundles of a namespace", table(cluster_tables.bundle_frame(snapshot, rows))
    yield "verdict", decision_tables.verdict(decision, "in the next cycle")
    yield "moves", table(decision_tables.moves_frame(decision))
    yield "before and after", table(decision_tables.before_and_after(snapshot, decision))
    for unload in islice(decision.unloads, 3):
        if unload.selection is not None:
            yield f"steps of {unload.move.bundle}", decision_tables.step_lines(snapshot, unload.selection)
            candidates = decision_tables.candidate_frame(snapshot, unload.selection)
            yield f"candidates of {unload.move.bundle}", table(candidates)
    yield "memory", table(decision_tables.memory_frame(memory))
    for bundle in np.argsort(-snapshot.bundles.msg_rate_per_s(), kind="stable")[:3].tolist():
        advice = split_advice(snapshot, bundle, snapshot.settings)
        options = [f"{option.verdict} {option}" for option in advice.options]
        yield f"split of {snapshot.bundle_names[bundle]}", [advice.verdict, advice.sentence, *options]


def losses(review: FailureReview) -> pd.DataFrame:
    order = review.worst_first()
    names = np.array((*review.brokers, ""))
    return pd.DataFrame(
        {
            "lost": [" ".join(review.names(loss)) for loss in order.tolist()],
            "peak": review.peak_usage[order],
            "broker": names[review.peak_broker[order]],
            "over": review.over_threshold[order],
            "headroom": review.headroom_factor[order],
            "unserved": review.unserved[order],
            "clients": review.clients[order],
        }
    )


def simulated(snapshot: Snapshot, scenario: Scenario) -> Iterator[tuple[str, object]]:
    trace = simulate(snapshot, scenario)
    outcome = Outcome(trace)
    findings = diagnosed(outcome)
    now = standing(snapshot, snapshot.settings, Assumptions())
    yield "health", str(health(snapshot, snapshot.settings, now, outcome, findings))
    yield "levels", {str(name): level for name, level in figure_levels(snapshot, snapshot.settings, now).items()}
    for finding in findings:
        yield f"finding {finding.code}", str(finding)
    yield "plan", plan_text(trace, "golden", findings)
    yield "report", markdown_report(trace, snapshot_name="golden", findings=findings)
    yield "events", table(outcome.events)
    commands = plan_commands(trace)
    yield "commands", [str(command) for command in commands]
    if scenario.edits and snapshot.info.source.startswith("Raw capture"):
        yield "script", command_script(commands, "golden", ("bin/pulsar-admin",), snapshot.info.cluster)


def answers(snapshot: Snapshot) -> Iterator[tuple[str, object]]:
    trace = simulate(snapshot, Scenario(cycles=3))
    moved = [unload.move.bundle for unload in trace.cycles[0].unloads[:2]]
    for name in (*snapshot.brokers.name[:3], *snapshot.bundle_names[:2], *moved):
        for found in what_if(trace, 0, Target(bundle=name) if "/" in name else Target(name)):
            yield f"what if of {name}", str(found)


def questions(snapshot: Snapshot) -> Iterator[tuple[str, Question]]:
    first, *_ = snapshot.brokers.name
    peak = max(standing(snapshot, snapshot.settings, Assumptions()).peak_usage * 100, 1.0)
    yield "3 moves", Question(moves=3)
    yield "any moves", Question()
    yield "few clients", Question(clients=40)
    if len(snapshot.bundles) < 10:
        yield "with splits", Question(splits=3)
    yield "drain", Question(drain=(first,))
    for cost in COSTS:
        yield f"least {cost}", Question(under_percent=round(peak * 0.9, 1), cost=cost)


def plans(snapshot: Snapshot) -> Iterator[tuple[str, object]]:
    extensible = len(snapshot.bundles) > FEW and snapshot.info.load_manager is LoadManager.EXTENSIBLE
    for name, question in questions(snapshot):
        if extensible and name in {"any moves", "least topics", "least bytes_per_s"}:
            continue  # each takes seconds
        try:
            plan = best_plan(snapshot, replace(question, rounds=3))
        except ScenarioError as error:
            yield name, str(error)
            continue
        yield from carried_out(name, plan)
    if not extensible:
        yield from carried_out("survive", surviving(snapshot, Question(moves=20, rounds=2)))


def carried_out(name: str, plan: Plan) -> Iterator[tuple[str, object]]:
    waves, stability, ungrouped = waves_of(plan, 60), stability_of(plan), peak_without_groups(plan)
    found = document(plan, waves, stability, ungrouped=ungrouped)
    del found["snapshot"], found["plan_digest"], found["steps"]  # the steps follow
    yield name, [summary(plan), of_groups(plan, ungrouped), cost_text(plan.question.cost, plan.bound)]
    yield f"{name}: document", found
    yield f"{name}: steps", [str(step) for step in steps(plan, waves, stability)]
    yield f"{name}: undo", [str(step) for step in steps_back(plan, waves, stability)]


@pytest.mark.parametrize("name", SMALL)
def test_tables(name: str, request: pytest.FixtureRequest) -> None:
    compared(f"tables-{name}", tables(SMALL[name]()), request)


@pytest.mark.parametrize("name", SMALL)
def test_scenarios(name: str, request: pytest.FixtureRequest) -> None:
    snapshot = SMALL[name]()
    compared(f"captured-{name}", simulated(snapshot, Scenario()), request)
    steps = (
        Step(ScaleTraffic(factor=1.4)),
        Step(AddBrokers(count=1)),
        Step(KillBroker(broker=snapshot.brokers.name[0])),
    )
    compared(f"changed-{name}", simulated(snapshot, Scenario(steps=steps, cycles=6)), request)


@pytest.mark.parametrize("name", PAINS)
def test_pains(name: str, request: pytest.FixtureRequest) -> None:
    compared(f"pain-{name.partition(' ')[0]}", simulated(PAINS[name][0](), Scenario()), request)


@pytest.mark.parametrize("name", SMALL)
def test_losses(name: str, request: pytest.FixtureRequest) -> None:
    snapshot = SMALL[name]()
    pairs = (("one", review_losses(snapshot)), ("two", review_losses(snapshot, lost=2)))
    compared(
        f"losses-{name}", ((title, f"{review.method}\n{table(losses(review))}") for title, review in pairs), request
    )


@pytest.mark.parametrize("name", ["avg-shedder", "pip-364", "transfer-shedder", "uniform-shedder-rate", "policies"])
def test_what_ifs(name: str, request: pytest.FixtureRequest) -> None:
    compared(f"what-if-{name}", answers(SMALL[name]()), request)


@pytest.mark.parametrize(
    "name", ["real-modular", "transfer-shedder", "story", "few-bundles", "policies", "policies-extensible"]
)
def test_plans(name: str, request: pytest.FixtureRequest) -> None:
    compared(f"plan-{name}", plans(SMALL[name]()), request)


def test_plans_of_a_large_cluster(request: pytest.FixtureRequest) -> None:
    snapshot = load_sample(next(sample for sample in samples() if sample.file == "generated-100.zip"))
    plan = best_plan(snapshot, Question(moves=60, rounds=2))
    cheapest = best_plan(snapshot, Question(under_percent=70.0, cost="clients", rounds=2))
    found = {"60": document(plan, waves_of(plan), None), "70 %": document(cheapest, waves_of(cheapest), None)}
    for one in found.values():
        del one["steps"]  # `commands` say as much
    parts = ((name, plain(one)) for name, one in found.items())
    compared("plan-generated-100", parts, request)


@pytest.mark.parametrize("name", ["real-modular", "real-extensible", "policies"])
def test_upgrades(name: str, request: pytest.FixtureRequest) -> None:
    snapshot = SMALL[name]()
    answer = ask_upgrade(snapshot, next_release(snapshot.info.pulsar_version))
    compared(f"upgrade-{name}", iter([("upgrade", list(upgrade_lines(answer)))]), request)
