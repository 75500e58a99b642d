"""`python -m planner dashboard`: opens the dashboard, as `streamlit run app.py` does in a checkout."""

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from planner.cluster.errors import PlannerError
from planner.cluster.host_names import allowed_name
from planner.cluster.resources import resources

_LAST_PORT = 65_535
_OWN_NAMES = ("localhost", "127.0.0.1", "::1")


def dashboard(
    *, workspace: Path | None = None, port: int = 8501, host: str = "localhost", allow: Sequence[str] = ()
) -> int:
    """Open the dashboard.

    Serves the pages until Ctrl+C. The page server has no users and no passwords: to give others access, put a proxy
    with authentication in front of it. It answers only to known host names, so that no foreign web page can reach it
    through its own host name.

    Args:
        workspace: File that stores loaded snapshots (PLANNER_WORKSPACE, else .workspace/planner.duckdb in this folder).
        port: Port of the page server.
        host: Address to listen at.
        allow: Further host name by which visitors open the dashboard, such as that of a proxy, without a port.
    """
    if workspace is not None:
        os.environ["PLANNER_WORKSPACE"] = str(workspace.resolve())
    if not 0 < port <= _LAST_PORT:
        raise PlannerError(f"{port} is not a valid port.", where="--port", remedy=f"Use a port from 1 to {_LAST_PORT}.")
    try:
        socket.getaddrinfo(host, port)
    except (OSError, UnicodeError) as error:
        what = f"The server cannot listen at {host[:100]!r}."
        raise PlannerError(what, where="--host", remedy="Use an address of this machine.") from error
    allowed = [allowed_name(name, "--allow") for name in allow]
    command = [sys.executable, "-m", "streamlit", "run", str(resources() / "app.py")]
    sys.stdout.flush()
    command += [f"--server.port={port}", f"--server.address={host}"]
    if allowed or host not in _OWN_NAMES:
        command += [f"--server.allowedHosts={name}" for name in dict.fromkeys((*_OWN_NAMES, host, *allowed))]
    os.execv(command[0], command)  # noqa: S606 - Streamlit itself
