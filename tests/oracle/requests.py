"""Random lives of a modular leader, asked for one bundle after the other, and the planner's memory beside it."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from planner.cluster.errors import PulsarError
from planner.cluster.pulsar_json import Json
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.conform.compare import differences
from planner.conform.load_data import snapshot_of_load_data
from planner.pulsar.load.averages import with_known_rates
from planner.pulsar.placement import modular
from planner.pulsar.placement.avg import Bindings
from planner.pulsar.placement.least_resource_usage import UsageAverages
from planner.pulsar.placement.modular_filters import ModularFilters
from planner.pulsar.placement.selection import Selection
from tests.oracle.cases import WEIGHTS, Case, bucket, bundle_sizes, case, resources, settings, traffic

IMPL = "org.apache.pulsar.broker.loadbalance.impl."
MANAGER = f"{IMPL}ModularLoadManagerImpl"
SPACES = ["t/n0", "t/n1", "t/n2", "t/n3", "pulsar/system"]
CONFIG: dict[str, list[Any]] = {
    "loadBalancerBrokerMaxTopics": [3, 10],
    "failureDomainsEnabled": [True],
    "loadBalancerDistributeBundlesEvenlyEnabled": [True, False, False],
    "preferLaterVersions": [True, False],
    "loadBalancerBrokerOverloadedThresholdPercentage": [0, 30, 50, 85],
    "loadBalancerSheddingExcludedNamespaces": [["t/n0"], ["t/n0", "pulsar/system"]],
    "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": [0, 10, 20],
    "loadBalancerHistoryResourcePercentage": [0.0, 0.5, 1.0, 90.0],
    "loadManagerClassName": ["x.OtherManager"],
}
SEEDS = 3000


# The leader's life


def manager_case(rng: random.Random, number: int, size: tuple[int, int] | None = None) -> Case:
    """Return a cluster and what its leader is asked.

    Args:
        rng: Decides.
        number: Goes into its name.
        size: Brokers and bundles; small ones otherwise, among them none and one.
    """
    brokers, each = (size[0], size[1] // len(SPACES)) if size else (rng.randrange(13), rng.choice([1, 2, 4, 8]))
    hosts = separate(rng, brokers)
    step = 2**32 // each
    bundles = [f"{space}/0x{at * step:08x}_0x{(at + 1) * step - 1:08x}" for space in SPACES for at in range(each)]
    strategies = ["LeastLongTermMessageRate", "LeastResourceUsageWithWeight", "RoundRobinBrokerSelector", "AvgShedder"]
    config = {
        "loadBalancerLoadPlacementStrategy": IMPL + rng.choice(strategies),
        **settings(rng, 0.3, CONFIG),
        **settings(rng, rng.choice([0.0, 0.3]), WEIGHTS),
    }
    manager = config.get("loadManagerClassName", MANAGER)
    unheard_of = {bundle for bundle in bundles if rng.random() < 0.2}
    moment = moment_of(rng, hosts, bundles, unheard_of, manager, odd=not size)
    data = dict(zip(bundles, bundle_sizes(rng, len(bundles)), strict=True))
    known = {
        name: {
            "topics": rng.choice([0, 1, 2, 5]),
            "shortTermData": average(rng, of, 10),
            "longTermData": average(rng, of, 1000),
        }
        for name, of in data.items()
        if name not in unheard_of
    }
    given = {
        "leader": hosts[0] if hosts else "",
        "loadData": {"brokers": moment["brokers"], "bundleData": known},
        "registered": moment["registered"],
        "ownedByLeader": moment["ownedByLeader"],
        **policies(rng, hosts, isolated=not size),
        "requests": list(requests(rng, hosts, bundles, unheard_of, manager, None if size else moment)),
    }
    return case("modular_manager", number, given, config)


def average(rng: random.Random, rate: float, window: int) -> Case:
    return {**traffic(rng, rate, 1.0), "numSamples": rng.choice([1, window]), "maxSamples": window}


def separate(rng: random.Random, wanted: int) -> list[str]:
    """Return brokers of which no two share a bucket: the order of those depends on a map's history."""
    table = 16
    while wanted > table * 3 // 4:
        table *= 2
    found: dict[int, str] = {}
    while len(found) < wanted:
        name = f"{rng.choice(['a', 'b', 'web-'])}{rng.randrange(10**4)}.x:8080"
        found.setdefault(bucket(name, table), name)
    return rng.sample(list(found.values()), wanted)


