"""Settings that fight each other, seen without a cluster: from the settings and the release alone."""

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import astuple
from typing import Any, Final

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    CPU_RESOURCE_WEIGHT,
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    DEFAULT_NUMBER_OF_NAMESPACE_BUNDLES,
    DIRECT_MEMORY_RESOURCE_WEIGHT,
    HISTORY_RESOURCE_PERCENTAGE,
    LOAD_BALANCER_ENABLED,
    LOAD_MANAGER_CLASS_NAME,
    LOAD_PLACEMENT_STRATEGY,
    LOAD_SHEDDING_STRATEGY,
    NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
    NAMESPACE_MAXIMUM_BUNDLES,
    REPORT_UPDATE_MAX_INTERVAL_MINUTES,
    SHEDDING_ENABLED,
    SHEDDING_EXCLUDED_NAMESPACES,
    SHEDDING_GRACE_PERIOD_MINUTES,
    SHEDDING_INTERVAL_MINUTES,
    SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS,
)
from planner.cluster.settings import Settings
from planner.cluster.text import without_package
from planner.cluster.units import MIB, S_PER_MIN
from planner.explain.finding import Finding, listed
from planner.explain.units_meant import SENSIBLE, unit_meant
from planner.pulsar.load.usage import USAGE_WEIGHTS, ResourceWeights
from planner.pulsar.manager.class_names import MANAGER_CLASSES, OFFICIAL_CLASSES, REPLACED, class_name
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.manager.pairing import PAIRED
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.registry import SHEDDERS, default_shedder
from planner.pulsar.splitting.limits import limits_of as split_limits
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS, default_split_algorithm

_HEAVY: Final = 2
"""Weight from which on brokers look far busier than they are."""
_LOW, _HIGH = "LowThreshold", "HighThreshold"
_LIFE: Final = "LoadDataTTLInSeconds"
"""End of the name of the setting after which load data counts no more, of strategies that read it."""
_NAMESPACE: Final = re.compile(r"[-=:.\w]+(?:/[-=:.\w]+){1,2}")
"""Names that Pulsar allows for a namespace, with a cluster in older releases."""
_ALL_PERCENT: Final = 100
_SHARE: Final = "fraction"
"""Unit of settings that are a share of something, 1 for all of it."""
_COUNTS: Final = "HitCount"
"""Part of the name of a threshold that counts hits: the lower the usage, the more of them."""


def load_manager_of(config: Settings) -> LoadManager:
    """Return the load manager that the settings ask for; the modular one for a class that is not simulated."""
    asked = config.text(LOAD_MANAGER_CLASS_NAME).strip()
    return next((manager for manager, name in MANAGER_CLASSES.items() if name == asked), LoadManager.MODULAR)


def setting_findings(config: Settings, load_manager: LoadManager | None = None) -> tuple[Finding, ...]:
    """Return what fights in some settings, whatever the cluster; a setting that the release lacks is not looked at.

    Args:
        config: The settings.
        load_manager: The one that runs, where that is known; by default the one that the settings ask for.
    """
    if load_manager is not None and load_manager is not load_manager_of(config):
        config = config.changed(**{LOAD_MANAGER_CLASS_NAME: MANAGER_CLASSES[load_manager]})
    return tuple(finding for rule in RULES for finding in rule(config))


def class_missing(config: Settings) -> Iterator[Finding]:
    """A class name that Pulsar cannot load."""
    for name in OFFICIAL_CLASSES:
        given = class_name(name, config.text(name).strip()) if name in config else None
        if given is not None and given.given and given.kind == "missing":
            yield Finding(
                code="class_not_loaded",
                title=f"Pulsar cannot load {given.given}",
                evidence=f"{name} is {given.given}, which is not a class of Pulsar. The nearest is {given.like}.",
                remedy=f"Set {name} to {given.like}, and restart the brokers one after the other.",
                severity="high",
                settings=(name,),
                changes={} if name == LOAD_MANAGER_CLASS_NAME else {name: given.like},
            )


