"""Snapshots: load, check, keep, and take away."""

import io
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from planner.cluster.errors import PlannerError
from planner.cluster.setting import conf_value
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, moment, plain, short_digest
from planner.formats.apart import read_apart
from planner.formats.archive import write_zip
from planner.formats.document import write_document
from planner.web import registry, scenario_address, state
from planner.web.capture_form import capture_form
from planner.web.page import Page, Subject, arrive, history_button
from planner.web.session import SessionValue, forget_upload, widget_state
from planner.web.widgets import button, download, show_error, show_notes, table
from planner.workspace.database import SavedSnapshot
from planner.workspace.samples import samples

_DOCUMENT_TOPICS = 50_000
_UPLOAD: SessionValue[tuple[str, PlannerError | None]] = SessionValue("upload-result", lambda: ("", None))
"""The last upload that is not open: id of its file, and why."""


def saved_frame(saved: tuple[SavedSnapshot, ...]) -> pd.DataFrame:
    """Return one row for each saved snapshot."""
    return pd.DataFrame(
        {
            "name": [s.name for s in saved],
            "cluster": [s.cluster for s in saved],
            "captured": [moment(s.captured_at_ms) for s in saved],
            "load manager": [s.load_manager for s in saved],
            "brokers": [s.brokers for s in saved],
            "bundles": [s.bundles for s in saved],
            "topics": [s.topics for s in saved],
            "source": [s.source for s in saved],
            "digest": [short_digest(s.digest) for s in saved],
        }
    )


def settings_frame(snapshot: Snapshot) -> pd.DataFrame:
    """Return the settings that differ from their default in the release that decides, or are none of it."""
    config = snapshot.settings
    known = {**config.release.others, **config.release.settings}
    changed = {n: v for n, v in config.overrides.items() if n not in config or v != known[n].default}
    return pd.DataFrame(
        {
            "setting": list(changed),
            "in force": [conf_value(v) for v in changed.values()],
            "default": [conf_value(known[n].default) if n in config else "unknown setting" for n in changed],
            "meaning": [known[n].meaning for n in changed],
        }
    )


def zip_bytes(snapshot: Snapshot) -> bytes:
    """Return a snapshot as a zip."""
    sink = io.BytesIO()
    write_zip(snapshot, sink)
    return sink.getvalue()


def document_bytes(snapshot: Snapshot) -> bytes:
    """Return a snapshot as a JSON document."""
    return write_document(snapshot).encode()


def _load(given: UploadedFile) -> None:
    """Keep what was uploaded and open it where it is waited for, else on the first page; or note why that cannot be."""
    _UPLOAD.put((given.file_id, None))
    try:
        before = {s.digest for s in state.workspace().saved()}
        snapshot, note = read_apart(given.name, given)
        saved = state.workspace().add(snapshot, given.name.rsplit(".", 1)[0])
    except PlannerError as error:
        _UPLOAD.put((given.file_id, error))
        return
    finally:
        forget_upload(given)
    what = "already existed (same content)" if saved.digest in before else "loaded"
    arrive(saved, what, "what_if" if saved.digest in scenario_address.PENDING.get() else "overview", note)


def _upload() -> None:
    st.header("Load a snapshot")
    st.markdown(
        "A snapshot as a zip (`manifest.json` and Parquet) or as one JSON document, or a zip of a raw capture"
        " (`index.json` and the cluster's raw answers). No data leaves this machine. Existing snapshots stay."
    )
    given = st.file_uploader("Snapshot file", type=["zip", "json"], max_upload_size=250, key="upload")
    if given is None:
        _UPLOAD.put(("", None))
        return
    if _UPLOAD.get()[0] != given.file_id:
        _load(given)
    error = _UPLOAD.get()[1]
    if error is not None:
        show_error(error)
        st.caption("Nothing was changed: all existing snapshots are still available.")
        registry.link("load", "Load outputs of tools, such as load reports or settings")


def _awaited() -> None:
    """Say which snapshots the links that were opened wait for."""
    here = {saved.digest for saved in state.workspace().saved()}
    for digest, (_, name) in scenario_address.PENDING.get().items():
        if digest not in here:
            st.info(
                f"The link that you opened needs the snapshot '{plain(name)}', digest `{digest}`. Load it here.",
                icon=":material/hourglass_empty:",
            )


