"""`planner lint` names the line as editors count it, and its commands change that line and nothing else."""

import codecs
import gzip
import subprocess
from pathlib import Path

import pytest

from planner.doors.lint import lint_file
from planner.doors.read import read_outputs

MISSPELT = "loadBalancerSheddingEnabld"
RIGHT = "loadBalancerSheddingEnabled"
BOUND = "loadBalancerNamespaceMaximumBundles"
FULL = "defaultNumberOfNamespaceBundles"
SHEDDING = "loadBalancerLoadSheddingStrategy"
AVG = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"


def in_file(tmp_path: Path, content: str | bytes, name: str = "broker.conf") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def mend(path: Path) -> None:
    """Run the commands of the first finding that has some, until none has."""
    for _ in range(9):
        commands = next((one.command for one in lint_file(path) if one.command), ())
        if not commands or commands[0].startswith("#"):
            return
        for command in commands:
            subprocess.run(["sh", "-c", command], check=True)


@pytest.mark.parametrize("mark", ["\u2028", "\x0b", "\x0c", "\x85", "\x1c"])
def test_only_ends_of_lines_end_a_line(tmp_path: Path, mark: str) -> None:
    """Signs that Python takes for ends of lines moved the number, and `sed` changed another line."""
    path = in_file(tmp_path, f"# one{mark}two\n{MISSPELT}=true\nloadBalancerEnabled=true\n")
    assert [one.line for one in lint_file(path)] == [2]
    mend(path)
    assert path.read_bytes().decode() == f"# one{mark}two\n{RIGHT}=true\nloadBalancerEnabled=true\n"


def test_files_of_windows_keep_their_line_ends(tmp_path: Path) -> None:
    path = in_file(tmp_path, f"# a\r\n{MISSPELT}=true\r\n{BOUND}=64\r\n")
    mend(path)
    assert path.read_bytes() == f"# a\r\n{RIGHT}=true\r\n{BOUND}=64\r\n".encode()


@pytest.mark.parametrize(
    "content",
    [
        codecs.BOM_UTF16_LE + f"# a\r\n{MISSPELT}=true\r\n".encode("utf-16-le"),
        gzip.compress(f"# a\n{MISSPELT}=true\n".encode()),
        f"# a\r{MISSPELT}=true\r".encode(),
    ],
    ids=["UTF-16", "gzip", "old ends of lines"],
)
def test_a_file_that_sed_cannot_change_has_its_line_and_no_command(tmp_path: Path, content: bytes) -> None:
    """The line of a file in UTF-16 was not found, and the commands did nothing."""
    (found,) = (one for one in lint_file(in_file(tmp_path, content)) if one.code != "encoding_not_read")
    assert (found.line, found.command) == (2, ())


def test_a_mark_at_the_beginning_hides_no_line(tmp_path: Path) -> None:
    path = in_file(tmp_path, codecs.BOM_UTF8 + f"# a\n{BOUND}=64\n{FULL}=200\n".encode())
    (found,) = lint_file(path)
    assert found.line == 3
    mend(path)
    assert lint_file(path) == ()


def test_a_setting_behind_a_byte_order_mark_is_none_for_brokers(tmp_path: Path) -> None:
    """Java reads the mark as a part of the first name."""
    path = in_file(tmp_path, codecs.BOM_UTF8 + f"{BOUND}=64\r\n{FULL}=4\r\n".encode())
    (found,) = lint_file(path)
    assert (found.code, found.line, found.settings) == ("encoding_not_read", 1, (BOUND,))
    mend(path)
    assert path.read_bytes() == f"{BOUND}=64\r\n{FULL}=4\r\n".encode()
    assert lint_file(path) == ()


@pytest.mark.parametrize("content", [f"export {BOUND}=64\n", f"PULSAR_PREFIX_{BOUND}=64\n", f"data:\n  {BOUND}: 64\n"])
def test_a_byte_order_mark_of_what_becomes_another_file_is_left_alone(tmp_path: Path, content: str) -> None:
    assert lint_file(in_file(tmp_path, codecs.BOM_UTF8 + content.encode())) == ()


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF16_LE], ids=["without a mark", "with a mark"])
def test_brokers_read_nothing_in_utf_16(tmp_path: Path, mark: bytes) -> None:
    (found,) = lint_file(in_file(tmp_path, mark + f"{BOUND}=64\r\n".encode("utf-16-le")))
    assert (found.code, found.severity, found.command) == ("encoding_not_read", "high", ())


