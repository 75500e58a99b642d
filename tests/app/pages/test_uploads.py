"""Uploads are bounded: for each session, for all together, by what arrives, and by how long it takes."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.requests import Request

from planner.web import uploads
from planner.web.headers import SecurityHeaders

MIB = 1 << 20


class Sender:
    """A browser that uploads: what it sends, part by part, and what it is answered."""

    def __init__(self, session: str, length: bytes, parts: Iterator[Any]) -> None:
        headers = [(b"host", b"localhost"), *([(b"content-length", length)] if length else [])]
        path = f"/_stcore/upload_file/{session}/x"
        self.scope = {"type": "http", "method": "PUT", "path": path, "query_string": b"", "headers": headers}
        self.parts = parts
        self.told: list[Any] = []

    async def receive(self) -> Any:
        part = next(self.parts)
        if isinstance(part, float | int):
            await asyncio.sleep(part)
            part = b""
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": True}

    async def send(self, message: Any) -> None:
        self.told.append(message)

    async def put(self, app: SecurityHeaders) -> int:
        await app(self.scope, self.receive, self.send)
        return self.told[0]["status"] if self.told else 0


async def _put(app: SecurityHeaders, session: str, length: bytes) -> int:
    return await Sender(session, length, iter([b""])).put(app)


async def reads(scope: Any, receive: Any, send: Callable[[Any], Any]) -> None:
    """Read a body as long as it says to be, as the page server does."""
    left = int(dict(scope["headers"])[b"content-length"])
    async for part in Request(scope, receive).stream():
        left -= len(part)
        if left <= 0:
            break
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def idle(app: SecurityHeaders, session: str, size: int) -> "asyncio.Task[int]":
    """Begin an upload that sends three bytes and then nothing."""
    task = asyncio.create_task(Sender(session, str(size).encode(), iter([b"abc", 3600.0])).put(app))
    await asyncio.sleep(0.01)
    return task


def test_what_is_announced_and_not_sent_keeps_no_other_session_out() -> None:
    async def scene() -> tuple[list[int], int]:
        app = SecurityHeaders(reads)
        held = [await idle(app, "a", n * MIB) for n in (240, 240, 64, 32, 16, 8, 4, 2, 1)]
        other = Sender("b", str(2 * MIB).encode(), iter([bytes(MIB)] * 2))
        found = await other.put(app)
        refused = [task.result() for task in held if task.done()]
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        return refused, found

    refused, other = asyncio.run(scene())
    assert refused == [413] * 4  # 240 + 32 + 16 + 8 + 4 fill the room of the session
    assert other == 204


def test_the_room_of_all_is_what_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_BYTES", 10 * MIB)

    async def scene() -> tuple[list[int], int]:
        app = SecurityHeaders(reads)
        both = [
            Sender(who, str(8 * MIB).encode(), iter([part for _ in range(8) for part in (bytes(MIB), 0)]))
            for who in "ab"
        ]
        found = await asyncio.gather(*(sender.put(app) for sender in both))
        return sorted(found), await Sender("c", str(9 * MIB).encode(), iter([bytes(MIB)] * 9)).put(app)

    found, later = asyncio.run(scene())
    assert found == [204, 413]  # one of two goes on
    assert later == 204  # and the room is free again


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([b"abc", 3600.0], 408),
        ([b"a", 0.03] * 1000, 408),  # it trickles
        ([bytes(1 << 15), 0.07] * 4, 204),  # slow, but it goes on
    ],
)
def test_a_body_that_pauses_is_ended(
    parts: list[Any], status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(uploads, "PAUSE_S", 0.2)
    app = SecurityHeaders(reads)
    with caplog.at_level(logging.WARNING):
        assert asyncio.run(Sender("a", str(1 << 17).encode(), iter(parts)).put(app)) == status
    assert [record.getMessage().partition(" after")[0] for record in caplog.records] == (
        ["An upload was ended"] if status == 408 else []
    )
    assert asyncio.run(Sender("a", b"3", iter([b"abc"])).put(app)) == 204


def test_an_upload_that_breaks_off_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    app = SecurityHeaders(reads)
    assert asyncio.run(Sender("a", b"70000000", iter([b"abc", None])).put(app)) == 0
    assert [record.getMessage() for record in caplog.records] == ["An upload broke off after 3 of 70000000 bytes."]
    assert caplog.records[0].exc_info is None


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ([("a", 250)], [True]),
        ([("a", 301)], [False]),
        ([("a", 200), ("a", 101), ("b", 250), ("c", 250), ("d", 90)], [True, False, True, True, True]),
    ],
)
def test_only_so_much_of_a_session_is_taken_in_at_once(sizes: list[tuple[str, int]], taken: list[bool]) -> None:
    async def scene() -> tuple[list[int], int]:
        full = asyncio.Event()

        async def slow(_scope: Any, _receive: Any, send: Callable[[Any], Any]) -> None:
            await full.wait()
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        app = SecurityHeaders(slow)
        tasks = [asyncio.create_task(_put(app, who, str(size * MIB).encode())) for who, size in sizes]
        await asyncio.sleep(0)
        full.set()
        found = [await task for task in tasks]
        return found, await _put(app, "a", str(250 * MIB).encode())  # the room is free again

    statuses, later = asyncio.run(scene())
    assert [status == 204 for status in statuses] == taken
    assert later == 204


@pytest.mark.parametrize("length", [b"", b"-1", b"+5", b"1e3", b"9" * 30, "٣".encode()])
def test_a_body_that_does_not_say_how_long_it_is(length: bytes) -> None:
    async def never(_scope: Any, _receive: Any, _send: Any) -> None:
        raise AssertionError("it was taken in")

    assert asyncio.run(_put(SecurityHeaders(never), "a", length)) == 413