def strategy_not_run(config: Settings, load_manager: LoadManager | None = None) -> Iterator[Finding]:
    """A strategy of the other load manager: another one runs, or the broker does not start.

    Args:
        config: The settings.
        load_manager: The one that the cluster runs; None for the one that the settings ask for.
    """
    runs = load_manager or load_manager_of(config)
    shedder, notes = effective_shedder(runs, config)
    given = class_name(LOAD_SHEDDING_STRATEGY, config.text(LOAD_SHEDDING_STRATEGY))
    if not notes or given.kind != "official":
        return
    default = default_shedder(runs).java_class
    modular = runs is LoadManager.MODULAR
    starts = not modular or config.release.has(REPLACED)
    yield Finding(
        code="strategy_replaced",
        title=f"{shedder.name} runs instead of the configured strategy"
        if starts
        else f"Brokers do not start with {without_package(given.given)}",
        evidence=notes[0],
        remedy=f"Set {LOAD_SHEDDING_STRATEGY} to {default}."
        if modular
        else f"No decision depends on it. At the next restart, set {LOAD_SHEDDING_STRATEGY} to {default}, which is what"
        " runs.",
        severity="high" if modular else "low",
        settings=(LOAD_SHEDDING_STRATEGY,),
        changes={LOAD_SHEDDING_STRATEGY: default} if modular else {},
    )


def unpaired_placement(config: Settings) -> Iterator[Finding]:
    """A shedding strategy and a placement strategy of which one only works with another one."""
    if load_manager_of(config) is not LoadManager.MODULAR or LOAD_PLACEMENT_STRATEGY not in config:
        return
    if any(strategy_not_run(config)):
        return
    shedder, replaced = effective_shedder(LoadManager.MODULAR, config)
    is_set = replaced[0] if replaced else f"{LOAD_SHEDDING_STRATEGY} is {shedder.name}."
    placed = without_package(config.text(LOAD_PLACEMENT_STRATEGY))
    wanted = shedder.profile.paired_placement
    if (wanted and placed != wanted) or (not wanted and placed in PAIRED):
        other = wanted or next(one.name for one in PLACEMENTS if one.name not in PAIRED)
        java_class = next(name for name in OFFICIAL_CLASSES[LOAD_PLACEMENT_STRATEGY] if name.endswith(f".{other}"))
        why = (
            f"Only {other} as both makes a bundle go to the other broker of its pair."
            if wanted == shedder.name
            else f"What one sheds the other places by another measure; {shedder.name} is made for {other}."
        )
        yield Finding(
            code="fighting_strategies",
            title="Shedding and placement strategy do not belong together",
            evidence=f"{is_set} {LOAD_PLACEMENT_STRATEGY} is {placed}. {why}",
            remedy=f"Set {LOAD_PLACEMENT_STRATEGY} to {other}, and restart the brokers one after the other.",
            severity="medium",
            settings=(LOAD_SHEDDING_STRATEGY, LOAD_PLACEMENT_STRATEGY),
            changes={LOAD_PLACEMENT_STRATEGY: java_class},
        )


def split_algorithm_refused(config: Settings) -> Iterator[Finding]:
    """The default split algorithm is one that brokers refuse or do not have."""
    name = config.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM)
    supported = config.names(SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS)
    known = next((one for one in SPLIT_ALGORITHMS if one.name == name), None)
    if name in supported and known is not None:
        return
    usable = [one.name for one in SPLIT_ALGORITHMS if one.name in supported and not one.needs_positions]
    first = next(iter((*difflib.get_close_matches(name, usable, n=1), *usable)), "")
    then = (
        f"Pulsar has no such algorithm: it splits with {default_split_algorithm(name).name}, and says so nowhere."
        if known is None
        else "Automatic splits use it all the same; a command that names it is refused."
    )
    yield Finding(
        code="split_algorithm_refused",
        title=f"{name} is not {'among the supported split algorithms' if known else 'a split algorithm of Pulsar'}",
        evidence=(
            f"{DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM} is {name}; {SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS} has"
            f" {', '.join(supported) or 'none'}. {then}"
        ),
        remedy=f"Set {DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM} to {first or 'a supported one'}.",
        severity="medium",
        settings=(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM, SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS),
        changes={DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM: first} if first else {},
    )


