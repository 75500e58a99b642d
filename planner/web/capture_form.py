"""Captures of a running cluster from the Snapshots page."""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import streamlit as st

from planner.capture.options import CaptureOptions, Credentials, Limits, Progress
from planner.capture.permissions import ALLOW, SECRETS, CapturePermissions, capture_permissions
from planner.capture.stores.registry import EXAMPLE
from planner.cluster.errors import CaptureError, PlannerError
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import GIB
from planner.web import registry, state
from planner.web.page import arrival
from planner.web.session import SESSION, SessionValue
from planner.web.widgets import show_error, show_notes
from planner.workspace.database import SavedSnapshot

_CAPTURED = SessionValue("captured", str)
"""Digest of the last capture that was put into view."""
_PREFIX = "pulsar-bundle-planner-capture-"
_LOOK_S = 1.0
_MOST_AT_ONCE = 2
_KEPT = 20
_LIMITS = Limits(request_s=30.0, total_s=600.0, total_bytes=GIB)
_METRICS = ("auto", "off", "admin", "prometheus")
_FIELDS = {"--admin-url": "Admin URL", "--metadata-store": "Metadata store", "--namespaces": "Namespaces"}
"""Fields of the form by the options of the command line that they stand for."""
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


@dataclass(eq=False)
class CaptureJob:
    """A capture under way, or what became of it.

    Attributes:
        options: What is captured.
        progress: How far it is.
        saved: The snapshot in the workspace.
        error: Why there is none.
        stop: Ends it when set.
        finished: Set when it has ended.
    """

    options: CaptureOptions
    progress: Progress = field(default_factory=lambda: Progress("starting", 0, 0, 0, 0))
    saved: SavedSnapshot | None = None
    error: PlannerError | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)

    def tell(self, progress: Progress) -> None:
        """Note how far it is.

        Raises:
            CaptureError: It is to end.
        """
        self.progress = progress
        if self.stop.is_set():
            raise CaptureError("The capture was cancelled.", where=self.options.admin_url, remedy="Start it again.")


class Captures:
    """The captures of this server, two at once."""

    def __init__(self) -> None:
        self._jobs: dict[str, CaptureJob] = {}
        self._lock = threading.Lock()

    def of(self, session: str) -> CaptureJob | None:
        """Return the last capture of a session."""
        return self._jobs.get(session)

    def forget(self, session: str) -> None:
        """Show no more what came of the last capture of a session, which has ended."""
        self._jobs.pop(session, None)

    def start(self, session: str, options: CaptureOptions, add: Callable[[Snapshot, str], SavedSnapshot]) -> CaptureJob:
        """Start a capture in a thread of its own.

        Args:
            session: Who wants it; a capture that the session still has under way is cancelled.
            options: What to capture; the folder is replaced by one that is deleted in the end.
            add: Puts the result into the workspace.

        Raises:
            CaptureError: Too many are under way, or the options cannot be carried out.
        """
        options.check()
        with self._lock:
            before = self._jobs.pop(session, None)
            if before is not None:
                before.stop.set()
            busy = [job for job in self._jobs.values() if not job.finished.is_set()]
            if len(busy) >= _MOST_AT_ONCE:
                raise CaptureError(
                    f"{count(len(busy), 'capture')} already running on this server.",
                    remedy="Wait until one of them finishes.",
                )
            job = CaptureJob(options)
            self._jobs[session] = job
            for name in list(self._jobs)[:-_KEPT]:
                if self._jobs[name].finished.is_set():
                    del self._jobs[name]
        threading.Thread(target=_work, args=(job, add), daemon=True).start()
        return job


def _work(job: CaptureJob, add: Callable[[Snapshot, str], SavedSnapshot]) -> None:
    from planner.capture.run import capture_cluster  # noqa: PLC0415 - the first page need not wait for its client

    folder = ""
    try:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        result = capture_cluster(replace(job.options, out=Path(folder)), job.tell)
        job.saved = add(result.snapshot, result.snapshot.info.cluster)
    except PlannerError as error:
        job.error = error
    except OSError as error:
        job.error = CaptureError(f"Cannot write: {error.strerror}.", remedy="Free some disk space on the server.")
    except Exception as error:  # noqa: BLE001 - the page must say something whatever fails in the thread
        job.error = CaptureError(
            f"The capture failed: {type(error).__name__}.", remedy="Try again on the command line."
        )
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        job.finished.set()


