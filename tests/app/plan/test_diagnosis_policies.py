"""Policies that match nobody, and bundles where their policy excludes them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import FULL_HIGH, equal_boundaries
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.formats.reading import read_snapshot
from planner.simulate.breaches import breaches
from planner.simulate.edits.edit import Edit
from planner.simulate.edits.registry import IsolationChange
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged

CASES = Path(__file__).parents[4] / "shared" / "cases"
NOW_MS = 1_800_000_000_000
HOSTS = ("pulsar-a1.example.net", "pulsar-a2.example.net", "pulsar-b1.example.net", "pulsar-b2.example.net")


def spread(
    owners: Mapping[str, Sequence[int]],
    policies: Policies,
    *,
    load_manager: LoadManager = LoadManager.MODULAR,
    **settings: Any,
) -> Snapshot:
    """Four calm brokers; each namespace has one bundle for each owner given, -1 for an unowned one."""
    low: list[int] = []
    high: list[int] = []
    namespace: list[int] = []
    owner: list[int] = []
    for at, mine in enumerate(owners.values()):
        ends = [*equal_boundaries(len(mine))[:-1], FULL_HIGH]
        low += ends[:-1]
        high += ends[1:]
        namespace += [at] * len(mine)
        owner += mine
    rate = np.full(len(low), 100.0)
    return Snapshot(
        info=SnapshotInfo("policies", load_manager, NOW_MS, leader=f"{HOSTS[0]}:8080"),
        settings=Settings(settings),
        brokers=make_brokers(
            tuple(f"{host}:8080" for host in HOSTS),
            cpu_usage_percent=[20.0] * 4,
            cpu_limit_percent=200.0,
            updated_at_ms=NOW_MS,
            msg_throughput_in_bytes_per_s=1e6,
            msg_rate_in_per_s=200.0,
            weighted_max_ema=[0.1] * 4,
        ),
        namespaces=tuple(owners),
        bundles=make_bundles(
            low,
            high=high,
            namespace=np.array(namespace, np.int32),
            owner=np.array(owner, np.int32),
            topics=1,
            msg_rate_in_per_s=rate,
            msg_throughput_in_bytes_per_s=rate * 1000,
            has_stats=np.array(owner) >= 0,
        ),
        topics=make_topics(),
        policies=policies,
    )


def asked(snapshot: Snapshot, steps: Sequence[Edit] = (), cycles: int = 3) -> Outcome:
    scenario = unchanged(snapshot.info.pulsar_version, cycles=cycles)
    return Outcome(simulate(snapshot, scenario.with_steps(*map(Step, steps))))


def found(outcome: Outcome, code: str) -> list[Finding]:
    return [finding for finding in diagnose(outcome) if finding.code == code]


def policy(primary: Sequence[str], secondary: Sequence[str] = (), namespaces: Sequence[str] = ("iso/.*",)) -> Policies:
    return Policies(isolation=(IsolationPolicy("mine", tuple(namespaces), tuple(primary), tuple(secondary)),))


class TestNoBroker:
    @pytest.mark.parametrize(
        ("expression", "why", "better"),
        [
            ("pulsar-a1.example.net:8080", "has a port", "pulsar-a1.example.net"),
            ("pulsar-a.*:8080", "has a port", "pulsar-a.*"),
            ("pulsar-a*", "written as a glob", "pulsar-a.*"),
            ("*.example.net", "written as a glob", ".*.example.net"),
            ("pulser-a1.example.net", "nearest host is pulsar-a1.example.net", r"pulsar-a1\.example\.net"),
            ("pulsar-a[", "not a valid regular expression", ""),
            ("broker-7", "", ""),
            (r"pulsar-a9\.example\.net", "", ""),
            ("Pulsar-A1.example.net", "capitals count: the name is pulsar-a1", r"pulsar-a1\.example\.net"),
            ("PULSAR-.*:8443", "capitals count: the names are pulsar-a1", "(?i)PULSAR-.*"),
            ("https://pulsar-a1.example.net:8443/", "it is an address; it has a port", "pulsar-a1.example.net"),
            (r"pulsar-a.*:\d+", "has a port", "pulsar-a.*"),
            ("pulsar-a.*:(8080|8443)", "has a port", "pulsar-a.*"),
            (" 'pulsar-a1.*' ", "blanks or quotes", "pulsar-a1.*"),
            ("pulsar-a1.example.net.", "ends with a dot", "pulsar-a1.example.net"),
            (r"pulsar-a1\\.example\\.net", "backslashes are doubled", r"pulsar-a1\.example\.net"),
            ("pulsar-a1", "has to match the whole name", r"pulsar-a1\..*"),
            ("a1.example.net", "has to match the whole name", ".*-a1.example.net"),
            ("pulsar-a1.example.net.corp", "the host is called pulsar-a1.example.net", r"pulsar-a1\.example\.net"),
            ("pulsar-a1.*,pulsar-a2.*", "it is a list", "pulsar-a1.*, pulsar-a2.*"),
            ("pulsar-a[7-9].*", "", ""),
        ],
    )
    @pytest.mark.parametrize("load_manager", list(LoadManager))
    def test_what_is_wrong_is_said_and_mended(
        self, load_manager: LoadManager, expression: str, why: str, better: str
    ) -> None:
        snapshot = spread({"iso/app": (-1, -1), "iso/other": (0,)}, policy((expression,)), load_manager=load_manager)
        (finding,) = found(asked(snapshot), "policy_matches_no_broker")
        assert finding.severity == "high"
        assert expression in finding.evidence
        assert why in finding.evidence
        assert "No broker may own its 3 bundles of iso/app, iso/other: 2 unowned, 1 served" in finding.evidence
        assert (better in finding.remedy) if better else bool(finding.edits) is not bool(why)
        if better:
            assert not found(asked(snapshot, finding.edits), "policy_matches_no_broker")

    def test_hosts_that_capitals_hide_are_named_each_for_itself(self) -> None:
        """Two of four brokers were both taken for the one nearest by its letters, which was neither of them."""
        policies = policy(("PULSAR-A1.example.net", "PULSAR-A2.example.net"))
        (finding,) = found(asked(spread({"iso/app": (0, 1)}, policies)), "policy_matches_no_broker")
        (edit,) = finding.edits
        assert isinstance(edit, IsolationChange)
        assert edit.primary == (r"pulsar-a1\.example\.net", r"pulsar-a2\.example\.net")

    @pytest.mark.parametrize("written", ["2001:db8::10", "[2001:db8::10]", "[2001:DB8:0::10]:8080", "2001:db8:0:0::10"])
    def test_an_ipv6_host_is_written_with_escaped_brackets(self, written: str) -> None:
        snapshot = spread({"iso/app": (0, 1)}, policy((written,)))
        names = tuple(f"[2001:db8::{10 + at}]:8080" for at in range(4))
        snapshot = replace(snapshot, brokers=replace(snapshot.brokers, name=names))
        (finding,) = found(asked(snapshot), "policy_matches_no_broker")
        assert r"Write \[2001:db8::10\]:" in finding.remedy
        assert not found(asked(snapshot, finding.edits), "policy_matches_no_broker")

    def test_a_misspelt_host_is_not_taken_for_one_that_is_matched_already(self) -> None:
        policies = policy(("pulser-a1.example.net", "pulsar-a1.*"))
        (finding,) = found(asked(spread({"iso/app": (0, 1)}, policies)), "policy_matches_no_broker")
        assert "Write" not in finding.remedy

    def test_a_policy_on_its_secondary_brokers_is_less(self) -> None:
        policies = policy(("nobody",), ("pulsar-b.*",))
        (finding,) = found(asked(spread({"iso/app": (2, 3)}, policies)), "policy_matches_no_broker")
        assert finding.severity == "medium"
        assert "use the secondary brokers only: pulsar-b1.example.net, pulsar-b2.example.net" in finding.evidence

    def test_one_of_several_expressions_is_a_note(self) -> None:
        policies = policy(("pulsar-a.*", "pulsar-c.*"))
        (finding,) = found(asked(spread({"iso/app": (0, 1)}, policies)), "policy_matches_no_broker")
        assert finding.severity == "low"
        assert "pulsar-c.*" in finding.evidence

    def test_a_policy_that_matches_is_no_finding(self) -> None:
        outcome = asked(spread({"iso/app": (0, 1)}, policy(("pulsar-a.*",), ("pulsar-b1.example.net",))))
        assert not diagnose(outcome)

    def test_an_edit_that_sets_such_a_policy_is_told(self) -> None:
        edit = IsolationChange(name="new", namespaces=("iso/.*",), primary=("pulsar-a1.example.net:8080",))
        (finding,) = found(asked(spread({"iso/app": (0, 1)}, Policies()), [edit]), "policy_matches_no_broker")
        assert "'new'" in finding.title

    def test_where_every_broker_is_reserved_the_others_have_none(self) -> None:
        snapshot = spread({"iso/app": (0,), "free/app": (-1, 1)}, policy(("pulsar-.*",)))
        (finding,) = found(asked(snapshot), "no_broker_allowed")
        assert "2 bundles of free/app may be owned by no broker" in finding.evidence
        assert not found(
            asked(spread({"iso/app": (0,), "free/app": (2,)}, policy(("pulsar-a.*",)))), "no_broker_allowed"
        )


class TestAgainstPolicy:
    @pytest.mark.parametrize("load_manager", list(LoadManager))
    def test_bundles_that_stay_are_named_and_the_remedy_moves_them(self, load_manager: LoadManager) -> None:
        snapshot = spread({"iso/app": (0, 2, 3, 3)}, policy(("pulsar-a.*",)), load_manager=load_manager)
        outcome = asked(snapshot)
        (finding,) = found(outcome, "against_policy")
        assert finding.title.startswith("3 bundles on brokers")
        assert set(finding.brokers) == {f"{HOSTS[2]}:8080", f"{HOSTS[3]}:8080"}
        assert len(finding.bundles) == 3
        mended = asked(snapshot, finding.edits)
        assert not len(breaches(mended.trace.end))
        assert not found(mended, "against_policy")

    def test_secondary_brokers_are_no_breach(self) -> None:
        assert not found(asked(spread({"iso/app": (0, 2)}, policy(("pulsar-a.*",), ("pulsar-b.*",)))), "against_policy")


class TestPoliciesWithoutNamespaces:
    def test_an_expression_that_matches_no_namespace_is_named_with_the_nearest(self) -> None:
        policies = Policies(isolation=(IsolationPolicy("app", ("iso/ap",), ("pulsar-a.*",)),))
        (finding,) = found(asked(spread({"iso/app": (2, 3)}, policies)), "policy_without_namespaces")
        assert "matches 'iso/ap'" in finding.evidence
        assert f"reserved all the same: {HOSTS[0]}" in finding.evidence
        assert "The nearest is iso/app." in finding.remedy

    @pytest.mark.parametrize(
        ("written", "better"),
        [
            ("iso", "Write iso/.* for all namespaces of the tenant"),
            ("ISO/App", "Write iso/app (capitals count: the name is iso/app)"),
            ("persistent://iso/app", "Write iso/app (it is an address)"),
            ("iso/app,iso/other", "Write iso/app and iso/other (it is a list"),
            ("app", "Write .*/app (it has to match the whole name)"),
        ],
    )
    def test_what_is_wrong_with_the_name_of_a_namespace_is_said(self, written: str, better: str) -> None:
        policies = Policies(isolation=(IsolationPolicy("app", (written,), ("pulsar-a.*",)),))
        (finding,) = found(asked(spread({"iso/app": (2,), "iso/other": (3,)}, policies)), "policy_without_namespaces")
        assert finding.remedy.startswith(better)

    def test_a_policy_behind_another_one_is_named_with_it(self) -> None:
        first = IsolationPolicy("all", ("iso/.*",), ("pulsar-a.*",))
        policies = Policies(isolation=(first, IsolationPolicy("app", ("iso/app",), ("nowhere",))))
        (finding,) = found(asked(spread({"iso/app": (0, 1)}, policies)), "policy_without_namespaces")
        assert finding.title == "The isolation policy 'app' applies to no namespace"
        assert "iso/app follow the policy 'all'" in finding.evidence
        assert "reserved" not in finding.evidence

    def test_a_policy_that_applies_is_no_finding(self) -> None:
        policies = Policies(isolation=(IsolationPolicy("app", ("none/x", "iso/.*"), ("pulsar-a.*",)),))
        assert not found(asked(spread({"iso/app": (0, 1)}, policies)), "policy_without_namespaces")


class TestExclusions:
    EXCLUDED = "loadBalancerSheddingExcludedNamespaces"

    @pytest.mark.parametrize(
        ("written", "better"),
        [
            ("iso/.*", ("iso/app", "iso/other")),
            ("iso/*", ("iso/app", "iso/other")),
            ("iso", ("iso/app", "iso/other")),
            ("ISO/app", ("iso/app",)),
            ("free/app, iso/other.*", ("free/app", "iso/other")),
            ("persistent://iso/app", ("iso/app",)),
        ],
    )
    def test_an_expression_excludes_no_namespace(self, written: str, better: tuple[str, ...]) -> None:
        """Pulsar compares whole names, so that bundles were shed which nobody expected to be."""
        made = spread(
            {"iso/app": (0,), "iso/other": (1,), "free/app": (2,)},
            Policies(),
            loadBalancerSheddingExcludedNamespaces=written,
        )
        (finding,) = found(asked(made), "exclusion_without_effect")
        assert finding.changes == {self.EXCLUDED: better}
        assert f"Write {','.join(better)}," in finding.remedy

    @pytest.mark.parametrize("written", ["iso/app", " iso/app , free/app", "far/away", ""])
    def test_names_are_no_finding(self, written: str) -> None:
        made = spread({"iso/app": (0,), "free/app": (2,)}, Policies(), loadBalancerSheddingExcludedNamespaces=written)
        assert not found(asked(made), "exclusion_without_effect")


class TestDomains:
    GROUP: Mapping[str, str] = {"t/one": "g", "t/two": "g"}

    def domains(self, *brokers: str, **settings: Any) -> Outcome:
        policies = Policies(anti_affinity_group=self.GROUP, failure_domains={"za": brokers[:1], "zb": brokers[1:]})
        return asked(spread({"t/one": (0,), "t/two": (2,)}, policies, **settings))

    def test_hosts_are_no_broker_ids(self) -> None:
        (finding,) = found(self.domains(HOSTS[0], HOSTS[2], failureDomainsEnabled=True), "domains_without_effect")
        assert "the domains are without effect" in finding.evidence
        assert f"--domain-name za --broker-list {HOSTS[0]}:8080" in finding.remedy

    def test_some_unknown_names_are_less(self) -> None:
        outcome = self.domains(f"{HOSTS[0]}:8080", "gone:8080", failureDomainsEnabled=True)
        (finding,) = found(outcome, "domains_without_effect")
        assert "one domain of their own" in finding.evidence
        assert finding.remedy.startswith("Where such a broker is down, the domain is right.")
        assert finding.remedy.endswith("--domain-name zb --broker-list HOST:PORT.")

    @pytest.mark.parametrize("host", [HOSTS[3], HOSTS[3].upper()])
    @pytest.mark.parametrize("written", ["{}", "{}:8443", "http://{}:8080", " {}:6650", "pulsar+ssl://{}:6651/"])
    def test_the_brokers_that_are_meant_stay_in_their_domain(self, host: str, written: str) -> None:
        outcome = self.domains(f"{HOSTS[0]}:8080", f"{HOSTS[2]}:8080", written.format(host), failureDomainsEnabled=True)
        (finding,) = found(outcome, "domains_without_effect")
        assert finding.remedy.endswith(f"--domain-name zb --broker-list {HOSTS[2]}:8080,{HOSTS[3]}:8080.")

    def test_domains_that_are_switched_off(self) -> None:
        (finding,) = found(self.domains(f"{HOSTS[0]}:8080", f"{HOSTS[2]}:8080"), "domains_without_effect")
        assert finding.changes == {"failureDomainsEnabled": True}

    def test_domains_that_work_are_no_finding(self) -> None:
        ids = [f"{host}:8080" for host in HOSTS]
        assert not found(self.domains(*ids, failureDomainsEnabled=True), "domains_without_effect")

    def test_a_group_of_one_keeps_nothing_apart(self) -> None:
        policies = Policies(anti_affinity_group={"t/one": "alone", "t/none": "alone"})
        (finding,) = found(asked(spread({"t/one": (0,), "t/two": (1,)}, policies)), "group_without_effect")
        assert "Of its namespaces (t/one, t/none), only t/one has bundles here." in finding.evidence
        policies = Policies(anti_affinity_group={"t/two": "alone"})
        (finding,) = found(asked(spread({"t/one": (0,), "t/two": (1,)}, policies)), "group_without_effect")
        assert finding.evidence.startswith("Its only namespace is t/two.")
        assert "delete-anti-affinity-group t/two" in finding.remedy
        assert not found(self.domains(), "group_without_effect")


GROUP = {f"t/n{at}": "Apart" for at in range(4)}
TOGETHER = {name: (at % 2, at % 2) for at, name in enumerate(GROUP)}
"""Four namespaces on two of four brokers."""


class TestGroups:
    def test_namespaces_that_share_brokers_are_named_and_the_remedy_spreads_them(self) -> None:
        outcome = asked(spread(TOGETHER, Policies(anti_affinity_group=GROUP)))
        (finding,) = found(outcome, "group_not_spread")
        assert "'apart' is not spread: 2 of its namespaces share pulsar-a1.example.net:8080" in finding.title
        assert f"{HOSTS[2]}:8080, {HOSTS[3]}:8080" in finding.evidence
        mended = asked(outcome.trace.start, finding.edits)
        assert not found(mended, "group_not_spread")
        end = mended.trace.end.bundles
        served = set(zip(end.namespace.tolist(), end.owner.tolist(), strict=True))
        assert len(served) == len({owner for _, owner in served}) == len(GROUP), "each on a broker of its own"

    def test_domains_count_where_they_are_on(self) -> None:
        apart = {name: (at, at) for at, name in enumerate(list(GROUP)[:2])}
        domains = {"za": tuple(f"{h}:8080" for h in HOSTS[:2]), "zb": tuple(f"{h}:8080" for h in HOSTS[2:])}
        policies = Policies(anti_affinity_group=GROUP, failure_domains=domains)
        (finding,) = found(asked(spread(apart, policies, failureDomainsEnabled=True)), "group_not_spread")
        assert "2 of its namespaces share failure domain za" in finding.title
        assert not found(asked(spread(apart, policies)), "group_not_spread"), "each has a broker of its own"

    def test_brokers_that_a_policy_excludes_are_not_missed(self) -> None:
        policies = policy(("pulsar-a.*",), namespaces=("t/.*",))
        bound = replace(policies, anti_affinity_group=GROUP)
        assert not found(asked(spread(TOGETHER, bound)), "group_not_spread")

    def test_a_group_that_is_spread_is_no_finding(self) -> None:
        apart = {name: (at, at) for at, name in enumerate(GROUP)}
        assert not found(asked(spread(apart, Policies(anti_affinity_group=GROUP))), "group_not_spread")


@pytest.mark.parametrize("min_limit", [1, 3])
def test_secondary_brokers_are_room_only_where_there_are_too_few_primary_ones(min_limit: int) -> None:
    """Two full primary brokers; the secondary ones are empty, and used only below the limit of the policy."""
    bound = IsolationPolicy("mine", ("iso/.*",), ("pulsar-a.*",), ("pulsar-b.*",), min_limit=min_limit)
    full = spread({"iso/app": (0, 1) * 8}, Policies(isolation=(bound,)), loadBalancerSheddingEnabled=False)
    usage = np.array([95.0, 95.0, 5.0, 5.0]) * 2
    full = replace(full, brokers=replace(full.brokers, cpu_usage_percent=usage))
    findings = found(asked(full), "policy_full")
    assert bool(findings) == (min_limit == 1)


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases lie beside the repository")
@pytest.mark.parametrize(
    ("case", "code", "words"),
    [
        ("h01", "policy_matches_no_broker", "leaves its namespaces no broker"),
        ("h02", "against_policy", "4 bundles"),
        ("h16", "domains_without_effect", "the domains are without effect"),
    ],
)
def test_the_cases_that_operators_reported(case: str, code: str, words: str) -> None:
    (path,) = CASES.glob(f"{case}_*.json")
    snapshot = read_snapshot(path)
    finding, *_ = found(asked(snapshot, cycles=30), code)
    assert words in f"{finding.title} {finding.evidence}"


def test_nothing_is_said_without_policies() -> None:
    snapshot = spread({"iso/app": (0, 1, 2, 3)}, Policies())
    assert not diagnose(asked(replace(snapshot, policies=Policies())))
