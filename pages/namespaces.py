"""Namespaces: who has how much, how evenly brokers share it, how many bundles each needs, and where to cut."""

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import bytes_per_s, count, msg_per_s, percent, plain
from planner.cluster.units import MIB, MS_PER_MIN
from planner.explain.cluster_tables import bundles_of_namespace
from planner.figures.namespaces import counts_figure, hash_line, owners_named
from planner.namespaces.advice import BundleAdvice
from planner.namespaces.impact import Impact, impact
from planner.namespaces.overview import bundle_weight, owner_shares, tenants_frame
from planner.namespaces.population import Population, population_of
from planner.share.bundle_advice import (
    advice_scenario,
    move_scenario,
    recreated_sentence,
    successor_commands,
    successor_sentence,
)
from planner.share.step_table import steps_text
from planner.web import address, registry, scenario_history, simulations, state
from planner.web.bundle_weeks import weeks_part
from planner.web.namespaces import (
    advice_of,
    forecast_of,
    frame_of,
    is_advised,
    plan_impact,
    steps_of,
    successor_of,
)
from planner.web.page import Page
from planner.web.session import draw_again
from planner.web.widgets import chart, folded, metrics, note_list, table

_MOST_TOPICS = 2_000
_EVENTS = 2_000
_CARD_PX = 165
_ALL = "all"
_SHARES = {"above an even part (%)": "%.2f", "busiest broker (%)": "%.1f", "largest bundle (%)": "%.1f"}
_SHARES |= {"hottest topic (%)": "%.1f", "share (%)": "%.1f"}
_COUNTED = {
    "bundles": "bundles",
    "topics_most": "topics, most",
    "empty": "without topics",
    "brokers": "brokers",
    "largest_share_percent": "heaviest bundle (%)",
    "bound_percent": "lower bound (%)",
    "placed_percent": "busiest broker (%)",
    "msg_per_s_most": "msg/s, most",
    "bytes_per_s_most": "MiB/s, most",
}
_BATCHES = {
    "batch": "batch",
    "at_min": "minute",
    "topics": "topics",
    "clients": "clients",
    "highest_percent": "highest usage (%)",
    "overloaded_broker_min": "broker-minutes above the limit",
    "shed": "shed",
    "splits": "splits",
    "other_topics": "further topics disconnected",
    "other_clients": "further clients disconnected",
}
_COSTS = {
    "will_split": "will split",
    "lookups_most": "lookups of a move, most",
    "metadata_entries": "metadata entries",
    "reported_bundles": "reported bundles",
}


def _overview(view: state.Current) -> str:
    """Draw every namespace, the worst first, and return the one in view."""
    frame = frame_of(view)
    tenants = frame["tenant"].unique().tolist()
    words = {_ALL: "All tenants", **{name: name for name in tenants}}
    tenant = address.choice("tenant", "Tenant", words, width=320, clears=("namespace",))
    shown = frame if tenant == _ALL else frame[frame["tenant"] == tenant]
    worst = shown.iloc[0]
    st.markdown(
        f"{count(len(shown), 'namespace')} of {count(len(tenants) if tenant == _ALL else 1, 'tenant')}, worst first."
        f" **{plain(worst['namespace'])}**: its busiest broker has {worst['busiest broker (%)']:.0f} % of it, and it"
        f" may use {count(int(worst['brokers']), 'broker')}. Select a row to open a namespace."
    )
    names = shown["namespace"].tolist()
    table(
        shown,
        "namespaces",
        formats=_SHARES,
        hidden=("tenant", "split algorithm"),
        pick=lambda row: address.put(namespace=names[row]),
        key=f"namespaces-{tenant}",
        height=215,
    )
    st.caption(
        "Above an even part: how much of the cluster's load the busiest broker of a namespace has beyond an even part"
        " of it. Publish limits and the split algorithm of a single namespace are not in a snapshot."
    )
    with folded(f"Tenants ({len(tenants):,})", "tenants") as is_open:
        if is_open:
            table(tenants_frame(frame), "tenants", formats=_SHARES)
    every = frame["namespace"].tolist()
    asked = address.part("namespace")
    options = [asked, *names] if asked in every and asked not in names else names
    heading, box = st.columns([3, 2], vertical_alignment="bottom")
    chosen = address.choice("namespace", "Namespace", options, names[0], named=True, place=box)
    heading.header(plain(chosen), anchor=False)
    return chosen


