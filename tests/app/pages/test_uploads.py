"""Uploads are bounded: for each session, for all together, and by what is under way."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from planner.web.headers import SecurityHeaders

MIB = 1 << 20


async def _put(app: SecurityHeaders, session: str, length: bytes) -> int:
    told: list[Any] = []
    headers = [(b"host", b"localhost"), *([(b"content-length", length)] if length else [])]
    path = f"/_stcore/upload_file/{session}/x"
    scope = {"type": "http", "method": "PUT", "path": path, "query_string": b"", "headers": headers}

    async def send(message: Any) -> None:
        told.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    await app(scope, receive, send)
    status: int = told[0]["status"]
    return status


@pytest.mark.parametrize(
    ("uploads", "taken"),
    [
        ([("a", 250)], [True]),
        ([("a", 301)], [False]),
        ([("a", 250), ("b", 250), ("c", 250), ("d", 90)], [True, True, False, True]),
    ],
)
def test_only_so_much_is_taken_in_at_once(uploads: list[tuple[str, int]], taken: list[bool]) -> None:
    async def scene() -> tuple[list[int], int]:
        full = asyncio.Event()

        async def slow(_scope: Any, _receive: Any, send: Callable[[Any], Any]) -> None:
            await full.wait()
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        app = SecurityHeaders(slow)
        tasks = [asyncio.create_task(_put(app, who, str(size * MIB).encode())) for who, size in uploads]
        await asyncio.sleep(0)
        full.set()
        found = [await task for task in tasks]
        return found, await _put(app, "z", str(250 * MIB).encode())  # the room is free again

    statuses, later = asyncio.run(scene())
    assert [status == 204 for status in statuses] == taken
    assert later == 204


@pytest.mark.parametrize("length", [b"", b"-1", b"+5", b"1e3", b"9" * 30, "٣".encode()])
def test_a_body_that_does_not_say_how_long_it_is(length: bytes) -> None:
    async def never(_scope: Any, _receive: Any, _send: Any) -> None:
        raise AssertionError("it was taken in")

    assert asyncio.run(_put(SecurityHeaders(never), "a", length)) == 413
