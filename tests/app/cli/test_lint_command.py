"""`planner lint`: what is wrong with settings, as text, JSON and SARIF, with an exit status."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import RELEASES, release
from planner.cluster.setting import conf_value
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.doors.lint import lint_file, lint_snapshot
from planner.explain.causes import EXPLAINS
from planner.explain.diagnosis import diagnose
from planner.explain.meanings import MEANINGS
from planner.explain.setting_patterns import SEEN_IN_CYCLES
from planner.explain.setting_rules import RULES, setting_findings, threshold_acts_on_all_or_none
from planner.share.lint import LintFinding, lint_sarif, worst_first
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from tests.app.simulate.traces import cluster

EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
TRANSFER = "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder"
AVG = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
UNSEEN = frozenset({"class_missing", "balancer_off", "excluded_expression", "sheds_nothing"})
"""Rules that a pattern of its own looks for in a cluster, or that show in no finding of this one."""
WRONG: dict[str, dict[str, object]] = {
    "class_missing": {"loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.ThresholdSheder"},
    "strategy_not_run": {"loadBalancerLoadSheddingStrategy": TRANSFER},
    "unpaired_placement": {"loadBalancerLoadPlacementStrategy": AVG},
    "split_algorithm_refused": {"supportedNamespaceBundleSplitAlgorithms": "topic_count_equally_divide"},
    "born_full": {"defaultNumberOfNamespaceBundles": 200},
    "thresholds_crossed": {
        "loadBalancerLoadSheddingStrategy": AVG,
        "loadBalancerLoadPlacementStrategy": AVG,
        "loadBalancerAvgShedderLowThreshold": 50,
    },
    "load_data_expires": {"loadManagerClassName": EXTENSIBLE, "loadBalancerBrokerLoadDataTTLInSeconds": 600},
    "no_grace": {"loadBalancerSheddingGracePeriodMinutes": 0},
    "nothing_weighs": {
        "loadBalancerCPUResourceWeight": 0,
        "loadBalancerBandwidthInResourceWeight": 0,
        "loadBalancerBandwidthOutResourceWeight": 0,
    },
    "weighs_too_much": {"loadBalancerCPUResourceWeight": 100, "loadBalancerBandwidthInResourceWeight": 1.5},
    "frozen_average": {"loadBalancerHistoryResourcePercentage": 1.0},
    "excluded_expression": {"loadBalancerSheddingExcludedNamespaces": "pay/*"},
    "average_runs_away": {"loadBalancerHistoryResourcePercentage": 90},
    "share_above_one": {
        "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder",
        "maxUnloadPercentage": 20,
    },
    "balancer_off": {"loadBalancerSheddingEnabled": False},
    "threshold_acts_on_all_or_none": {"loadBalancerBrokerThresholdShedderPercentage": 0},
    "out_of_reach": {"loadManagerClassName": EXTENSIBLE, "loadBalancerBrokerLoadTargetStd": 25},
    "sheds_nothing": {
        "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder",
        "maxUnloadBundleNumPerShedding": 0,
    },
    "limit_overflows": {"loadBalancerNamespaceBundleMaxBandwidthMbytes": 2048},
    "wrong_unit": {"loadBalancerOverrideBrokerNicSpeedGbps": 1000},
}
CONF = """# a comment
loadBalancerEnabled=true
loadBalancerSheddingEnabld=true
loadBalancerBrokerOverloadedThresholdPercentage=abc
defaultNumberOfNamespaceBundles=200
loadBalancerFancyThing=1
loadBalancerSheddingGracePeriodMinutes=20
loadBalancerSheddingGracePeriodMinutes=30
zookeeperServers=somewhere
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "broker.conf"
    path.write_text(CONF, encoding="utf-8")
    return path


def test_a_threshold_of_0_is_not_said_to_shed_where_a_minimum_may_hold_it() -> None:
    (finding,) = setting_findings(Settings(WRONG["threshold_acts_on_all_or_none"]))
    assert finding.title == "ThresholdShedder always finds a broker above its threshold"


def test_every_rule_has_a_case() -> None:
    assert set(WRONG) == {rule.__name__ for rule in RULES}


