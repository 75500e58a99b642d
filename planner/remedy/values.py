"""The best value of one setting: a finding and Fix it give the same answer."""

from planner.explain.outcome import Outcome
from planner.remedy.candidates import values_of
from planner.remedy.trials import Trial, Trials, by_gain
from planner.simulate.judge import judge


def single_setting(trial: Trial) -> str:
    """Return the only setting that a trial changes; empty where it does anything else."""
    settings = trial.action.settings
    return next(iter(settings)) if len(settings) == 1 and not trial.action.edits else ""


def best_value(trials: Trials, trial: Trial, outcome: Outcome) -> Trial:
    """Return a trial of one setting with the best value of those that Fix it tries, confirmed.

    Its own value stays unless another one is better by the judge, or its own one is not offered. Trials of anything
    else are returned as they are.

    Args:
        trials: Where values are tried.
        trial: The setting with its value.
        outcome: What comes of the scenario without any.
    """
    name = single_setting(trial)
    config = trials.scenario.settings_over(trials.snapshot)
    found = (trials.try_out(action) for action in values_of(name, config, outcome)) if name else ()
    others = [one for one in found if one is not None and one.action.key != trial.action.key and one.is_worth_it]
    better = [one for one in others if judge(trial.after, one.after).word == "better"]
    best = by_gain(better)[:1]
    if best and best[0] is by_gain(others)[0] and trials.confirmed(best[0]).offered:
        return trials.confirmed(best[0])  # whether its own value is offered makes no difference then
    own = trials.confirmed(trial)
    for one in by_gain(better if own.offered else others):
        confirmed = trials.confirmed(one)
        if confirmed.offered:
            return confirmed
    return own
