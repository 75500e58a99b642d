"""What a person changes on the What-if page: edits, strategies, settings, assumptions; undo, links, saved scenarios."""

from dataclasses import replace
from typing import Any

import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.releases import REFERENCE
from planner.cluster.settings import Settings
from planner.cluster.snapshot import LoadManager
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.manager.pairing import placement_beside
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.registry import SHEDDERS, shedder_by_name
from planner.simulate.assumptions import Assumptions
from planner.simulate.edits.edit import EditContext
from planner.simulate.scenario import Scenario, Step
from planner.web import scenarios, state
from planner.web.edit_forms import edit_form
from planner.web.setting_form import setting_widget, written
from planner.web.text import count
from planner.web.widgets import plain, show_error

_SHEDDING = "loadBalancerLoadSheddingStrategy"
_PLACEMENT = "loadBalancerLoadPlacementStrategy"
_ASSUMED: tuple[tuple[str, str, float, float], ...] = (
    ("cpu_percent_per_mb_per_s", "% of a core per MB/s", 0.0, 1e6),
    ("cpu_percent_per_1000_msg_per_s", "% of a core per 1,000 msg/s", 0.0, 1e6),
    ("idle_cpu_percent", "Idle CPU (%)", 0.0, 100.0),
    ("session_timeout_s", "A dead broker is noticed after (s)", 0.0, 3600.0),
    ("reconnection_s", "A client is back after (s)", 0.0, 60.0),
    ("stats_interval_s", "Rates are worked out every (s)", 5, 3600),
)
"""Assumptions that are numbers: name, label, least and most."""
_WHY = {
    "cpu_model": "With `share`, what a broker uses beyond idle belongs to its bundles by their share of its traffic"
    " (half by messages, half by bytes), because shedding strategies expect just that when they turn usage into"
    " bytes to unload. With `fixed` every bundle costs the same for the same traffic, as on brokers you measured.",
    "cpu_percent_per_mb_per_s": "Only with `fixed`. 1: a core moves some 100 MB/s; measure yours.",
    "cpu_percent_per_1000_msg_per_s": "Only with `fixed`. 1.5: a core serves some 67,000 messages a second; measure"
    " yours.",
    "idle_cpu_percent": "Of the whole machine. 2: a broker without traffic still runs; this part stays with it.",
    "session_timeout_s": "30, the default of `metadataStoreSessionTimeoutMillis`; nobody serves its bundles till then.",
    "reconnection_s": "Makes the time that clients lose. 1: clients try again after a tenth of a second and then ever"
    " later; a lookup and opening the topic come on top. Rates do not show it: it is far below their interval.",
    "stats_interval_s": "60, the default of `statsUpdateFrequencyInSecs`; the machine is measured with them.",
    "spread_reports": "They were started at different times; the seed draws them. Off: all at once.",
}
"""Why each default is what it is."""


def draw_toolbar(view: state.Current) -> None:
    """Draw undo and redo, saved scenarios and the link."""
    known = scenarios.history(view)
    with st.container(horizontal=True):
        if st.button("Undo", icon=":material/undo:", disabled=not known.past):
            scenarios.undo(view)
            st.rerun()
        if st.button("Redo", icon=":material/redo:", disabled=not known.future):
            scenarios.redo(view)
            st.rerun()
        if st.button("Start over", icon=":material/restart_alt:", disabled=known.present == Scenario()):
            scenarios.change(view, Scenario())
            st.rerun()
        with st.popover("Save, open", icon=":material/save:"):
            _saving(view)
        with st.popover("Link", icon=":material/link:"):
            st.caption("Opens this scenario, whole, on any server that has the snapshot. It holds no secret.")
            st.code(scenarios.address(view, known.present), language=None, wrap_lines=True)