GRACE = "loadBalancerSheddingGracePeriodMinutes"


@pytest.mark.parametrize("counts", [1, 2])
def test_of_variables_the_one_with_the_prefix_counts(tmp_path: Path, counts: int) -> None:
    """The last line was named, and the commands deleted the one that counts."""
    both = [f"PULSAR_PREFIX_{GRACE}=0\n", f"{GRACE}=30\n"]
    path = in_file(tmp_path, "".join(both if counts == 1 else both[::-1]), "broker.env")
    found = {one.code: one for one in lint_file(path)}
    assert {code: one.line for code, one in found.items()} == {"setting_twice": counts, "no_grace_period": counts}
    assert found["setting_twice"].evidence.startswith(f"Lines 1, 2: images of Pulsar take line {counts}")
    mend(path)
    assert path.read_text() == f"PULSAR_PREFIX_{GRACE}=30\n"
    assert lint_file(path) == ()


def test_in_a_chart_the_line_with_the_prefix_is_named(tmp_path: Path) -> None:
    lines = ["broker:", "  configData:", f'    PULSAR_PREFIX_{GRACE}: "0"', f'    {GRACE}: "30"', ""]
    found = lint_file(in_file(tmp_path, "\n".join(lines), "values.yaml"))
    assert [(one.code, one.line) for one in found] == [("no_grace_period", 3)]


CONFIG_MAP = f"""apiVersion: v1
kind: ConfigMap
metadata:
  name: broker
data:
  broker.conf: |
    loadBalancerEnabled=true
    {BOUND}=64x
    {MISSPELT}=true
"""


def test_the_commands_leave_a_config_map_valid(tmp_path: Path) -> None:
    """They replaced whole lines, so that a text in YAML lost its blanks and was YAML no more."""
    path = in_file(tmp_path, CONFIG_MAP, "map.yaml")
    mend(path)
    assert path.read_text() == CONFIG_MAP.replace("64x", "128").replace(MISSPELT, RIGHT)
    assert read_outputs(path).configurations[0].values[BOUND] == "128"


@pytest.mark.parametrize("before", ["export ", "PULSAR_PREFIX_", "export PULSAR_PREFIX_", ""])
@pytest.mark.parametrize("end", ["\n", ""])
def test_what_stands_before_a_name_stays(tmp_path: Path, before: str, end: str) -> None:
    """The prefix and `export` were lost, and a new line was glued to one without an end."""
    path = in_file(tmp_path, f"{before}{BOUND}=64x\n{before}{SHEDDING}={AVG}{end}")
    mend(path)
    every = path.read_text().splitlines()
    assert every[1:] == [f"{before}{SHEDDING}={AVG}", f"{before}loadBalancerLoadPlacementStrategy={AVG}"]
    assert every[0].startswith(f"{before}{BOUND}=")
    assert [one.code for one in lint_file(path) if one.command] == []


def test_a_value_on_two_lines_is_left_to_a_person(tmp_path: Path) -> None:
    path = in_file(tmp_path, f"loadBalancerEnabled=true\n{BOUND}=\\\n  64x\n")
    (found,) = lint_file(path)
    assert found.line == 2
    assert found.command == (f"# Write {BOUND}=128 the way that {path} has its settings: line 2.",)


def test_nothing_is_written_behind_a_script(tmp_path: Path) -> None:
    """What a script writes into a file is in the middle of it; a line at its end would be a command."""
    text = f"#!/bin/sh\ncat > broker.conf <<EOF\n{SHEDDING}={AVG}\nEOF\nexec bin/pulsar broker\n"
    path = in_file(tmp_path, text, "start.sh")
    [found] = [one for one in lint_file(path) if one.code == "fighting_strategies"]
    assert [command[:1] for command in found.command] == ["#"]


def test_a_number_that_is_none_is_of_another_type(tmp_path: Path) -> None:
    """It was called out of range, although a broker does not start with it."""
    (found,) = lint_file(in_file(tmp_path, "loadBalancerHistoryResourcePercentage=0,9\n"))
    assert found.evidence == "It has another type: a broker does not start with it."
    (found,) = lint_file(in_file(tmp_path, "loadBalancerHistoryResourcePercentage=NaN\n"))
    assert found.evidence == "It is out of range."


