"""Pieces that all pages share: errors, notes, numbers, a chart with its summary, a table with its download."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from zlib import crc32

import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError, SnapshotError
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import plain
from planner.explain.health import Level
from planner.explain.switched_off import switched_off
from planner.share.export import no_formula
from planner.web import names
from planner.web.session import SessionValue, is_drawn_again, widget_state

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

REFUSED: Final[SessionValue[PlannerError | None]] = SessionValue("refused", lambda: None)
"""Reason why the last action was rejected."""
_SAID: Final[SessionValue[PlannerError | None]] = SessionValue("said_refused", lambda: None)
"""The same as it was shown by the last run."""

DOUBLE_CLICK_S: Final = 0.5
"""Two clicks that are closer together are one double click."""


class _Press(NamedTuple):
    """When a button was pressed, or what followed was drawn if that was done already, s by a steady clock."""

    at_s: float
    drawn: bool


_PRESSED: Final[SessionValue[dict[str, _Press]]] = SessionValue("pressed", dict)
"""How a button of each name was pressed last."""

_SHOWN_VIOLATIONS = 20
_SHOWN_NOTES = 100
_LONGEST_NOTE = 1_000
_FILE_ONLY = ("code",)
"""Columns of every table that only the file has."""
_ANSWERS = ("why", "what happens", "rule", "status")
"""Columns with an answer: they follow the names at the start of a row, so that narrow tables do not cut them off."""
_NAMES = {
    "broker", "bundle", "namespace", "range", "topic", "about", "owner", "from", "to", "what", "cycle", "minute",
    "cluster", "when (UTC)",
}  # fmt: skip
"""Columns that name the subject of a row."""
_ICONS = {"bad": ":material/error:", "warning": ":material/warning:"}
"""Icon beside the label of an urgent number, for those who do not see its colour."""
_WIDEST_PX = 520
_ROW_PX, _EDGE_PX = 35, 2
_LETTER_PX = 6.6
_WAYS, _WIDEST_WAY_PX = ("from", "to"), 180
_COMMON: Final[Mapping[str, Any]] = {
    "why": st.column_config.TextColumn(width="large"),
    "MiB/s": st.column_config.NumberColumn(format="%.3g"),
    "msg/s": st.column_config.NumberColumn(format="%.1f"),
}
"""Columns that look the same in every table."""


def show_error(error: PlannerError) -> None:
    """Show an error: what is wrong, where, and what to do."""
    place = f"**{plain(error.where)}** — " if error.where else ""
    st.error(f"{place}{plain(error.what)}\n\n{plain(error.remedy)}", icon=":material/error:")
    if isinstance(error, SnapshotError) and error.total > 1:
        rows = [{"file": v.file, "row": v.row, "what": v.what, "remedy": v.remedy} for v in error.violations]
        visible = rows[:_SHOWN_VIOLATIONS]
        st.caption(f"At least {error.total:,} problems. Showing the first {len(visible)}:")
        st.dataframe(pd.DataFrame(visible), hide_index=True, width="stretch")


def show_notes(notes: Sequence[str], title: str) -> None:
    """Show notes behind a title that counts them; nothing when there are none."""
    if notes:
        with st.expander(f"{title} ({len(notes)})", icon=":material/info:"):
            note_list(notes)


def note_list(notes: Sequence[str]) -> None:
    """Draw notes below each other, the first of many; nothing when there are none."""
    if notes:
        st.text("\n".join(f"• {note[:_LONGEST_NOTE]}" for note in notes[:_SHOWN_NOTES]))
    if len(notes) > _SHOWN_NOTES:
        st.caption(f"Showing {_SHOWN_NOTES} of {len(notes):,}; download the snapshot to see all.")


def show_switched_off(snapshot: Snapshot) -> None:
    """Say what of the load balancer is off, where something is."""
    for one in switched_off(snapshot):
        draw = st.warning if one.stops_shedding else st.info
        draw(plain(one.text), icon=":material/power_settings_new:")


@contextmanager
def folded(label: str, name: str) -> Iterator[bool]:
    """Draw what is closed at first; yield whether it is open, as only then its content has to be there."""
    with st.expander(label, key=f"open-{name}", on_change="rerun") as unfolded:
        yield bool(unfolded.open)


def metrics(
    figures: Iterable[tuple[str, str, str]],
    width: int | Literal["stretch", "content"] = "stretch",
    below: Mapping[str, str] = MappingProxyType({}),
    levels: Mapping[str, Level] = MappingProxyType({}),
    trends: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> None:
    """Show numbers beside each other.

    Args:
        figures: Label, value and meaning of each.
        width: How wide each is.
        below: Words below a number, by its label.
        levels: How urgent a number is, by its label: a colour and an icon; none for those that are not in it.
        trends: The course of a number, by its label, as a sparkline.
    """
    with st.container(horizontal=True):
        for label, value, meaning in figures:
            level = levels.get(label)
            # Numbers that are drawn again with their trends, in the same run, are other elements.
            key = f"level-{level}-{crc32(label.encode()):x}{'-trend' if trends else ''}" if level else None
            with st.container(key=key, width=width):
                st.metric(
                    label,
                    value,
                    below.get(label) or None,
                    delta_color="off",
                    delta_arrow="off",
                    help=meaning or None,
                    icon=_ICONS.get(level or ""),
                    chart_data=trends.get(label),
                    chart_type="area",
                )


def download(label: str, content: str | bytes | Callable[[], bytes], file: str, mime: str, **options: Any) -> None:
    """Draw a button that downloads a file; a function makes the content when the button is pressed."""
    data = content.encode() if isinstance(content, str) else content
    options = {"icon": ":material/download:", "on_click": "ignore", **options}
    st.download_button(label, data, file, mime, **options)


def button(label: str, icon: str, act: Callable[[], None], *, key: str = "", place: Any = st, **options: Any) -> None:
    """Draw a button that does something before the page is drawn again; an error is shown then.

    Args:
        label: What it does.
        icon: Name of a Material icon.
        act: Does it. It reads at that moment what it needs: what widgets were set to may be newer than the page.
        key: Names the button where several have its label.
        place: Where to draw.
        options: Further arguments of `st.button`.
    """
    options = {"wrap": True, **options}
    place.button(label, icon=f":material/{icon}:", key=key or f"button-{label}", on_click=_act, args=(act,), **options)


def _act(act: Callable[[], None]) -> None:
    try:
        act()
    except PlannerError as error:
        REFUSED.put(error)


def once(act: Callable[[], None], name: str) -> Callable[[], None]:
    """Return what a button does where a double click must do it once, though another button may stand there by then.

    Args:
        act: What to do.
        name: What the buttons that take each other's place have in common.
    """
    pressed = _PRESSED.get()
    if name in pressed and not pressed[name].drawn:
        # Another button stands there from now on: on a busy machine long after the first click.
        pressed[name] = _Press(time.monotonic(), drawn=True)

    def first() -> None:
        pressed, now_s = _PRESSED.get(), time.monotonic()
        last, pressed[name] = pressed.get(name), _Press(now_s, drawn=False)
        if last is None or now_s - last.at_s >= DOUBLE_CLICK_S:
            act()

    return first


def show_refused() -> None:
    """Show why what was asked for last was not done; until somebody does something else."""
    said, error = _SAID.take(), REFUSED.take()
    if is_drawn_again() and error is None:
        error = said
    _SAID.put(error)
    if error is not None:
        show_error(error)


def table(
    frame: pd.DataFrame,
    name: str,
    *,
    height: int | Literal["content"] | None = None,
    style: "Styler | None" = None,
    key: str = "",
    formats: Mapping[str, str] = MappingProxyType({}),
    widths: Mapping[str, int] = MappingProxyType({}),
    hidden: Sequence[str] = (),
    bars: Mapping[str, float] = MappingProxyType({}),
    pick: Callable[[int], None] | None = None,
) -> None:
    """Show a table and a button that downloads it as CSV; what a clicked cell names appears beside it, with links.

    Args:
        frame: What to show.
        name: Names the file, and the widgets.
        height: In pixels, at most; `content` to show every row; some ten rows when None.
        style: The same frame with colours.
        key: Names the widgets, where the file's name is not enough: another key begins without a selection.
        formats: How to write the numbers of columns, where it is not as in all tables.
        widths: How wide columns are, in pixels.
        hidden: Columns that only the file has.
        bars: Columns that are drawn as bars, with the value at which each is full.
        pick: Called with the place of a row that a person selects, before the page is drawn again.
    """
    key = key or name
    if isinstance(height, int):
        height = min(height, _ROW_PX * (len(frame) + 1) + _EDGE_PX)
    visible = names.shortened(frame) if style is None else frame
    columns: dict[str, Any] = {column: _COMMON[column] for column in frame.columns if column in _COMMON}
    columns |= {column: st.column_config.NumberColumn(format=written) for column, written in formats.items()}
    columns |= {
        column: st.column_config.ProgressColumn(format="localized", min_value=0.0, max_value=full)
        for column, full in bars.items()
    }

    def fitting(column: str, widest: float) -> int:
        longest = float(visible[column].str.len().max()) if len(visible) else 0.0
        return int(min(24 + longest * _LETTER_PX, widest))

    answers = set(frame.columns).intersection(_ANSWERS).difference(widths)
    wide = {**widths, **{column: fitting(column, _WIDEST_PX) for column in answers}}
    wide |= {column: max(wide[column], fitting(column, _WIDEST_WAY_PX)) for column in _WAYS if column in widths}
    columns |= {column: {**columns.get(column, {}), "width": width} for column, width in wide.items()}
    options: dict[str, Any] = {"on_select": "rerun", "selection_mode": "single-cell"}
    widget = f"table-{key}"
    if pick is not None:
        options = {"on_select": partial(_picked_row, widget, pick), "selection_mode": "single-row"}
    else:
        widget += f"-{_rows_of(frame)}"
    with st.container(horizontal=True, key=f"beside-{key}"):
        found = st.dataframe(
            visible if style is None else style,
            hide_index=True,
            width="stretch",
            height=height if height is not None else "auto",
            key=widget,
            placeholder="—",
            column_config=columns | dict.fromkeys((*_FILE_ONLY, *hidden)),
            column_order=_order(frame),
            **options,
        )
        cells = found["selection"]["cells"] if pick is None else []
        if cells and cells[0][0] < len(frame):
            names.panel(frame.iloc[cells[0][0]].drop(list(_FILE_ONLY), errors="ignore").to_dict(), key)
    download("Download as CSV", partial(csv_bytes, frame), f"{name}.csv", "text/csv", key=f"csv-{key}", type="tertiary")


def _rows_of(frame: pd.DataFrame) -> str:
    """Name what the rows of a table are about: a cell that is selected stays so while they do not change."""
    about = frame[[column for column in frame.columns if column in _NAMES]]
    rows = pd.util.hash_pandas_object(about, index=False).to_numpy().tobytes() if len(about.columns) else b""
    return f"{len(frame)}-{crc32(rows):x}"


def _order(frame: pd.DataFrame) -> list[str]:
    """Return the columns in the order of the page: answers behind the names that begin a row."""
    columns = [str(column) for column in frame.columns]
    answers = [column for column in columns if column in _ANSWERS]
    others = [column for column in columns if column not in _ANSWERS]
    begin = next((at for at, column in enumerate(others) if column not in _NAMES), len(others)) or 1
    return [*others[:begin], *answers, *others[begin:]]


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Return a table as CSV in which no cell and no heading is a formula to a spreadsheet."""
    safe = frame.map(no_formula).rename(columns=no_formula)
    return safe.to_csv(index=False).encode("utf-8", "replace")