def born_full(config: Settings) -> Iterator[Finding]:
    """New namespaces have as many bundles as automatic splits may make, or more."""
    default, most = config.integer(DEFAULT_NUMBER_OF_NAMESPACE_BUNDLES), config.integer(NAMESPACE_MAXIMUM_BUNDLES)
    if default >= most:
        yield Finding(
            code="namespaces_born_full",
            title="New namespaces never split",
            evidence=(
                f"{DEFAULT_NUMBER_OF_NAMESPACE_BUNDLES} is {default}, and {NAMESPACE_MAXIMUM_BUNDLES} is {most}:"
                " automatic splits stop there."
            ),
            remedy=f"Set {NAMESPACE_MAXIMUM_BUNDLES} to {4 * default}, or create namespaces with fewer bundles.",
            severity="medium",
            settings=(DEFAULT_NUMBER_OF_NAMESPACE_BUNDLES, NAMESPACE_MAXIMUM_BUNDLES),
            changes={NAMESPACE_MAXIMUM_BUNDLES: 4 * default},
        )


def thresholds_crossed(config: Settings) -> Iterator[Finding]:
    """A low threshold that is not below its high one, of the shedding strategy that runs."""
    read = effective_shedder(load_manager_of(config), config)[0].profile.bounds
    for low in (name for name in read if name.endswith(_LOW) and name.replace(_LOW, _HIGH) in read):
        high = low.replace(_LOW, _HIGH)
        one, two = config.number(low), config.number(high)
        if (one < two) if _COUNTS in low else (one > two):
            yield Finding(
                code="thresholds_crossed",
                title=f"{low} and {high} are the wrong way round",
                evidence=f"{low} is {one:g}, and {high} is {two:g}. The second one never decides.",
                remedy=f"Exchange the values: {low} = {two:g}, {high} = {one:g}.",
                severity="medium",
                settings=(low, high),
                changes={low: int(two), high: int(one)},
            )


def load_data_expires(config: Settings) -> Iterator[Finding]:
    """Brokers' load data expires before the next report is due."""
    read = effective_shedder(load_manager_of(config), config)[0].profile.bounds
    due_s = config.integer(REPORT_UPDATE_MAX_INTERVAL_MINUTES) * S_PER_MIN
    for life in (name for name in read if name.endswith(_LIFE) and name in config):
        if (life_s := config.integer(life)) >= due_s:
            continue
        yield Finding(
            code="load_data_expires",
            title="Load data expires before the next report",
            evidence=(
                f"{life} is {life_s:,} s; a quiet broker reports every"
                f" {due_s:,} s ({REPORT_UPDATE_MAX_INTERVAL_MINUTES})."
            ),
            remedy=f"Set {life} to {2 * due_s}, or report more often.",
            severity="medium",
            settings=(life, REPORT_UPDATE_MAX_INTERVAL_MINUTES),
            changes={life: 2 * due_s},
        )


def no_grace(config: Settings) -> Iterator[Finding]:
    """A bundle may be shed again in the cycle after it moved."""
    if load_manager_of(config) is not LoadManager.MODULAR:
        return
    grace, every = config.integer(SHEDDING_GRACE_PERIOD_MINUTES), config.integer(SHEDDING_INTERVAL_MINUTES)
    if grace < every:
        longer = max(Settings(release=config.release).integer(SHEDDING_GRACE_PERIOD_MINUTES), 2 * every)
        yield Finding(
            code="no_grace_period",
            title="A bundle can be shed again at once",
            evidence=f"{SHEDDING_GRACE_PERIOD_MINUTES} is {grace}, and {SHEDDING_INTERVAL_MINUTES} is {every}.",
            remedy=f"Set {SHEDDING_GRACE_PERIOD_MINUTES} to {longer}, so that a bundle stays where it was placed.",
            severity="medium",
            settings=(SHEDDING_GRACE_PERIOD_MINUTES, SHEDDING_INTERVAL_MINUTES),
            changes={SHEDDING_GRACE_PERIOD_MINUTES: longer},
        )


