"""What of the load balancer is switched off, by what, and how to switch it on: the first thing to know of a cluster."""

from dataclasses import dataclass

from planner.cluster.names import LOAD_BALANCER_ENABLED, SHEDDING_ENABLED
from planner.cluster.snapshot import Snapshot
from planner.cluster.switches import HELD_SWITCHES, Hold, hold_of
from planner.simulate.admin_commands import PROGRAM, DynamicChange, setting_command


@dataclass(frozen=True, slots=True)
class SwitchedOff:
    """A switch that is off.

    Attributes:
        setting: The switch.
        state: What is off, by what, and what that means, in a few sentences.
        remedy: How to turn it on.
        hold: The mark of the script that holds it off; None where none does.
    """

    setting: str
    state: str
    remedy: str
    hold: Hold | None = None

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.state} {self.remedy}"

    @property
    def stops_shedding(self) -> bool:
        """Whether nothing is shed because of it."""
        return self.setting in {SHEDDING_ENABLED, LOAD_BALANCER_ENABLED}


def switched_off(snapshot: Snapshot) -> tuple[SwitchedOff, ...]:
    """Return the switches of the load balancer that are off in a snapshot, the one with most effect first."""
    settings = snapshot.settings
    if not settings.flag(LOAD_BALANCER_ENABLED):
        text = f"Load balancing is off: {LOAD_BALANCER_ENABLED} is false in broker.conf. No bundle is shed or split."
        on = "To turn it on: set it to true, and restart the brokers one after the other."
        return (SwitchedOff(LOAD_BALANCER_ENABLED, text, on),)
    return tuple(_off(name, snapshot) for name in HELD_SWITCHES if not settings.flag(name))


def _off(name: str, snapshot: Snapshot) -> SwitchedOff:
    dynamic = snapshot.info.dynamic_settings
    what = HELD_SWITCHES[name]
    verb = "are" if what.endswith("s") else "is"
    hold = hold_of((dynamic or {}).get(name, ""))
    if hold is not None:
        text = f"{what} {verb} off: a script ({hold.script}) has held {name} since {hold.since:%Y-%m-%d %H:%M} UTC."
        again = "If the script is no longer running, run it again: it continues, and then restores the previous value."
        return SwitchedOff(name, text, again, hold)
    where = "" if dynamic is None else " in the dynamic configuration" if name in dynamic else " in broker.conf"
    change = DynamicChange(name=name, value="true", before="false", role="asked")
    on = setting_command("settings", PROGRAM, change).line
    effect = "No bundle is shed." if name == SHEDDING_ENABLED else "No bundle is split automatically."
    return SwitchedOff(
        name,
        f"{what} {verb} off: {name} is false{where}. {effect}",
        f"To turn {'them' if verb == 'are' else 'it'} on: {on}",
    )
