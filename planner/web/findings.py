"""What a diagnosis found, as cards; a remedy that was tried and helps is applied with one click."""

from collections.abc import Sequence

import streamlit as st

from planner.cluster.text import plain
from planner.explain.diagnosis import PATTERNS
from planner.explain.finding import Finding
from planner.remedy.tried import Tried
from planner.web import registry, state
from planner.web.names import short
from planner.web.remedies import apply

_ICONS = {"high": ":material/error:", "medium": ":material/warning:", "low": ":material/info:"}
_WORDS = {"high": "Critical", "medium": "Warning", "low": "Note"}
_PAGES = {
    "class_not_loaded": ("shedding", "Show what decides"),
    "other_load_manager": ("brokers", "Show the brokers"),
    "topics_placed_otherwise": ("bundle_map", "Show the namespace"),
    "own_class": ("shadow", "Compare recorded cycles"),
    "impossible_measurement": ("brokers", "Show the broker"),
    "report_missing": ("brokers", "Show the broker"),
    "report_outdated": ("brokers", "Show the broker"),
    "used_by_others": ("brokers", "Show the broker"),
    "memory_stays": ("brokers", "Show the broker"),
    "network_stays": ("brokers", "Show the broker"),
    "resource_not_counted": ("brokers", "Show the broker"),
    "usage_not_compared": ("compare", "Compare strategies"),
    "idle_bundles_shed": ("moves", "Show the moves"),
    "out_of_capacity": ("failure_review", "Headroom"),
    "topics_refused": ("brokers", "Show the brokers"),
    "topics_full": ("brokers", "Show the brokers"),
    "fewer_cores": ("brokers", "Show the broker"),
    "more_cores": ("brokers", "Show the broker"),
    "unlike_machines": ("brokers", "Show the broker"),
    "policy_matches_no_broker": ("bundle_map", "Show the namespace"),
    "policy_without_namespaces": ("namespaces", "Show the namespaces"),
    "policy_full": ("what_if", "Try it"),
    "no_broker_allowed": ("bundle_map", "Show the namespace"),
    "against_policy": ("best_plan", "Plan the unloads"),
    "domains_without_effect": ("what_if", "Try it"),
    "group_without_effect": ("what_if", "Try it"),
    "group_not_spread": ("bundle_map", "Show the namespace"),
    "old_namespace": ("upgrade", "Plan the upgrade"),
    "shedding_off": ("why", "What would be shed"),
    "held_by_gate": ("why", "Why it is held back"),
    "unload_storm": ("compare", "Compare strategies"),
    "ping_pong": ("compare", "Compare strategies"),
    "idle_broker": ("why", "Why the broker stays idle"),
    "hot_topic": ("bundle_map", "Show the bundle"),
    "key_skew": ("bundle_map", "Show the bundle"),
    "topic_above_limit": ("bundle_map", "Show the bundle"),
    "bundle_count_too_low": ("namespaces", "How many bundles"),
    "bundle_count_too_high": ("namespaces", "How many bundles"),
    "threshold_never_reached": ("why", "What would trigger shedding"),
    "threshold_no_longer_reached": ("why", "What would trigger shedding"),
    "ema_lag": ("hit_counters", "Show the averages"),
    "split_cascade": ("split_lab", "Plan a split"),
    "namespaces_born_full": ("namespaces", "How many bundles"),
    "thresholds_crossed": ("what_if", "Try it"),
    "load_data_expires": ("what_if", "Try it"),
    "no_grace_period": ("what_if", "Try it"),
    "exclusion_without_effect": ("what_if", "Try it"),
    "no_resource_counts": ("brokers", "Show the brokers"),
    "weight_above_one": ("brokers", "Show the brokers"),
    "limit_overflows": ("split_lab", "Plan a split"),
    "average_frozen": ("hit_counters", "Show the averages"),
    "average_runs_away": ("hit_counters", "Show the averages"),
    "share_above_one": ("moves", "Show the moves"),
    "value_in_wrong_unit": ("what_if", "Try it"),
    "threshold_never_acts": ("why", "What would trigger shedding"),
    "threshold_always_acts": ("why", "What would be shed"),
    "split_algorithm_refused": ("split_lab", "Plan a split"),
    "split_refused": ("split_lab", "Why the split is refused"),
    "namespace_full": ("namespaces", "How many bundles"),
    "avg_held_back": ("hit_counters", "Show the counters"),
    "fighting_strategies": ("compare", "Compare pairs"),
    "strategy_replaced": ("shedding", "Show the strategy"),
    "drawn_at_random": ("shedding", "Show the destinations"),
    "clients_cut_off": ("moves", "Show the moves"),
    "throttled": ("throttling", "Show the limit"),
}
"""By the code of a finding: the page to open, and its content."""


def finding_cards(
    view: state.Current, findings: Sequence[Tried], key: str, columns: int = 1, *, of_scenario: bool = False
) -> None:
    """Draw what a diagnosis found: evidence, remedy, what came of trying it, and the page to go to.

    Args:
        view: The snapshot in view.
        findings: What was found, its remedies tried.
        key: Keeps the buttons of several places apart.
        columns: How many cards stand beside each other.
        of_scenario: Whether they are about the open scenario, so that links show the cluster after it.
    """
    if not findings:
        st.success("No problems found in this simulation.", icon=":material/check_circle:")
        looked = ", ".join(pattern.__name__.replace("_", " ") for pattern in PATTERNS)
        st.caption(f"Checks performed: {looked.replace('ema', 'EMA')}.")
    for start in range(0, len(findings), columns):
        places = st.columns(columns) if columns > 1 else [st.container()]
        for at, (place, tried) in enumerate(zip(places, findings[start : start + columns], strict=False), start):
            with place.container(border=True, height="stretch"):
                _card(view, tried, f"{key}-{at}-{tried.finding.code}", of_scenario=of_scenario)


def _card(view: state.Current, tried: Tried, key: str, *, of_scenario: bool) -> None:
    finding = tried.finding
    st.markdown(f"{_ICONS[finding.severity]} **{plain(short(finding.title))}** · {_WORDS[finding.severity]}")
    st.text(short(finding.evidence))
    st.text(short(f"{finding.remedy_label}: {finding.remedy}"))
    if finding.tried:
        st.text(short(finding.tried))
    with st.container(horizontal=True, vertical_alignment="center"):
        page, label = _PAGES.get(finding.code, ("", ""))
        if page:
            after = registry.page(page).after_scenario if of_scenario else {}
            registry.link(page, label, **after, **_context(page, finding))
        if tried.trial is not None and tried.trial.offered:
            words = plain(short(tried.trial.action.words))
            if st.button(words, icon=":material/science:", key=f"try-{key}", help="Adds it to the scenario."):
                apply(view, tried.trial)


def _context(page: str, finding: Finding) -> dict[str, str]:
    """Return the parts of an address that show on a page what a finding is about."""
    parts = {}
    if page in {"bundle_map", "split_lab"} and finding.bundles:
        parts["namespace"], _, parts["bundle"] = finding.bundles[0].rpartition("/")
    if page == "namespaces" and finding.bundles:
        parts["namespace"] = finding.bundles[0].rpartition("/")[0]
    if page == "throttling" and finding.topics:
        parts["topic"] = finding.topics[0]
    if page in {"brokers", "why"} and finding.brokers:
        parts["broker"] = finding.brokers[0]
    return parts