def _gallery() -> None:
    st.header("Samples")
    offered = samples()
    groups = list(dict.fromkeys(s.group for s in offered))
    for group in groups:
        with st.expander(group, expanded=group == groups[0]):
            for sample in (s for s in offered if s.group == group):
                text, place = st.columns([5, 1], vertical_alignment="center")
                text.markdown(f"**{sample.title}** — {sample.shows}")
                text.caption(sample.provenance)
                if place.button("Open", key=f"sample-{sample.file}", width="stretch"):
                    state.select(state.add_sample(sample).digest)
                    registry.go("overview")


@st.dialog("Delete this snapshot?")
def _confirm_delete(saved: SavedSnapshot) -> None:
    st.markdown(f"This deletes “{plain(saved.name)}” ({short_digest(saved.digest)}) from this workspace.")
    if st.button("Delete", type="primary", icon=":material/delete:"):
        try:
            state.forget(saved.digest)
        except PlannerError as error:
            show_error(error)
            return
        st.rerun()


def _details(saved: SavedSnapshot) -> None:
    st.markdown(f"**{plain(saved.name)}** · `{saved.digest}`")
    show_notes(saved.warnings, "Notes on this snapshot")
    name, rename, delete = st.columns([4, 1, 1], vertical_alignment="bottom")
    key = f"name-{saved.digest}"
    name.text_input("Name", saved.name, max_chars=200, key=key)

    def call() -> None:
        if widget_state(key).strip():
            state.workspace().rename(saved.digest, widget_state(key))

    button("Rename", "edit", call, place=rename, width="stretch")
    if delete.button("Delete", width="stretch", icon=":material/delete:"):
        _confirm_delete(saved)
    try:
        snapshot = state.snapshot_of(saved.digest)
    except PlannerError as error:
        show_error(error)
        return
    stem = f"snapshot-{short_digest(saved.digest)}"
    left, right = st.columns(2)
    with left:
        make = partial(zip_bytes, snapshot)
        download("Download as zip (Parquet)", make, f"{stem}.zip", "application/zip", width="stretch")
    with right:
        if saved.topics <= _DOCUMENT_TOPICS:
            make = partial(document_bytes, snapshot)
            download("Download as JSON document", make, f"{stem}.json", "application/json", width="stretch")
        else:
            st.caption(f"The JSON document is available for clusters of up to {_DOCUMENT_TOPICS:,} topics.")
    st.markdown(f"**Settings that differ from the defaults of Pulsar {snapshot.settings.release.name}**")
    frame = settings_frame(snapshot)
    if frame.empty:
        st.caption("None.")
    else:
        table(frame, "settings")
    policies = snapshot.policies
    st.markdown("**Policies**")
    st.caption(
        f"{count(len(policies.isolation), 'isolation rule')}, {count(len(policies.anti_affinity_group), 'namespace')}"
        f" in anti-affinity groups, {count(len(policies.failure_domains), 'failure domain')},"
        f" {count(len(policies.dispatch_rates), 'dispatch limit')}."
    )


def draw(_: Any) -> None:
    """Draw the page."""
    trouble = st.container()
    _awaited()
    _upload()
    view = None
    try:
        view = state.saved_in_view()
    except PlannerError as error:
        with trouble:
            show_error(error)
    history_button("history-on-snapshots", "Open a moment of a history")
    capture_form()
    _gallery()
    st.header("In this workspace")
    saved = state.workspace().saved()
    if not saved:
        st.info("No snapshots. Upload a file, or open a sample.", icon=":material/upload_file:")
        return
    # With another one in view the selection begins anew, so that any row can be selected.
    key = f"saved-{view.digest if view is not None else ''}-{len(saved)}"
    table(saved_frame(saved), "saved", key=key, pick=lambda row: state.select(saved[row].digest))
    if view is not None:
        st.header("Current snapshot")
        _details(view)


PAGE = Page(
    title="Snapshots",
    icon=":material/folder_open:",
    purpose="Load, inspect, keep and download snapshots of a cluster.",
    draw=draw,
    subject=Subject.NOTHING,
)