def moment_of(
    rng: random.Random, hosts: list[str], bundles: list[str], unheard_of: set[str], manager: str, *, odd: bool
) -> Case:
    """Return load reports and who is registered; now and then somebody lacks the one or the other.

    The leader owns some bundles that nobody has reported, now or ever: those that had averages keep them in Pulsar's
    memory alone.
    """
    odd = odd and rng.random() < 0.4
    owned: dict[str, list[str]] = {host: [] for host in hosts}
    for bundle in bundles:
        if hosts and bundle not in unheard_of and rng.random() < 0.6:
            owned[rng.choice(hosts)].append(bundle)
    reports = {}
    for host in hosts:
        if odd and host != hosts[0] and rng.random() < 0.1:
            continue
        reports[host] = {
            **resources(rng),
            **traffic(rng, rng.choice([0.0, 10.0, 1e6]), 100.0),
            "numTopics": rng.choice([0, 0, 2, 3, 5, 12]),
            "bundles": owned[host],
            "lastStats": {name: traffic(rng, rng.choice([0, 9, 1e5]), 1.0) for name in owned[host]},
            "persistentTopicsEnabled": not odd or rng.random() < 0.8,
            "nonPersistentTopicsEnabled": True,
            "brokerVersionString": rng.choice(["4.2.4", "4.2.4", "4.2.4-SNAPSHOT", "3.0.10", *[None, "bad"] * odd]),
            "loadManagerClassName": manager if host == hosts[0] or rng.random() < 0.8 else rng.choice(["x.Y", None]),
        }
    taken = [bundle for bundle in sorted(unheard_of) if hosts and rng.random() < 0.4]
    return {
        "brokers": reports,
        "registered": [host for host in hosts if not odd or host == hosts[0] or rng.random() < 0.85],
        "ownedByLeader": [*(owned[hosts[0]] if hosts else []), *taken],
    }


def policies(rng: random.Random, hosts: list[str], *, isolated: bool) -> Case:
    """Return policies. The order of a large set tells how large it ever was, so all brokers must be in it."""
    given: Case = {}
    expressions = [r"a.*", r"b\d+\.x", r"web-.*", r"nobody", r".*", *[host.split(":")[0] for host in hosts[:3]]]
    if isolated and rng.random() < 0.5:
        given["isolation"] = [
            {
                "name": f"p{at}",
                "namespaces": rng.choice([["t/n0"], ["t/n[12]"], ["t/.*"], ["t/n", "other"]]),
                "primary": rng.sample(expressions, rng.choice([1, 1, 2])),
                "secondary": rng.sample(expressions, rng.choice([0, 1])),
                "min": rng.choice([1, 2, 3]),
            }
            for at in range(rng.choice([1, 1, 2]))
        ]
    if rng.random() < 0.5:
        given["groups"] = {space: rng.choice(["g", "G", "h", " "]) for space in SPACES[:4] if rng.random() < 0.7}
        given["domains"] = {
            name: [host for at, host in enumerate(hosts) if at % 4 == place] for place, name in enumerate(["d1", "d2"])
        }
    return given


def requests(
    rng: random.Random, hosts: list[str], bundles: list[str], unheard_of: set[str], manager: str, moment: Case | None
) -> Iterator[Case]:
    """Yield what the leader is asked, starting from a moment; without one, few and independent questions."""
    if moment is None:
        yield from ({"do": "select", "bundle": rng.choice(bundles)} for _ in range(5))
        return
    reported, owned = set(moment["brokers"]), moment["ownedByLeader"]
    for _ in range(rng.choice([1, 4, 15])):
        kind = rng.choice(["select", "select", "lookup", "lookup", "lookup", "affinity", "may-leave", "refresh"])
        bundle = rng.choice(bundles)
        if kind in {"affinity", "may-leave"} and hosts:
            yield {"do": kind, "bundle": bundle, "broker": rng.choice(hosts)}
        elif kind == "refresh":
            gone = rng.choice(hosts) if len(hosts) > 1 and rng.random() < 0.3 else ""
            here = [host for host in hosts if host != gone or host == hosts[0]]
            moment = moment_of(rng, here, bundles, unheard_of, manager, odd=True)
            yield {"do": kind, **moment}
            if (reported & set(moment["registered"])) - set(moment["brokers"]):
                return  # a leader goes on counting the bundles of a broker whose report is gone
            reported |= set(moment["brokers"])
            owned = moment["ownedByLeader"]
        elif kind in {"select", "lookup"}:
            # Nobody asks for the owner of a bundle that the leader owns, and it would count twice.
            yield {"do": "select" if bundle in owned else kind, "bundle": bundle}