def nothing_weighs(config: Settings) -> Iterator[Finding]:
    """No resource counts, so that every broker looks idle."""
    weights = [name for name in USAGE_WEIGHTS if name in config and config.number(name) == 0]
    if not any(astuple(ResourceWeights.of(config, load_manager_of(config)))):
        yield Finding(
            code="no_resource_counts",
            title="No resource counts towards the usage",
            evidence=f"{', '.join(weights)} are all 0, so every broker looks idle and none is overloaded.",
            remedy=f"Set {CPU_RESOURCE_WEIGHT} to 1, and the weights of the network too.",
            severity="high",
            settings=tuple(weights),
            changes={name: 1.0 for name in weights if name != DIRECT_MEMORY_RESOURCE_WEIGHT},
        )


def weighs_too_much(config: Settings) -> Iterator[Finding]:
    """A resource counts more than once, so that brokers look busier than they are."""
    heavy = {name: config.number(name) for name in USAGE_WEIGHTS if name in config and config.number(name) > 1}
    if not heavy:
        return
    name, value = max(heavy.items(), key=lambda one: one[1])
    limit = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
    yield Finding(
        code="weight_above_one",
        title=f"{name} is {value:g}, so that a resource counts {value:g} times",
        evidence=(
            f"Pulsar multiplies usage with its weight: a broker passes the limit of {limit} % at {limit / value:.3g} %"
            " already."
        ),
        remedy=f"Set {' and '.join(heavy)} to 1.",
        severity="high" if value >= _HEAVY else "medium",
        settings=tuple(heavy),
        changes=dict.fromkeys(heavy, 1.0),
    )


def _to_default(config: Settings, name: str, why: str = "") -> dict[str, Any]:
    """Return what a finding has whose remedy is the default of one setting; a reason may follow in its sentence."""
    default = config.of(name).default
    words = f"Set {name} to {default}, its default{f': {why}' if why else ''}."
    return {"remedy": words, "settings": (name,), "changes": {name: default}}


def frozen_average(config: Settings) -> Iterator[Finding]:
    """The average of usage never takes in what is measured."""
    share = config.number(HISTORY_RESOURCE_PERCENTAGE)
    if share == 1:
        yield Finding(
            code="average_frozen",
            title="The average of usage never changes",
            evidence=f"{HISTORY_RESOURCE_PERCENTAGE} is {share:g}: what a broker reports counts for nothing.",
            severity="high",
            **_to_default(config, HISTORY_RESOURCE_PERCENTAGE),
        )


def average_runs_away(config: Settings) -> Iterator[Finding]:
    """The average of usage moves away from what is measured, faster each time."""
    share = config.number(HISTORY_RESOURCE_PERCENTAGE)
    if share > 1:
        yield Finding(
            code="average_runs_away",
            title=f"{HISTORY_RESOURCE_PERCENTAGE} is {share:g}, so that averages run away",
            evidence=(
                f"Pulsar takes any number: each average is {share:g} times the last one less {share - 1:g} times what"
                f" is measured. One point of change moves a score by {share - 1:g} points the other way, and each"
                f" further sample multiplies what is wrong by {share:g}. Scores soon say nothing about usage."
            ),
            severity="high",
            **_to_default(config, HISTORY_RESOURCE_PERCENTAGE, "it is a share of 1, not a percentage"),
        )


