"""`python -m planner fix`: the best that can be done about a cluster, found by simulating it."""

import sys
from typing import Annotated, Any

from cyclopts import Parameter

from planner.cli.output import opened, show_price, warn_switched_off


def fix(
    *,
    snapshot: Annotated[str, Parameter(metavar="PATH_OR_SAMPLE")],
    scenario: Annotated[str, Parameter(metavar="FILE_OR_LINK", allow_leading_hyphen=True)] = "",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Find the best action for a cluster.

    Simulates what an operator can do, one action and pairs of them, and prints the best with what they achieve.
    Nothing is carried out. Exit status: 0 an action is offered or none is needed, 1 a broker is above the limit and
    nothing that was tried helps, 2 an input cannot be read or does not match.

    Args:
        snapshot: A snapshot (folder, .zip, .json), a raw capture, or a sample by its file name, title or digest.
        scenario: Scenario to start from: a file, a link, or - for standard input.
        as_json: Print everything as JSON.
    """
    from planner.explain.outcome import Outcome
    from planner.remedy.trials import Trials
    from planner.remedy.tried import fix as best_fix
    from planner.share.export import json_text
    from planner.share.fix import fix_document, fix_text
    from planner.simulate.run import simulate
    from planner.simulate.scenario import unchanged
    from planner.workspace.opening import content_of, open_scenario

    _, cluster = opened(snapshot)
    asked = content_of(open_scenario(scenario), cluster) if scenario else unchanged(cluster.settings.release.name)
    show_price(cluster, *[asked] * 30)
    warn_switched_off(cluster)
    outcome = Outcome(simulate(cluster, asked))
    found = best_fix(Trials(cluster, asked, outcome), outcome)
    document: dict[str, Any] = fix_document(found, asked.pulsar_version)
    sys.stdout.write(json_text(document) if as_json else fix_text(found))
    return int(found.needed and found.best is None and found.pair is None and not found.brokers)
