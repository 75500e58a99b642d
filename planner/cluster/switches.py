"""The switches of the load balancer that a script turns off while it runs, and the mark that says so.

While a script runs, the value of the switch in the dynamic configuration is a mark such as
`false.held-by-6ee77aa694a4.since-20261125T033100Z.was-unset-true`. Pulsar reads any text but `true` as false
(`FieldParser.stringToBoolean` calls `Boolean.valueOf`; seen with the classes of 3.0.7, 4.0.8, 4.2.4 and 5.0.0-M1). So
the mark is there exactly as long as the hold is, and whoever reads the dynamic configuration sees it: a script that
starts later, a capture, a person.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from planner.cluster.names import AUTO_BUNDLE_SPLIT_ENABLED, LOAD_BALANCER_ENABLED, SHEDDING_ENABLED
from planner.cluster.settings import Settings

HELD_SWITCHES: Final[Mapping[str, str]] = {SHEDDING_ENABLED: "Shedding", AUTO_BUNDLE_SPLIT_ENABLED: "Automatic splits"}
"""Effect of each switch; a script pauses both."""

_MARK = re.compile(r"false\.held-by-([0-9a-f]{12})\.since-(\d{8}T\d{6}Z)\.was-(set|unset)-(true|false)")


def shedding_is_off(settings: Settings) -> bool:
    """Say whether nothing is shed because a switch is off."""
    return not (settings.flag(LOAD_BALANCER_ENABLED) and settings.flag(SHEDDING_ENABLED))


@dataclass(frozen=True, slots=True)
class Hold:
    """A switch that a script holds off, or held when it was killed.

    Attributes:
        script: First 12 digits of the digest of its steps, as in the names of the files beside it.
        since: When it began.
        overridden: Whether the dynamic configuration had a value before.
        was_on: Whether the switch was on before.
    """

    script: str
    since: datetime
    overridden: bool
    was_on: bool


def hold_of(value: str) -> Hold | None:
    """Return what a value of the dynamic configuration says as a mark; None where it is none."""
    found = _MARK.fullmatch(value)
    if found is None:
        return None
    script, since, kind, was = found.groups()
    try:
        moment = datetime.strptime(since, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    return Hold(script, moment, kind == "set", was == "true")