# The planner beside it


def mismatches(asked: Json, expected: Json) -> list[str]:
    """Return what the planner does otherwise; it follows Pulsar's draws as long as they are possible ones."""
    config, given = Settings(asked["config"]), asked["input"]
    now: dict[str, Any] = {
        **given,
        "brokers": given["loadData"]["brokers"],
        "bundleData": given["loadData"]["bundleData"],
    }
    memory = modular.fresh_memory(config)
    snapshot = snapshot_of(now, config)
    for number, request, answer in zip(count(), given["requests"], expected["requests"], strict=False):
        where = f"request {number}, {request['do']} {request.get('bundle', '')}"
        if request["do"] == "affinity":
            memory = replace(memory, affinities={**memory.affinities, request["bundle"]: request["broker"]})
        elif request["do"] == "refresh":
            now |= {key: request[key] for key in ("registered", "ownedByLeader")}
            now |= {"brokers": {b: r for b, r in request["brokers"].items() if b in answer["brokers"]}}
            now |= {"bundleData": answer["bundleData"]}
            snapshot = snapshot_of(now, config)
            memory = modular.with_active_brokers(modular.after_refresh(memory, snapshot), snapshot)
        elif request["do"] == "may-leave":
            filters = ModularFilters(snapshot, config, memory.preallocated)
            namespace, broker = (
                request["bundle"].rpartition("/")[0],
                snapshot.brokers.position.get(request["broker"], -1),
            )
            if broker < 0:
                continue
            leave = (filters.may_leave_isolation(namespace, broker), filters.may_leave_group(namespace, broker).allowed)
            if leave != (answer["isolation"], answer["antiAffinity"]):
                return [f"{where}: expected {answer}, got {leave}"]
        else:
            memory, wrong = follow(request, answer, snapshot, memory, config)
            if wrong or "error" in answer:  # what a strategy has done before it failed is not followed
                return [f"{where}: {wrong}"] if wrong else []
        found = [str(one) for one in differences(remembered(answer), memory_of(memory, answer))]
        if found:
            return [f"{where}: {found[:3]}"]
    return []


def snapshot_of(now: Mapping[str, Any], config: Settings) -> Snapshot:
    reports = now["brokers"]
    names = [*reports, *(host for host in now["registered"] if host not in reports)]
    rows = {name: dict(reports.get(name, {})) for name in names}
    if now["leader"] in rows:
        listed = rows[now["leader"]].get("bundles", ())
        rows[now["leader"]]["bundles"] = [*listed, *(b for b in now["ownedByLeader"] if b not in listed)]
    snapshot = snapshot_of_load_data({"brokers": rows, "bundleData": now["bundleData"]}, config)
    data = [now["bundleData"].get(name, {}) for name in snapshot.bundle_names]
    samples: dict[str, Any] = {
        f"{term}_term_samples": np.array(
            [(d.get(f"{term}TermData") or {}).get("numSamples", 0) for d in data], np.int64
        )
        for term in ("short", "long")
    }
    told = [reports.get(name, {}) for name in names]
    brokers = replace(
        snapshot.brokers,
        registered=np.array([name in now["registered"] for name in names], dtype=np.bool_),
        has_load_data=np.array([name in reports for name in names], dtype=np.bool_),
        topics=np.array([report.get("numTopics", 0) for report in told], dtype=np.int64),
        reported_bundles=np.array([len(report.get("bundles", ())) for report in told], dtype=np.int64),
        version=tuple(report.get("brokerVersionString") or "" for report in told),
        load_manager_class=tuple(report.get("loadManagerClassName") or "" for report in told),
        persistent_topics_enabled=np.array([bool(report.get("persistentTopicsEnabled")) for report in told], np.bool_),
    )
    isolation = tuple(
        IsolationPolicy(p["name"], tuple(p["namespaces"]), tuple(p["primary"]), tuple(p["secondary"]), p["min"])
        for p in now.get("isolation", ())
    )
    domains = {name: tuple(hosts) for name, hosts in now.get("domains", {}).items()}
    return with_known_rates(
        replace(
            snapshot,
            info=replace(snapshot.info, leader=now["leader"]),
            brokers=brokers,
            bundles=replace(snapshot.bundles, **samples),
            policies=Policies(isolation, now.get("groups", {}), domains),
        )
    )