def _saving(view: state.Current) -> None:
    present = scenarios.history(view).present
    kept = state.workspace().scenarios
    name = st.text_input("Name", present.name, max_chars=120, key="scenario-name")
    if st.button("Save on this server", icon=":material/save:", disabled=not name.strip()):
        named = replace(present, name=name.strip())
        scenarios.change(view, named)
        kept.save(named, view.digest, view.saved.name)
        st.toast(f"Saved as {plain(named.name)}.", icon=":material/save:")
        st.rerun()
    saved = kept.list(view.digest)
    if saved:
        labels = {
            s.digest: " · ".join([s.name or "without a name", *([count(s.edits, "edit")] if s.edits else [])])
            for s in saved
        }
        chosen = st.selectbox("Saved scenarios", list(labels), format_func=lambda d: labels[d])
        left, right = st.columns(2)
        if left.button("Open", icon=":material/folder_open:", width="stretch") and chosen:
            scenarios.change(view, kept.load(chosen))
            st.rerun()
        if right.button("Delete", icon=":material/delete:", width="stretch") and chosen:
            kept.delete(chosen, view.digest)
            st.rerun()
    scenarios.file_exchange(view)


def _frame(view: state.Current) -> None:
    """Draw what is watched: for how long, with which seed and load manager."""
    present = scenarios.history(view).present
    left, right = st.columns(2)
    cycles = int(left.number_input("Cycles", 1, 100_000, present.cycles, key=f"cycles-{present.cycles}"))
    seed = int(
        right.number_input(
            "Seed",
            0,
            2**31 - 1,
            present.seed,
            key=f"seed-{present.seed}",
            help="Decides where Pulsar draws at random, and when each broker reports.",
        )
    )
    managers = ["", *(str(manager) for manager in LoadManager)]
    manager: Any = st.selectbox(
        "Load manager",
        managers,
        managers.index(present.load_manager),
        format_func=lambda m: m or f"{view.snapshot.info.load_manager}, as in the snapshot",
        key=f"manager-{present.load_manager}",
    )
    _take(view, replace(present, cycles=cycles, seed=seed, load_manager=manager or ""))


def _take(view: state.Current, scenario: Scenario) -> None:
    """Change the scenario, and draw the page anew with it."""
    if scenario == scenarios.history(view).present:
        return
    try:
        scenarios.change(view, scenario)
    except PlannerError as error:
        show_error(error)
        return
    st.rerun()


def _strategies(view: state.Current, config: Settings) -> None:
    present = scenarios.history(view).present
    manager = present.load_manager_over(view.snapshot)
    shedders = [s.name for s in SHEDDERS if s.load_manager is manager]
    now = effective_shedder(manager, config)[0].name
    chosen = st.selectbox("Shedding strategy", shedders, shedders.index(now), key=f"shedder-{now}-{manager}") or now
    changed = dict(present.settings)
    if chosen != now:
        changed[_SHEDDING] = chosen
    if manager is LoadManager.MODULAR:
        names = [p.name for p in PLACEMENTS if p.load_manager is manager]
        placed = config.text(_PLACEMENT).rpartition(".")[2]
        at = names.index(placed) if placed in names else 0
        place = st.selectbox("Placement strategy", names, at, key=f"placement-{placed}") or placed
        if chosen != now:
            place = placement_beside(shedder_by_name(chosen), config, view.snapshot.settings)
        if place != placed:
            changed[_PLACEMENT] = place
    if changed != dict(present.settings):
        _take(view, replace(present, settings=changed))


def _settings(view: state.Current, config: Settings) -> None:
    """Draw the settings that the scenario changes, and a way to change more."""
    present = scenarios.history(view).present
    special = {_SHEDDING, _PLACEMENT}
    changed = {name: value for name, value in present.settings.items() if name not in special}
    for name in changed:
        field, drop = st.columns([6, 1], vertical_alignment="bottom")
        with field:
            value = setting_widget(REFERENCE.settings[name], config[name], f"scenario-{name}-{config[name]}")
        if drop.button("", icon=":material/close:", key=f"drop-{name}", help="As in the snapshot again"):
            kept = {n: v for n, v in present.settings.items() if n != name}
            _take(view, replace(present, settings=kept))
        if value != config[name]:
            plain: Any = written(value) if isinstance(value, tuple) else value
            _take(view, replace(present, settings={**present.settings, name: plain}))
    shedder = effective_shedder(present.load_manager_over(view.snapshot), config)[0]
    first = [name for name in shedder.settings if name not in changed]
    others = [
        s.name
        for s in REFERENCE.settings.values()
        if s.name not in changed and s.name not in special and s.name not in first
    ]
    picked = st.selectbox(
        "Change a setting",
        [*first, *others],
        index=None,
        placeholder="the strategy's own settings come first",
        key=f"more-{len(changed)}-{'-'.join(sorted(changed))[:80]}",
    )
    if picked:
        value = view.snapshot.settings[picked]
        start: Any = written(value) if isinstance(value, tuple) or value is None else value
        _take(view, replace(present, settings={**present.settings, picked: start}))


