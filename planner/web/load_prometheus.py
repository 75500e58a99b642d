"""A moment of a Prometheus, asked by this server, as outputs that make a cluster."""

import re
import time
from typing import Any, Final, get_args

import streamlit as st

from planner.capture.permissions import ALLOW, SECRETS, CapturePermissions, capture_permissions
from planner.capture.prometheus_options import Coarsest, PrometheusOptions, PrometheusSecrets
from planner.cluster.errors import CaptureError, PlannerError
from planner.web.load_files import cluster_called, files_part, read_more
from planner.web.session import SessionValue
from planner.web.widgets import note_list, show_error

_REQUEST_S: Final = 30.0
_ATTEMPTS: Final = 2
_MOST_BYTES: Final = 64 << 20
_SECRET_FILES: Final = {
    "login_file": "File with user:password",
    "ca_file": "Authorities to trust (PEM)",
    "cert_file": "Client certificate (PEM)",
    "key_file": "Client key (PEM)",
}
"""Files that `PrometheusSecrets` names, as the form calls them."""
_FIELDS: Final = {
    "--prometheus": "Address",
    "--at": "Moment",
    "--matchers": "Matchers",
    "--broker-names": "Broker names",
    "--org-id": "Tenant",
    "--coarsest": "Coarsest samples",
    "--accept-partial": "Accept partial answers",
    "--token-file": "Token variable",
    **{f"--{field.replace('_', '-')}": label for field, label in _SECRET_FILES.items()},
    "--dry-run": "Report what is there",
}
"""Fields of the form, by the command-line options that they represent."""
_OPTION: Final = re.compile(r"--[a-z]+(?:-[a-z]+)*")
_COARSEST: Final = {
    "raw": "raw: as they were scraped",
    "5m": "5m: averages over up to 5 minutes",
    "1h": "1h: averages over up to an hour",
}
_COARSEST_HELP: Final = (
    "Thanos keeps raw samples for a limited time, and averages for longer. Averages are taken only where raw samples"
    " are gone, with a note."
)
_PARTIAL_HELP: Final = (
    "Reads what is there when a store of Thanos or VictoriaMetrics does not answer, with a note. Use it where two"
    " servers scrape the same brokers and one of them is down. Otherwise brokers, bundles or topics can be missing."
)
_COMMAND: Final = """
python -m planner snapshot --prometheus http://prometheus:9090 --at now-1h --dry-run
python -m planner snapshot --prometheus http://prometheus:9090 --at now-1h --out east.zip
python -m planner history ingest --prometheus http://prometheus:9090 --from now-7d --out .workspace/histories/east
""".strip()
_QUERY: Final = """
curl -sG PROMETHEUS/api/v1/query --data-urlencode \\
  'query={__name__=~"pulsar_(lb_.*usage|(rate|throughput)_(in|out)|(producers|consumers)_count|bundle_.*)"}' \\
  > now.json
""".strip()
_SAID: SessionValue[tuple[str, ...]] = SessionValue("prometheus-said", tuple)
"""What the last request found out."""


def prometheus_part() -> None:
    """Draw the form, or why there is none, the commands that do the same, and what was found so far."""
    st.markdown(
        "A Prometheus that scrapes the brokers is enough. Thanos, Mimir and VictoriaMetrics answer the same requests."
    )
    try:
        allowed = capture_permissions()
        if allowed.any_at_all:
            _form(allowed)
        else:
            st.info(
                "This server sends no requests. Its administrator can allow addresses with"
                f" `{ALLOW}`. Use the commands, and upload what they write.",
                icon=":material/lock:",
            )
    except PlannerError as error:
        show_error(_in_words(error))
    note_list(_SAID.get())
    with st.expander("Commands", icon=":material/terminal:", expanded=not allowed_now()):
        st.code(_COMMAND, language=None, wrap_lines=True)
        st.caption("Or query one moment with any tool, and upload the answer below.")
        st.code(_QUERY, language=None, wrap_lines=True)
    files_part()


def allowed_now() -> bool:
    """Return whether pages of this server may send requests."""
    try:
        return capture_permissions().any_at_all
    except CaptureError:
        return False


