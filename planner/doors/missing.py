"""What the files do not say, what is assumed instead, which decisions that concerns, and which command supplies it."""

from collections.abc import Iterator
from typing import Final

from planner.cluster.host_names import web_address
from planner.cluster.internal_namespaces import is_system_service_namespace
from planner.cluster.names import FAILURE_DOMAINS_ENABLED
from planner.cluster.text import count
from planner.doors import pieces as kinds
from planner.doors.commands import to_fill_in
from planner.doors.reading import Missing
from planner.doors.together import Together
from planner.history.assumed import listed

_ADMIN: Final = "pulsar-admin"
_BUNDLE_DATA: Final = "/loadbalance/bundle-data/"
_PUBLISHED: Final = "/loadbalance/brokers"
"""Below it are the load reports that the leader decides with."""
_ALL: Final = "Every decision of the load balancer may differ."


def _at(broker: str) -> str:
    return f"{_ADMIN} --admin-url {web_address(broker)}"


def missing_of(made: Together) -> Iterator[Missing]:
    """Yield what is missing, the most important first."""
    yield from _brokers(made)
    yield from _loads(made)
    yield from _owners(made)
    yield from _bundles(made)
    yield from _settings(made)
    yield from _topics(made)
    yield from _policies(made)
    yield from _averages(made)


def _brokers(made: Together) -> Iterator[Missing]:
    if not made.of(kinds.Brokers):
        yield Missing(
            "brokers",
            "the list of brokers",
            f"The cluster is assumed to have {count(len(made.brokers), 'broker')}: those that the files name.",
            "A broker that they do not name is neither shed to nor counted in averages.",
            f"{_ADMIN} brokers list {to_fill_in(made.cluster)}",
        )


def _has_load(made: Together, broker: str) -> bool:
    return broker in made.reports or bool(broker in made.metrics and made.metrics[broker].plain)


def _loads(made: Together) -> Iterator[Missing]:
    unknown = [broker for broker in made.brokers if not _has_load(made, broker)]
    if unknown:
        yield Missing(
            "load",
            f"the load of {listed(unknown)}",
            "Its usage is shown as 0." if len(unknown) == 1 else "Their usage is shown as 0.",
            "Which brokers shed, and which receive bundles, may differ.",
            _load_command(made, unknown[0]),
        )
    partial = [broker for broker in made.brokers if broker not in made.reports and _has_load(made, broker)]
    if partial:
        yield Missing(
            "limits",
            f"load reports of {listed(partial)}",
            "Usage comes from metrics, which give percentages and no limits.",
            "Shares of usage are right; decisions that compare sizes of machines may differ.",
            _load_command(made, partial[0]),
        )


def _load_command(made: Together, broker: str) -> str:
    if made.is_extensible:
        return (
            "pulsar-client consume -s planner -p Earliest -n 0 "
            "non-persistent://pulsar/system/loadbalancer-broker-load-data"
        )
    return f"curl -s {web_address(broker)}/admin/v2/broker-stats/load-report"


def _owners(made: Together) -> Iterator[Missing]:
    lists = {one.broker for one in made.of(kinds.OwnedBundles)}
    unknown = [broker for broker in made.brokers if broker not in made.owned]
    if unknown:
        yield Missing(
            "owners",
            f"the bundles of {listed(unknown)}",
            "It is shown without bundles." if len(unknown) == 1 else "They are shown without bundles.",
            "Nothing can be shed from there, and bundles may be shown as unowned.",
            f"{_ADMIN} brokers namespaces {to_fill_in(made.cluster)} --url {unknown[0]}",
        )
    reported = [broker for broker in made.owned if broker not in lists and broker not in made.reports]
    if reported:
        yield Missing(
            "idle",
            f"the list of bundles of {listed(reported)}",
            "Only bundles with topics or metrics in the files are shown there.",
            "A bundle without traffic may have another owner; no decision about a loaded bundle differs.",
            f"{_ADMIN} brokers namespaces {to_fill_in(made.cluster)} --url {reported[0]}",
        )


def _bundles(made: Together) -> Iterator[Missing]:
    if made.placed.assumed:
        more = " and more where several brokers have topics of one" if made.placed.divided else ""
        yield Missing(
            "bundles",
            f"the bundles of {listed(made.placed.assumed)}",
            f"The default number of bundles of a new namespace is assumed{more}.",
            "Which bundles exist and how large each is may differ, and with it every shed, move and split.",
            f"{_ADMIN} namespaces bundles {next(iter(made.placed.assumed))}",
        )
    partly = [name for name in sorted(made.partial) if not is_system_service_namespace(name, made.decides)]
    if partly:
        yield Missing(
            "bundles",
            f"the full list of bundles of {listed(partly)}",
            "Ranges between the owned bundles are shown as one unowned bundle each.",
            "Splits near the maximum number of bundles may differ; decisions about loaded bundles do not.",
            f"{_ADMIN} namespaces bundles {partly[0]}",
        )


