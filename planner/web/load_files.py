"""Files and text that an operator has: read together, piece by piece, until they are a cluster."""

import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias
from uuid import uuid4

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
from planner.history.assumed import listed
from planner.web import registry, scenario_history, state
from planner.web.page import arrive
from planner.web.session import SessionValue, forget_upload, refill, widget_state
from planner.web.task import Limits, Report, Stopped, Task
from planner.web.tasks import Tasks, watcher
from planner.web.widgets import button, note_list, show_error, table

_MOST_BYTES = 250_000_000
_MOST_FILES = 1_000
_UPLOAD_MB = 250
_Contents: TypeAlias = tuple[tuple[str, bytes], ...]


@dataclass(slots=True)
class _Loaded:
    """What was given so far and what became of it; changed in place.

    Attributes:
        given: Name and content of everything that was read so far.
        reading: What it says.
        turn: Number of times that something was read: fields are empty again afterwards.
        more: Name and content of what is being read.
        task: Reads it with what was given before; None where nothing is being read.
    """

    given: _Contents = ()
    reading: Reading | None = None
    turn: int = 0
    more: _Contents = ()
    task: Task[Reading] | None = None


_LOADED: SessionValue[_Loaded] = SessionValue("load-loaded", _Loaded)
_READINGS: Final = Tasks(Limits(at_once=2, kept=8, patience_s=150.0, unwatched_s=None))
"""Readings of this server. A person who clicks elsewhere ends a run of the page, but no reading, so nothing is lost."""
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
    """Begin to read everything that was given, with more of it; `files_part` waits for it.

    Raises:
        PlannerError: It is too much.
    """
    loaded = _LOADED.get()
    if loaded.task is not None:
        return
    every = (*loaded.given, *more)
    if sum(len(data) for _, data in every) > _MOST_BYTES or len(every) > _MOST_FILES:
        raise PlannerError(
            f"Together they have more than {_MOST_BYTES / 1e6:,.0f} MB, or more than {_MOST_FILES:,} files.",
            remedy="Start over with fewer files, or use `python -m planner snapshot`.",
        )
    loaded.more = tuple(more)
    loaded.task = _READINGS.ask(uuid4().hex, partial(_read, every, cluster.strip(), _names()), watcher())


def _names() -> tuple[str, ...]:
    """Return the names of brokers as the field says them."""
    return tuple((widget_state("load-broker-names") or "").split())


def _read(every: _Contents, cluster: str, names: tuple[str, ...], _: Report, __: Stopped) -> Reading:
    files = [Given(name, io.BytesIO(data)) for name, data in every]
    return read_outputs_apart(files, cluster=cluster, broker_names=names, now_ms=int(time.time() * 1_000))


def _wait() -> PlannerError | None:
    """Wait for what is being read, and keep it; return why it cannot be read.

    What was given before is kept then, and so are the fields.
    """
    task = _LOADED.get().task
    if task is None:
        return None
    with st.spinner("Reading …"):
        _READINGS.wait(task)
    loaded = _LOADED.get()  # a run of the page that has ended meanwhile stops here
    if loaded.task is not task or not task.finished.is_set():
        return None
    loaded.task, more, loaded.more = None, loaded.more, ()
    _READINGS.forget(task.key)
    try:
        loaded.reading = task.value()
    except PlannerError as error:
        return _with_fields(error, loaded.turn, more)
    for one in widget_state(f"load-files-{loaded.turn}") or []:
        forget_upload(one)
    loaded.given = (*loaded.given, *more)
    loaded.turn += 1
    return None


def _with_fields(error: PlannerError, turn: int, more: _Contents) -> PlannerError:
    """Fill the field for text again where it was left meanwhile; name the files, which a page cannot choose itself."""
    text = next((data.decode() for name, data in more if name.startswith(PASTED)), "")
    if text and widget_state(f"load-text-{turn}") is None:
        refill(f"load-text-{turn}", text)
    files = [name for name, _ in more if not name.startswith(PASTED)]
    if not files or widget_state(f"load-files-{turn}"):
        return error
    return PlannerError(error.what, where=error.where, remedy=f"{error.remedy} Choose again: {listed(files)}.".strip())


