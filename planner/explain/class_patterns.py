"""Class names in the settings that Pulsar cannot load, that are somebody's own, or that no rule here follows."""

from collections.abc import Iterator
from typing import Final

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    LOAD_MANAGER_CLASS_NAME,
    LOAD_PLACEMENT_STRATEGY,
    LOAD_SHEDDING_STRATEGY,
    TOPIC_BUNDLE_ASSIGNMENT_STRATEGY,
)
from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.pulsar.manager.class_names import (
    JAVA_NAME,
    NOOP_LOAD_MANAGER,
    REPLACED,
    SIMPLE_LOAD_MANAGER,
    STARTS_SIMPLE,
    ClassName,
    class_name,
)
from planner.pulsar.shedding.registry import SHEDDERS, fallback_shedder, has_shedder

_DECIDES: Final = {
    LOAD_SHEDDING_STRATEGY: "which bundles are shed",
    LOAD_PLACEMENT_STRATEGY: "which broker owns a bundle",
    LOAD_MANAGER_CLASS_NAME: "what is shed, split and placed",
}
"""What an own class decides."""


def class_not_loaded(case: Outcome) -> Iterator[Finding]:
    """A setting names a class that Pulsar cannot load: a misspelt one, or one without its package."""
    for given in _asked(case):
        if given.kind == "missing" and given.given.strip():
            yield _missing(case, given)
        elif given.kind == "official" and given.like.rpartition(".")[2] in _lacking(case, given.setting):
            yield _not_yet(case, given)


def own_class(case: Outcome) -> Iterator[Finding]:
    """A setting names a class that is none of Pulsar's: what it decides is unknown."""
    for given in _asked(case):
        if given.kind != "own":
            continue
        like = given.like.rpartition(".")[2]
        shown = {
            LOAD_SHEDDING_STRATEGY: case.shedder,
            LOAD_PLACEMENT_STRATEGY: case.placement,
            LOAD_MANAGER_CLASS_NAME: f"the {case.load_manager} load manager",
        }[given.setting]
        why = f" Its name ends with {like}, so it is assumed to decide like that." if given.ends_like else ""
        yield Finding(
            code="own_class",
            title=f"{given.setting} names a class of your own",
            evidence=(
                f"{given.given} is none of Pulsar's classes, so {_DECIDES[given.setting]} is unknown. Everything here"
                f" shows what {shown} would decide.{why}"
            ),
            remedy="Read every prediction as one of Pulsar's class. To compare both, record cycles in shadow mode.",
            severity="low" if given.ends_like else "medium",
            settings=(given.setting,),
        )


def other_load_manager(case: Outcome) -> Iterator[Finding]:
    """The cluster runs SimpleLoadManagerImpl or NoopLoadManager, whose rules are not simulated."""
    config, brokers = case.trace.settings, case.trace.start.brokers
    given = config.text(LOAD_MANAGER_CLASS_NAME).strip()
    classes = {name for name in brokers.load_manager_class if name}
    names = {given or SIMPLE_LOAD_MANAGER, *classes}
    brokers_of = tuple(n for n, c in zip(brokers.name, brokers.load_manager_class, strict=True) if c in classes)
    if NOOP_LOAD_MANAGER in names:
        evidence = (
            "It neither sheds nor splits, and places nothing: each lookup is served by the broker that gets it. Cycles,"
            " moves and splits shown here do not happen."
        )
    elif SIMPLE_LOAD_MANAGER in names:
        evidence = (
            "It sheds and places by rules of its own (loadBalancerPlacementStrategy and the underloaded and comfort"
            " percentages), which are not simulated. Decisions shown here are those of the modular load manager."
        )
    else:
        return
    simple = (NOOP_LOAD_MANAGER if NOOP_LOAD_MANAGER in names else SIMPLE_LOAD_MANAGER).rpartition(".")[2]
    yield Finding(
        code="other_load_manager",
        title=f"The cluster runs {simple}, which is not simulated",
        evidence=f"{LOAD_MANAGER_CLASS_NAME} is {given or 'empty, which means the simple one'}. {evidence}",
        remedy=(
            "Only the modular and the extensible load manager balance a cluster of several brokers. A change of"
            f" {LOAD_MANAGER_CLASS_NAME} is a migration: restart the brokers one after the other."
        ),
        severity="high",
        brokers=brokers_of if classes & {NOOP_LOAD_MANAGER, SIMPLE_LOAD_MANAGER} else (),
        settings=(LOAD_MANAGER_CLASS_NAME,),
    )


def topics_placed_otherwise(case: Outcome) -> Iterator[Finding]:
    """An own class assigns topics to bundles: where topics belong does not follow from their hashes."""
    config = case.trace.settings
    if TOPIC_BUNDLE_ASSIGNMENT_STRATEGY not in config:
        return
    given = class_name(TOPIC_BUNDLE_ASSIGNMENT_STRATEGY, config.text(TOPIC_BUNDLE_ASSIGNMENT_STRATEGY))
    if given.kind == "official":
        return
    if given.kind == "missing":
        evidence = f"Pulsar cannot load {given.given or 'an empty name'}: a broker with this setting does not start."
    else:
        evidence = (
            f"{given.given} assigns topics to bundles, so a topic need not be in the bundle of its hash. Unknown are"
            " the bundle of a topic, the children of a split, and what more partitions or bundles change."
        )
    yield Finding(
        code="topics_placed_otherwise",
        title="Topics are not assigned to bundles by their hashes",
        evidence=evidence,
        remedy=(
            f"Set {TOPIC_BUNDLE_ASSIGNMENT_STRATEGY} to {given.like}, or look up each topic with pulsar-admin topics"
            " bundle-range."
        ),
        severity="high" if given.kind == "missing" else "medium",
        settings=(TOPIC_BUNDLE_ASSIGNMENT_STRATEGY,),
    )