def share_above_one(config: Settings) -> Iterator[Finding]:
    """A strategy that moves a share of a difference moves more than all of it."""
    read = effective_shedder(load_manager_of(config), config)[0].profile.bounds
    for name in [one for one in read if one in config and config.of(one).unit == _SHARE]:
        if name == HISTORY_RESOURCE_PERCENTAGE or (share := config.number(name)) <= 1:
            continue
        setting = config.of(name)
        yield Finding(
            code="share_above_one",
            title=f"{name} is {share:g}, so that more is shed than the difference",
            evidence=(
                f"{setting.meaning} Pulsar takes any number, and sheds up to {share:g} times the difference here. A"
                " share of 0.5 evens two brokers out, and 1 exchanges their loads."
            ),
            severity="high",
            **_to_default(config, name, "it is a share of 1, not a percentage"),
        )


def excluded_expression(config: Settings) -> Iterator[Finding]:
    """An entry of the namespaces that are not shed is no name of any, such as an expression."""
    name = SHEDDING_EXCLUDED_NAMESPACES
    odd = [one for one in config.names(name) if not _NAMESPACE.fullmatch(one)] if name in config else []
    if odd:
        yield Finding(
            code="exclusion_without_effect",
            title=f"{name} excludes no {listed(odd)}",
            evidence=f"No namespace can be called {listed(odd)}. Pulsar compares whole names there, not expressions.",
            remedy="Write each namespace as tenant/namespace, or take it out.",
            severity="low",
            settings=(name,),
            changes={name: tuple(one for one in config.names(name) if one not in odd)},
        )


def balancer_off(config: Settings) -> Iterator[Finding]:
    """The load balancer is off, so that all other settings of it wait."""
    for name, effect in ((LOAD_BALANCER_ENABLED, "sheds or splits a bundle"), (SHEDDING_ENABLED, "sheds a bundle")):
        if not config.flag(name):
            yield Finding(
                code="balancer_off",
                title=f"{name} is false",
                evidence=f"No broker {effect}, whatever the other settings say.",
                remedy=f"Set {name} to true, unless it is off on purpose.",
                severity="low",
                settings=(name,),
                changes={name: True},
            )
            return


def threshold_acts_on_all_or_none(config: Settings) -> Iterator[Finding]:
    """A shedding threshold that every broker above the average passes, or that no broker can reach."""
    if load_manager_of(config) is not LoadManager.MODULAR:
        return
    shedder = effective_shedder(LoadManager.MODULAR, config)[0]
    if not (name := next(iter(shedder.profile.exact), "")):
        return
    value, above = config.integer(name), shedder.profile.above_average
    never = value >= _ALL_PERCENT if above else value > _ALL_PERCENT
    if value > 0 and not never:
        return
    limit = f"{value} points above the average" if above else f"{value} %"
    yield Finding(
        code="threshold_never_acts" if never else "threshold_always_acts",
        title=f"{shedder.name} {'never sheds' if never else 'always finds a broker above its threshold'}",
        evidence=f"{name} is {value}: {'no' if never else 'in every cycle some'} broker is {limit}.",
        severity="medium",
        **_to_default(config, name),
    )


def out_of_reach(config: Settings) -> Iterator[Finding]:
    """A fraction that no cluster exceeds, as a percentage that was written for it."""
    for name, (most, why) in effective_shedder(load_manager_of(config), config)[0].profile.out_of_reach.items():
        if name not in config or config.number(name) < most:
            continue
        yield Finding(
            code="threshold_never_acts",
            title=f"{name} is {config.number(name):g}, which no cluster exceeds",
            evidence=why,
            severity="medium",
            **_to_default(config, name, "it is a fraction, not a percentage"),
        )


