import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from callboard.api.server import send_stream


class Reader:
    """A client of a stream, as the server sees it."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.got: list[dict[str, Any]] = []
        self.closed = False

    async def receive(self) -> dict[str, Any]:
        if not self.got:
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.got.append(message)

    async def endless(self) -> AsyncGenerator[bytes, None]:
        try:
            yield b"first\n"
            await asyncio.Event().wait()
        finally:
            self.closed = True


async def test_a_stream_ends_when_its_reader_goes_away():
    reader = Reader()
    streaming = asyncio.ensure_future(send_stream(reader.endless(), reader.receive, reader.send))
    while len(reader.got) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert not streaming.done()
    reader.gone.set()
    await streaming
    assert reader.closed
    assert reader.got[1] == {"type": "http.response.body", "body": b"first\n", "more_body": True}


async def test_a_stream_that_ends_by_itself_is_finished():
    async def two() -> AsyncGenerator[bytes, None]:
        yield b"1"
        yield b"2"

    reader = Reader()
    await send_stream(two(), reader.receive, reader.send)
    assert [message.get("body") for message in reader.got] == [None, b"1", b"2", b""]
    assert not reader.got[-1].get("more_body")


async def test_a_stream_of_an_engine_that_stops_is_closed():
    reader = Reader()
    streaming = asyncio.ensure_future(send_stream(reader.endless(), reader.receive, reader.send))
    while len(reader.got) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    streaming.cancel()
    await asyncio.wait([streaming])
    assert reader.closed