def follow(
    request: Json, answer: Json, snapshot: Snapshot, memory: modular.ModularMemory, config: Settings
) -> tuple[modular.ModularMemory, str]:
    """Return the memory after Pulsar's draw, and what is not as the planner says."""
    ask = modular.select_broker if request["do"] == "select" else modular.least_loaded
    calls, drawn = answer["calls"], answer.get("selected")
    bound = isinstance(memory.placement, Bindings)
    for seed in range(SEEDS):
        try:
            after, found = ask(snapshot, request["bundle"], memory, config, seed, explain=False)
        except PulsarError as error:
            if error.exception == answer.get("error"):
                return memory, ""
            if bound:
                continue  # Pulsar drew a broker that has a load report
            return memory, f"expected {answer}, got {error}"
        if "error" in answer and bound:
            continue
        wrong = judge(answer, found, snapshot)
        if wrong:
            return memory, wrong
        again = found.calls and found.calls[0].selected in ModularFilters(snapshot, config).overloaded
        if bool(again) == (len(calls) == 2) and (not bound or not calls or found.decision.selected == drawn):
            break
    else:
        return memory, f"no draw makes {len(calls)} calls and ends with {drawn}"
    if request["do"] == "lookup" and calls and drawn is not None:
        changed: dict[str, Any] = {"promised": {**memory.promised, request["bundle"]: drawn}}
        changed["preallocated"] = {**memory.preallocated, request["bundle"]: drawn}
        after = replace(after, **changed)
    return after, ""


def judge(answer: Json, found: Selection, snapshot: Snapshot) -> str:
    """Return how an answer of Pulsar is impossible, when it is."""
    calls, drawn, decision = answer["calls"], answer.get("selected"), found.decision
    kept = [snapshot.brokers.name[i] for i in found.steps[-1].kept.tolist()] if found.steps else []
    wrong = ""
    if "error" in answer:
        wrong = f"expected {answer['error']}, got {decision.selected}"
    elif bool(calls) != bool(found.calls):
        wrong = f"expected the calls {calls}, got {found.how}"
    elif calls and kept != calls[0]["candidates"]:
        wrong = f"expected the candidates {calls[0]['candidates']}, got {kept}"
    elif drawn not in (decision.acceptable or (None,)):
        wrong = f"expected {drawn}, got {decision.acceptable}"
    for call, mine in zip(calls, found.calls, strict=False):
        # Without a list, a second answer follows from the first draw, which is not the planner's.
        best = call["best"] or ([call["answer"]] if call is calls[0] and call["answer"] is not None else [])
        if best and not (
            sorted(best) == sorted(mine.acceptable) if call["best"] else set(best) <= set(mine.acceptable)
        ):
            wrong = f"expected one of {best}, got {mine.acceptable}"
    return wrong


def remembered(answer: Json) -> Json:
    return {key: answer[key] for key in ("promised", "preallocated", "averages") if key in answer}


def memory_of(memory: modular.ModularMemory, answer: Json) -> Json:
    told: dict[str, Any] = {"promised": dict(memory.promised), "preallocated": dict(memory.preallocated)}
    if isinstance(memory.placement, UsageAverages) and "averages" in answer:
        told["averages"] = dict(memory.placement.usage)
    return told