def _facts(frame: pd.DataFrame, namespace: str, algorithm: str) -> None:
    """Draw what a namespace is, in numbers, and what binds it."""
    row = frame[frame["namespace"] == namespace].iloc[0]
    metrics(
        (
            ("Bundles", f"{row['bundles']:,}", ""),
            ("Topics", f"{row['topics']:,}", ""),
            ("Clients", f"{row['clients']:,}", "Producers and consumers."),
            ("Throughput", bytes_per_s(row["MiB/s"] * MIB), "In and out."),
            ("Messages", msg_per_s(row["msg/s"]), "In and out."),
            ("Busiest broker", percent(row["busiest broker (%)"] / 100), "Its share of the load of this namespace."),
            ("Largest bundle", percent(row["largest bundle (%)"] / 100), "Its share of the load of this namespace."),
        ),
        _CARD_PX,
    )
    bound = [
        f"Isolation policy: {plain(row['isolation'])}" if row["isolation"] else "No isolation policy",
        f"anti-affinity group: {plain(row['anti-affinity'])}" if row["anti-affinity"] else "no anti-affinity group",
        f"dispatch limits: {plain(row['dispatch limits'])}" if row["dispatch limits"] else "no dispatch limits",
        f"split algorithm: {plain(algorithm)}",
    ]
    st.markdown(f"{'; '.join(bound)}. It may use {count(int(row['brokers']), 'broker')}.")


def _population(snapshot: Snapshot, namespace: str) -> Population | PlannerError:
    try:
        return population_of(snapshot, namespace)
    except PlannerError as error:
        return error


def _line(snapshot: Snapshot, namespace: str, population: Population | None, advice: BundleAdvice | None) -> None:
    """Draw a namespace along its hash space, and its brokers."""
    rows = bundles_of_namespace(snapshot, namespace)
    bundles = snapshot.bundles
    share = bundle_weight(snapshot)[rows] * 100
    names = (*snapshot.brokers.name, "unowned")
    owners = owners_named([names[at] for at in bundles.owner[rows].tolist()], snapshot.brokers.name)
    hashes, loads, topics = np.zeros(0, np.int64), np.zeros(0), []
    if population is not None:
        first = np.sort(np.argsort(-population.weight, kind="stable")[:_MOST_TOPICS])
        hashes, loads = population.hash[first], population.weight[first] * 100
        topics = population.name.take(first).to_pylist()
    cuts = advice.cuts.new if advice is not None and advice.cuts_help else ()
    figure = hash_line((bundles.low[rows], bundles.high[rows]), share, owners, (hashes, loads, topics), cuts)
    listed = len(population) if population is not None else 0
    on = len(np.unique(bundles.owner[rows][bundles.owner[rows] >= 0]))
    has_topics = bool(bundles.topics[rows].any())
    more = f" The {_MOST_TOPICS:,} heaviest topics of {listed:,} are drawn." if listed > _MOST_TOPICS else ""
    dashed = " Dashed lines: recommended cuts." if cuts else ""
    none = " The snapshot lists no topics of it." if has_topics and not listed else ""
    heaviest = int(share.argmax())
    heavy = f"The heaviest bundle has {share[heaviest]:.1f} %, on {plain(owners[heaviest])}."
    if not share[heaviest]:
        heavy = "Its bundles have no traffic."
    chart(
        figure,
        f"The hash space of {plain(namespace)}: its bundles on {count(on, 'broker')}, and topics at their hashes, with"
        f" their share of its load. {heavy}{more}{none}{dashed}",
        "hash-line",
        about=namespace,
    )
    with folded("Brokers with bundles of it", "owners-of-namespace") as is_open:
        if is_open:
            table(owner_shares(snapshot, namespace), "owners-of-namespace", formats=_SHARES)


def _events(found: Impact) -> pd.DataFrame:
    start = found.start_ms
    rows = [
        (
            (one.at_ms - start) / MS_PER_MIN,
            one.kind.replace("_", " "),
            one.bundle.rpartition("/")[2],
            one.source,
            one.destination or ", ".join(child.rpartition("/")[2] for child in one.children),
            one.topics,
            one.producers + one.consumers,
            one.why,
        )
        for one in found.events[:_EVENTS]
    ]
    return pd.DataFrame(rows, columns=["minute", "what", "range", "from", "to", "topics", "clients", "why"])


