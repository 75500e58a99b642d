"""Captures of a running cluster from the Snapshots page."""

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import streamlit as st

from planner.capture import options as capture_options
from planner.capture.options import CaptureOptions, Credentials
from planner.capture.permissions import ALLOW, SECRETS, CapturePermissions, capture_permissions
from planner.capture.stores.registry import EXAMPLE
from planner.cluster.errors import CaptureError, PlannerError
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import GIB
from planner.web import registry, state
from planner.web.page import arrival
from planner.web.session import SessionValue
from planner.web.task import Limits, Progress, Report, Stopped, Task
from planner.web.tasks import Tasks, watch, watcher
from planner.web.widgets import show_error, show_notes
from planner.workspace.database import SavedSnapshot

_CAPTURED = SessionValue("captured", str)
"""Digest of the last capture that was put into view."""
_SENT: SessionValue[CaptureOptions | None] = SessionValue("capture-sent", lambda: None)
"""What was captured last: the form is not drawn meanwhile, and has these values again afterwards."""
_PREFIX = "pulsar-bundle-planner-capture-"
LIMITS: Final = Limits(at_once=2, unfinished=2, kept=20, look_s=1.0, unwatched_s=None)
_CAPTURE_LIMITS = capture_options.Limits(request_s=30.0, total_s=600.0, total_bytes=GIB)
_METRICS = ("auto", "off", "admin", "prometheus")
_FIELDS = {"--admin-url": "Admin URL", "--metadata-store": "Metadata store", "--namespaces": "Namespaces"}
"""Fields of the form, by the command-line options that they represent."""
_SECRET_FILES = {
    "token_file": "Token file",
    "ca_file": "Authorities to trust (PEM)",
    "cert_file": "Client certificate (PEM)",
    "key_file": "Client key (PEM)",
    "oauth2_file": "OAuth2 key file",
    "store_auth_file": "Metadata store login",
}
"""Files that `Credentials` names, as the form calls them."""
_WHY_OFF = f"""
A capture makes **this server** send requests to an address that a user enters on this page. Anyone who can open the
page could use it to reach machines in the server's network that they cannot reach themselves. Captures are therefore
off until the administrator of the server sets `{ALLOW}`:

- to the allowed admin addresses, such as `http://broker-1:8080,zk:zk-1:2181` (ZooKeeper for the averages), or
- to `1` for any address, without authentication: for a server that only you can open.

To capture on the command line: `python -m planner capture --admin-url http://broker-1:8080 --out monday`.
"""
_SECRETS_NOTE = (
    "Secrets are not entered here. Choose a variable of the server named PLANNER_…TOKEN, or a file in the folder"
    f" {SECRETS}. Its content is sent only to the cluster."
)


def _too_many(running: int) -> CaptureError:
    return CaptureError(
        f"{count(running, 'capture')} already running on this server.", remedy="Wait until one of them finishes."
    )


def _progress(now: capture_options.Progress) -> Progress:
    failed = f", {now.failed:,} without response" if now.failed else ""
    return Progress(now.done, now.total, f"{now.stage}: {now.done:,} of {now.total:,} responses{failed}")


_STARTING = _progress(capture_options.Progress("starting", 0, 0, 0, 0))


def new_tasks(limits: Limits = LIMITS) -> Tasks:
    """Return what runs captures, few at once; a further one is rejected."""
    return Tasks(limits, too_many=_too_many)


@st.cache_resource(show_spinner=False)
def captures() -> Tasks:
    """Return the captures of this server, which first deletes the answers that a server which was killed left."""
    old_s = time.time() - 2 * _CAPTURE_LIMITS.total_s
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_mtime < old_s:
                shutil.rmtree(folder)  # nobody else's, which refuses
    return new_tasks()


