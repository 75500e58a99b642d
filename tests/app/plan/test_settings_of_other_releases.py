"""Settings that the release of a cluster does not have: every way to set one says that brokers ignore it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest

from planner.cluster.release_notes import ignored_note, release_notes
from planner.cluster.releases import RELEASES, release
from planner.cluster.setting import Setting, SettingValue, conf_value
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.doors.lint import lint_snapshot
from planner.pulsar.release_rules import RELEASE_RULES
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from tests.app.simulate.traces import cluster

CODE: Final = "setting_of_another_release"
WITH_OTHERS: Final = [name for name in RELEASES if release(name).others]


def another(setting: Setting) -> SettingValue:
    """Return a value that is not what the release does without the setting."""
    match setting.kind:
        case "boolean":
            return not setting.default
        case "int" | "long" | "double":
            return int(float(str(setting.default))) + 1
        case "names":
            return ("other/names",)
        case "optional double":
            return 10.0
    return next((one for one in setting.choices if one != setting.default), "another.Class")


def ignored_by(name: str) -> Mapping[str, SettingValue]:
    return {one.name: another(one) for one in release(name).others.values()}


def of_release(name: str, settings: Mapping[str, SettingValue]) -> Snapshot:
    made = cluster((0.6, 0.5, 0.55))
    info = replace(made.info, pulsar_version=name)
    return replace(made, info=info, settings=Settings(settings, release(name)))


@pytest.mark.parametrize("name", WITH_OTHERS)
def test_each_setting_that_a_release_lacks_is_named_on_pages_and_in_plans(name: str) -> None:
    own = release(name)
    for one, value in ignored_by(name).items():
        notes = release_notes(name, Settings({one: value}, own), RELEASE_RULES)
        assert f"These settings have no effect in Pulsar {name}: {one}." in notes
    ignored = ignored_by(name)
    (said,) = ignored_note(Settings(ignored, own), ignored)
    assert said in simulate(of_release(name, ignored), unchanged(name, cycles=2)).notes
    asked = unchanged(name, cycles=2, settings={one: conf_value(value) for one, value in ignored.items()})
    assert said in simulate(of_release(name, {}), asked).notes


@pytest.mark.parametrize("name", WITH_OTHERS)
def test_lint_names_each_setting_of_a_snapshot_that_its_release_lacks(name: str) -> None:
    """It looked for them in files only."""
    ignored = ignored_by(name)
    found = [one for one in lint_snapshot(of_release(name, ignored), "a") if one.code == CODE]
    assert {one.settings[0] for one in found} == set(ignored)
    assert not [one for one in lint_snapshot(of_release(name, {}), "a") if one.code == CODE]
