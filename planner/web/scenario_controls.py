"""What a person changes on the What-if page: edits, strategies, settings, assumptions; undo, saved scenarios."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from planner.cluster.errors import HIDDEN, PlannerError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_PLACEMENT_STRATEGY
from planner.cluster.releases import RELEASES, release
from planner.cluster.settings import Settings
from planner.cluster.text import count, plain
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.manager.pairing import offered_placements, running_placement
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.edits.edit import EditContext
from planner.simulate.scenario import Step
from planner.simulate.strategies import obstacle, with_obstacle
from planner.web import names, scenario_files, scenario_history, state
from planner.web.choices import STRATEGIES, choose_shedder, drop_setting, put_setting, set_setting, take
from planner.web.edit_forms import edit_form
from planner.web.session import bound, widget_state
from planner.web.setting_form import setting_widget
from planner.web.widgets import button, once, show_error

_ASSUMED: tuple[tuple[str, str, float, float], ...] = (
    ("cpu_percent_per_mb_per_s", "% of a core per million bytes/s", 0.0, 1e6),
    ("cpu_percent_per_1000_msg_per_s", "% of a core per 1,000 msg/s", 0.0, 1e6),
    ("idle_cpu_percent", "Idle CPU (%)", 0.0, 100.0),
    ("session_timeout_s", "Detection of a failed broker (s)", 0.0, 3600.0),
    ("reconnection_s", "Reconnection of a client (s)", 0.0, 60.0),
    ("stats_interval_s", "Interval of rate updates (s)", 5, 3600),
)
"""Assumptions that are numbers: name, label, least and most."""
_WHY = {
    "cpu_model": "`share`: CPU usage above idle is divided among a broker's bundles by their share of its traffic (half"
    " by messages, half by bytes), which is what shedding strategies assume. `fixed`: each message and byte has a fixed"
    " cost, as measured on your brokers.",
    "cpu_percent_per_mb_per_s": "Only with `fixed`. 1: a core handles about 100 million bytes/s. Measure yours.",
    "cpu_percent_per_1000_msg_per_s": "Only with `fixed`. 1.5: a core handles about 67,000 msg/s. Measure yours.",
    "idle_cpu_percent": "Share of the machine that a broker uses without traffic. It does not move with bundles.",
    "session_timeout_s": "Default: 30 (`metadataStoreSessionTimeoutMillis`). Its bundles are unavailable until then.",
    "reconnection_s": "Determines how long clients are disconnected. Default: 1, because clients retry after 0.1 s with"
    " increasing delays, then look up and open the topic. Rates do not show this, because it is much shorter than their"
    " interval.",
    "stats_interval_s": "Default: 60 (`statsUpdateFrequencyInSecs`). Also applies to machine usage.",
    "spread_reports": "On: brokers report at different times, drawn from the seed. Off: all at the same time.",
}
"""Reason for each default."""


def draw_toolbar(view: state.Current) -> None:
    """Draw undo and redo, and saved scenarios."""
    known = scenario_history.history(view)
    with st.container(horizontal=True):
        button("Undo", "undo", partial(scenario_history.undo, view), disabled=not known.past)
        button("Redo", "redo", partial(scenario_history.redo, view), disabled=not known.future)
        start_over = partial(scenario_history.change, view, scenario_history.as_captured(view))
        button(
            "Start over",
            "restart_alt",
            start_over,
            disabled=known.present == scenario_history.as_captured(view),
        )
        with st.popover("Save, open", icon=":material/save:", key="save-open", on_change="rerun") as unfolded:
            if unfolded.open:
                _saving(view)
    scenario_files.show_foreign(view)


def _saving(view: state.Current) -> None:
    present = scenario_history.present(view)
    kept = state.workspace().scenarios

    def save() -> None:
        named = replace(scenario_history.present(view), name=HIDDEN.sub("", widget_state("scenario-name")).strip())
        scenario_history.change(view, named)
        kept.save(named, view.digest, view.saved.name)
        st.toast(f"Saved as {plain(named.name)}.", icon=":material/save:")

    name = st.text_input("Name", present.name, max_chars=120, key="scenario-name")
    button("Save on this server", "save", save, disabled=not name.strip())
    saved = kept.list(view.digest)
    if saved:
        labels = {
            s.digest: " · ".join([s.name or "unnamed", *([count(s.edits, "edit")] if s.edits else [])]) for s in saved
        }
        st.selectbox("Saved scenarios", list(labels), format_func=labels.__getitem__, key="saved")
        left, right = st.columns(2)

        def load() -> None:
            scenario_history.change(view, kept.load(widget_state("saved")))

        def delete() -> None:
            kept.delete(widget_state("saved"), view.digest)
            st.toast("Deleted the saved scenario.", icon=":material/delete:")

        button("Open", "folder_open", load, place=left, width="stretch")
        # The box chooses another one then, which a second click must not delete as well.
        key = f"delete-saved-of-{len(saved)}"
        button("Delete", "delete", once(delete, "delete-saved"), key=key, place=right, width="stretch")
    scenario_files.file_exchange(view)


def _bound(view: state.Current, field: str, value: Any, draw: Callable[..., Any]) -> None:
    """Draw a widget that shows a field of the scenario and changes it."""
    bound(f"scenario-{field}", value, draw, lambda given: take(view, **{field: given}))


def _frame(view: state.Current) -> None:
    """Draw what is watched: for how long, with which seed and load manager."""
    present = scenario_history.present(view)
    left, right = st.columns(2)
    _bound(view, "cycles", present.cycles, partial(left.number_input, "Cycles", 1, 100_000))
    drawn = "Determines random choices of Pulsar, and when each broker reports."
    _bound(view, "seed", present.seed, partial(right.number_input, "Seed", 0, 2**31 - 1, help=drawn))
    managers = {"": f"{view.captured.info.load_manager}, as in the snapshot", **{str(m): str(m) for m in LoadManager}}
    own = release(view.captured.info.pulsar_version).name
    known = {name: f"{name}, as in the snapshot" if name == own else name for name in RELEASES}
    help_ = (
        "The release whose rules and defaults apply. Settings that the snapshot does not set use the defaults of"
        " this release."
    )
    box = partial(st.selectbox, "Release of Pulsar", list(known), format_func=known.__getitem__, help=help_)
    _bound(view, "pulsar_version", present.pulsar_version, box)
    box = partial(st.selectbox, "Load manager", list(managers), format_func=managers.__getitem__)
    _bound(view, "load_manager", present.load_manager, box)


def _placement(config: Settings) -> str:
    return config.text(LOAD_PLACEMENT_STRATEGY).rpartition(".")[2]


def _strategies(view: state.Current, config: Settings) -> None:
    manager = scenario_history.present(view).load_manager_over(view.captured)
    shedders = {
        s.name: with_obstacle(s.name, obstacle(s, manager, config.release))
        for s in SHEDDERS
        if s.load_manager is manager
    }
    now = effective_shedder(manager, config)[0].name
    box = partial(st.selectbox, "Shedding strategy", list(shedders), format_func=shedders.__getitem__)
    bound("scenario-shedder", now, box, partial(choose_shedder, view))
    if manager is LoadManager.MODULAR:
        running, offered = running_placement(manager, config), offered_placements(manager, config.release)
        names = [p.name for p in (*offered, *(() if running in offered else (running,)))]
        placed = _placement(config)
        box = partial(st.selectbox, "Placement strategy", names)
        bound(
            "scenario-placement",
            placed if placed in names else names[0],
            box,
            partial(set_setting, view, LOAD_PLACEMENT_STRATEGY),
        )


def _settings(view: state.Current, config: Settings) -> None:
    """Draw the settings that the scenario changes, and a way to change more."""
    present = scenario_history.present(view)
    special = set(STRATEGIES)
    changed = [name for name in present.settings if name not in special]
    for name in changed:
        field, drop = st.columns([6, 1], vertical_alignment="bottom")
        with field:
            store = partial(put_setting, view, name)
            setting_widget(config.of(name), config.overrides.get(name, config[name]), f"scenario-{name}", store)
        button(
            "",
            "close",
            partial(drop_setting, view, name),
            key=f"drop-{name}",
            place=drop,
            help="Reset to the value in the snapshot",
        )
    shedder = effective_shedder(present.load_manager_over(view.captured), config)[0]
    first = [name for name in shedder.settings if name in config and name not in changed]
    others = [name for name in config if name not in {*changed, *special, *first}]
    box = partial(st.selectbox, "Change a setting", [*first, *others], placeholder="settings of the strategy first")
    # The box is empty again after each choice.
    own = view.captured.settings
    bound("more-settings", None, partial(box, index=None), lambda name: put_setting(view, name, own[name]))


def _edits(view: state.Current) -> None:
    """Draw the edits, each with a switch, and the form for another one."""
    steps = scenario_history.present(view).steps
    for at, step in enumerate(steps):
        words = names.short(step.edit.phrase())
        words = words[:1].upper() + words[1:]
        switch, said, drop = st.columns([1, 4, 1], vertical_alignment="center", gap="xsmall")
        toggle = partial(switch.toggle, plain(words), label_visibility="collapsed")
        # Edits move up where one is deleted: a click on what the browser still shows must not reach another edit.
        row = f"{at}-of-{len(steps)}"
        bound(f"edit-{row}", step.on, toggle, partial(_turn, view, at, step))
        said.markdown(plain(words) if step.on else f":gray[{plain(words)}]")  # a label of the switch would be cut off
        delete = once(partial(_change_step, view, at, step, None), "delete-edit")
        button("", "delete", delete, key=f"delete-{row}", place=drop, help="Delete this edit")
    with st.expander("Add an edit", icon=":material/add:", expanded=not steps):
        context = EditContext(view.captured, [step.edit for step in steps])
        edit = edit_form(context, f"edit-{len(steps)}")
        lacks = edit.lacks(context)
        if lacks:
            st.caption(lacks)
        # The next form begins anew: a second click on the button of this one must not add what that one starts with.
        key = f"add-edit-{len(steps)}"
        if st.button("Add", type="primary", icon=":material/add:", disabled=bool(lacks), key=key):
            take(view, steps=(*steps, Step(edit)))
            st.rerun()


def _turn(view: state.Current, at: int, step: Step, on: bool) -> None:  # noqa: FBT001 - a widget's value
    _change_step(view, at, step, replace(step, on=on))


def _change_step(view: state.Current, at: int, step: Step, other: Step | None) -> None:
    """Put another edit in the place of one that is still there, or delete it; equal ones are told apart by place."""
    steps = list(scenario_history.present(view).steps)
    if steps[at : at + 1] == [step]:
        steps[at : at + 1] = [] if other is None else [other]
        take(view, steps=tuple(steps))


def _assumptions(view: state.Current) -> None:
    """Draw the assumptions with their reasons."""
    known = scenario_history.present(view).assumptions

    def assume(name: str, draw: Callable[..., Any]) -> None:
        def store(value: Any) -> None:
            now = scenario_history.present(view).assumptions
            take(view, assumptions=replace(now, **{name: type(getattr(now, name))(value)}))

        bound(f"assume-{name}", getattr(known, name), partial(draw, help=_WHY[name]), store)

    models = {"share": "proportional to traffic", "fixed": "fixed cost per message and byte"}
    st.caption("Values that snapshots do not record. Hover over (?) to see the reason for each default.")
    assume("cpu_model", partial(st.selectbox, "CPU model", list(models), format_func=lambda m: f"{m}: {models[m]}"))
    columns = st.columns(2)
    for at, (name, label, low, high) in enumerate(_ASSUMED):
        idle = known.cpu_model == "share" and name.startswith("cpu_")
        form = "%d" if isinstance(low, int) else "%g"
        assume(name, partial(columns[at % 2].number_input, label, low, high, disabled=idle, format=form))
    assume("spread_reports", partial(columns[1].toggle, "Brokers report at different times"))
    st.caption(
        "Memory usage stays the same: Pulsar's caches use all the memory assigned to them, regardless of traffic."
    )


def draw_controls(view: state.Current) -> None:
    """Draw edits, load balancer, what is watched, and assumptions."""
    try:
        config = scenario_history.present(view).settings_over(view.captured)
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
        st.markdown("**Simulation**")
        _frame(view)
    with st.expander("Assumptions", icon=":material/tune:", key="assumptions", on_change="rerun") as assumed:
        if assumed.open:
            _assumptions(view)