def _happens(view: state.Current, namespace: str) -> None:
    """Draw what the load balancer, the scenario and the best plan do to a namespace."""
    st.subheader("What happens to it", anchor=False)
    plain_one, present = scenario_history.as_captured(view), scenario_history.present(view)
    asked = [plain_one] if present == plain_one else [plain_one, present]
    outcomes = simulations.run(view, *asked)
    if outcomes is None:
        return
    titles = ["Without any change", f"With the scenario {plain(present.name)}".rstrip()]
    found = [impact(one.trace, namespace) for one in outcomes]
    lines = [f"- **{title}:** {one.text}" for title, one in zip(titles, found, strict=False)]
    planned = plan_impact(view, namespace)
    if planned is not None:
        which = "With the best plan" if view.outcome is None else "With the scenario and then the best plan"
        lines.append(f"- **{which}:** {planned.text}")
    st.markdown("\n".join(lines))
    if planned is None:
        registry.link("best_plan", "Look for the best plan")
    if found[-1].events:
        title = titles[len(found) - 1]
        with folded(f"Events {title[:1].lower()}{title[1:]}", "events-of-namespace") as is_open:
            if is_open:
                table(_events(found[-1]), "events-of-namespace", formats={"minute": "%.0f"})


def _counts_frame(advice: BundleAdvice) -> pd.DataFrame:
    tried = {one.bundles: one for one in advice.tried}
    frame = pd.DataFrame([{label: getattr(row, name) for name, label in _COUNTED.items()} for row in advice.counts])
    frame["MiB/s, most"] /= MIB
    for name, label in _COSTS.items():
        frame[label] = [getattr(one, name) for one in advice.costs]
    results = [tried.get(row.bundles) for row in advice.counts]
    frame["simulated: highest usage (%)"] = [one.result.highest_percent if one else None for one in results]
    frame["simulated: topics disconnected"] = [one.topics if one else None for one in results]
    return frame


def _successor(view: state.Current, advice: BundleAdvice) -> None:
    """Draw the move to a successor: what each batch of clients does, and its commands where it is worth it."""
    st.markdown(plain(successor_sentence(advice)))
    trial = successor_of(view, advice)
    if trial is None:
        return
    st.markdown(f"**{plain(trial.heading)}** {plain(trial.text)}")
    rows = [
        {label: getattr(one, name) for name, label in _BATCHES.items()} | {"overload": one.verdict.text}
        for one in trial.batches
    ]
    formats = {"minute": "%.0f", "highest usage (%)": "%.1f"}
    table(pd.DataFrame(rows), "successor-batches", formats=formats)
    if not trial.is_worth_it:
        return
    if view.outcome is None and st.button("Open the move as a scenario", icon=":material/move_up:"):
        scenario_history.change(view, move_scenario(trial, scenario_history.present(view)))
        registry.go("what_if")
    st.code("\n".join(successor_commands(advice, trial)), language="shell", wrap_lines=True)


def _counts(advice: BundleAdvice) -> None:
    """Draw what each number of bundles gives, where there is something to say of recreating the namespace."""
    if not (again := recreated_sentence(advice)):
        return
    now, brokers = advice.now, len(advice.brokers)
    row = next((one for one in advice.counts if one.bundles == advice.recommended), now)
    shares = f"Its busiest broker has {now.placed_percent:.1f} % of its load at best"
    if row.placed_percent != now.placed_percent:
        shares += f" now, and {row.placed_percent:.1f} % if it is recreated"
    chart(
        counts_figure(advice.counts, now, advice.recommended, brokers),
        f"{again} {shares}. An even part is {100 / brokers:.1f} % (dotted line).",
        "counts",
        about=advice.namespace,
    )