def test_a_switch_that_is_read_as_false_is_named_once(tmp_path: Path) -> None:
    (found,) = lint_file(in_file(tmp_path, f'{RIGHT}="true"\n'))
    assert found.code == "read_as_false"


def test_a_comment_of_javas_properties_is_one(tmp_path: Path) -> None:
    assert lint_file(in_file(tmp_path, f"loadBalancerEnabled=true\n! {RIGHT}=false\n")) == ()


def test_settings_of_other_components_are_no_finding(tmp_path: Path) -> None:
    """Each file of Compose has them, so that each had a note."""
    text = f"""services:
  proxy:
    environment:
      {RIGHT}: "false"
  broker:
    environment:
      {RIGHT}: "true"
"""
    path = in_file(tmp_path, text, "compose.yaml")
    assert read_outputs(path).expected == ("compose.yaml: settings of proxy are not those of brokers.",)
    assert lint_file(path) == ()


EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
LEAST_USED = "org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight"
MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
UNIFORM = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"
ROUND_ROBIN = "org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            ["loadBalancerMsgRateDifferenceShedderThreshold=10"],
            "Only UniformLoadShedder reads it, but LeastLongTermMessageRate, ThresholdShedder run.",
        ),
        (
            [f"{SHEDDING}={UNIFORM}", "loadBalancerBrokerThresholdShedderPercentage=20"],
            "Only ThresholdShedder reads it, but LeastLongTermMessageRate, UniformLoadShedder run.",
        ),
        (
            ["loadBalancerAverageResourceUsageDifferenceThresholdPercentage=20"],
            "Only LeastResourceUsageWithWeight reads it, but LeastLongTermMessageRate, ThresholdShedder run.",
        ),
        (
            ["loadBalancerBrokerLoadTargetStd=0.1"],
            "Only the extensible load manager reads it, but the modular one runs.",
        ),
        (
            [f"loadManagerClassName={EXTENSIBLE}", f"{SHEDDING}=", "loadBalancerBrokerThresholdShedderPercentage=20"],
            "Only the modular load manager reads it, but the extensible one runs.",
        ),
        (
            ["loadBalancerPlacementStrategy=weightedRandomSelection"],
            "Only SimpleLoadManagerImpl reads it, but the modular load manager runs.",
        ),
    ],
)
def test_a_setting_that_nothing_reads_is_named(tmp_path: Path, lines: list[str], why: str) -> None:
    path = in_file(tmp_path, "\n".join([*lines, ""]))
    [found] = [one for one in lint_file(path) if one.code == "setting_without_effect"]
    assert (found.evidence, found.severity, found.line) == (why, "low", len(lines))
    assert found.command == (f"sed -i {len(lines)}d {path}",)


@pytest.mark.parametrize(
    "lines",
    [
        ["loadBalancerMsgRateDifferenceShedderThreshold=50"],
        [f"{SHEDDING}={UNIFORM}", "loadBalancerMsgRateDifferenceShedderThreshold=10"],
        [f"{SHEDDING}=com.example.OurOwn", "loadBalancerMsgRateDifferenceShedderThreshold=10"],
        ["loadManagerClassName=com.example.OurManager", "loadBalancerMsgRateDifferenceShedderThreshold=10"],
        [f"loadBalancerLoadPlacementStrategy={ROUND_ROBIN}", "loadBalancerBrokerOverloadedThresholdPercentage=80"],
        [f"loadManagerClassName={EXTENSIBLE}", "loadBalancerCPUResourceWeight=0.5"],
        ["loadBalancerSheddingGracePeriodMinutes=20", "loadBalancerBrokerMaxTopics=100", "preferLaterVersions=true"],
        [f"{RIGHT}=false", "loadBalancerMsgRateDifferenceShedderThreshold=10"],
        ["loadBalancerMaxNumberOfBundlesInBundleLoadReport=-1", "loadBalancerSheddingExcludedNamespaces=shop/orders"],
        [f"{SHEDDING}={UNIFORM}", "loadBalancerCPUResourceWeight=0.5"],
    ],
)
def test_what_may_be_read_is_not_named(tmp_path: Path, lines: list[str]) -> None:
    codes = [one.code for one in lint_file(in_file(tmp_path, "\n".join([*lines, ""])))]
    assert "setting_without_effect" not in codes


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("loadBalancerStrategy", ""),  # of shedding, of placement, or of the placement of the first load manager
        ("loadBalancerBundleMaxTopics", "loadBalancerNamespaceBundleMaxTopics"),
        ("loadBalancerOverloadedThreshold", "loadBalancerBrokerOverloadedThresholdPercentage"),
        ("loadBalancerMaxBundles", "loadBalancerNamespaceMaximumBundles"),
    ],
)
def test_a_name_that_may_mean_several_settings_is_not_said_to_mean_one(tmp_path: Path, name: str, meant: str) -> None:
    """The command wrote a setting that nothing reads in its place."""
    [found] = lint_file(in_file(tmp_path, f"loadBalancerEnabled=true\n{name}=1\n"))
    assert found.code == ("misspelt_setting" if meant else "unknown_setting")
    assert found.remedy == (f"Write {meant}." if meant else "Delete the line, or correct the name.")


