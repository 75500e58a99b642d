"""Class names in the settings: misspelt, without a package, somebody's own; load managers that are not simulated."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.health import within
from planner.explain.outcome import Outcome
from planner.formats.reading import read_snapshot
from planner.pulsar.manager.class_names import class_name, in_full
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from tests.app.simulate.traces import cluster

CASES = Path(__file__).parents[4] / "shared" / "cases"
SHEDDING: Final = "loadBalancerLoadSheddingStrategy"
PLACEMENT: Final = "loadBalancerLoadPlacementStrategy"
MANAGER: Final = "loadManagerClassName"
ASSIGNMENT: Final = "topicBundleAssignmentStrategy"
IMPL: Final = "org.apache.pulsar.broker.loadbalance.impl."
EXTENSIONS: Final = "org.apache.pulsar.broker.loadbalance.extensions."
OF_CLASSES: Final = {
    "class_not_loaded",
    "own_class",
    "other_load_manager",
    "topics_placed_otherwise",
    "strategy_replaced",
}


def configured(manager: LoadManager = LoadManager.MODULAR, version: str = "4.2.4", **given: Any) -> Snapshot:
    """Three unlike brokers with these settings, taken as they stand."""
    made = cluster((0.5, 0.2, 0.2), {0: (10.0,) * 4, 1: (5.0,), 2: (5.0,)}, load_manager=manager)
    info = replace(made.info, pulsar_version=version)
    own = f"{EXTENSIONS}scheduler.TransferShedder" if manager is LoadManager.EXTENSIBLE else f"{IMPL}ThresholdShedder"
    settings = {SHEDDING: own, **given}
    return replace(made, info=info, settings=Settings(settings, release(version)))


def outcome(snapshot: Snapshot, decides: str = "") -> Outcome:
    return Outcome(simulate(snapshot, unchanged(decides or snapshot.info.pulsar_version, cycles=2)))


def of_classes(snapshot: Snapshot, decides: str = "") -> list[Finding]:
    return [finding for finding in diagnose(outcome(snapshot, decides)) if finding.code in OF_CLASSES]


@pytest.mark.parametrize(
    ("setting", "given", "kind", "like"),
    [
        (SHEDDING, f"{IMPL}ThresholdShedder", "official", "ThresholdShedder"),
        (SHEDDING, "ThresholdShedder", "missing", "ThresholdShedder"),
        (SHEDDING, f"{IMPL.replace('org.apache', 'com.yahoo')}ThresholdShedder", "missing", "ThresholdShedder"),
        (
            MANAGER,
            f"{IMPL.replace('org.apache', 'com.yahoo')}SimpleLoadManagerImpl",
            "missing",
            "SimpleLoadManagerImpl",
        ),
        (SHEDDING, f"{IMPL}TresholdShedder", "missing", "ThresholdShedder"),
        (SHEDDING, "org.apache.pulsar.broker.loadbalance.AvgShedder", "missing", "AvgShedder"),
        (SHEDDING, "AvgSheder", "missing", "AvgShedder"),
        (SHEDDING, "com.acme.AvgShedder", "own", "AvgShedder"),
        (SHEDDING, "com.acme.NightlyUniformLoadShedder", "own", "UniformLoadShedder"),
        (SHEDDING, "com.acme.Mine", "own", ""),
        (SHEDDING, "", "missing", ""),
        (PLACEMENT, "LeastResourceUsageWithWeight", "missing", "LeastResourceUsageWithWeight"),
        (PLACEMENT, f"{IMPL}LeastLongTermMessagRate", "missing", "LeastLongTermMessageRate"),
        (MANAGER, "ModularLoadManagerImpl", "missing", "ModularLoadManagerImpl"),
        (MANAGER, f"{IMPL}ExtensibleLoadManagerImpl", "missing", "ExtensibleLoadManagerImpl"),
        (MANAGER, f"{EXTENSIONS}ExtensibleLoadManagerImpl", "official", "ExtensibleLoadManagerImpl"),
        (MANAGER, f"{IMPL}SimpleLoadManagerImpl", "official", "SimpleLoadManagerImpl"),
    ],
)
def test_what_a_name_is(setting: str, given: str, kind: str, like: str) -> None:
    found = class_name(setting, given)
    assert found.kind == kind
    assert not like or found.like.rpartition(".")[2] == like


def test_a_person_may_leave_out_the_package() -> None:
    given = {SHEDDING: "AvgShedder", PLACEMENT: "AvgSheder", "maxUnloadPercentage": 0.1}
    assert in_full(given) == {**given, SHEDDING: f"{IMPL}AvgShedder"}


@pytest.mark.parametrize("name", [f"{IMPL}UnifromLoadShedder", "UniformLoadShedder"])
@pytest.mark.parametrize(
    ("version", "instead"),
    [
        ("3.0.7", "Pulsar logs an error, and OverloadShedder decides."),
        ("4.0.4", "Pulsar 4.0.4 then starts SimpleLoadManagerImpl"),
        ("4.2.4", "a broker of Pulsar 4.2.4 does not start with it"),
    ],
)
def test_shedding_that_cannot_be_loaded(name: str, version: str, instead: str) -> None:
    snapshot = configured(LoadManager.MODULAR, version, **{SHEDDING: name})
    assert outcome(snapshot).shedder == "OverloadShedder"
    (finding,) = of_classes(snapshot)
    assert (finding.code, finding.severity) == ("class_not_loaded", "high")
    assert instead in finding.evidence
    assert "OverloadShedder decides" in finding.evidence
    assert finding.changes == {SHEDDING: f"{IMPL}UniformLoadShedder"}
    assert not of_classes(configured(LoadManager.MODULAR, version, **finding.changes))


def test_the_extensible_load_manager_falls_back_to_its_own() -> None:
    (finding,) = of_classes(configured(LoadManager.EXTENSIBLE, **{SHEDDING: f"{IMPL}TransferShedder"}))
    assert "TransferShedder decides" in finding.evidence
    assert f"At the next restart, set {SHEDDING} to {EXTENSIONS}scheduler.TransferShedder." in finding.remedy
    assert finding.severity == "low", "what is meant is what decides"
    assert not finding.changes


@pytest.mark.parametrize(
    ("version", "instead"), [("4.0.4", "then starts SimpleLoadManagerImpl"), ("4.2.4", "does not start")]
)
def test_placement_that_cannot_be_loaded(version: str, instead: str) -> None:
    (finding,) = of_classes(configured(LoadManager.MODULAR, version, **{PLACEMENT: "LeastResourceUsageWithWeight"}))
    assert "The load manager cannot be created" in finding.evidence
    assert instead in finding.evidence
    assert "It lacks its package" in finding.evidence
    assert f"Set {PLACEMENT} to {IMPL}LeastResourceUsageWithWeight" in finding.remedy
    assert finding.changes == {}, "what is shown is that placement already: a restart would look worse"


def test_placement_of_the_modular_one_is_nothing_to_the_extensible() -> None:
    assert not of_classes(configured(LoadManager.EXTENSIBLE, **{PLACEMENT: "Nothing"}))


def test_a_load_manager_that_cannot_be_loaded_is_no_change_to_try() -> None:
    (finding,) = of_classes(configured(LoadManager.MODULAR, **{MANAGER: f"{IMPL}ModularLoadManager"}))
    assert (finding.code, finding.changes) == ("class_not_loaded", {})
    assert f"Set {MANAGER} to {IMPL}ModularLoadManagerImpl" in finding.remedy


@pytest.mark.parametrize(
    ("given", "severity", "shown"),
    [
        ({SHEDDING: "com.acme.NightlyThresholdShedder"}, "low", "ThresholdShedder would decide"),
        ({SHEDDING: "com.acme.Mine"}, "medium", "OverloadShedder would decide"),
        ({PLACEMENT: "com.acme.Near"}, "medium", "LeastLongTermMessageRate would decide"),
        ({MANAGER: "com.acme.Manager"}, "medium", "the modular load manager would decide"),
    ],
)
def test_a_class_of_ones_own(given: dict[str, Any], severity: str, shown: str) -> None:
    (finding,) = of_classes(configured(LoadManager.MODULAR, **given))
    assert (finding.code, finding.severity) == ("own_class", severity)
    assert "is unknown" in finding.evidence
    assert shown in finding.evidence


@pytest.mark.parametrize(
    ("given", "name", "what"),
    [
        (f"{IMPL}SimpleLoadManagerImpl", "SimpleLoadManagerImpl", "rules of its own"),
        ("", "SimpleLoadManagerImpl", "empty, which means the simple one"),
        ("org.apache.pulsar.broker.loadbalance.NoopLoadManager", "NoopLoadManager", "neither sheds nor splits"),
    ],
)
def test_load_managers_that_are_not_simulated(given: str, name: str, what: str) -> None:
    (finding,) = of_classes(configured(LoadManager.MODULAR, **{MANAGER: given}))
    assert (finding.code, finding.severity) == ("other_load_manager", "high")
    assert name in finding.title
    assert what in finding.evidence


def test_reports_name_the_load_manager_too() -> None:
    snapshot = configured()
    simple = (f"{IMPL}SimpleLoadManagerImpl",) * 3
    told = replace(snapshot, brokers=replace(snapshot.brokers, load_manager_class=simple))
    (finding,) = of_classes(told)
    assert finding.code == "other_load_manager"
    assert finding.brokers == told.brokers.name


@pytest.mark.parametrize(
    ("given", "severity", "what"),
    [
        ("com.acme.ByTenant", "medium", "need not be in the bundle of its hash"),
        ("ByHash", "medium", ""),
        ("", "high", ""),
    ],
)
def test_topics_that_are_not_placed_by_hash(given: str, severity: str, what: str) -> None:
    (finding,) = of_classes(configured(LoadManager.MODULAR, **{ASSIGNMENT: given}))
    assert (finding.code, finding.severity) == ("topics_placed_otherwise", severity)
    assert what in finding.evidence
    assert "ConsistentHashingTopicBundleAssigner" in finding.remedy


def test_releases_before_the_setting_place_by_hash() -> None:
    assert not of_classes(configured(LoadManager.MODULAR, "3.0.7", **{ASSIGNMENT: "com.acme.ByTenant"}))


@pytest.mark.parametrize("manager", LoadManager)
def test_defaults_are_no_finding(manager: LoadManager) -> None:
    assert not of_classes(configured(manager))


@pytest.mark.skipif(not CASES.is_dir(), reason="needs the handed-out cases")
def test_the_handed_out_case() -> None:
    snapshot = read_snapshot(CASES / "h07_class_cannot_be_loaded.json")
    shown = outcome(snapshot, "4.2.4")
    assert shown.shedder == "OverloadShedder"
    (finding,) = of_classes(snapshot, "4.2.4")
    assert finding.code == "class_not_loaded"
    assert "Up to 3.3, Pulsar logs an error and OverloadShedder decides" in finding.evidence


@pytest.mark.parametrize(
    ("given", "supported", "then", "better"),
    [
        ("flow_or_qps_equaly_divide", None, "splits with range_equally_divide", "flow_or_qps_equally_divide"),
        ("by_magic", None, "splits with range_equally_divide", "range_equally_divide"),
        ("by_magic", "by_magic,range_equally_divide", "splits with range_equally_divide", "range_equally_divide"),
        (
            "topic_count_equally_divide",
            "range_equally_divide",
            "Automatic splits use it all the same",
            "range_equally_divide",
        ),
    ],
)
def test_a_split_algorithm_that_brokers_do_not_have(given: str, supported: str | None, then: str, better: str) -> None:
    settings: dict[str, Any] = {"defaultNamespaceBundleSplitAlgorithm": given}
    if supported is not None:
        settings["supportedNamespaceBundleSplitAlgorithms"] = supported
    (finding,) = [one for one in diagnose(outcome(configured(**settings))) if one.code == "split_algorithm_refused"]
    assert then in finding.evidence
    assert finding.changes == {"defaultNamespaceBundleSplitAlgorithm": better}


def test_pulsar_keeps_its_capital_within_a_sentence() -> None:
    assert within("Pulsar cannot load it") == "Pulsar cannot load it"
    assert within("The policy binds none") == "the policy binds none"
