"""Files and text that an operator has: read together, piece by piece, until they are a cluster."""

import io
import time
from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.text import count, plain
from planner.doors.apart import read_outputs_apart
from planner.doors.commands import script
from planner.doors.enough import enough_for
from planner.doors.read import PASTED, Given
from planner.doors.reading import PieceKind, Reading
from planner.doors.settings import scenario_of
from planner.web import registry, scenario_history, state
from planner.web.page import arrive
from planner.web.session import SessionValue, forget_upload, widget_state
from planner.web.widgets import button, note_list, show_error, table

_MOST_BYTES = 250_000_000
_MOST_FILES = 1_000
_UPLOAD_MB = 250
_GIVEN: SessionValue[tuple[tuple[str, bytes], ...]] = SessionValue("load-given", tuple)
"""Name and content of everything that was given so far."""
_READING: SessionValue[Reading | None] = SessionValue("load-reading", lambda: None)
_TURN = SessionValue("load-turn", int)
"""Number of times that something was read: fields are empty again afterwards."""
_ARRIVAL = SessionValue("load-arrival", str)
"""Digest of a snapshot that is to be opened."""
_VERDICTS = {"yes": "yes", "with assumptions": "with assumptions", "no": "not yet"}


_PIECES: Mapping[PieceKind, str] = {
    "brokers": "brokers",
    "load": "load",
    "owners": "owners",
    "bundles": "bundles",
    "topics": "topics",
    "settings": "settings",
    "release": "release",
    "policies": "policies",
    "averages": "averages",
}
"""The pieces of a cluster, to be checked off."""
_BOXES = {False: "check_box", True: "check_box_outline_blank"}


def read_more(cluster: str, more: Sequence[tuple[str, bytes]]) -> None:
    """Read everything that was given, with more of it.

    Raises:
        PlannerError: It cannot be read; what was given before is kept.
    """
    every = (*_GIVEN.get(), *more)
    if sum(len(data) for _, data in every) > _MOST_BYTES or len(every) > _MOST_FILES:
        raise PlannerError(
            f"Together they have more than {_MOST_BYTES / 1e6:,.0f} MB, or more than {_MOST_FILES:,} files.",
            remedy="Start over with fewer files, or use `python -m planner snapshot`.",
        )
    files = [Given(name, io.BytesIO(data)) for name, data in every]
    _READING.put(read_outputs_apart(files, cluster=cluster.strip(), now_ms=int(time.time() * 1_000)))
    _GIVEN.put(every)
    _TURN.put(_TURN.get() + 1)


def cluster_called() -> str:
    """Return the name of the cluster as the field says it; empty where it says none."""
    return widget_state("load-cluster") or ""


def _start_over() -> None:
    _GIVEN.put(())
    _READING.put(None)
    _TURN.put(_TURN.get() + 1)


def files_part() -> None:
    """Draw the fields for files and text, what was found in them so far, and what is missing."""
    turn = _TURN.get()
    st.markdown(
        "Upload outputs of `pulsar-admin`, `curl`, `kubectl` or Prometheus, settings files, or a zip or tar of them; or"
        " paste them as they are. The content decides what each one is. No data leaves this machine."
    )
    left, right = st.columns(2)
    with left:
        st.file_uploader("Files", accept_multiple_files=True, max_upload_size=_UPLOAD_MB, key=f"load-files-{turn}")
        st.text_input("Name of the cluster (optional)", max_chars=100, key="load-cluster")
    with right:
        st.text_area("Text", height=190, key=f"load-text-{turn}", placeholder="Paste outputs with their commands here")
    with st.container(horizontal=True):
        button("Read", "fact_check", lambda: _take(turn), key="load-read", type="primary")
        if _GIVEN.get():
            button("Start over", "restart_alt", _start_over, key="load-start-over")
    reading = _READING.get()
    if reading is not None:
        _show(reading)
    _commands(reading)


def _take(turn: int) -> None:
    """Read what the fields hold."""
    uploads = widget_state(f"load-files-{turn}") or []
    more = [(one.name, one.getvalue()) for one in uploads]
    if text := (widget_state(f"load-text-{turn}") or "").strip():
        number = sum(name.startswith(PASTED) for name, _ in _GIVEN.get()) + 1
        more.append((PASTED if number == 1 else f"{PASTED} {number}", text.encode("utf-8", "replace")))
    if not more and not _GIVEN.get():  # what is given may be read again under another name of the cluster
        raise PlannerError("There is nothing to read.", remedy="Choose files, or paste text.")
    read_more(cluster_called(), more)
    for one in uploads:
        forget_upload(one)


