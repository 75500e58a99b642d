"""What the advice says of namespaces that operators asked about in public: table, forecast and verdict agree."""

import pytest

from planner.explain.outcome import Outcome
from planner.namespaces.impact import growing, split_forecasts
from planner.namespaces.population import population_of
from planner.share.bundle_advice import advice_scenario, advice_text, recreated_sentence
from planner.simulate.judge import judge
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from tests.app.namespaces.asked import of_report
from tests.app.namespaces.public_reports import REPORTS, cluster, topics


@pytest.mark.parametrize("report", REPORTS)
def test_table_forecast_and_verdict_agree(report: str) -> None:
    namespace, made = REPORTS[report]
    snapshot, advice = made(), of_report(report)
    trace = simulate(snapshot, growing(snapshot, 1, 1))
    (splits,) = [one.splits for one in split_forecasts(trace, trace.end) if one.namespace == namespace] or [0]
    maximum = snapshot.settings.integer("loadBalancerNamespaceMaximumBundles")
    assert bool(advice.will_split) is bool(splits), "what is split by its traffic now is split"
    for row, cost in zip(advice.counts, advice.costs, strict=True):
        assert cost.will_split <= max(maximum - row.bundles, 0)
    assert not (splits and advice.sentence.startswith("Keep its")), advice.sentence
    if advice.edits:
        before, after = (Outcome(simulate(snapshot, one)) for one in (unchanged("4.2.4"), advice_scenario(advice)))
        verdict = judge(before.result, after.result)
        assert verdict.word != "worse"
        assert verdict.balance != -1, "a split is for good, so it must not leave brokers further apart"
    if len(advice.brokers) < 2:
        assert "recreated" not in advice_text(advice)
    elif advice.recommended != advice.now.bundles:
        assert "Simulated, once it has settled: " in advice_text(advice), "no number without what it brings"


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("one broker by policy (issue 14429)", "Only one broker may serve this namespace (isolation policy report)"),
        ("no broker by policy (issue 7432)", "its isolation policy report allows none that runs. Correct that first"),
        ("one topic is the load (issue 3419)", "No cut helps: persistent://bank/tx/ledger alone has 91 % of the load"),
        ("six hot topics in four bundles", "Do not cut it, as Pulsar will split 4 of its 4 bundles by itself"),
        ("64 of 64 bundles, extensible", "No cut helps: persistent://game/world/w-0 alone has"),
        ("sessions without a limit (pull request 13108)", "Keep its 8 bundles"),
    ],
)
def test_the_verdict_names_what_counts(report: str, said: str) -> None:
    assert said in of_report(report).sentence


def test_splits_that_leave_a_full_namespace_alone_are_not_announced() -> None:
    """The row of 128 bundles, the most there may be, had 124 that will split, while none did."""
    advice = of_report("128 bundles, all above a limit (issue 9484)")
    of = {row.bundles: cost for row, cost in zip(advice.counts, advice.costs, strict=True)}
    assert advice.edits
    assert "Splits by command are not held to loadBalancerNamespaceMaximumBundles = 128" in advice.notes[-1]
    assert of[128].above_limits > 30
    assert of[128].will_split == of[256].will_split == 0
    assert of[64].will_split > 30


def test_a_number_to_recreate_with_says_what_it_brings() -> None:
    advice = of_report("eight partitions on two of three brokers (issue 10143)")
    assert advice.recommended > advice.now.bundles
    assert ". Simulated, once it has settled: better: " in recreated_sentence(advice)


def test_shares_of_a_namespace_without_traffic_are_shares_of_its_topics() -> None:
    advice = of_report("transaction coordinators without traffic (pull request 22953)")
    assert "It has no traffic, so each topic counts the same." in advice_text(advice)


@pytest.mark.parametrize(("listed", "said"), [(0, "a/b has no topics yet"), (5, "")])
def test_a_namespace_without_topics_is_not_one_whose_topics_are_not_listed(listed: int, said: str) -> None:
    snapshot = cluster(3, "a/b", 4, topics("persistent://a/b/t-%d", [5.0] * listed))
    if said:
        with pytest.raises(Exception, match=said):
            population_of(snapshot, "a/b")
    else:
        assert len(population_of(snapshot, "a/b")) == listed
