"""`python -m planner upgrade`: what another release of Pulsar does with a cluster."""

import json
import sys
from typing import Annotated, Final

from cyclopts import Parameter

from planner.cli.output import opened, show_price
from planner.cluster.releases import ReleaseName

_MOST_HOURS: Final = 168


def upgrade(
    *,
    snapshot: Annotated[str, Parameter(metavar="PATH_OR_SAMPLE")],
    to: Annotated[ReleaseName | None, Parameter()] = None,
    scenario: Annotated[str, Parameter(metavar="FILE_OR_LINK", allow_leading_hyphen=True)] = "",
    hours: Annotated[int, Parameter(metavar="N")] = 1,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Compare another release of Pulsar on a cluster.

    Prints the settings that are removed or change, what the load balancer does differently in the first hours on this
    cluster, the settings that keep today's behaviour, and the steps. Nothing is carried out. Exit status: 0 done, 2 an
    input cannot be read or does not match.

    Args:
        snapshot: A snapshot (folder, .zip, .json), a raw capture, or a sample by its file name, title or digest.
        to: The release (default: the last one of the next release line). An older release shows a downgrade.
        scenario: Scenario with further changes: a file, a link, or - for standard input.
        hours: Hours to simulate on both releases.
        as_json: Print everything as JSON.
    """
    from planner.cluster.errors import ScenarioError
    from planner.explain.upgrade import next_release
    from planner.share.plan_text import printed
    from planner.share.upgrade import ask_upgrade, upgrade_json, upgrade_lines
    from planner.workspace.opening import content_of, open_scenario

    if not 1 <= hours <= _MOST_HOURS:
        raise ScenarioError(f"{hours} hours is out of range.", where="--hours", remedy=f"Use 1 to {_MOST_HOURS}.")
    _, cluster = opened(snapshot)
    asked = content_of(open_scenario(scenario), cluster) if scenario else None
    target = to or next_release(cluster.info.pulsar_version)
    answer = ask_upgrade(cluster, target, asked, hours, show_price)
    if as_json:
        sys.stdout.write(json.dumps(upgrade_json(answer), indent=1) + "\n")
        return
    sys.stdout.write(printed(upgrade_lines(answer)))
