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
