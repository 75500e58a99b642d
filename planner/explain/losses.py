"""What the loss of a broker does, in words: the same on every page and in the report."""

from planner.cluster.text import count
from planner.simulate.losses import Loss, Losses


def losses_text(found: Losses, names: dict[str, str] | None = None) -> str:
    """Return what the worst loss does, in a sentence or two.

    Args:
        found: The losses.
        names: What to call the brokers; their ids by default.
    """
    if not found.simulated:
        return "No broker would be left to take over." if not found.left else "No loss was simulated."
    called = names or {}
    if found.without is not None and not found.raises:
        return f"{_as_without(found, found.without, called)} {_how_many(found)}"
    worst = found.simulated[0]
    lost, on = called.get(worst.broker, worst.broker), called.get(worst.highest_on, worst.highest_on)
    after = f"right after it the highest usage is {worst.right_after_percent:.0f} %"
    later = f"{count(round(worst.highest_at_min), 'minute')} after it, {on} reaches {worst.highest_percent:.0f} %"
    if round(worst.highest_percent) <= round(worst.right_after_percent):
        after, later = (
            f"{after} ({called.get(worst.right_after_on, worst.right_after_on)})",
            f"in the next {found.minutes:.0f} minutes nothing is higher",
        )
    before = (
        f" Before it, {called.get(worst.before_on, worst.before_on)} was at {worst.before_percent:.0f} %."
        if round(worst.before_percent) > round(worst.highest_percent)
        else ""
    )
    over = (
        f" At worst {count(worst.over_threshold, 'broker')} {'is' if worst.over_threshold == 1 else 'are'} above"
        f" {found.limit_percent} %."
        if worst.over_threshold
        else ""
    )
    unserved = f"{count(worst.unserved, 'bundle')} cannot be served; " if worst.unserved else ""
    said = f"Worst is the loss of {lost}: {unserved}{after}; {later}.{before}{over}"
    return f"{said} {_how_many(found)}"


def _as_without(found: Losses, idle: Loss, called: dict[str, str]) -> str:
    """Return that losses do no more than the load balancer by itself, or the usage that there is anyway."""
    which, on = "simulated loss" if found.left else "loss", called.get(idle.highest_on, idle.highest_on)
    reaches = f"{on} reaches {idle.highest_percent:.0f} % without one as well"
    over = f", with {count(idle.over_threshold, 'broker')} above {found.limit_percent} %" if idle.over_threshold else ""
    return f"No {which} raises the highest usage: {reaches}{over}."


def _how_many(found: Losses) -> str:
    number = len(found.simulated)
    if not found.left:
        return f"All {number:,} losses were simulated." if number > 1 else "The loss was simulated."
    left = f"; {count(found.left, 'other')} {'was' if found.left == 1 else 'were'} not."
    if number == 1:
        return f"The loss with the highest estimate was simulated{left}"
    return f"The {number:,} losses with the highest estimates were simulated{left}"
