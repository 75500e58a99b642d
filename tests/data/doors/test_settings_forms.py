"""Settings in every form in which people have them at hand come out the same, and nothing beside them does."""

import io
from pathlib import Path

import pytest

from planner.doors.read import Given, read_given, read_outputs
from planner.doors.reading import Reading

INPUTS = Path(__file__).parent / "inputs"
INTERVAL, ENABLED = "loadBalancerSheddingIntervalMinutes", "loadBalancerEnabled"


def read(text: str) -> Reading:
    return read_given([Given("pasted text", io.BytesIO(text.encode()))], now_ms=1)


@pytest.mark.parametrize(
    ("name", "interval"),
    [
        ("settings_file/grep.txt", "5"),
        ("settings_file/systemd.txt", "5"),
        ("settings_file/exported.txt", "5"),
        ("settings_file/continued.conf", "5"),
        ("options_of_commands/docker_run.txt", "5"),
        ("options_of_commands/helm_set.txt", "5"),
        ("options_of_commands/docker_inspect_format.txt", "5"),
        ("settings_in_yaml/docker_inspect_env.json", "7"),
        ("settings_in_yaml/describe_config_map.txt", "7"),
    ],
)
def test_each_form_gives_the_same_settings(name: str, interval: str) -> None:
    reading = read_outputs(INPUTS / name)
    [found] = reading.configurations
    assert {INTERVAL: interval, ENABLED: "true"}.items() <= dict(found.values).items()
    assert "SECRET" not in repr(reading)


def test_a_value_may_go_on_in_the_next_line() -> None:
    [found] = read_outputs(INPUTS / "settings_file" / "continued.conf").configurations
    assert found.values["loadBalancerLoadSheddingStrategy"].endswith("impl.ThresholdShedder")


def test_what_was_last_applied_is_no_second_file() -> None:
    """The annotation of `kubectl apply` holds JSON on a line of its own; it was read as settings after a change."""
    reading = read_outputs(INPUTS / "settings_in_yaml" / "config_map_applied.yaml")
    [found] = reading.configurations
    assert dict(found.values) == {INTERVAL: "7"}
    assert not reading.not_used


@pytest.mark.parametrize(
    ("name", "setting", "before", "after"),
    [
        ("unified.diff", INTERVAL, "1", "5"),
        ("plain.txt", "loadBalancerBrokerThresholdShedderPercentage", "10", "20"),
        ("git.txt", "loadBalancerNamespaceMaximumBundles", "128", "256"),
    ],
)
def test_differences_are_settings_before_and_after(name: str, setting: str, before: str, after: str) -> None:
    one, other = read_outputs(INPUTS / "differences" / name).configurations
    assert (one.values[setting], other.values[setting]) == (before, after)
    assert one.source.file.endswith("(before)")


def test_names_without_values_are_no_settings() -> None:
    reading = read("$ pulsar-admin brokers list-dynamic-config\nloadBalancerEnabled\nloadManagerClassName\n")
    assert reading.found == ()
    [why] = reading.not_used
    assert why.startswith("pasted text, line 2: names of settings without values; use brokers get-all-dynamic-config")


def test_settings_as_java_prints_them_are_dynamic_below_their_command() -> None:
    reading = read_outputs(INPUTS / "settings_as_java" / "dynamic.txt")
    assert reading.found == ("dynamic settings",)


@pytest.mark.parametrize(
    ("name", "release", "nic_gbps"),
    [("commons_2_3.txt", "2.3.0", None), ("lombok_3_0.txt", "3.0.7", 10.0), ("standalone_4_0.txt", "", None)],
)
def test_a_broker_logs_its_settings_when_it_starts(name: str, release: str, nic_gbps: float | None) -> None:
    """The fields count, and not the file that it read them from."""
    reading = read_outputs(INPUTS / "load_report" / "simple_2_5.json", INPUTS / "log_of_broker" / name)
    assert "settings of a running broker" in reading.text
    assert reading.snapshot is not None
    settings, info = reading.snapshot.settings, reading.snapshot.info
    assert settings.overrides[INTERVAL] == 7
    assert settings.overrides.get("loadBalancerOverrideBrokerNicSpeedGbps") == nic_gbps
    assert info.settings_from == "brokers"
    assert info.pulsar_version == release or not release
    assert not reading.not_used
    assert "not-kept" not in repr(reading)


def logged(text: str) -> Reading:
    report = (INPUTS / "load_report" / "simple_2_5.json").read_bytes()
    files = [Given("report.json", io.BytesIO(report)), Given("log.txt", io.BytesIO(text.encode()))]
    return read_given(files, now_ms=1)


@pytest.mark.parametrize("width", [100, 136, 200])
def test_a_log_that_a_terminal_broke_is_joined(width: int) -> None:
    text = (INPUTS / "log_of_broker" / "standalone_4_0.txt").read_text()
    reading = logged("\n".join(text[at : at + width] for at in range(0, len(text), width)))
    assert reading.snapshot is not None
    assert reading.snapshot.settings.overrides[INTERVAL] == 7
    assert not reading.not_used


def test_a_log_that_was_cut_is_named() -> None:
    """What stands last may be cut as well: 1 of 15."""
    text = (INPUTS / "log_of_broker" / "standalone_4_0.txt").read_text()
    reading = logged(text[: text.index(f"{INTERVAL}=7") + len(INTERVAL) + 2])
    assert reading.snapshot is not None
    assert INTERVAL not in reading.snapshot.settings.overrides
    assert "is cut" in " ".join(reading.not_used)
