"""Generated clusters of unlike machines with isolation policies and anti-affinity groups."""

from dataclasses import replace
from random import Random

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import FAILURE_DOMAINS_ENABLED
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

CLUSTERS = 20
"""How many there are."""


def cluster_with_policies(seed: int) -> Snapshot:
    """Return one of the clusters: every second one with the policies of the generator, the others with pools.

    The generator gives an isolated namespace one primary broker, and all others as secondary ones. Pools are shares of
    the brokers with a minimum of primary ones; half of those clusters have failure domains.
    """
    random = Random(seed)  # noqa: S311 - no secret
    brokers = random.randint(10, 40)
    namespaces = random.randint(12, 50)
    generated = seed % 2 == 0
    spec = ClusterSpec(
        brokers=brokers,
        bundles=random.randint(400, 2_000),
        namespaces=namespaces,
        topics=random.randint(4_000, 12_000),
        load_manager=list(LoadManager)[seed // 2 % 2],
        msg_rate_per_s=brokers * random.uniform(5_000, 15_000),
        topic_skew=random.uniform(0.6, 0.9),
        ownership_skew=random.uniform(0.3, 0.9),
        heterogeneity=random.uniform(0.4, 0.9),
        joined_brokers=random.randint(0, 4),
        isolated_namespaces=random.randint(2, namespaces // 2) if generated else 0,
        anti_affinity_namespaces=random.randint(2, namespaces // 3) if generated else 0,
        cluster=f"policies-{seed}",
    )
    snapshot = generate(spec, seed)
    return snapshot if generated else _with_pools(snapshot, random, domains=seed // 4 % 2 == 0)


def _with_pools(snapshot: Snapshot, random: Random, *, domains: bool) -> Snapshot:
    names, spaces = list(snapshot.brokers.name), list(snapshot.namespaces)
    hosts = [name.rpartition(":")[0].replace(".", r"\.") for name in names]
    random.shuffle(hosts)
    size = max(len(hosts) // 5, 2)
    pools = [tuple(hosts[at : at + size]) for at in range(0, size * random.randint(1, 3), size)]
    rest = tuple(hosts[size * len(pools) :])
    isolated = random.sample(spaces, len(spaces) // 3)
    grouped, together = random.sample(spaces, len(spaces) // 3), random.choice([2, 4])
    policies = Policies(
        isolation=tuple(
            IsolationPolicy(
                name=f"pool-{at}",
                namespaces=tuple(isolated[at :: len(pools)]),
                primary=pool,
                secondary=rest,
                min_limit=random.choice([1, 1, size + 1]),
            )
            for at, pool in enumerate(pools)
        ),
        anti_affinity_group={name: f"group-{at // together}" for at, name in enumerate(grouped)},
        failure_domains={f"domain-{at}": tuple(names[at::3]) for at in range(3)} if domains else {},
    )
    return replace(
        snapshot, policies=policies, settings=snapshot.settings.changed(**{FAILURE_DOMAINS_ENABLED: domains})
    )
