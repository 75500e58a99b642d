"""A split that looks worth it, tried: Split lab follows the judge of Namespaces and Fix it."""

from dataclasses import replace

from planner.explain.split_advice import SplitAdvice, SplitOption, split_advice
from planner.remedy.action import Action
from planner.remedy.trials import Trials
from planner.simulate.edits.registry import BundleSplit


def split_action(bundle: str, best: SplitOption) -> Action:
    """Return the split of a bundle as an action; its parts are unloaded, so that they can go elsewhere."""
    edit = BundleSplit(bundle=bundle, algorithm=best.algorithm, positions=best.positions or (), unload=True)
    return Action(kind="split", words=f"Split {bundle} by {best.algorithm}", edits=(edit,))


def tried_split(trials: Trials, bundle: int) -> SplitAdvice:
    """Return the advice on a split of a bundle, by its position; what looks worth it is simulated and judged.

    A split that is not offered elsewhere, such as one that only disconnects clients, is not worth it here either.
    """
    config = trials.scenario.settings_over(trials.snapshot)
    advice = split_advice(trials.snapshot, bundle, config)
    if advice.verdict != "Worth it" or advice.best is None:
        return advice
    trial = trials.try_out(split_action(trials.snapshot.bundle_names[bundle], advice.best))
    if trial is None:
        return advice
    verdict = "Worth it" if trial.is_worth_it else "Not worth it"
    return replace(advice, verdict=verdict, sentence=f"{advice.sentence} {trial.text}")
