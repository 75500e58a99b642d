"""What it takes to give a cluster the settings of a scenario: the settings that change, and the commands."""

from planner.advise.advice import Configured
from planner.cluster.load_manager import LoadManager
from planner.cluster.setting import SettingValue
from planner.cluster.text import count
from planner.pulsar.manager.class_names import in_full
from planner.share.commands import CommandOptions, setting_changes, settings_commands
from planner.simulate.admin_commands import Command
from planner.simulate.scenario import Scenario


def changes_of(scenario: Scenario, configured: Configured) -> dict[str, tuple[SettingValue, SettingValue]]:
    """Return the settings that a scenario changes on a cluster, each with its value now and then.

    Raises:
        SettingError: A setting is unknown or out of bounds.
    """
    after = configured.settings.changed(**in_full(scenario.settings))
    manager = LoadManager(scenario.load_manager) if scenario.load_manager else configured.load_manager
    return setting_changes(configured.settings, after, (configured.load_manager, manager))


def apply_commands(scenario: Scenario, configured: Configured) -> tuple[Command, ...]:
    """Return the commands that give a cluster the settings of a scenario; its edits are none, and a note says so.

    Raises:
        SettingError: A setting is unknown or out of bounds.
    """
    changes = changes_of(scenario, configured)
    assumed: tuple[Command, ...] = ()
    if scenario.edits:
        number = count(len(scenario.edits), "edit")
        text = f"The replay also assumes {number} of the cluster; these commands change only settings."
        assumed = (Command(section="notes", note=text),)
    return (*assumed, *settings_commands(changes, CommandOptions()))