def _in_words(error: PlannerError) -> PlannerError:
    """Return an error with the fields of the form instead of command-line options."""
    return CaptureError(
        _of_form(error.what), where=_FIELDS.get(error.where, error.where), remedy=_of_form(error.remedy)
    )


def _of_form(text: str) -> str:
    return _OPTION.sub(lambda found: f'"{_FIELDS[found[0]]}"' if found[0] in _FIELDS else found[0], text)


def _form(allowed: CapturePermissions) -> None:
    """Draw the form, and do what it asks for.

    Raises:
        PlannerError: That cannot be done.
    """
    with st.form("prometheus", border=True):
        left, right = st.columns(2)
        if allowed.anything:
            url = left.text_input("Address", placeholder="http://prometheus:9090", max_chars=300)
        else:
            url = left.selectbox("Address", allowed.admin_urls) or ""
        at = right.text_input("Moment", "now", max_chars=40, help="now, now-2h or 2026-11-25T03:00:00Z")
        matchers = left.text_input("Matchers (optional)", placeholder='cluster="east"', max_chars=500)
        names = right.text_input(
            "Broker names (optional)",
            placeholder="{pod}.pulsar-broker.ns.svc:8080",
            max_chars=300,
            help="Builds the address of a broker from labels. By default, brokers have the name they call themselves.",
        )
        org = left.text_input(
            "Tenant (optional)", max_chars=150, help="X-Scope-OrgID of Mimir, THANOS-TENANT of Thanos."
        )
        coarsest = right.selectbox(
            "Coarsest samples", get_args(Coarsest), format_func=lambda one: _COARSEST[one], help=_COARSEST_HELP
        )
        partial = st.checkbox("Accept partial answers", help=_PARTIAL_HELP)
        secrets = PrometheusSecrets(token_env="") if allowed.anything else _secrets(allowed)
        with st.container(horizontal=True):
            look = st.form_submit_button("Report what is there", icon=":material/search:")
            read = st.form_submit_button("Read this moment", type="primary", icon=":material/photo_camera:")
    if not (look or read):
        return
    _SAID.put(())
    options = PrometheusOptions(
        url=url.strip().rstrip("/"),
        matchers=matchers.strip(),
        broker_names=tuple(names.split()),
        org_id=org.strip(),
        coarsest=coarsest,
        accept_partial=partial,
        secrets=secrets,
        request_s=_REQUEST_S,
        attempts=_ATTEMPTS,
        answer_bytes=_MOST_BYTES,
    )
    options.check()
    allowed.check(options.url, "", secrets=secrets != PrometheusSecrets(token_env=""), custom=False)
    with st.spinner("Waiting for Prometheus …"):
        _ask(options, at.strip() or "now", look=look)


def _secrets(allowed: CapturePermissions) -> PrometheusSecrets:
    """Draw which variable and files of the server to use.

    Raises:
        CaptureError: One is none that may be named.
    """
    with st.expander("Authentication"):
        st.caption(f"Secrets are not entered here. Choose a variable of the server, or a file in the folder {SECRETS}.")
        token = st.selectbox("Token variable", ("", *allowed.tokens), format_func=lambda name: name or "none") or ""
        files: dict[str, Any] = {}
        for field, label in _SECRET_FILES.items():
            known = ("", *allowed.files)
            named = st.selectbox(label, known, format_func=lambda name: name or "none", key=f"prometheus-{field}")
            files[field] = allowed.file(named or "")
    if token and token not in allowed.tokens:
        raise CaptureError("This variable is not allowed.", where=token, remedy="Choose one from the list.")
    return PrometheusSecrets(token_env=token, **files)


def _ask(options: PrometheusOptions, at: str, *, look: bool) -> None:
    """Report what there is, or take the answers among the outputs.

    Raises:
        PlannerError: There is no answer, or it cannot be read.
    """
    from planner.capture.prometheus import answers_at, moment_of  # noqa: PLC0415 - pages need not wait for the client
    from planner.capture.prometheus_survey import survey  # noqa: PLC0415

    at_ms = moment_of(at, "--at", int(time.time() * 1_000))
    if look:
        _SAID.put(tuple(map(_of_form, survey(options, at_ms).lines())))
        return
    answers, notes = answers_at(options, at_ms)
    read_more(cluster_called(), answers)
    _SAID.put(tuple(map(_of_form, notes)))
