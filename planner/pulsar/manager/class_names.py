"""What Pulsar makes of the class names in the settings: it loads them, or something else decides.

Mirrors `Reflections.createInstance` as `ModularLoadManagerImpl.initialize`, `ModularLoadManagerStrategy.create`,
`UnloadScheduler.createNamespaceUnloadStrategy`, `LoadManager.create` and `TopicBundleAssignmentFactory.create` use it.
It differs in that a class of one's own is never there: only its name is known.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias, TypeVar

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    LOAD_MANAGER_CLASS_NAME,
    LOAD_PLACEMENT_STRATEGY,
    LOAD_SHEDDING_STRATEGY,
    TOPIC_BUNDLE_ASSIGNMENT_STRATEGY,
)
from planner.cluster.releases import Switch
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.registry import SHEDDERS

_V = TypeVar("_V")

Kind: TypeAlias = Literal["official", "own", "missing"]
"""A class of Pulsar, one that somebody else wrote, or a name that no class can have."""

REPLACED: Final = Switch(
    "A shedding strategy whose class cannot be loaded is replaced; later, the broker does not start.", until="4.0.0"
)
STARTS_SIMPLE: Final = Switch(
    "A load manager that cannot be created is replaced by SimpleLoadManagerImpl; later, the broker does not start.",
    until="4.2.4",
)

JAVA_NAME: Final = re.compile(r"[^\W\d][\w$]*(?:\.[^\W\d][\w$]*)*")
"""What can be the full name of a class."""
_PULSAR: Final = ("org.apache.pulsar.", "com.yahoo.pulsar.")
"""How the names of its own packages begin: today, and before Apache, which no release here has."""
_NEARLY: Final = 0.75
"""Likeness from which on a simple name is a misspelt one of Pulsar's."""

MANAGER_CLASSES: Final[Mapping[LoadManager, str]] = {
    LoadManager.MODULAR: "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
    LoadManager.EXTENSIBLE: "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl",
}
"""Class names of the load managers that are simulated, the values of `loadManagerClassName`."""

SIMPLE_LOAD_MANAGER: Final = "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl"
"""The first load manager of Pulsar, which decides by rules of its own."""
NOOP_LOAD_MANAGER: Final = "org.apache.pulsar.broker.loadbalance.NoopLoadManager"
"""The load manager of a standalone broker, which neither sheds nor splits."""

OFFICIAL_CLASSES: Final[Mapping[str, tuple[str, ...]]] = {
    LOAD_SHEDDING_STRATEGY: tuple(one.java_class for one in SHEDDERS),
    LOAD_PLACEMENT_STRATEGY: tuple(one.java_class for one in PLACEMENTS if one.load_manager is LoadManager.MODULAR),
    LOAD_MANAGER_CLASS_NAME: (*MANAGER_CLASSES.values(), SIMPLE_LOAD_MANAGER, NOOP_LOAD_MANAGER),
    TOPIC_BUNDLE_ASSIGNMENT_STRATEGY: ("org.apache.pulsar.common.naming.ConsistentHashingTopicBundleAssigner",),
}
"""Pulsar's own classes, by the setting that names one."""


@dataclass(frozen=True, slots=True)
class ClassName:
    """A class name in the settings.

    Attributes:
        setting: The setting that names it.
        given: The name.
        kind: Whether Pulsar has the class. An own one may be there or not; only the cluster shows that.
        like: The class of Pulsar that it is most like: itself, the one whose simple name it has or ends with, or else
            the nearest by its letters.
        ends_like: Whether its simple name ends with that of `like`, as that of a subclass does.
    """

    setting: str
    given: str
    kind: Kind
    like: str
    ends_like: bool


@lru_cache(maxsize=64)
def class_name(setting: str, given: str) -> ClassName:
    """Return what a class name in a setting of `OFFICIAL_CLASSES` is.

    Pulsar loads a class by its full name alone. Missing are the simple names of its classes, unknown names in its own
    packages, names that are nearly one of its own, and what can be no name, as with quotes or a comment; a longer name
    that ends with one of its own is a subclass.
    """
    known = {official.rpartition(".")[2]: official for official in OFFICIAL_CLASSES[setting]}
    written = JAVA_NAME.search(given)
    simple = (written[0] if written else given).rpartition(".")[2]
    ends = [short for short in sorted(known, key=len, reverse=True) if simple.endswith(short)]
    near = ends or difflib.get_close_matches(simple, known, n=1, cutoff=0.0) or list(known)[:1]
    like = known[near[0]]
    if given in known.values():
        return ClassName(setting, given, "official", given, ends_like=True)
    subclass = bool(ends) and simple != ends[0]
    nearly = bool(difflib.get_close_matches(simple, known, n=1, cutoff=_NEARLY))
    in_pulsar = given.startswith(_PULSAR) or ("." not in given and (nearly or not simple))
    kind: Kind = "missing" if (in_pulsar and not subclass) or not JAVA_NAME.fullmatch(given) else "own"
    return ClassName(setting, given, kind, like, ends_like=bool(ends))


def in_full(settings: Mapping[str, _V]) -> dict[str, _V | str]:
    """Return settings that a person gave with the simple names of Pulsar's classes written in full."""
    found: dict[str, _V | str] = {}
    for name, value in settings.items():
        short = isinstance(value, str) and name in OFFICIAL_CLASSES and "." not in value
        known = class_name(name, value) if short and isinstance(value, str) else None
        meant = known is not None and known.like.rpartition(".")[2] == value
        found[name] = known.like if known is not None and meant else value
    return found
