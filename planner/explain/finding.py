"""What a diagnosis says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from planner.cluster.setting import SettingValue

Severity: TypeAlias = Literal["high", "medium", "low"]
"""`high`: clients suffer; `medium`: the cluster does not get or stay balanced; `low`: it could be tidier."""

_NO_CHANGES: Mapping[str, SettingValue] = MappingProxyType({})
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One failure pattern that was recognised.

    Attributes:
        code: Stable name, such as `unload_storm`.
        title: What it is, one line.
        evidence: The numbers that show it, one or two sentences.
        remedy: What to do about it.
        severity: How bad it is.
        brokers: Broker ids concerned, the worst first.
        bundles: Full names of bundles concerned, the worst first.
        settings: Names of the settings concerned.
        changes: Values to try, by setting; empty when the remedy is no setting.
    """

    code: str
    title: str
    evidence: str
    remedy: str
    severity: Severity
    brokers: tuple[str, ...] = ()
    bundles: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    changes: Mapping[str, SettingValue] = field(default_factory=lambda: _NO_CHANGES)


def listed(names: tuple[str, ...] | list[str], shown: int = _SHOWN) -> str:
    """Return names as one piece of text, the first few of many."""
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")
