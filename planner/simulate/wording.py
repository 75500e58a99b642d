"""What an edit does, in a few words."""

from collections.abc import Sequence

from planner.simulate.scenario import (
    AddBrokers,
    ChangeCapacity,
    DrainBroker,
    Edit,
    KillBroker,
    MoveBundle,
    PinBundle,
    RemoveBroker,
    RollingRestart,
    ScaleTraffic,
    SetAntiAffinity,
    SetBundleCount,
    SetDispatchRate,
    SetIsolation,
    SplitBundle,
)

_LISTED = 2


def in_words(edit: Edit) -> str:
    """Return a phrase such as `add 2 brokers at minute 5`."""
    return f"{_what(edit)}{_when(edit)}"


def _when(edit: Edit) -> str:
    at_min = getattr(edit, "at_min", 0.0)
    if isinstance(edit, ScaleTraffic) and edit.duration_min and edit.shape != "step":
        return f" from minute {at_min:g}" if at_min else ""
    return f" at minute {at_min:g}" if at_min else ""


def _some(names: Sequence[str], all_of_them: str) -> str:
    if not names:
        return all_of_them
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _size(cores: float, nic_gbps: float) -> str:
    parts = [f"{cores:g} cores" if cores else "", f"{nic_gbps:g} Gbit/s" if nic_gbps else ""]
    return " and ".join(part for part in parts if part)


def _traffic(edit: ScaleTraffic) -> str:
    target = edit.target or "the cluster"
    length = f"{edit.duration_min:g} min"
    match edit.shape:
        case "growth":
            return f"traffic of {target} grows to {edit.factor:g} times within {length}"
        case "daily":
            return f"traffic of {target} swings up to {edit.factor:g} times every {length}"
        case "spike":
            return f"traffic of {target} spikes to {edit.factor:g} times within {length}"
    lasts = f" for {length}" if edit.duration_min else ""
    return (
        f"stop the traffic of {target}{lasts}" if edit.factor == 0 else f"{edit.factor:g} x traffic of {target}{lasts}"
    )


def _limit(edit: SetDispatchRate) -> str:
    whom = edit.target if edit.level == "topic" else f"each subscription of {edit.target}"
    parts = [
        f"{edit.msg_per_period:,} messages" if edit.msg_per_period > 0 else "",
        f"{edit.bytes_per_period:,} bytes" if edit.bytes_per_period > 0 else "",
    ]
    limits = " and ".join(part for part in parts if part)
    if not limits:
        return f"remove the dispatch limit of {whom}"
    period = "second" if edit.period_s == 1 else f"{edit.period_s} s"
    more = " above its publish rate" if edit.relative_to_publish_rate else ""
    return f"dispatch at most {limits} a {period} from {whom}{more}"


def _what(edit: Edit) -> str:  # noqa: C901, PLR0911, PLR0912 - one phrase for each kind of edit
    match edit:
        case AddBrokers():
            size = _size(edit.cores, edit.nic_gbps)
            return f"add {edit.count} broker{'' if edit.count == 1 else 's'}{f' with {size}' if size else ''}"
        case RemoveBroker():
            return f"shut down {edit.broker}"
        case DrainBroker():
            return f"drain {edit.broker}, {edit.bundles_per_min:g} bundles a minute"
        case KillBroker():
            return f"kill {edit.broker}"
        case RollingRestart():
            return f"restart {_some(edit.brokers, 'all brokers')} in turn, {edit.down_min:g} min each"
        case ChangeCapacity():
            return f"give {_some(edit.brokers, 'all brokers')} {_size(edit.cores, edit.nic_gbps) or 'what they have'}"
        case ScaleTraffic():
            return _traffic(edit)
        case SplitBundle():
            how = f" by {edit.algorithm}" if edit.algorithm else ""
            return f"split {edit.bundle}{how}"
        case SetBundleCount():
            return f"make {edit.namespace} anew with {edit.bundles} bundles"
        case MoveBundle():
            return f"move {edit.bundle} to {edit.destination}" if edit.destination else f"unload {edit.bundle}"
        case PinBundle():
            return f"pin {edit.bundle} to {edit.broker}"
        case SetIsolation():
            if not edit.namespaces:
                return f"remove the isolation policy {edit.name}"
            return f"isolate {_some(edit.namespaces, '')} on {_some(edit.primary, 'no broker')} ({edit.name})"
        case SetAntiAffinity():
            if not edit.group:
                return f"take {edit.namespace} out of its anti-affinity group"
            return f"put {edit.namespace} into the anti-affinity group {edit.group}"
        case SetDispatchRate():
            return _limit(edit)
