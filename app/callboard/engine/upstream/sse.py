"""The HTTP+SSE transport of revision 2024-11-05: one stream for what comes, POSTs for what goes."""

import asyncio
import logging
from collections.abc import Callable
from urllib.parse import urljoin

import httpx2

from callboard.core.errors import CallboardError
from callboard.engine.tasks import cancel_and_wait, spawn
from callboard.engine.upstream.base import Closed
from callboard.engine.upstream.event_stream import EventParser, TooLargeError
from callboard.engine.upstream.http_answers import origin
from callboard.engine.upstream.http_client import failure, refused

log = logging.getLogger(__name__)

OPEN_SECONDS = 15.0


class SseChannel:
    """A channel of messages; owned by the HttpUpstream that made it. Engine loop only."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        url: str,
        *,
        on_message: Callable[[bytes], bool],
        on_refused: Callable[[bytes, CallboardError], None],
        on_end: Callable[[Closed], None],
    ) -> None:
        """``on_refused`` hears of each message that the server did not take."""
        self._http = http
        self._url = url
        self._on_message = on_message
        self._on_refused = on_refused
        self._on_end = on_end
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Open the stream and learn where to post; raises ``remote-…`` or ``handshake-failed``."""
        self._tasks.append(spawn(self._read(), name="stream of a remote server"))
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await asyncio.shield(self._endpoint)
        except TimeoutError:
            await self.close()
            raise CallboardError("handshake-failed", "The server did not say where to send messages.") from None
        except CallboardError:
            await self.close()
            raise
        self._tasks.append(spawn(self._write(), name="messages to a remote server"))

    def send(self, message: bytes) -> None:
        """Send one message, in order."""
        self._outgoing.put_nowait(message)

    async def close(self) -> None:
        """Close the stream."""
        await cancel_and_wait(*self._tasks)
        if self._endpoint.done() and not self._endpoint.cancelled():
            self._endpoint.exception()  # it was told to whoever opened

    async def _read(self) -> None:
        parser = EventParser()
        closed = Closed("the stream ended")
        try:
            async with self._http.stream("GET", self._url, headers={"accept": "text/event-stream"}) as answer:
                kind = answer.headers.get("content-type", "")
                if answer.status_code != 200 or "text/event-stream" not in kind:
                    raise refused(answer.status_code, await answer.aread(), answer.headers.get("location", ""))
                async for chunk in answer.aiter_bytes():
                    for event in parser.feed(chunk):
                        if event.name == "endpoint":
                            self._found(event.data.decode("utf-8", "replace").strip())
                        else:
                            self._on_message(event.data)
        except CallboardError as error:
            self._lost(error)
            closed = Closed(error.message.rstrip("."), error=error.code)
        except (httpx2.HTTPError, ValueError, TooLargeError) as error:
            lost = failure(error)
            self._lost(lost)
            closed = Closed(lost.message.rstrip("."), error=lost.code)
        self._lost(CallboardError("handshake-failed", "The server's stream ended at once."))
        self._on_end(closed)

    def _found(self, text: str) -> None:
        address = urljoin(self._url, text)
        if origin(address) != origin(self._url):
            self._lost(CallboardError("handshake-failed", "The server wants messages sent to another host."))
        elif not self._endpoint.done():
            self._endpoint.set_result(address)

    def _lost(self, error: CallboardError) -> None:
        if not self._endpoint.done():
            self._endpoint.set_exception(error)

    async def _write(self) -> None:
        address = self._endpoint.result()
        while True:
            message = await self._outgoing.get()
            try:
                answer = await self._http.post(
                    address, content=message, headers={"content-type": "application/json"}, timeout=30.0
                )
                if answer.status_code == 401:
                    raise refused(answer.status_code)
                if answer.status_code >= 300:
                    self._on_refused(message, refused(answer.status_code, answer.content))
            except (httpx2.HTTPError, CallboardError) as error:
                lost = error if isinstance(error, CallboardError) else failure(error)
                self._on_end(Closed(lost.message.rstrip("."), error=lost.code))
                return