def start(
    session: str, options: CaptureOptions, add: Callable[[Snapshot, str], SavedSnapshot], tasks: Tasks
) -> Task[SavedSnapshot]:
    """Start a capture, which does not stop when the page is closed.

    Args:
        session: Who wants it; a capture that the session still has under way is cancelled.
        options: What to capture; the folder is replaced by one that is deleted in the end.
        add: Puts the result into the workspace.
        tasks: The captures of this server.

    Raises:
        CaptureError: Too many are under way, or the options cannot be carried out.
    """
    options.check()
    tasks.forget(session)
    return tasks.ask(session, partial(_capture, options, add), session)


def _capture(
    options: CaptureOptions, add: Callable[[Snapshot, str], SavedSnapshot], report: Report, stopped: Stopped
) -> SavedSnapshot:
    """Capture a cluster into the workspace.

    Raises:
        PlannerError: It failed or was cancelled.
        OSError: Its answers cannot be written.
    """
    from planner.capture.run import capture_cluster  # noqa: PLC0415 - the first page need not wait for its client

    def progress(now: capture_options.Progress) -> None:
        report(_progress(now))
        if stopped():
            raise CaptureError("The capture was cancelled.", where=options.admin_url, remedy="Start it again.")

    folder = tempfile.mkdtemp(prefix=_PREFIX)
    try:
        result = capture_cluster(replace(options, out=Path(folder)), progress)
        return add(result.snapshot, result.snapshot.info.cluster)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_planner_error(error: BaseException) -> PlannerError:
    """Return what to show of an error, because the page must say something whatever fails in another thread."""
    if isinstance(error, PlannerError):
        return error
    if isinstance(error, OSError):
        return CaptureError(f"Cannot write: {error.strerror}.", remedy="Free some disk space on the server.")
    return CaptureError(f"The capture failed: {type(error).__name__}.", remedy="Try again on the command line.")


def capture_form() -> None:
    """Draw the form, a capture under way, and what came of the last one."""
    st.header("Capture a running cluster")
    try:
        allowed = capture_permissions()
    except CaptureError as error:
        show_error(error)
        return
    if not allowed.any_at_all:
        with st.expander("Off on this server", icon=":material/lock:"):
            st.markdown(_WHY_OFF)
        return
    st.markdown(
        "Sends only read-only requests to a running cluster. *docs/capture.md* lists each request and the permission"
        " it needs."
    )
    session = watcher()
    task = captures().latest(session)
    if task is not None and not task.finished.is_set():
        _under_way(task)
        return
    outcome = st.container()
    try:
        options = _fields(allowed)
        if options is not None:
            custom = options.metrics not in _METRICS or bool(options.broker_url or options.broker_at)
            secrets = options.credentials != Credentials(token_env="")
            allowed.check(options.admin_url, options.metadata_store, secrets=secrets, custom=custom)
            start(session, options, state.workspace().add, captures())
            _SENT.put(options)  # not before: a field whose first value changes forgets what is typed
    except CaptureError as error:
        captures().forget(session)
        _show(error)
        return
    if options is not None:
        st.rerun()
    if task is not None:
        with outcome:
            _ended(task)


def _fields(allowed: CapturePermissions) -> CaptureOptions | None:
    """Draw the form; return what to capture when it is sent.

    Raises:
        CaptureError: A file or variable is none that may be named.
    """
    with st.form("capture", border=True):
        left, right = st.columns(2)
        sent_before = _SENT.get() or CaptureOptions("", credentials=Credentials(token_env=""))
        url, store = _addresses(allowed, sent_before, left, right)
        names = left.text_input(
            "Namespaces (optional)",
            " ".join(sent_before.namespaces),
            placeholder="acme/orders acme/*",
            max_chars=2_000,
            help="Captures only these namespaces; * matches any text. Leave empty for all.",
        )
        metrics = right.selectbox(
            "Metrics",
            _METRICS,
            _METRICS.index(sent_before.metrics),
            help="auto: only with the extensible load manager, where load reports are missing.",
        )
        topics = st.checkbox("Topics", value=sent_before.with_topics, help="Required to predict splits.")
        token, files = ("", {}) if allowed.anything else _secrets(allowed, sent_before.credentials)
        sent = st.form_submit_button("Capture", type="primary", icon=":material/photo_camera:")
    if not sent:
        return None
    if token and token not in allowed.tokens:
        raise CaptureError("This variable is not allowed.", where=token, remedy="Choose one from the list.")
    secrets: dict[str, Any] = {field: allowed.file(name) for field, name in files.items()}
    return CaptureOptions(
        admin_url=url.strip(),
        metadata_store=store.strip(),
        metrics=metrics or "auto",
        namespaces=tuple(names.replace(",", " ").split()),
        with_topics=topics,
        credentials=Credentials(token_env=token, **secrets),
        limits=_CAPTURE_LIMITS,
    )


