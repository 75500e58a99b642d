"""Pages are read once, whole, and before anybody asks for them."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from planner.web import registry


def test_nobody_is_given_half_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = tmp_path / "begun"
    (tmp_path / "slow.py").write_text(f"import time\nopen({str(begun)!r}, 'w').close()\ntime.sleep(0.5)\nPAGE = 7\n")
    monkeypatch.setattr(registry, "NAMES", ("slow",))
    monkeypatch.setattr(registry, "pages_folder", lambda: tmp_path)
    monkeypatch.delitem(sys.modules, "pages.slow", raising=False)
    first = threading.Thread(target=registry.read_pages)
    first.start()
    while not begun.exists():
        time.sleep(0.01)
    found: object = registry.page("slow")
    first.join()
    del sys.modules["pages.slow"]
    assert found == 7


def test_the_server_reads_them_when_it_starts() -> None:
    wait = "while 'pages.snapshots' not in sys.modules: time.sleep(0.05)"
    script = f"import app, asyncio, sys, time\nasyncio.run(app._started(app.app).__aenter__())\n{wait}"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120, capture_output=True)