def _show(reading: Reading) -> None:
    """Draw what was found, whether it is a cluster, and what is missing."""
    st.subheader("What was found")
    missing = {one.kind for one in reading.missing}
    if reading.snapshot is not None:
        st.markdown("  ".join(f":material/{_BOXES[kind in missing]}: {words}" for kind, words in _PIECES.items()))
    st.markdown("\n".join(f"- {plain(one)}" for one in reading.found) or "Nothing that is known.")
    if reading.snapshot is not None:
        _offer(reading)
    elif reading.configurations:
        _offer_settings(reading)
    else:
        st.warning(plain(reading.not_enough), icon=":material/hourglass_empty:")
    notes = (
        ("Odd or contradictory", reading.contradictions),
        ("Not used", reading.not_used),
        ("Assumed", reading.assumed),
    )
    for title, texts in notes:
        if texts:
            st.markdown(f"**{title}**")
            note_list(texts)
    if reading.snapshot is not None or not reading.configurations:
        _missing(reading)


def _offer(reading: Reading) -> None:
    """Draw what the cluster is, a button that opens it, and which pages it is good enough for."""
    snapshot = reading.snapshot
    if snapshot is None:
        return
    parts = (
        count(len(snapshot.brokers), "broker"),
        count(len(snapshot.bundles), "bundle"),
        count(len(snapshot.topics), "topic"),
    )
    st.success(f"A cluster: {', '.join(parts)}.", icon=":material/check_circle:")

    def open_it() -> None:
        saved = state.workspace().add(snapshot, snapshot.info.cluster)
        _ARRIVAL.put(saved.digest)

    button("Open this cluster", "open_in_new", open_it, key="load-open", type="primary")
    if digest := _ARRIVAL.take():
        saved = state.workspace().find(digest)
        if saved is not None:
            arrive(saved, "made of outputs", "overview")
    rows = [
        {"page": registry.page(one.page).title, "good enough": _VERDICTS[one.verdict], "missing": one.why}
        for one in enough_for(reading.missing)
    ]
    table(pd.DataFrame(rows), "good-enough", height="content", widths={"missing": 600})


def _offer_settings(reading: Reading) -> None:
    """Draw a button that makes a scenario of settings files over the snapshot in view."""
    try:
        view = state.current()
    except PlannerError as error:
        show_error(error)
        return
    if view is None:
        st.info("These are settings. Open a snapshot first, or add outputs of the cluster.", icon=":material/tune:")
        return
    scenario, wrong = scenario_of(reading.configurations, view.captured)
    note_list(wrong)
    name = plain(view.saved.name)
    if not scenario.settings:
        st.info(f"These settings are those of “{name}” already.", icon=":material/tune:")
        return
    changes = count(len(scenario.settings), "setting")
    st.success(f"{changes} would change on “{name}”.", icon=":material/tune:")
    changed = pd.DataFrame({"setting": list(scenario.settings), "value": list(map(str, scenario.settings.values()))})
    table(changed, "settings-of-file", height="content")

    def use() -> None:
        scenario_history.change(view, scenario)
        _ARRIVAL.put("scenario")

    button("Open as a scenario", "play_arrow", use, key="load-scenario", type="primary")
    if _ARRIVAL.take():
        registry.go("what_if", keep=True)


def _missing(reading: Reading) -> None:
    """Draw what is missing, with the command for each."""
    if not reading.missing:
        return
    st.subheader("What is missing")
    for one in reading.missing:
        st.markdown(f"**{plain(one.what[:1].upper() + one.what[1:])}**: {plain(one.assumed)} {plain(one.uncertain)}")
        st.code(one.command, language=None, wrap_lines=True)


def _commands(reading: Reading | None) -> None:
    """Draw all commands whose outputs make a cluster."""
    snapshot = reading.snapshot if reading is not None else None
    text = (
        script()
        if snapshot is None
        else script(snapshot.info.cluster, snapshot.brokers.name, [n for n in snapshot.namespaces if ":" not in n][:50])
    )
    with st.expander("The ten commands", icon=":material/terminal:", expanded=reading is None):
        st.caption("Run them, and upload or paste the terminal with the commands in it. Any part of it helps.")
        st.code(text, language=None, wrap_lines=True)
