"""The best that can be done, as text and as JSON."""

from dataclasses import asdict
from typing import Any

from planner.cluster.setting import conf_value
from planner.remedy.trials import Trial
from planner.remedy.tried import Fix
from planner.share.plan_text import printed
from planner.simulate.scenario import Scenario, scenario_to_json, unchanged


def fix_text(found: Fix) -> str:
    """Return the answer as lines for a terminal."""
    lines = [found.sentence]
    lines += [f"{title}: {one.action.words}. {one.text}" for title, one in shown(found)]
    lines += [f"{found.lucky.action.words}. {found.lucky.text}"] if found.lucky is not None else []
    return printed(lines)


def shown(found: Fix) -> tuple[tuple[str, Trial], ...]:
    """Return what is shown of an answer, each with its title."""
    titled = [
        ("Capacity", found.capacity),
        ("Best pair", found.pair),
        ("Best single action", found.best),
        *(("Also", one) for one in found.others),
    ]
    return tuple((title, one) for title, one in titled if one is not None)


def fix_document(found: Fix, version: str) -> dict[str, Any]:
    """Return the answer as JSON values.

    `optional` says whether the cluster is well without any action.
    `best`, `pair` and `capacity` have `words`, `settings`, `scenario` (settings and edits as a scenario, and the
    restart that was simulated with them), `before`, `after` (as `planner.simulate.judge.Result` names them), `verdict`,
    `restart`, `settles` and `steady`.

    Args:
        found: The answer.
        version: Release by whose rules it was tried, which each `scenario` names.
    """
    return {
        "sentence": found.sentence,
        "needed": found.needed,
        "optional": found.optional,
        "tried": found.tried,
        "brokers": found.brokers,
        "capacity": _trial(found.capacity, version),
        "best": _trial(found.best, version),
        "pair": _trial(found.pair, version),
        "others": [_trial(one, version) for one in found.others],
    }


def _trial(trial: Trial | None, version: str) -> dict[str, Any] | None:
    if trial is None:
        return None
    action = trial.action
    tried = trial.on(Scenario())
    scenario = unchanged(version, settings=tried.settings, steps=tried.steps)
    return {
        "kind": action.kind,
        "words": action.words,
        "text": trial.text,
        "settings": {name: conf_value(value) for name, value in action.settings.items()},
        "scenario": scenario_to_json(scenario),
        "before": asdict(trial.before),
        "after": asdict(trial.after),
        "verdict": trial.verdict.word,
        "restart": action.restart,
        "settles": trial.settles,
        "steady": trial.steady,
    }
