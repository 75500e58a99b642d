"""What another release does with a cluster: settings, rules, the first hour, the way, how to keep today's plan."""

import json
from dataclasses import replace

import numpy as np
import pytest

from planner.__main__ import main
from planner.cluster.releases import RELEASES, UPGRADED_TO, ReleaseName, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.explain.upgrade import before_upgrade, next_release, upgrade_of, upgraded
from planner.pulsar.shedding.registry import SHEDDERS
from planner.share.report import markdown_report
from planner.share.upgrade import UpgradeAnswer, ask_upgrade, upgrade_json, upgrade_lines
from planner.simulate.judge import Result, judge
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.workspace.samples import load_sample, samples

NAMES = {sample.file: sample for sample in samples()}
SHEDDING = "loadBalancerLoadSheddingStrategy"


def of(snapshot: Snapshot, version: str, **settings: object) -> Snapshot:
    """Return a cluster that runs a release, with settings as a capture tells them: all values in force."""
    own = release(version)
    info = replace(snapshot.info, pulsar_version=version)
    return replace(snapshot, info=info, settings=Settings({**snapshot.settings.overrides, **settings}, own))


def captured(snapshot: Snapshot, version: str) -> Snapshot:
    """Return a cluster whose capture names every value in force, the defaults among them."""
    own = release(version)
    return of(snapshot, version, **{name: setting.default for name, setting in own.settings.items()})


def ask(snapshot: Snapshot, to: ReleaseName) -> UpgradeAnswer:
    return ask_upgrade(snapshot, to, replace(before_upgrade(Scenario(), snapshot), cycles=8), hours=0)


@pytest.fixture(scope="module")
def uniform() -> Snapshot:
    return load_sample(NAMES["uniform-shedder-rate.json"])


def test_a_default_that_changes_is_followed_and_can_be_kept(small: Snapshot) -> None:
    old = captured(small, "3.0.7")
    found = {one.name: one for one in upgrade_of(old, before_upgrade(Scenario(), old), "4.0.8").settings}
    weight = found["loadBalancerDirectMemoryResourceWeight"]
    assert (weight.happens, weight.before, weight.after, weight.given, weight.keep) == (
        "other default",
        1,
        0,
        False,
        True,
    )
    limiter = found["dispatchRateLimiterFactoryClassName"]
    assert limiter.happens == "is new"
    assert str(limiter.before).endswith("Classic")
    assert "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold" not in found


def test_what_the_cluster_sets_stays(small: Snapshot) -> None:
    old = of(small, "3.0.7", loadBalancerDirectMemoryResourceWeight=0.5)
    upgrade = upgrade_of(old, before_upgrade(Scenario(), old), "4.0.8")
    assert "loadBalancerDirectMemoryResourceWeight" not in {one.name for one in upgrade.settings}
    assert upgrade.after.settings_over(old).number("loadBalancerDirectMemoryResourceWeight") == 0.5


def test_a_setting_that_vanishes_on_the_way_back(small: Snapshot) -> None:
    new = of(small, "4.2.4", loadBalancerSheddingExcludedNamespaces="a/b")
    answer = ask(new, "4.0.8")
    (gone,) = [one for one in answer.upgrade.settings if one.given]
    assert (gone.name, gone.happens, gone.keep) == ("loadBalancerSheddingExcludedNamespaces", "vanishes", False)
    first = answer.steps[0]
    assert first.when == "before"
    assert first.lines == (
        "pulsar-admin brokers delete-dynamic-config --config loadBalancerSheddingExcludedNamespaces",
    )
    back = of(small, "4.0.8", loadBalancerSheddingExcludedNamespaces="a/b")
    (acts,) = [one for one in upgrade_of(back, before_upgrade(Scenario(), back), "4.2.4").settings if one.given]
    assert acts.happens == "takes effect"


def test_nothing_that_differs_concerns_the_cluster(small: Snapshot) -> None:
    answer = ask(small, "5.0.0-M1")
    assert answer.upgrade.is_same
    assert list(answer.runs) == ["4.2.4, today"]
    assert "5.0.0-M1 behaves the same for this cluster" in answer.found.sentence
    assert answer.found.answer == "5.0.0-M1 is neither better nor worse for this cluster."
    runs = [simulate(small, replace(answer.upgrade.after, pulsar_version=name)) for name in ("4.2.4", "5.0.0-M1")]
    assert runs[0].digest() == runs[1].digest()


def test_a_rule_makes_the_difference(uniform: Snapshot) -> None:
    uniform_old = of(uniform, "4.0.8")
    answer = ask(uniform_old, "4.2.4")
    assert len(answer.upgrade.rules) == 1
    assert "by at most 1000" in answer.upgrade.rules[0]
    today, after, kept = answer.runs.values()
    assert today.plan != after.plan == kept.plan
    one, two = (Result.of(simulate(uniform_old, run)) for run in list(answer.upgrade.runs.values())[:2])
    verdict = judge(one, two)
    assert answer.found.word == verdict.word != "same"
    assert verdict.text.partition(": ")[2] in answer.found.answer
    assert upgrade_json(answer)["verdict"] == verdict.word
    assert next(line for line in upgrade_lines(answer) if "for this cluster" in line) == answer.found.answer
    assert "the rules differ, and no setting restores the old ones" in answer.found.kept


def test_the_runs_are_in_the_numbers_of_the_judge() -> None:
    """The only cycle moves bundles, so the end is not where it began."""
    tables = of(load_sample(NAMES["threshold-shedder-80.json"]), "4.0.8")
    answer = ask_upgrade(tables, "4.2.4", Scenario(cycles=1), hours=0)
    for name, scenario in answer.upgrade.runs.items():
        result, run = Result.of(simulate(tables, scenario)), answer.runs[name]
        assert (run.peak_percent, run.deviation_points) == (result.end_peak_percent, result.deviation_points)
        assert (run.topics, run.clients) == (result.topics, result.clients)


