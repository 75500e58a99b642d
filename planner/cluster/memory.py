"""What a leader remembers between cycles, as visible and serialisable data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar

S = TypeVar("S")
_NONE: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class SheddingMemory(Generic[S]):
    """What the leader knows when a shedding strategy is asked.

    Attributes:
        state: The strategy's own fields (averages, counters, bindings); a frozen dataclass of that strategy.
        recently_unloaded_bundles: Bundle to the moment (ms since 1970) it was shed; only entries still inside the grace
            period, as the frame drops older ones before it asks.
        recently_unloaded_brokers: Extensible only: source broker to the moment its last transfer completed.
    """

    state: S
    recently_unloaded_bundles: Mapping[str, int] = field(default_factory=lambda: _NONE)
    recently_unloaded_brokers: Mapping[str, int] = field(default_factory=lambda: _NONE)

    def with_state(self, state: S, **changes: Any) -> "SheddingMemory[S]":
        """Return the same memory with another state."""
        return replace(self, state=state, **changes)