def _addresses(allowed: CapturePermissions, before: CaptureOptions, left: Any, right: Any) -> tuple[str, str]:
    """Draw the fields for the addresses of the API and of the metadata store; return both."""
    if allowed.anything:
        url = left.text_input(
            "Admin URL of any broker", before.admin_url, placeholder="http://broker-1:8080", max_chars=300
        )
        store = right.text_input("Metadata store (optional)", before.metadata_store, placeholder=EXAMPLE, max_chars=300)
        return url, store
    stores = ("", *allowed.stores)
    url = left.selectbox("Admin URL", allowed.admin_urls, _place(allowed.admin_urls, before.admin_url)) or ""
    store = right.selectbox("Metadata store", stores, _place(stores, before.metadata_store), format_func=_or_none)
    return url, store or ""


def _place(choices: Sequence[object], chosen: object) -> int:
    return choices.index(chosen) if chosen in choices else 0


def _or_none(name: str) -> str:
    return name or "none"


def _secrets(allowed: CapturePermissions, before: Credentials) -> tuple[str, dict[str, str]]:
    """Draw which variable and files of the server to use; return the variable, and files by field of `Credentials`."""
    with st.expander("Authentication"):
        st.caption(_SECRETS_NOTE)
        tokens = ("", *allowed.tokens)
        token = st.selectbox("Token variable", tokens, _place(tokens, before.token_env), format_func=_or_none) or ""
        columns = st.columns(3)
        files = {}
        for i, (field_, label) in enumerate(_SECRET_FILES.items()):
            box = columns[i % 3]
            known = ("", *allowed.files)
            chosen = getattr(before, field_)
            at = _place([allowed.file(name) for name in known], chosen)
            files[field_] = box.selectbox(label, known, at, format_func=_or_none, key=f"capture-file-{i}") or ""
    return token, files


def _under_way(task: Task[SavedSnapshot]) -> None:
    """Show how far a capture is, with a button that cancels it, until it has ended."""

    def draw() -> None:
        now = task.state[0]
        bar, button = st.columns([5, 1], vertical_alignment="bottom")
        bar.progress(now.fraction, "Cancelling …" if task.stop.is_set() else now.words or _STARTING.words)
        if button.button("Cancel", icon=":material/stop_circle:", disabled=task.stop.is_set(), width="stretch"):
            task.stop.set()
            st.rerun(scope="fragment")

    watch(captures(), (task,), draw)


def _show(error: PlannerError) -> None:
    """Show an error under the name of the field that it is about."""
    if error.where in _FIELDS:
        error = CaptureError(error.what, where=_FIELDS[error.where], remedy=error.remedy)
    show_error(error)


def _ended(task: Task[SavedSnapshot]) -> None:
    """Show the result of a capture, and put it into view."""
    if task.error is not None:
        _show(_as_planner_error(task.error))
        return
    saved = task.result
    if saved is None or state.workspace().find(saved.digest) is None:
        return
    if _CAPTURED.get() != saved.digest:
        _CAPTURED.put(saved.digest)
        state.select(saved.digest)
        st.rerun()
    st.success(arrival(saved, "captured"), icon=":material/check_circle:")
    show_notes(saved.warnings, "Notes on this snapshot")
    registry.link("overview", "Open Overview")