def _edits(view: state.Current) -> None:
    """Draw the edits, each with a switch, and the form for another one."""
    present = scenarios.history(view).present
    for at, step in enumerate(present.steps):
        words = step.edit.phrase()
        words = words[:1].upper() + words[1:]
        switch, said, drop = st.columns([1, 4, 1], vertical_alignment="center", gap="xsmall")
        key = f"edit-{at}-{step.on}-{hash(step.edit)}"
        on = switch.toggle(words, step.on, key=key, label_visibility="collapsed")
        said.markdown(plain(words) if step.on else f":gray[{plain(words)}]")  # a label of the switch would be cut off
        steps = list(present.steps)
        if drop.button("", icon=":material/delete:", key=f"delete-{at}-{hash(step.edit)}", help="Delete this edit"):
            del steps[at]
            _take(view, present.with_steps(*steps))
        if on != step.on:
            steps[at] = replace(step, on=on)
            _take(view, present.with_steps(*steps))
    with st.popover("Add an edit", icon=":material/add:", width="stretch"):
        context = EditContext(view.snapshot, [step.edit for step in present.steps])
        edit = edit_form(context, f"edit-{len(present.steps)}")
        lacks = edit.lacks(context)
        if lacks:
            st.caption(lacks)
        if st.button("Add", type="primary", icon=":material/add:", disabled=bool(lacks)):
            _take(view, present.with_steps(*present.steps, Step(edit)))


def _assumptions(view: state.Current) -> None:
    """Draw what is supposed, with why."""
    present = scenarios.history(view).present
    known = present.assumptions
    models = {"share": "goes along with the traffic", "fixed": "costs what is said below"}
    st.caption("What no snapshot tells. Each has a default, and a reason for it behind its question mark.")
    model: Any = st.selectbox(
        "CPU",
        list(models),
        list(models).index(known.cpu_model),
        format_func=lambda m: f"{m}: {models[m]}",
        help=_WHY["cpu_model"],
        key=f"cpu-{known.cpu_model}",
    )
    left, right = st.columns(2)
    made: dict[str, Any] = {"cpu_model": model}
    for at, (name, label, low, high) in enumerate(_ASSUMED):
        made[name] = (left, right)[at % 2].number_input(
            label,
            low,
            high,
            getattr(known, name),
            disabled=model == "share" and name.startswith("cpu_"),
            format="%d" if isinstance(low, int) else "%g",
            help=_WHY[name],
            key=f"assume-{name}-{getattr(known, name)}",
        )
    made["spread_reports"] = right.toggle(
        "Brokers report at different moments", known.spread_reports, help=_WHY["spread_reports"]
    )
    st.caption("Memory stays as it is: Pulsar's caches fill what they were given, whatever the traffic.")
    made = {name: type(getattr(known, name))(value) for name, value in made.items()}
    _take(view, replace(present, assumptions=Assumptions(**made)))


def draw_controls(view: state.Current) -> None:
    """Draw edits, load balancer, what is watched, and assumptions."""
    present = scenarios.history(view).present
    try:
        config = present.settings_over(view.snapshot)
    except PlannerError as error:
        show_error(error)
        return
    with st.container(border=True):
        st.markdown("**Edits**")
        _edits(view)
    with st.container(border=True):
        st.markdown("**Load balancer**")
        _strategies(view, config)
        _settings(view, config)
    with st.container(border=True):
        st.markdown("**Watch**")
        _frame(view)
    with st.expander("Assumptions", icon=":material/tune:", key="assumptions", on_change="rerun") as assumed:
        if assumed.open:
            _assumptions(view)