def _picked_row(key: str, pick: Callable[[int], None]) -> None:
    rows = widget_state(key)["selection"]["rows"]
    if rows:
        pick(rows[0])


def chart(
    figure: Any, summary: str, name: str, pick: Callable[[Any], None] | None = None, *, about: object = ""
) -> None:
    """Draw a figure under one sentence that says what it shows.

    Args:
        figure: A Plotly figure.
        summary: The sentence, for those who do not see the figure too.
        name: Names its place on the page.
        pick: Called with the first `customdata` of a point that a person clicks, before the page is drawn again.
            Without it, what a point names appears beside the figure.
        about: What it is about, where that changes: a figure about another one begins without a selection.
    """
    summary = names.short(summary)
    st.markdown(summary)
    place, key = f"chart-{name}", f"chart-{name}-{about}"
    options: dict[str, Any] = {"on_select": "rerun", "selection_mode": "points"} if names.in_figure(figure) else {}
    if pick is not None:
        options = {"on_select": partial(_picked_point, key, pick), "selection_mode": "points"}
    config = {"displaylogo": False, "displayModeBar": False}
    # Into a place with another name a browser would first draw the figure that was there before once more.
    with st.container(horizontal=True, key=f"beside-{place}"):
        found = st.plotly_chart(figure, key=key, alt=summary.replace("**", ""), config=config, **options)
        if pick is None and options:
            for point in found["selection"]["points"][:1]:
                curve = figure.data[point["curve_number"]].name if point["curve_number"] < len(figure.data) else ""
                names.panel({"x": point.get("x"), "y": point.get("y"), "curve": curve}, place)


def _picked_point(key: str, pick: Callable[[Any], None]) -> None:
    points = widget_state(key)["selection"]["points"]
    data = points[0].get("customdata") if points else None
    if data is not None:
        pick(data[0] if isinstance(data, list) else data)
