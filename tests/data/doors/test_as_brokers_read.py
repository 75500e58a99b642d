"""Lines of a `broker.conf` as brokers read them.

What is expected was answered by `PulsarConfigurationLoader.create` of Pulsar 4.2.4, asked for one line after the other.
"""

from pathlib import Path

import pytest

from planner.cluster.releases import REFERENCE
from planner.cluster.switches import hold_of
from planner.doors.lint import lint_file
from planner.doors.pieces import Configuration, Source
from planner.doors.read import read_outputs
from planner.doors.settings import spelling
from planner.doors.vocabulary import configuration

REST = "loadBalancerAutoUnloadSplitBundlesEnabled=true\nloadBalancerSheddingGracePeriodMinutes=30\n"
ON, EVERY = "loadBalancerEnabled", "loadBalancerSheddingIntervalMinutes"
STRATEGY, SPEED = "loadBalancerLoadSheddingStrategy", "loadBalancerOverrideBrokerNicSpeedGbps"
EXCLUDED = "loadBalancerSheddingExcludedNamespaces"


def read(folder: Path, text: str, name: str = "broker.conf") -> Configuration:
    path = folder / name
    path.write_text(text + REST, encoding="utf-8")
    (found,) = read_outputs(path).configurations
    return found


@pytest.mark.parametrize(
    ("line", "text", "read_false"),
    [
        (f"{ON}=yes", "false", "means true"),
        (f'{ON}="true"', "false", "means true"),
        (f"{ON}=true # inline", "false", "means true"),
        (f"{ON}=1", "false", "means true"),
        (f"{ON}=no", "false", "means false"),
        (f"{ON}=TRUE", "TRUE", ""),
        (f"{ON} = true", "true", ""),
        (f"{ON}: true", "true", ""),
        (f"{ON} false", "false", ""),
        (f"{ON}=", None, ""),
        (f"{ON}=false\n{ON}=", None, ""),
        (f'{STRATEGY}="org.x.Y"', '"org.x.Y"', ""),
        (f"{STRATEGY}=org.x.Y # c", "org.x.Y # c", ""),
        (f"{STRATEGY}=", None, ""),
        (f"{EVERY}=", None, ""),
        (f'{EXCLUDED}="a/b","c/d"', '"a/b","c/d"', ""),
        (f"{SPEED}=", None, ""),
        (f"{SPEED}=10", "10", ""),
    ],
)
def test_a_line_says_what_a_broker_makes_of_it(line: str, text: str | None, read_false: str, tmp_path: Path) -> None:
    found = read(tmp_path, f"{line}\n")
    name = line.partition("=")[0].partition(":")[0].split()[0]
    assert found.values.get(name) == text
    assert found.read_false.get(name) == {"": None, "means true": True, "means false": False}[read_false]
    assert not found.invalid
    assert ("as false" in " ".join(spelling([found]))) == bool(read_false)


@pytest.mark.parametrize("value", ["5 # c", '"5"', "5.0", "30k", "30_000", "0x10"])
def test_a_broker_does_not_start_with_a_number_of_another_form(value: str, tmp_path: Path) -> None:
    found = read(tmp_path, f"{EVERY}={value}\n")
    assert set(found.invalid) == {EVERY}
    assert EVERY not in found.values
    (finding,) = [one for one in lint_file(tmp_path / "broker.conf", REFERENCE) if one.code == "invalid_value"]
    assert "does not start" in finding.evidence


@pytest.mark.parametrize(
    "text", [f'export {ON}="true"\n', f'PULSAR_PREFIX_{ON}="true"\n', f'-e PULSAR_PREFIX_{ON}="true" \\\n']
)
def test_a_shell_takes_the_quotes_away(text: str, tmp_path: Path) -> None:
    path = tmp_path / "environment.txt"
    path.write_text(text + REST, encoding="utf-8")
    assert [one.values[ON] for one in read_outputs(path).configurations if ON in one.values] == ["true"]


def test_the_linter_names_what_is_read_as_false(tmp_path: Path) -> None:
    read(tmp_path, f"{ON}=yes\nloadBalancerSheddingEnabled=off\n")
    every = lint_file(tmp_path / "broker.conf", REFERENCE)
    found = {one.settings[0]: one for one in every if one.code == "read_as_false"}
    assert found[ON].severity == "high"
    assert found[ON].line == 1
    assert f"{ON}=true" in found[ON].command[0]
    assert found["loadBalancerSheddingEnabled"].severity == "low"


def test_the_linter_names_a_class_in_quotes(tmp_path: Path) -> None:
    official = "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"
    for written in (f'"{official}"', f"{official} # the default"):
        read(tmp_path, f"{STRATEGY}={written}\n")
        (finding,) = [one for one in lint_file(tmp_path / "broker.conf", REFERENCE) if one.code == "class_not_loaded"]
        assert f"{STRATEGY}={official}" in finding.command[0]


def test_the_mark_of_a_script_stays() -> None:
    mark = "false.held-by-6ee77aa694a4.since-20261125T033100Z.was-unset-true"
    found = configuration([("loadBalancerSheddingEnabled", mark)], Source("dynamic.json"), "dynamic")
    assert hold_of(found.values["loadBalancerSheddingEnabled"]) is not None
    assert not found.read_false


def test_what_stands_behind_a_class_and_an_equals_sign_is_not_kept(tmp_path: Path) -> None:
    """A damaged line may have a secret there; no class has such a name."""
    found = read(tmp_path, f'{STRATEGY}=org.apache.Mine","TOKEN=SECRET"]\n')
    assert "SECRET" not in repr(found)
    assert f"{STRATEGY} cannot have the value given there" in "".join(spelling([found]))


def test_a_value_out_of_range_of_a_running_broker_is_said_to_be_in_force() -> None:
    """Pulsar checks no bounds of these: a share below nothing decides, and was said to be impossible."""
    name = "loadBalancerHistoryResourcePercentage"
    runs, starts = (configuration([(name, "-1")], Source("some.json"), form) for form in ("runtime", "file"))
    (said,) = spelling([runs])
    assert said.startswith(f"some.json: brokers run with a value of {name} that is out of range.")
    assert said.endswith("Use a number of 0 or more (fraction).")
    assert f"{name} cannot have the value given there; it was left out." in "".join(spelling([starts]))
    wrong = configuration([(name, "much")], Source("some.json"), "runtime")
    assert "cannot have the value given there" in "".join(spelling([wrong]))


@pytest.mark.parametrize(
    ("lines", "value", "invalid"),
    [
        ((f"{EVERY}=2", f"{EVERY}=3 # half"), None, True),
        ((f"{EVERY}=abc", f"{EVERY}=3"), "3", False),
        ((f"{EVERY}=abc", f"{EVERY}="), None, False),
    ],
)
def test_of_several_lines_only_the_last_is_judged(
    lines: tuple[str, str],
    value: str | None,
    invalid: bool,  # noqa: FBT001 - a case
    tmp_path: Path,
) -> None:
    found = read(tmp_path, "\n".join(lines) + "\n")
    assert found.values.get(EVERY) == value
    assert (EVERY in found.invalid) == invalid
    codes = [one.code for one in lint_file(tmp_path / "broker.conf")]
    assert ("invalid_value" in codes) == invalid
    assert "setting_twice" in codes
