"""What every rule that a setting names has in common."""

from typing import Protocol

from planner.cluster.load_manager import LoadManager


class Named(Protocol):
    """A class of Pulsar that a setting names, mirrored here.

    Attributes:
        name: Simple class name in Pulsar; of a split algorithm, its name in `supportedNamespaceBundleSplitAlgorithms`.
        java_class: Full class name; of a split algorithm, the simple one.
        summary: One sentence for people.
        settings: Real names of the settings it reads, in the order a form shows them.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def java_class(self) -> str: ...  # noqa: D102
    @property
    def summary(self) -> str: ...  # noqa: D102
    @property
    def settings(self) -> tuple[str, ...]: ...  # noqa: D102


class Strategy(Named, Protocol):
    """A strategy of a load manager.

    Attributes:
        load_manager: The load manager that can run it.
    """

    @property
    def load_manager(self) -> LoadManager: ...  # noqa: D102