@pytest.mark.parametrize("name", WRONG)
def test_a_rule_finds_its_case_and_is_silent_about_its_own_remedy(name: str) -> None:
    rule = next(rule for rule in RULES if rule.__name__ == name)
    config = Settings(WRONG[name])
    (found,) = rule(config)
    assert set(found.changes) <= set(found.settings)
    assert not list(rule(config.changed(**found.changes)))


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"loadBalancerBandwithInResourceWeight": 5}, "weight_above_one"),
        (
            {
                "loadBalancerCPUResourceWeight": 0,
                "loadBalancerBandwithInResourceWeight": 0,
                "loadBalancerBandwithOutResourceWeight": 0,
            },
            "no_resource_counts",
        ),
    ],
)
def test_misspelt_weights_count_where_the_right_ones_are_1(settings: dict[str, object], code: str) -> None:
    (found,) = setting_findings(Settings(settings))
    assert found.code == code
    assert not setting_findings(Settings(settings).changed(**found.changes))


@pytest.mark.parametrize("name", RELEASES)
def test_the_defaults_of_a_release_are_clean(name: str, tmp_path: Path) -> None:
    of = release(name)
    path = tmp_path / "broker.conf"
    lines = [f"{key}={conf_value(one.default)}" for key, one in of.settings.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert lint_file(path, of) == ()
    assert setting_findings(Settings({}, of)) == ()


def test_a_file_is_checked_line_by_line(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(conf), "--json"]) == 1
    found = {one["code"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    lines = {code: one["line"] for code, one in found.items()}
    assert lines == {
        "invalid_value": 4,
        "misspelt_setting": 3,
        "namespaces_born_full": 5,
        "unknown_setting": 6,
        "setting_twice": 8,
    }
    assert "loadBalancerSheddingEnabled" in found["misspelt_setting"]["remedy"]
    assert all(one["command"] for one in found.values())
    assert "somewhere" not in json.dumps(found)


def test_the_commands_make_a_file_clean(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(5):
        if main(["lint", str(conf), "--json"]) == 0:
            break
        first = json.loads(capsys.readouterr().out)["findings"][0]
        for command in first["command"]:
            subprocess.run(["sh", "-c", command], check=True)
    assert main(["lint", str(conf)]) == 0
    assert "No findings." in capsys.readouterr().out
    assert "zookeeperServers=somewhere" in conf.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("shedder", "name", "value", "code"),
    [
        ("ThresholdShedder", "loadBalancerBrokerThresholdShedderPercentage", 100, "threshold_never_acts"),
        ("ThresholdShedder", "loadBalancerBrokerThresholdShedderPercentage", 99, ""),
        ("OverloadShedder", "loadBalancerBrokerOverloadedThresholdPercentage", 101, "threshold_never_acts"),
        ("OverloadShedder", "loadBalancerBrokerOverloadedThresholdPercentage", 100, ""),
        ("OverloadShedder", "loadBalancerBrokerOverloadedThresholdPercentage", 0, "threshold_always_acts"),
        ("UniformLoadShedder", "loadBalancerBrokerOverloadedThresholdPercentage", 0, ""),
    ],
)
def test_thresholds_that_all_or_no_brokers_pass(shedder: str, name: str, value: int, code: str) -> None:
    java = f"org.apache.pulsar.broker.loadbalance.impl.{shedder}"
    found = threshold_acts_on_all_or_none(Settings({"loadBalancerLoadSheddingStrategy": java, name: value}))
    assert [one.code for one in found] == ([code] if code else [])


@pytest.mark.parametrize(
    ("version", "manager", "shedder", "severity", "title"),
    [
        ("4.2.4", "", TRANSFER, "high", "Brokers do not start with TransferShedder"),
        ("3.2.3", "", TRANSFER, "high", "OverloadShedder runs instead of the configured strategy"),
        ("4.2.4", EXTENSIBLE, AVG, "low", "TransferShedder runs instead of the configured strategy"),
        ("4.2.4", EXTENSIBLE, "", "", ""),
    ],
)
def test_a_strategy_of_the_other_load_manager(
    version: str, manager: str, shedder: str, severity: str, title: str, tmp_path: Path
) -> None:
    """The load manager cannot run it; what a file leaves at its default is not said of the file."""
    path = tmp_path / "broker.conf"
    given = {"loadManagerClassName": manager, "loadBalancerLoadSheddingStrategy": shedder}
    lines = ["loadBalancerEnabled=true", *(f"{name}={value}" for name, value in given.items() if value)]
    path.write_text("\n".join(lines), encoding="utf-8")
    found = [one for one in lint_file(path, release(version)) if one.code == "strategy_replaced"]
    assert [(one.severity, one.title, one.line) for one in found] == ([(severity, title, len(lines))] if title else [])


@pytest.mark.parametrize(
    ("suffix", "text", "line"),
    [
        ("yaml", 'broker:\n  configData:\n    # shed\n    {name}: "{value}"\n', 4),
        ("yml", "services:\n  broker:\n    environment:\n      - PULSAR_PREFIX_{name}={value}\n", 4),
        ("yaml", "env:\n  - name: PULSAR_PREFIX_{name}\n    value: '{value}'\n", 2),
        ("yaml", "apiVersion: v1\nkind: ConfigMap\ndata:\n  PULSAR_PREFIX_{name}: {value}\n", 4),
    ],
)
def test_settings_of_a_chart_have_their_lines(suffix: str, text: str, line: int, tmp_path: Path) -> None:
    """An editor marks them there; what writes them is a person, as no shell command keeps such a file whole."""
    path = tmp_path / f"values.{suffix}"
    path.write_text(text.format(name="loadBalancerLoadSheddingStrategy", value=TRANSFER), encoding="utf-8")
    (found,) = lint_file(path)
    assert (found.code, found.line) == ("strategy_replaced", line)
    assert found.command[0].startswith("# ")
    assert f"line {line}" in found.command[0]


def test_a_percent_sign_is_no_part_of_a_number(tmp_path: Path) -> None:
    """Brokers do not start with it; `zsh` adds one only where an answer ends."""
    conf = tmp_path / "broker.conf"
    conf.write_text("loadBalancerBrokerOverloadedThresholdPercentage=85%\nloadBalancerSheddingGracePeriodMinutes=30\n")
    (found,) = lint_file(conf)
    assert (found.code, found.line) == ("invalid_value", 1)


def test_what_a_value_can_be_instead_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The value itself is never repeated: it may be anything, a secret in the wrong place too."""
    path = tmp_path / "broker.conf"
    path.write_text("loadBalancerHistoryResourcePercentage=-1.5\nloadBalancerSheddingIntervalMinutes=hunter2\n")
    assert main(["lint", str(path)]) == 1
    said = capsys.readouterr().out
    assert "Use a number of 0 or more (fraction). The default is 0.9." in said
    assert "Use a whole number (min). The default is 1." in said
    assert "hunter2" not in said


def test_a_setting_of_another_release_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("loadBalancerEnabled=true\nloadBalancerServiceUnitTableViewSyncer=None\n", encoding="utf-8")
    assert main(["lint", str(path)]) == 0
    assert main(["lint", str(path), "--release", "3.0.9"]) == 1
    assert (
        f"{path}:2: warning: Pulsar 3.0.7 does not have loadBalancerServiceUnitTableViewSyncer"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("name", "of", "readers", "remedy"),
    [
        # 1 is no value that it can have, so it was left out, and not named.
        ("loadBalancerServiceUnitTableViewSyncer", "3.0.0", "Pulsar 4.0.0 and later", "Delete the line."),
        ("loadBalancerAvgShedderLowThreshold", "3.2.0", "Pulsar 3.0.7, and 3.3.2 and later", "Delete the line."),
        # Not loadBalancerSheddingConditionHitCountThreshold: that is another setting, although the names are alike.
        (
            "loadBalancerAvgShedderHitCountLowThreshold",
            "3.0.0",
            "Pulsar 3.0.7, and 3.3.2 and later",
            "Delete the line.",
        ),
        (
            "loadBalancerBandwidthInResourceWeight",
            "3.0.0",
            "Pulsar 4.0.0 and later",
            "Write loadBalancerBandwithInResourceWeight.",
        ),
    ],
)
def test_the_releases_that_read_a_setting_are_named(
    tmp_path: Path, name: str, of: str, readers: str, remedy: str
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"loadBalancerEnabled=true\n{name}=1\n", encoding="utf-8")
    (found,) = lint_file(path, release(of))
    assert found.evidence == f"Only {readers} read it."
    assert found.remedy == remedy
    for command in found.command:
        subprocess.run(["sh", "-c", command], check=True)
    assert lint_file(path, release(of)) == ()


def test_of_two_names_of_a_setting_the_one_that_is_not_read_is_deleted(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    names = ("loadBalancerBandwithInResourceWeight", "loadBalancerBandwidthInResourceWeight")
    path.write_text("".join(f"{name}=0.5\n" for name in names), encoding="utf-8")
    (found,) = lint_file(path, release("3.0.0"))
    assert found.remedy == "Delete the line."
    assert found.command == (f"sed -i 2d {path}",)


def test_sarif_names_rules_results_and_lines(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(conf), "--sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules)) == 5
    for one in run["results"]:
        assert rules[one["ruleIndex"]] == one["ruleId"]
        assert one["level"] in {"error", "warning", "note"}
        assert one["message"]["text"]
        (location,) = one["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == conf.as_uri()
        assert location["physicalLocation"]["region"]["startLine"] > 1


def test_sarif_says_of_a_rule_what_it_is_and_not_what_one_finding_has(tmp_path: Path) -> None:
    """A rule had the title and remedy of its first finding, with its numbers and names."""
    first, second = (tmp_path / name for name in ("first.conf", "second.conf"))
    first.write_text("loadBalancerSheddingEnabld=true\ndefaultNumberOfNamespaceBundles=200\n", encoding="utf-8")
    second.write_text("loadBalancerEnabld=true\ndefaultNumberOfNamespaceBundles=300\n", encoding="utf-8")
    logs = [lint_sarif(worst_first(lint_file(path))) for path in (first, second)]
    rules = [log["runs"][0]["tool"]["driver"]["rules"] for log in logs]
    assert rules[0] == rules[1]
    assert {one["id"] for one in rules[0]} == {"misspelt_setting", "namespaces_born_full"}
    for one in rules[0]:
        assert one["fullDescription"]["text"] == MEANINGS[one["id"]]
        assert one["fullDescription"]["text"].startswith(one["shortDescription"]["text"])
        assert not any(number in str(one) for number in ("200", "Enabld"))


def test_every_code_has_a_short_description() -> None:
    found = [LintFinding(code=one, severity="low", title="a", evidence="", remedy="b", source="c") for one in MEANINGS]
    rules = lint_sarif(found)["runs"][0]["tool"]["driver"]["rules"]
    assert len(rules) == len(MEANINGS)
    for one in rules:
        short = one["shortDescription"]["text"]
        assert 15 < len(short) <= 250
        assert short.endswith(".")
        assert not short.endswith("..")


UNIFORM = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"
OF_UNIFORM = "loadBalancerMsgRateDifferenceShedderThreshold"


def set_in(**settings: object) -> Snapshot:
    """A calm cluster with some settings."""
    return cluster((0.5, 0.5, 0.5), settings=settings)


def test_a_setting_of_a_cluster_that_nothing_reads_is_named() -> None:
    """Only of a file it was, though the settings of a cluster are known as well."""
    one = set_in(**{OF_UNIFORM: 10.0})
    [found] = [each for each in lint_snapshot(one, "s") if each.code == "setting_without_effect"]
    assert (found.settings, found.source, found.line) == ((OF_UNIFORM,), "s", 0)
    assert found.evidence == "Only UniformLoadShedder reads it, but LeastLongTermMessageRate, ThresholdShedder run."
    assert found.remedy == "Set it back to its default, 50.0, or set what reads it."
    assert any(f"--config {OF_UNIFORM} --value 50" in command for command in found.command)
    used = set_in(**{OF_UNIFORM: 10.0, "loadBalancerLoadSheddingStrategy": UNIFORM})
    for quiet in (set_in(), used):
        assert "setting_without_effect" not in {each.code for each in lint_snapshot(quiet, "s")}


def test_of_a_file_that_is_tried_on_a_cluster_too_the_line_is_named(tmp_path: Path) -> None:
    """With a cluster the file was not asked."""
    path = tmp_path / "broker.conf"
    path.write_text(f"loadBalancerEnabled=true\n{OF_UNIFORM}=10\n", encoding="utf-8")
    [found] = [one for one in lint_file(path, None, set_in(), "s") if one.code == "setting_without_effect"]
    assert (found.line, found.source) == (2, str(path))
    assert found.command == (f"sed -i 2d {path}",)
    uniform = set_in(loadBalancerLoadSheddingStrategy=UNIFORM, **{OF_UNIFORM: 10.0})
    of_brokers = replace(uniform, info=replace(uniform.info, settings_from="brokers"))
    codes = {one.code for one in lint_file(path, None, of_brokers, "s")}
    assert "setting_without_effect" not in codes, "the brokers run the strategy that reads it"


def test_a_cluster_is_checked_with_tried_remedies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "story.zip", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {"ema_lag", "split_cascade", "fighting_strategies"} <= {one["code"] for one in found}
    assert all("Tried: " in one["tried"] for one in found)
    assert all(one["command"] for one in found)
    assert main(["lint", "story.zip", "--severity", "high"]) == 0


def test_a_file_is_tried_on_a_cluster(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(conf), "--snapshot", "real-modular.json", "--json"]) == 1
    found = {one["code"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert found["namespaces_born_full"]["line"] == 5
    assert "Tried: " in found["namespaces_born_full"]["tried"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Nothing to check."),
        (["/no/such.conf"], "error: "),
        (["--release", "latest", "story.zip"], "There is no release 'latest'."),
    ],
)
def test_bad_input_is_one_clear_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_file_without_settings_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.conf"
    path.write_text("colour=red\n", encoding="utf-8")
    assert main(["lint", str(path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2.8.4", "those of 3.0.0, the oldest release known"),
        ("9.9.9", "the nearest release known that is not newer"),
        ("4.0.8", ""),
        ("4.2.4-SNAPSHOT", ""),
    ],
)
def test_a_release_that_is_not_known_is_named(
    conf: Path, version: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", str(conf), "--release", version]) == 1
    errors = capsys.readouterr().err
    assert said in errors
    assert (f"note: For Pulsar {version}" in errors) is bool(said)


@pytest.mark.parametrize("value", ["{{ .Values.x }}", "${MINUTES}", "$(MINUTES)", "$MINUTES", "<%= @minutes %>"])
def test_a_value_that_a_template_fills_in_is_named(tmp_path: Path, value: str) -> None:
    """It had no finding, and a file with such values alone was said to hold no settings."""
    path = tmp_path / "broker.conf"
    path.write_text(f"# a comment\nloadBalancerSheddingIntervalMinutes={value}\n", encoding="utf-8")
    [found] = lint_file(path)
    assert (found.code, found.line) == ("value_to_fill_in", 2)
    assert "its value was not checked" in found.evidence


def test_why_nothing_is_read_of_a_file_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was said to hold no settings, which a person who sees some does not understand."""
    path = tmp_path / "changes.sh"
    path.write_text("pulsar-admin brokers update-dynamic-config --config loadBalancerSheddingEnabled --value false\n")
    assert main(["lint", str(path)]) == 2
    said = capsys.readouterr().err
    assert "It holds no settings of Pulsar's load balancer." in said
    assert "a command that changes the override of loadBalancerSheddingEnabled; use brokers get-all" in said


def test_the_default_of_a_variable_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("loadBalancerSheddingIntervalMinutes=${MINUTES:-often}\n", encoding="utf-8")
    found = {one.code: one for one in lint_file(path)}
    assert set(found) == {"value_to_fill_in", "invalid_value"}
    assert "its default was checked" in found["value_to_fill_in"].evidence


def test_what_is_not_checked_is_named(tmp_path: Path) -> None:
    """A script with settings and overrides: nothing was said of the overrides."""
    path = tmp_path / "broker, line 1: new.conf"
    command = "pulsar-admin brokers update-dynamic-config --config loadBalancerBrokerOverloadedThresholdPercentage"
    path.write_text(f"loadBalancerSheddingIntervalMinutes=7\nzookeeperServers=a\n{command} --value 700\n")
    (found,) = lint_file(path)
    assert (found.code, found.severity, found.line) == ("not_checked", "low", 3)
    assert found.evidence.startswith("A command that changes the override of loadBalancerBrokerOverloadedThreshold")
    path.write_text("loadBalancerSheddingIntervalMinutes=7\nsome words that are no setting\n")
    (found,) = lint_file(path)
    assert (found.code, found.evidence) == ("not_checked", "1 line of an unknown kind among the rest.")


@pytest.mark.parametrize("rule", [rule for rule in WRONG if rule not in UNSEEN])
def test_pages_show_what_is_wrong_with_the_settings_of_a_cluster(rule: str) -> None:
    """Overview has what this command finds, or what it comes to: both were asked of the same cluster."""
    manager = LoadManager.EXTENSIBLE if rule in {"load_data_expires", "out_of_reach"} else LoadManager.MODULAR
    made = cluster((0.6, 0.5, 0.55), load_manager=manager, settings=WRONG[rule])
    here = {one.code for one in setting_findings(made.settings)} - SEEN_IN_CYCLES
    shown = {one.code for one in diagnose(simulate(made, unchanged("4.2.4", cycles=3)))}
    followed = {code for cause, (follow, _) in EXPLAINS.items() if cause in shown for code in follow}
    assert here <= shown | followed
    assert here or rule in {"unpaired_placement", "strategy_not_run"}
    assert {one.code for one in lint_snapshot(made, "a")} >= shown & here


def test_values_of_a_chart_get_no_lines_of_another_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands wrote name=value to the end of a YAML file, which then could not be read any more."""
    values = tmp_path / "values.yaml"
    values.write_text('broker:\n  configData:\n    loadBalancerSheddingEnabled: "false"\n')
    assert main(["lint", str(values)]) == 1
    said = capsys.readouterr().out
    assert "# Write loadBalancerSheddingEnabled=true the way that" in said
    assert ">>" not in said


def test_a_strategy_that_cannot_run_is_named_as_the_file_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The finding named ThresholdShedder, of which the file has no word."""
    extensions, impl = (f"org.apache.pulsar.broker.loadbalance.{one}" for one in ("extensions.scheduler", "impl"))
    conf = tmp_path / "broker.conf"
    conf.write_text(
        f"loadManagerClassName={impl}.ModularLoadManagerImpl\n"
        f"loadBalancerLoadSheddingStrategy={extensions}.TransferShedder\n"
        f"loadBalancerLoadPlacementStrategy={impl}.AvgShedder\n"
    )
    assert main(["lint", str(conf)]) == 1
    said = capsys.readouterr().out
    assert "is TransferShedder, which the modular load manager cannot run" in said
    assert "does not start with it" in said
    assert "[fighting_strategies]" not in said  # which placement goes with it follows once a strategy runs


def test_a_cluster_without_shedding_has_one_finding_about_it() -> None:
    """The switch was named twice, with the same remedy."""
    off = {"loadBalancerSheddingEnabled": False}
    hot = cluster((0.9, 0.3, 0.3), settings=off)
    assert [one.code for one in lint_snapshot(hot, "hot") if "is false" in one.title] == ["shedding_off"]
    calm = cluster((0.5, 0.5, 0.5), settings=off)
    assert [one.code for one in lint_snapshot(calm, "calm") if "is false" in one.title] == ["balancer_off"]


RUNTIME = {
    "loadBalancerSheddingEnabled": "true",
    "loadBalancerSheddingGracePeriodMinutes": "0",
    "brokerServicePort": "",
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("runtime.json", json.dumps(RUNTIME)),
        ("runtime.txt", "".join(f"{name}    {value}\n" for name, value in RUNTIME.items() if value)),
    ],
)
def test_settings_that_a_broker_answered_with_are_checked(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were said to hold no settings, although they are all that is in force."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert main(["lint", str(path), "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["code"], found["source"]) == ("no_grace_period", str(path))
    change = "--config loadBalancerSheddingGracePeriodMinutes --value 30"
    assert found["command"] == [f"pulsar-admin brokers update-dynamic-config {change}"]
    assert main(["lint", str(path), "--snapshot", "real-modular.json", "--json"]) == 1
    tried = {one["code"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert tried["no_grace_period"]["source"] == str(path)