def test_a_misspelt_variable_without_the_prefix_is_named_among_those_with_it(tmp_path: Path) -> None:
    """A form with the prefix on some of its settings hid the others that are misspelt."""
    path = tmp_path / "brokers.yaml"
    path.write_text(
        "kind: PulsarBroker\nspec:\n  config:\n    custom:\n      loadBalancerShedingEnabled: 'true'\n"
        "      PULSAR_PREFIX_defaultNumberOfNamespaceBundles: '8'\n      PULSAR_MEM: -Xmx2g\n",
        encoding="utf-8",
    )
    [found] = lint_file(path)
    assert (found.code, found.line) == ("misspelt_setting", 5)
    assert found.remedy == "Write loadBalancerSheddingEnabled."


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "brokers.yaml",
            (
                "containers:\n- name: broker\n  env:\n  - name: loadBalancerEnabled\n    value: 'true'\n"
                "  - name: loadBalancerSheddingIntervalMinutes\n    valueFrom: {configMapKeyRef: {name: a, key: b}}\n"
            ),
            "Left out: loadBalancerSheddingIntervalMinutes. The text names only where the values are",
        ),
        (
            "main.tf",
            (
                'resource "helm_release" "pulsar" {\n  set {\n    name  = "broker.configData.loadBalancerEnabled"\n'
                '    value = "true"\n  }\n  set {\n    name = "broker.configData.loadBalancerSheddingIntervalMinutes"\n'
                "    value = var.minutes\n  }\n}\n"
            ),
            "loadBalancerSheddingIntervalMinutes left out: variables",
        ),
    ],
)
def test_a_setting_keeps_its_letters_where_a_sentence_begins(tmp_path: Path, name: str, text: str, said: str) -> None:
    """It was LoadBalancerSheddingIntervalMinutes, which is no name of a setting."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    [found] = [one for one in lint_file(path) if one.code == "not_checked"]
    assert found.evidence.startswith(said)


@pytest.mark.parametrize(
    ("manager", "line"),
    [
        (EXTENSIBLE, "loadBalancerDistributeBundlesEvenlyEnabled=false"),
        (EXTENSIBLE, "loadBalancerAutoUnloadSplitBundlesEnabled=false"),
        (EXTENSIBLE, f"loadBalancerLoadPlacementStrategy={LEAST_USED}"),
        (MODULAR, "loadBalancerSplitIntervalMinutes=5"),
        (MODULAR, "loadBalancerNamespaceBundleSplitConditionHitCountThreshold=9"),
    ],
)
def test_what_only_the_other_load_manager_reads_has_no_effect(tmp_path: Path, manager: str, line: str) -> None:
    """Only settings of strategies were known."""
    path = in_file(tmp_path, f"loadManagerClassName={manager}\n{line}\n")
    [found] = [one for one in lint_file(path) if one.code == "setting_without_effect"]
    assert found.title == f"{line.partition('=')[0]} has no effect"
    other = MODULAR if manager == EXTENSIBLE else EXTENSIBLE
    path = in_file(tmp_path, f"loadManagerClassName={other}\n{line}\n")
    assert "setting_without_effect" not in {one.code for one in lint_file(path)}