def _asked(case: Outcome) -> Iterator[ClassName]:
    """Yield the class names that the load manager of a cluster reads."""
    config = case.trace.settings
    for setting in _DECIDES:
        if setting in config and not (
            setting == LOAD_PLACEMENT_STRATEGY and case.load_manager is LoadManager.EXTENSIBLE
        ):
            yield class_name(setting, config.text(setting))


def _lacking(case: Outcome, setting: str) -> set[str]:
    """Return the strategies of a setting that the release that decides does not have."""
    release = case.trace.settings.release
    lacking = [one for one in SHEDDERS if not has_shedder(release, one)]
    names = {LOAD_SHEDDING_STRATEGY: [one.name for one in lacking]}
    names[LOAD_PLACEMENT_STRATEGY] = [one.profile.paired_placement for one in lacking if one.profile.paired_placement]
    return set(names.get(setting, ()))


def _not_yet(case: Outcome, given: ClassName) -> Finding:
    """Return that a class came with a later release than the one that decides."""
    config, name = case.trace.settings, given.like.rpartition(".")[2]
    usual = config.of(given.setting).default
    here = f"Pulsar {config.release.name}"
    instead = (
        f"{here} logs an error, and {fallback_shedder(case.load_manager).name} decides"
        if given.setting == LOAD_SHEDDING_STRATEGY
        else f"the load manager of {here} cannot be created"
    )
    return Finding(
        code="class_not_loaded",
        title=f"{here} does not have {name}",
        evidence=(
            f"{given.setting} is {given.given}, which came with a later release: {instead}. Everything here shows what"
            f" {name} would decide."
        ),
        remedy=f"Set {given.setting} to {usual}, the default, and restart the brokers one after the other; or upgrade.",
        severity="high",
        settings=(given.setting,),
        changes={one: str(config.of(one).default) for one in _asked_for(case, name)},
    )


def _asked_for(case: Outcome, name: str) -> Iterator[str]:
    """Yield the settings that name a strategy: shedding and placement go together."""
    for given in _asked(case):
        if given.kind == "official" and given.like.rpartition(".")[2] == name:
            yield given.setting


def _missing(case: Outcome, given: ClassName) -> Finding:
    simple, like = given.given.rpartition(".")[2], given.like.rpartition(".")[2]
    why = (
        "It lacks its package: Pulsar loads a class by its full name only."
        if "." not in given.given and simple == like
        else f"That cannot be a name: Pulsar reads quotes, blanks and comments as parts of it. Meant is {given.like}."
        if not JAVA_NAME.fullmatch(given.given)
        else f"No class has this name; the nearest is {given.like}."
    )
    replaced = case.load_manager is LoadManager.EXTENSIBLE or case.trace.settings.release.has(REPLACED)
    of_manager = given.setting in {LOAD_PLACEMENT_STRATEGY, LOAD_MANAGER_CLASS_NAME}
    simple_runs = of_manager and case.trace.settings.release.has(STARTS_SIMPLE)
    meant = given.setting == LOAD_SHEDDING_STRATEGY and like == case.shedder and replaced
    return Finding(
        code="class_not_loaded",
        title=f"Pulsar cannot load {given.given}",
        evidence=f"{given.setting} is {given.given}. {why} {_instead(case, given)}",
        remedy=f"No decision depends on it. At the next restart, set {given.setting} to {given.like}."
        if meant
        else f"Set {given.setting} to {given.like}, and restart the brokers one after the other.",
        severity="low" if meant else "high",
        # The setting of the load manager stands for the one that starts instead, of which nothing here is known.
        settings=tuple(dict.fromkeys((given.setting, *([LOAD_MANAGER_CLASS_NAME] if simple_runs else [])))),
        # Without a load manager, what is shown is not what runs: nothing can be compared with it.
        changes={given.setting: given.like} if given.setting == LOAD_SHEDDING_STRATEGY and not meant else {},
    )


def _instead(case: Outcome, given: ClassName) -> str:
    """Return what the release that decides does without the class, and what is shown."""
    release = case.trace.settings.release
    fails = (
        f"Pulsar {release.name} then starts SimpleLoadManagerImpl, which is not simulated"
        if release.has(STARTS_SIMPLE)
        else f"a broker of Pulsar {release.name} does not start with it"
    )
    if given.setting == LOAD_SHEDDING_STRATEGY and case.load_manager is LoadManager.EXTENSIBLE:
        return f"Pulsar logs an error, and {case.shedder} decides."
    if given.setting == LOAD_SHEDDING_STRATEGY:
        if release.has(REPLACED):
            return f"Pulsar logs an error, and {case.shedder} decides."
        return f"Up to 3.3, Pulsar logs an error and {case.shedder} decides, as shown here; {fails}."
    if given.setting == LOAD_PLACEMENT_STRATEGY:
        return f"The load manager cannot be created: {fails}. Shown is placement by {case.placement}."
    return f"The load manager cannot be created: {fails}. Shown is the {case.load_manager} load manager."
