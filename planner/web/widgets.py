"""Pieces that all pages share: header, empty state, errors, a chart with its summary, table and download."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from planner.cluster.decisions import ReasonBlock
from planner.cluster.errors import PlannerError, SnapshotError
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.namespace_policies import expression_notes
from planner.web import state
from planner.web.text import count, moment, short_digest
from planner.workspace.database import SavedSnapshot
from planner.workspace.samples import samples

_SHOWN_VIOLATIONS = 20


def show_error(error: PlannerError) -> None:
    """Show an error: what is wrong, where, and what to do."""
    place = f"**{plain(error.where)}** — " if error.where else ""
    st.error(f"{place}{plain(error.what)}\n\n{plain(error.remedy)}", icon=":material/error:")
    if isinstance(error, SnapshotError) and error.total > 1:
        rows = [{"file": v.file, "row": v.row, "what": v.what, "remedy": v.remedy} for v in error.violations]
        shown = rows[:_SHOWN_VIOLATIONS]
        st.caption(f"{error.total:,} problems in all; the first {len(shown)}:")
        st.dataframe(pd.DataFrame(shown), hide_index=True, width="stretch")


def plain(text: str) -> str:
    """Return text in which nothing is Markdown; what is shown may come from an uploaded file."""
    for mark in "\\`*_[]<>#|$~:":
        text = text.replace(mark, f"\\{mark}")
    return text


def show_arrival(saved: SavedSnapshot, what: str) -> None:
    """Say how a snapshot came into the workspace, with what to know about it and the way to its overview."""
    st.success(
        f"“{plain(saved.name)}” {what}: {count(saved.brokers, 'broker')}, {count(saved.bundles, 'bundle')},"
        f" {count(saved.topics, 'topic')}.",
        icon=":material/check_circle:",
    )
    show_notes(saved.warnings, "What to know about this snapshot")
    st.page_link(state.PAGES / "overview.py", label="See its overview", icon=":material/monitoring:")


def show_notes(notes: Sequence[str], title: str) -> None:
    """Show notes behind a title that counts them; nothing when there are none."""
    if notes:
        with st.expander(f"{title} ({len(notes)})", icon=":material/info:"):
            for note in notes:
                st.markdown(f"- {plain(note)}")


def empty_state(text: str) -> None:
    """Say what to do when there is no snapshot, and offer samples."""
    st.info(text, icon=":material/upload_file:")
    offered = samples()[:3]
    for column, sample in zip(st.columns(max(1, len(offered))), offered, strict=False):
        with column, st.container(border=True):
            st.markdown(f"**{sample.title}**")
            st.caption(sample.shows)
            if st.button("Open this sample", key=f"empty-{sample.file}", width="stretch"):
                state.select(state.add_sample(sample).digest)
                st.rerun()
    st.page_link(state.SNAPSHOTS_PAGE, label="Upload a snapshot of your cluster", icon=":material/folder_open:")


def _picker(view: state.Current) -> None:
    saved = state.workspace().saved()
    digests = [s.digest for s in saved]
    names = {s.digest: f"{s.name} · {moment(s.captured_at_ms)}" for s in saved}
    chosen = st.selectbox(
        "Snapshot",
        digests,
        index=digests.index(view.digest),
        format_func=lambda d: names.get(d, short_digest(d)),
        key=f"picker-{view.digest}",
    )
    if chosen and chosen != view.digest:
        state.select(chosen)
        st.rerun()


def open_page(title: str, purpose: str) -> state.Current | None:
    """Draw the head of a page and return the snapshot in view.

    Shows the empty state or the error, and returns None, when there is nothing to look at.
    """
    head, pick = st.columns([3, 2], vertical_alignment="bottom")
    with head:
        st.title(title)
        st.caption(purpose)
    try:
        view = state.current()
    except PlannerError as error:
        show_error(error)
        empty_state("Choose something to look at instead.")
        return None
    if view is None:
        empty_state("There is no snapshot yet. Upload one of your cluster, or open a sample.")
        return None
    with pick:
        _picker(view)
    saved = view.saved
    st.caption(
        f"{plain(saved.cluster)} · Pulsar {plain(saved.pulsar_version)} · {saved.load_manager} load manager ·"
        f" captured {moment(saved.captured_at_ms)} · {count(saved.brokers, 'broker')},"
        f" {count(saved.bundles, 'bundle')}, {count(saved.topics, 'topic') if saved.topics else 'no topic names'} ·"
        f" `{short_digest(saved.digest)}`"
    )
    if saved.description:
        st.markdown(plain(saved.description))
    notes = (*saved.warnings, *expression_notes(view.snapshot.policies))
    show_notes(notes, "What to know about this snapshot")
    return view


def table(
    frame: pd.DataFrame,
    name: str,
    *,
    height: int | Literal["content"] | None = None,
    style: Styler | None = None,
    key: str = "",
    **options: Any,
) -> Any:
    """Show a table and a button that downloads it as CSV.

    Args:
        frame: What to show.
        name: Names the file, and the widgets.
        height: In pixels; `content` to show every row; some ten rows when None.
        style: The same frame with colours.
        key: Names the widgets, where the file's name is not enough: another key begins without a selection.
        options: Further arguments of `st.dataframe`.
    """
    shown = st.dataframe(
        frame if style is None else style,
        hide_index=True,
        width="stretch",
        height=height if height is not None else "auto",
        key=f"table-{key or name}",
        placeholder="—",
        **options,
    )
    st.download_button(
        "Download as CSV",
        lambda: frame.to_csv(index=False).encode(),
        file_name=f"{name}.csv",
        mime="text/csv",
        icon=":material/download:",
        key=f"csv-{key or name}",
        on_click="ignore",
    )
    return shown


def chart(figure: Any, summary: str, name: str, **options: Any) -> Any:
    """Draw a figure under one sentence that says what it shows.

    Args:
        figure: A Plotly figure.
        summary: The sentence, for those who do not see the figure too.
        name: Key of the widget.
        options: Further arguments of `st.plotly_chart`.
    """
    st.markdown(summary)
    return st.plotly_chart(
        figure, key=f"chart-{name}", alt=summary, config={"displaylogo": False, "displayModeBar": False}, **options
    )


def reason_rows(snapshot: Snapshot, blocks: Iterable[ReasonBlock], *, bundles: bool) -> list[Mapping[str, Any]]:
    """Return reasons as table rows: about brokers, or about bundles.

    Args:
        snapshot: Names the subjects.
        blocks: The reasons of a decision.
        bundles: True for those about bundles, False for those about brokers.
    """
    rows: list[Mapping[str, Any]] = []
    for group in blocks:
        about_bundles = bool(len(group)) and bool((group.bundles >= 0).any())
        if about_bundles != bundles:
            continue
        for reason in group.rows(snapshot.brokers.name, snapshot.bundle_names):
            row: dict[str, Any] = {"broker": reason.broker or "whole cluster"}
            if bundles:
                row["bundle"] = reason.bundle
            row |= {"moves": reason.code.acts, "why": reason.text, "code": reason.code.code}
            rows.append(row)
    return rows
