"""A server that speaks Prometheus' protocol over recorded series, and misbehaves on demand."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, bytes, Mapping[str, str]]
Fault = Callable[["Recorded", str, Mapping[str, str], Mapping[str, str]], Answer | None]


@dataclass
class Recorded:
    """What is served.

    Attributes:
        series: Series of a range answer.
        fault: Answers a request in another way, or returns None.
        asked: Path and parameters of each request.
        headers: Headers of each request.
    """

    series: list[dict[str, Any]]
    fault: Fault = lambda *_: None
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str, given: dict[str, str], headers: dict[str, str]) -> Answer:
        self.asked.append((path, given))
        self.headers.append(headers)
        if (wrong := self.fault(self, path, given, headers)) is not None:
            return wrong
        if "query" not in given:
            return 404, b"404 page not found", {}
        query = given["query"]
        names = "|".join(re.findall(r'__name__=~"([^"]*)"', query.partition(" and on ")[0]))
        found = [one for one in self.series if re.fullmatch(names, one["metric"]["__name__"])]
        found = [] if "last_over_time" in query or query.endswith("]") else found
        is_range = path.endswith("/query_range")
        result: list[dict[str, Any]]
        if query.startswith("count by (__name__)"):
            counted = {one["metric"]["__name__"] for one in found}
            result = [{"metric": {"__name__": name}, "value": [0, "1"]} for name in sorted(counted)]
        elif query.startswith("count("):
            result = [{"metric": {}, "value": [0, str(len(found))]}] if found else []
        elif is_range:
            start, end = float(given["start"]), float(given["end"])
            result = [{**one, "values": [v for v in one["values"] if start <= v[0] <= end]} for one in found]
            result = [one for one in result if one["values"]]
        else:
            result = [{"metric": one["metric"], "value": one["values"][-1]} for one in found]
        kind = "matrix" if is_range else "vector"
        return 200, json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode(), {}


@contextmanager
def serving(recorded: Recorded) -> Iterator[Recorded]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            given = {name: values[0] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, body, more = recorded.answer(parts.path, given, headers)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    recorded.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield recorded
    finally:
        server.shutdown()
        server.server_close()
