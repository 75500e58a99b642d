"""`python -m planner dashboard`: opens the dashboard, as `streamlit run app.py` does in a checkout."""

import os
import sys
from pathlib import Path

from planner.cluster.resources import resources


def dashboard(*, workspace: Path | None = None, port: int = 8501, host: str = "localhost") -> int:
    """Open the dashboard.

    Serves the pages until Ctrl+C. The page server has no users and no passwords: to let others in, put a proxy with
    authentication in front of it.

    Args:
        workspace: File that keeps what is loaded (PLANNER_WORKSPACE, else .workspace/planner.duckdb in this folder).
        port: Port of the page server.
        host: Address to listen at.
    """
    if workspace is not None:
        os.environ["PLANNER_WORKSPACE"] = str(workspace.resolve())
    command = [sys.executable, "-m", "streamlit", "run", str(resources() / "app.py")]
    sys.stdout.flush()
    os.execv(command[0], [*command, f"--server.port={port}", f"--server.address={host}"])  # noqa: S606 - Streamlit itself