def cluster_called() -> str:
    """Return the name of the cluster as the field says it; empty where it says none."""
    return widget_state("load-cluster") or ""


def _start_over() -> None:
    loaded = _LOADED.get()
    if loaded.task is not None:
        _READINGS.forget(loaded.task.key)
    _LOADED.put(_Loaded(turn=loaded.turn + 1))


def files_part() -> None:
    """Draw the fields for files and text, what was found in them so far, and what is missing."""
    wrong = _wait()
    loaded = _LOADED.get()
    turn = loaded.turn
    st.markdown(
        "Upload outputs of `pulsar-admin`, `curl`, `kubectl` or Prometheus, settings files, or a zip or tar of them; or"
        " paste them as they are. The content decides what each one is. No data leaves this machine."
    )
    left, right = st.columns(2)
    with left:
        st.file_uploader("Files", accept_multiple_files=True, max_upload_size=_UPLOAD_MB, key=f"load-files-{turn}")
        cluster, names = st.columns(2)
        cluster.text_input("Name of the cluster (optional)", max_chars=100, key="load-cluster")
        names.text_input(
            "Names of brokers (optional)",
            max_chars=500,
            key="load-broker-names",
            placeholder="{hostname}:8080",
            help="Made of labels, where the series of several brokers have one address (--broker-names).",
        )
    with right:
        st.text_area("Text", height=190, key=f"load-text-{turn}", placeholder="Paste outputs with their commands here")
    with st.container(horizontal=True):
        button("Read", "fact_check", lambda: _take(turn), key="load-read", type="primary")
        if loaded.given:
            button("Start over", "restart_alt", _start_over, key="load-start-over")
    if wrong is not None:
        show_error(wrong)
    if loaded.reading is not None:
        _show(loaded.reading)
    _commands(loaded.reading)


def _take(turn: int) -> None:
    """Read what the fields hold."""
    given = _LOADED.get().given
    uploads = widget_state(f"load-files-{turn}") or []
    more = [(one.name, one.getvalue()) for one in uploads]
    if text := (widget_state(f"load-text-{turn}") or "").strip():
        number = sum(name.startswith(PASTED) for name, _ in given) + 1
        more.append((PASTED if number == 1 else f"{PASTED} {number}", text.encode("utf-8", "replace")))
    if not more and not given:  # what is given may be read again under another name of the cluster
        raise PlannerError("There is nothing to read.", remedy="Choose files, or paste text.")
    read_more(cluster_called(), more)


def _show(reading: Reading) -> None:
    """Draw what was found, whether it is a cluster, and what is missing."""
    st.subheader("What was found")
    missing = {one.kind for one in reading.missing}
    if reading.snapshot is not None:
        st.markdown("  ".join(f":material/{_BOXES[kind in missing]}: {words}" for kind, words in _PIECES.items()))
    st.markdown("\n".join(f"- {plain(one)}" for one in reading.found) or "Nothing that is known.")
    if reading.snapshot is not None:
        _offer(reading)
    elif reading.settings_files:
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
    if reading.snapshot is not None or not reading.settings_files:
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
    scenario, wrong = scenario_of(reading.settings_files, view.captured)
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
    text = script()
    if snapshot is not None:
        namespaces = [name for name in snapshot.namespaces if ":" not in name][:50]
        text = script(snapshot.info.cluster, snapshot.brokers.name, namespaces, snapshot.info.load_manager)
    with st.expander("The ten commands", icon=":material/terminal:", expanded=reading is None):
        st.caption("Run them, and upload or paste the terminal with the commands in it. Any part of it helps.")
        st.code(text, language=None, wrap_lines=True)