def test_todays_values_bring_back_todays_plan() -> None:
    """Direct memory weighs on 3.0.7 alone; what decides on this cluster is that weight and nothing else."""
    tables = load_sample(NAMES["threshold-shedder.json"])
    many = len(tables.brokers)
    used = np.array([90.0, *[5.0] * (many - 1)])
    brokers = replace(tables.brokers, direct_memory_usage_mib=used, direct_memory_limit_mib=np.full(many, 100.0))
    answer = ask(of(replace(tables, brokers=brokers), "3.0.7"), "4.0.8")
    today, after, kept = answer.runs.values()
    assert today.plan != after.plan
    assert today.plan == kept.plan
    assert "the result is exactly the same as today" in answer.found.kept
    assert any("loadBalancerDirectMemoryResourceWeight=1.0" in step.lines for step in answer.steps)


@pytest.mark.parametrize("shedder", [one.name for one in SHEDDERS])
def test_rules_named_are_those_that_can_decide(small: Snapshot, shedder: str) -> None:
    old = of(small, "3.0.7", **{SHEDDING: shedder})
    manager = next(one for one in SHEDDERS if one.name == shedder).load_manager
    old = replace(old, info=replace(old.info, load_manager=manager))
    upgrade = upgrade_of(old, before_upgrade(Scenario(), old), "4.2.4")
    every = [*upgrade.rules, *upgrade.other_rules]
    assert len(set(every)) == len(every)
    others = [one.name for one in SHEDDERS if one.name != shedder]
    assert not [rule for rule in upgrade.rules for name in others if rule.startswith(f"Only in 3.0.7: {name}")]


def test_the_way_is_in_order(small: Snapshot) -> None:
    answer = ask(captured(small, "3.0.7"), "5.0.0-M1")
    order = ["before", "during", "after"]
    assert [order.index(step.when) for step in answer.steps] == sorted(order.index(step.when) for step in answer.steps)
    assert "Upgrade through 4.0:" in answer.steps[0].what
    held = [line for step in answer.steps for line in step.lines if "loadBalancerSheddingEnabled" in line]
    name = "loadBalancerSheddingEnabled"
    assert [line.rsplit(" ", 1)[1] for line in held] == ["false", "true", name]
    assert held[2] == f"pulsar-admin brokers delete-dynamic-config --config {name}"
    known = captured(small, "3.0.7")
    known = replace(known, info=replace(known.info, dynamic_settings={name: "true"}))
    again = [line for step in ask(known, "5.0.0-M1").steps for line in step.lines if name in line]
    assert again == held[:2], "an override that was there stays"
    assert "Upgrade through" not in ask(small, "5.0.0-M1").steps[0].what


def test_a_scenario_on_another_release_leads_back(small: Snapshot) -> None:
    old = captured(small, "3.0.7")
    today = before_upgrade(Scenario(seed=3), old)
    assert today.pulsar_version == "3.0.7"
    after = upgraded(today, old, "4.2.4")
    assert after.settings["loadBalancerDirectMemoryResourceWeight"] == "0.0"
    assert before_upgrade(after, old) == today


def test_the_first_release_asked_about() -> None:
    assert set(UPGRADED_TO) <= set(RELEASES)
    assert [next_release(name) for name in UPGRADED_TO] == [*UPGRADED_TO[1:], UPGRADED_TO[-1]]
    assert [next_release(name) for name in ("3.0.2", "3.1.2", "4.0.3")] == ["3.0.7", "4.0.8", "4.0.8"]


def test_a_report_of_another_release_has_the_upgrade(uniform: Snapshot) -> None:
    old = of(uniform, "4.0.8")
    trace = simulate(old, replace(before_upgrade(Scenario(), old), pulsar_version="4.2.4", cycles=3))
    said = markdown_report(trace)
    assert "## The upgrade from 4.0.8 to 4.2.4" in said
    assert "cacheEvictionByExpectedReadCount" in said
    own = simulate(old, replace(before_upgrade(Scenario(), old), cycles=3))
    assert "The upgrade" not in markdown_report(own)


def test_the_command_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["upgrade", "--snapshot", "uniform-shedder-rate", "--to", "4.0.8"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "In the first hour, Pulsar 4.2.4 makes 1 move and " in said
    assert "4.0.8 is better for this cluster: highest usage" in said
    assert "loadBalancerSheddingEnabled --value false" in said
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["from"], told["to"]) == ("4.2.4", "4.0.8")
    assert told["runs"]["4.0.8"]["plan"] != told["runs"]["4.2.4, today"]["plan"]
    assert main([*words, "--hours", "0"]) == 2
    assert "--hours" in capsys.readouterr().err


def test_data_can_be_written(small: Snapshot) -> None:
    assert json.loads(json.dumps(upgrade_json(ask(small, "3.0.7"))))["steps"]


def test_namespaces_with_a_cluster_are_gone_after_an_upgrade(small: Snapshot) -> None:
    """Up to 4.0 a namespace may name a cluster; 4.2 refuses its topics."""
    plain = of(small, "4.0.8")
    old = replace(plain, namespaces=("t/c/n", *plain.namespaces[1:]))
    said = [upgrade_of(one, before_upgrade(Scenario(), one), "4.2.4").rules for one in (plain, old)]
    assert [any("four parts" in rule for rule in rules) for rules in said] == [False, True]
