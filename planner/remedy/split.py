"""A split that looks worth it, tried: Split lab follows the judge of Namespaces and Fix it."""

from dataclasses import replace

from planner.cluster.units import MS_PER_MIN
from planner.explain.doubt import Doubt, doubt_about
from planner.explain.split_advice import SplitAdvice, SplitOption, split_advice
from planner.remedy.action import Action
from planner.remedy.trials import Trials
from planner.simulate.edits.registry import BundleSplit


def split_action(bundle: str, best: SplitOption) -> Action:
    """Return the split of a bundle as an action; its parts are unloaded, so that they can go elsewhere."""
    edit = BundleSplit(bundle=bundle, algorithm=best.algorithm, positions=best.positions or (), unload=True)
    return Action(kind="split", words=f"Split {bundle} by {best.algorithm}", edits=(edit,))


def tried_split(trials: Trials, bundle: int, doubt: Doubt | None = None) -> SplitAdvice:
    """Return the advice on a split of a bundle, by its position; what looks worth it is simulated and judged.

    A split that is not offered elsewhere, such as one that only disconnects clients or helps by luck, is not worth it
    here either. Where Pulsar makes the split by itself, asking for it is worth it only if it ends an overload earlier.
    Where no usage is true, none of that is known.

    Args:
        trials: Where it is tried.
        bundle: The position of the bundle.
        doubt: What is known to be wrong about the measurements, where the caller has it.
    """
    config = trials.scenario.settings_over(trials.snapshot)
    advice = split_advice(trials.snapshot, bundle, config)
    if advice.verdict != "Worth it" or advice.best is None:
        return advice
    if (doubt := doubt or doubt_about(trials.snapshot, trials.scenario)).everywhere:
        return replace(advice, verdict="Not known", sentence=f"{advice.sentence} {doubt.sentence}")
    name = trials.snapshot.bundle_names[bundle]
    trial = trials.try_out(split_action(name, advice.best))
    if trial is None:
        return advice
    trial = trials.confirmed(trial)
    after_min = _by_itself_after(trials, name)
    verdict, own = "Worth it" if trial.offered else "Not worth it", ""
    if after_min is not None and not (trial.offered and trial.verdict.overload == 1):
        verdict = "No need"
        own = f" Pulsar splits it by itself {'at once' if after_min < 1 else f'after {after_min:.0f} min'}."
    return replace(advice, verdict=verdict, sentence=f"{advice.sentence}{own} {trial.text} {doubt.sentence}".rstrip())


def _by_itself_after(trials: Trials, bundle: str) -> float | None:
    """Return the minutes after which Pulsar splits a bundle without being asked; None where it does not."""
    trace = trials.unchanged().trace
    splits = (one for one in trace.events if one.kind == "split" and one.bundle == bundle and one.exceeded is not None)
    first = next(splits, None)
    return None if first is None else (first.at_ms - trace.cycles[0].at_ms) / MS_PER_MIN
