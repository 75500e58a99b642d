"""The fewest splits that bring most of what several do: bundles never merge, so each split has to pay for itself."""

from dataclasses import replace
from typing import Final

from planner.explain.halving import unloaded_once
from planner.remedy.action import words_of
from planner.remedy.trials import Trial, Trials, by_gain
from planner.simulate.edits.registry import BundleSplit
from planner.simulate.judge import gained, gains, judge, share_gone
from planner.simulate.steadiness import KEPT

MOST: Final = 0.8
"""Share of the gain that counts first that fewer splits have to bring; of other gains, what has to hold anyway."""


def fewest(trials: Trials, trial: Trial) -> Trial:
    """Return a trial of several splits with as many of the first ones as bring most of its gain, confirmed.

    What is left is offered too, and never worse by the judge. Where all of them together are not offered, the best of
    fewer that are. Other trials are returned as they are.
    """
    edits = trial.action.edits
    if len(edits) < 2 or not all(isinstance(one, BundleSplit) for one in edits):  # noqa: PLR2004 - nothing to leave out
        return trial
    if not trials.confirmed(trial).offered:
        some = (first_splits(trials, trial, 2**power) for power in range((len(edits) - 1).bit_length()))
        best = by_gain([one for one in some if one is not None and one.offered])
        return fewest(trials, best[0]) if best else trial
    enough: dict[int, Trial] = {len(edits): trial}

    def suffice(number: int) -> bool:
        found = first_splits(trials, trial, number)
        if found is None or not found.offered or not brings_most(trial, found):
            return False
        enough[number] = found
        return True

    low, high = 0, 1
    while high < len(edits) and not suffice(high):
        low, high = high, min(2 * high, len(edits))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffice(middle) else (middle, high)
    return enough[high]


def first_splits(trials: Trials, trial: Trial, number: int) -> Trial | None:
    """Try the first splits of several; the children stay in place if they do with all of them."""
    edits = tuple(one for one in trial.action.edits[:number] if isinstance(one, BundleSplit))
    if any(one.unload for one in edits):
        edits = unloaded_once(edits)
    found = trials.try_out(replace(trial.action, words=words_of(edits), edits=edits))
    return None if found is None else trials.confirmed(found)


def in_place(trials: Trials, trial: Trial) -> Trial | None:
    """Try the splits of a trial with the children left where they are; None where they are left there anyway."""
    edits = tuple(replace(one, unload=False) if isinstance(one, BundleSplit) else one for one in trial.action.edits)
    return None if edits == trial.action.edits else trials.try_out(replace(trial.action, edits=edits))


def brings_most(trial: Trial, found: Trial, least: float = KEPT) -> bool:
    """Say whether fewer splits keep enough of every gain, and the judge calls them no worse than all.

    Args:
        trial: All splits.
        found: Fewer.
        least: Share to keep of the gains that do not count first.
    """
    first = gained(trial.before, trial.after)
    kept = (
        share_gone(measure, found.before, found.after) >= (MOST if (measure, share) == first else least) * share
        for measure, share in gains(trial.before, trial.after).items()
    )
    return all(kept) and judge(trial.after, found.after).word != "worse"