def _settings(made: Together) -> Iterator[Missing]:
    configured = made.of(kinds.Configuration)
    broker = next(iter(made.brokers), "BROKER")
    if not any(one.form in ("runtime", "file") and one.values for one in configured):
        yield Missing(
            "settings",
            "the settings of the brokers",
            f"The defaults of Pulsar {made.decides.name} are assumed.",
            _ALL,
            f"{_at(broker)} brokers get-runtime-config",
        )
    if lacking := _unnamed(made):
        yield Missing(
            "settings",
            f"{count(len(lacking), 'setting')} of the brokers ({listed(lacking)})",
            f"The running brokers do not name them; the defaults of Pulsar {made.decides.name} are assumed.",
            "Decisions that read them may differ.",
            f"{_at(broker)} brokers get-runtime-config",
        )
    if not any(one.form in ("dynamic", "runtime") for one in configured):
        yield Missing(
            "settings",
            "dynamic settings",
            "No setting is assumed to be overridden.",
            "A setting that was changed on the running cluster decides otherwise.",
            f"{_ADMIN} brokers get-all-dynamic-config",
        )
    if not made.named:
        fits = ", the newest that has namespaces with a cluster" if made.version else ""
        yield Missing(
            "release",
            "the release",
            f"Pulsar {made.decides.name} is assumed{fits}.",
            "Rules and defaults that changed between releases may differ.",
            f"{_ADMIN} brokers version",
        )


def _unnamed(made: Together) -> list[str]:
    """Return the settings of the load balancer that no running broker names, though it names others."""
    named = {name for values in made.runtime.values() for name in values}
    return [name for name in made.decides.settings if name not in named] if named else []


def _topics(made: Together) -> Iterator[Missing]:
    have = {*made.topics, *made.placed.topics}
    unknown = [broker for broker in made.brokers if broker not in have]
    if unknown:
        yield Missing(
            "topics",
            f"the topics of {listed(unknown)}",
            "Bundles there are shown without their topics.",
            "Where a bundle would be split, and which topic is hot, cannot be predicted; shedding does not differ.",
            f"{_at(unknown[0])} broker-stats topics",
        )


def _policies(made: Together) -> Iterator[Missing]:
    if not made.of(kinds.IsolationPolicies):
        yield Missing(
            "policies",
            "isolation policies",
            "No namespace is assumed to be isolated.",
            "A bundle of an isolated namespace may stay, or move to another broker than is shown.",
            f"{_ADMIN} ns-isolation-policy list {to_fill_in(made.cluster)}",
        )
    if _has_domains(made) and not made.of(kinds.FailureDomains):
        yield Missing(
            "policies",
            "failure domains",
            "No broker is assumed to be in one.",
            "Bundles of namespaces in anti-affinity groups may move to another broker than is shown.",
            f"{_ADMIN} clusters list-failure-domains {to_fill_in(made.cluster)}",
        )
    named = {name.rpartition("/")[0] for names in made.owned.values() for name in names}
    groups = {one.namespace for one in made.of(kinds.AntiAffinityGroup)}
    served = [name for name in sorted(named - groups) if not is_system_service_namespace(name, made.decides)]
    if served:
        yield Missing(
            "policies",
            "anti-affinity groups",
            "No namespace is assumed to be in one.",
            "Bundles of namespaces that must be apart may stay, or move to another broker than is shown.",
            f"{_ADMIN} namespaces get-anti-affinity-group {served[0]}",
        )


def _has_domains(made: Together) -> bool:
    """Say whether any setting turns failure domains on; they are off by default."""
    values = [one.values.get(FAILURE_DOMAINS_ENABLED, "") for one in made.of(kinds.Configuration)]
    return any(str(value).strip().lower() == "true" for value in values)


def _averages(made: Together) -> Iterator[Missing]:
    named = {one.path.removeprefix(_BUNDLE_DATA) for one in made.of(kinds.Averages)}
    owned = [name for names in made.owned.values() for name in names]
    without = [name for name in owned if name not in named and not _is_own(name, made)]
    if without and not made.is_extensible:
        yield Missing(
            "averages",
            f"averages of {count(len(without), 'bundle')}, which the leader alone keeps",
            "Current rates stand in.",
            f"Which bundles of a broker are shed, and where they go, may differ.{_published(made)}",
            f"pulsar zookeeper-shell get {_BUNDLE_DATA}{without[0]}",
        )


def _published(made: Together) -> str:
    """Return what follows from load reports that brokers were asked for, while the leader has those they published."""
    commands = [one.source.command for one in made.reports.values()]
    if not commands or all(_PUBLISHED in command for command in commands):
        return ""
    return (
        " The leader decides with reports that brokers published earlier, so that a broker near a threshold may differ,"
        " too."
    )


def _is_own(bundle: str, made: Together) -> bool:
    return is_system_service_namespace(bundle.rpartition("/")[0], made.decides)