@st.cache_resource(show_spinner=False)
def _captures() -> Captures:
    """Return the captures of this server, which first deletes the answers that a server which was killed left."""
    old_s = time.time() - 2 * _LIMITS.total_s
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_mtime < old_s:
                shutil.rmtree(folder)  # nobody else's, which refuses
    return Captures()


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
    session = SESSION.get()
    job = _captures().of(session)
    if job is not None and not job.finished.is_set():
        _under_way(job)
        return
    outcome = st.container()
    try:
        options = _fields(allowed)
        if options is not None:
            custom = options.metrics not in _METRICS or bool(options.broker_url or options.broker_at)
            secrets = options.credentials != Credentials(token_env="")
            allowed.check(options.admin_url, options.metadata_store, secrets=secrets, custom=custom)
            _captures().start(session, options, state.workspace().add)
    except CaptureError as error:
        _captures().forget(session)
        _show(error)
        return
    if options is not None:
        st.rerun()
    if job is not None:
        with outcome:
            _ended(job)


def _fields(allowed: CapturePermissions) -> CaptureOptions | None:
    """Draw the form; return what to capture when it is sent.

    Raises:
        CaptureError: A file or variable is none that may be named.
    """
    with st.form("capture", border=True):
        left, right = st.columns(2)
        if allowed.anything:
            url = left.text_input("Admin URL of any broker", placeholder="http://broker-1:8080", max_chars=300)
            store = right.text_input("Metadata store (optional)", placeholder=EXAMPLE, max_chars=300)
        else:
            url = left.selectbox("Admin URL", allowed.admin_urls) or ""
            store = right.selectbox("Metadata store", ("", *allowed.stores), format_func=_or_none) or ""
        names = left.text_input(
            "Namespaces (optional)",
            placeholder="acme/orders acme/*",
            max_chars=2_000,
            help="Captures only these namespaces; * matches any text. Leave empty for all.",
        )
        metrics = right.selectbox(
            "Metrics", _METRICS, help="auto: only with the extensible load manager, where load reports are missing."
        )
        topics = st.checkbox("Topics", value=True, help="Required to predict splits.")
        token, files = ("", {}) if allowed.anything else _secrets(allowed)
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
        limits=_LIMITS,
    )


def _or_none(name: str) -> str:
    return name or "none"


def _secrets(allowed: CapturePermissions) -> tuple[str, dict[str, str]]:
    """Draw which variable and files of the server to use; return the variable, and files by field of `Credentials`."""
    with st.expander("Authentication"):
        st.caption(_SECRETS_NOTE)
        token = st.selectbox("Token variable", ("", *allowed.tokens), format_func=_or_none) or ""
        columns = st.columns(3)
        files = {}
        for i, (field_, label) in enumerate(_SECRET_FILES.items()):
            box = columns[i % 3]
            known = ("", *allowed.files)
            files[field_] = box.selectbox(label, known, format_func=_or_none, key=f"capture-file-{i}") or ""
    return token, files


@st.fragment(run_every=_LOOK_S)
def _under_way(job: CaptureJob) -> None:
    """Show how far a capture is, with a button that cancels it; draw the page again when it has ended."""
    now = job.progress
    failed = f", {now.failed:,} without response" if now.failed else ""
    bar, button = st.columns([5, 1], vertical_alignment="bottom")
    text = "Cancelling …" if job.stop.is_set() else f"{now.stage}: {now.done:,} of {now.total:,} responses{failed}"
    bar.progress(min(now.done / max(now.total, 1), 1.0), text)
    if button.button("Cancel", icon=":material/stop_circle:", disabled=job.stop.is_set(), width="stretch"):
        job.stop.set()
        st.rerun(scope="fragment")
    if job.finished.is_set():
        st.rerun()


def _show(error: PlannerError) -> None:
    """Show an error under the name of the field that it is about."""
    if error.where in _FIELDS:
        error = CaptureError(error.what, where=_FIELDS[error.where], remedy=error.remedy)
    show_error(error)


def _ended(job: CaptureJob) -> None:
    """Show what came of a capture, and look at it."""
    if job.error is not None:
        _show(job.error)
        return
    saved = job.saved
    if saved is None or state.workspace().find(saved.digest) is None:
        return
    if _CAPTURED.get() != saved.digest:
        _CAPTURED.put(saved.digest)
        state.select(saved.digest)
        st.rerun()
    st.success(arrival(saved, "captured"), icon=":material/check_circle:")
    show_notes(saved.warnings, "Notes on this snapshot")
    registry.link("overview", "Open Overview")