def sheds_nothing(config: Settings) -> Iterator[Finding]:
    """A strategy that compares nothing, or may move nothing, whatever the cluster."""
    shedder = effective_shedder(load_manager_of(config), config)[0]
    if (off := shedder.profile.for_switched_off(config)) is not None:
        yield Finding(
            code="sheds_nothing",
            title=f"{shedder.name} compares nothing",
            evidence=f"{' and '.join(off.changes)} are 0, which switches a comparison off.",
            remedy=off.words,
            severity="medium",
            settings=tuple(off.changes),
            changes=off.changes,
        )
    for name, (least, most) in shedder.profile.moves_nothing.items():
        if name not in config or not least <= (value := config.number(name)) <= most:
            continue
        yield Finding(
            code="sheds_nothing",
            title=f"{shedder.name} sheds nothing, as {name} is {value:g}",
            evidence=f"{config.of(name).meaning} With {value:g}, no bundle may leave any broker.",
            severity="medium",
            **_to_default(config, name),
        )


def limit_overflows(config: Settings) -> Iterator[Finding]:
    """A limit of bundles that brokers multiply beyond what a whole number of 32 bits holds."""
    name, default = NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES, config.of(NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES).default
    given, taken = config.integer(name), split_limits(config)[-1] // MIB
    if given == taken:
        return
    above = "Every bundle with traffic and two topics or more is" if taken <= 0 else "Bundles above that are"
    most = (2**31 - 1) // MIB
    meant = unit_meant(config, name)
    better = most if meant is None else meant.value
    yield Finding(
        code="limit_overflows",
        title=f"Brokers read {name} = {given:,} as {taken:,} MiB/s",
        evidence=(
            f"They turn it into bytes as a number of 32 bits, which holds {most:,} MiB/s at most. {above} split, until"
            f" the namespace has {config.integer(NAMESPACE_MAXIMUM_BUNDLES):,} bundles ({NAMESPACE_MAXIMUM_BUNDLES})."
        ),
        remedy=f"Set {name} to {most}, which switches this limit off in practice, or to what one broker can serve"
        f" ({default} by default)."
        if meant is None
        else f"Did you mean {better:,} MiB/s? It was written in {meant.unit}. Set {name} to {better} then.",
        severity="high" if taken <= 0 else "medium",
        settings=(name,),
        changes={name: better},
    )


def _digits(value: float) -> str:
    """Return a number with all of its digits."""
    return f"{value:,.15g}"


def wrong_unit(config: Settings) -> Iterator[Finding]:
    """A value that makes no sense in the unit of its setting, and a lot in another one."""
    shedder = effective_shedder(load_manager_of(config), config)[0]
    for name in SENSIBLE:
        readers = {one.name for one in SHEDDERS if name in one.settings}
        if readers and shedder.name not in readers and name != SHEDDING_GRACE_PERIOD_MINUTES:
            continue  # nothing that runs reads it; load managers read the other one as well
        if name == NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES or (meant := unit_meant(config, name)) is None:
            continue  # that one overflows before it makes no sense
        setting, value = config.of(name), config.number(name)
        unit = setting.unit.partition(" per ")[0]
        size = "more" if value > meant.value else "less"
        yield Finding(
            code="value_in_wrong_unit",
            title=f"{name} is taken as {_digits(value)} {unit}",
            evidence=(
                f"{setting.meaning} {_digits(value)} {unit} is far {size} than makes sense there; in"
                f" {meant.unit} it would be {_digits(meant.value)} {unit}."
            ),
            remedy=f"Did you mean {_digits(meant.value)} {unit}? Set {name} to {meant.value} then.",
            severity="medium",
            settings=(name,),
            changes={name: meant.value},
        )


RULES: tuple[Callable[[Settings], Iterator[Finding]], ...] = (
    class_missing,
    strategy_not_run,
    unpaired_placement,
    split_algorithm_refused,
    born_full,
    thresholds_crossed,
    load_data_expires,
    no_grace,
    nothing_weighs,
    weighs_too_much,
    frozen_average,
    average_runs_away,
    share_above_one,
    excluded_expression,
    balancer_off,
    threshold_acts_on_all_or_none,
    out_of_reach,
    sheds_nothing,
    limit_overflows,
    wrong_unit,
)
"""Every rule."""