def _bundles(view: state.Current, advice: BundleAdvice) -> DeltaGenerator:
    """Draw how many bundles a namespace needs, and where to cut it; return the place for what numbers of them give."""
    st.markdown(f"**{plain(advice.sentence)}**")
    if advice.edits and view.outcome is None:
        present = scenario_history.present(view)
        steps = (*present.steps, *advice_scenario(advice).steps)
        what = "cuts" if advice.cuts_help else "split"
        if st.button(f"Open the {what} as a scenario", icon=":material/content_cut:"):
            scenario_history.change(view, present.with_steps(*steps))
            registry.go("what_if")
        with folded("The steps, with what each disconnects", "steps") as is_open:
            if is_open and (commands := steps_of(view, advice)) is not None:
                st.code("\n".join(steps_text(commands)), language=None)
    for one in advice.further_stuck:
        st.markdown(f"- No cut helps {plain(one.topic)} ({one.share_percent:.0f} %). {plain(one.advice.remedy)}")
    note_list(advice.notes)
    if advice.successor:
        with st.expander("It has too many bundles: a successor"):
            _successor(view, advice)
    place = st.container()
    formats = {name: "%.1f" for name in _COUNTED.values() if name.endswith(("(%)", "/s, most"))}
    with folded("All numbers of bundles", "counts") as is_open:
        if is_open:
            table(_counts_frame(advice), "counts", formats={**formats, "simulated: highest usage (%)": "%.1f"})
    return place


def _forecast(view: state.Current) -> None:
    """Draw which namespaces will split while traffic grows."""
    with st.container(horizontal=True):
        hours = address.number("hours", "Within hours", 1, 1, 48, width=160)
        growth = address.number("growth", "Traffic grows by (%)", 0, 0, 900, width=200)
    found = forecast_of(view, hours, 1 + growth / 100)
    if found is None:
        return
    within = f"within {count(hours, 'hour')}{f' in which all traffic grows by {growth} %' if growth else ''}"
    if scenario_history.present(view) != scenario_history.as_captured(view):
        within = f"with the scenario {within}"
    if not found:
        st.markdown(f"No namespace splits {within}, and no split is refused.")
        return
    splits, refused = sum(bool(one.splits) for one in found), sum(bool(one.refused) for one in found)
    said = f"**{count(splits, 'namespace')} will split {within}.**" if splits else f"**No namespace splits {within}.**"
    st.markdown(f"{said} Pulsar refuses splits of {count(refused, 'namespace')}." if refused else said)
    rows = [
        (
            one.namespace,
            one.bundles,
            one.after,
            one.splits,
            one.first_min,
            one.refused,
            ", ".join(one.settings),
            one.why,
        )
        for one in found
    ]
    columns = ["namespace", "bundles", "at the end", "splits", "first (min)", "refused", "limits", "why"]
    table(pd.DataFrame(rows, columns=columns), "split-forecast", formats={"first (min)": "%.0f"})


def draw(view: state.Current) -> None:
    """Draw the page: first the words about a namespace, then its figures, which take a browser long."""
    frame = frame_of(view)
    if frame.empty:
        st.info("The snapshot has no namespaces with bundles.", icon=":material/folder_off:")
        return
    namespace = _overview(view)
    _facts(frame, namespace, frame["split algorithm"].iloc[0])
    line_place = st.container()
    _happens(view, namespace)
    st.subheader("How many bundles", anchor=False)
    advice = advice_of(view, namespace) if (known := is_advised(view, namespace)) else None
    bundles_place, counts_place = st.container(), None
    if advice is not None:
        with bundles_place:
            counts_place = _bundles(view, advice)
    splits, weeks = st.tabs(["Splits to come", "Over weeks"], key="ahead", on_change="rerun")
    with splits:
        _forecast(view)
    with weeks:
        if weeks.open:
            weeks_part()
    population = _population(view.snapshot, namespace)
    listed = None if isinstance(population, PlannerError) else population
    with line_place:
        _line(view.snapshot, namespace, listed, advice)
    if advice is not None and counts_place is not None:
        with counts_place:
            _counts(advice)
    elif isinstance(population, PlannerError):
        bundles_place.info(plain(str(population)), icon=":material/topic:")
    elif not known:
        with bundles_place:
            if advice_of(view, namespace) is not None:
                draw_again()


PAGE = Page(
    title="Namespaces",
    icon=":material/folder_open:",
    purpose="Every namespace and tenant, how evenly brokers share it, how many bundles it needs, and where to cut it.",
    draw=draw,
)
