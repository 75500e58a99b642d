"""A real Prometheus: what it scrapes, or what a history would have made it scrape."""

import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def as_open_metrics(series: Iterable[Mapping[str, Any]]) -> str:
    """Return series of a range answer as text with times, which promtool writes into a storage."""
    families: dict[str, list[str]] = {}
    for one in series:
        labels = dict(one["metric"])
        name = labels.pop("__name__")
        inside = ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items())
        lines = families.setdefault(name, [f"# TYPE {name} unknown"])
        lines += [f"{name}{{{inside}}} {value} {at:.3f}" for at, value in one["values"]]
    return "\n".join([line for lines in families.values() for line in lines] + ["# EOF", ""])


@contextmanager
def prometheus(
    folder: Path, *, targets: Iterable[str] = (), filled: str = "", web: Mapping[str, Any] | None = None, keys: str = ""
) -> Iterator[str]:
    """Run a server and give its address.

    Args:
        folder: Where its configuration, data and log are.
        targets: What it scrapes each second.
        filled: What it holds from the start, as OpenMetrics.
        web: Its `--web.config.file`, with TLS, client certificates or logins; None for none.
        keys: With TLS, the folder with `ca.pem`, and `client.pem` and `client.key` of one whom it lets in.
    """
    for program in ("prometheus", "promtool"):
        assert shutil.which(program), f"{program} is not installed: apt-get install prometheus"
    data, port = folder / "data", free_port()
    folder.mkdir(parents=True, exist_ok=True)
    if filled:
        (folder / "om.txt").write_text(filled)
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(folder / "om.txt"), str(data)]
        subprocess.run(command, check=True, capture_output=True)
    jobs = [
        {
            "job_name": "broker",
            "scrape_interval": "1s",
            "relabel_configs": [
                {"source_labels": ["__address__"], "target_label": "pod", "regex": "(.*):.*", "replacement": "pod-$1"}
            ],
            "static_configs": [{"targets": list(targets), "labels": {"namespace": "kube"}}],
        }
    ]
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": jobs if targets else []}))  # JSON is YAML
    options = {
        "config.file": folder / "prometheus.yml",
        "storage.tsdb.path": data,
        "storage.tsdb.retention.time": "50y",
        "web.listen-address": f"127.0.0.1:{port}",
        "log.level": "error",
    }
    url, let_in = f"http://127.0.0.1:{port}", None
    if web is not None:
        (folder / "web.yml").write_text(json.dumps(web))
        options["web.config.file"] = folder / "web.yml"
        url = f"https://127.0.0.1:{port}"
        let_in = ssl.create_default_context(cafile=f"{keys}/ca.pem")
        let_in.load_cert_chain(f"{keys}/client.pem", f"{keys}/client.key")
    with (folder / "log").open("w") as log:
        command = ["prometheus", *(f"--{name}={value}" for name, value in options.items())]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait(url, let_in)
            yield url
        finally:
            process.terminate()
            process.wait(20)


def _wait(url: str, let_in: ssl.SSLContext | None) -> None:
    for _ in range(200):
        try:
            status = httpx.get(f"{url}/-/ready", timeout=5, trust_env=False, verify=let_in or False).status_code
            if status in {httpx.codes.OK, httpx.codes.UNAUTHORIZED}:
                return
        except httpx.TransportError:
            pass
        finally:
            time.sleep(0.05)
    raise AssertionError("Prometheus does not start")


@contextmanager
def target(text: str) -> Iterator[str]:
    """Serve text as a broker serves its metrics; give host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as port:
        yield f"127.0.0.1:{port}"


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve HTTP on loopback, over TLS where there is a context for it; give the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
