"""What passes between the client on stdio and the gateway, whatever happens to the gateway meanwhile."""

import asyncio
import contextlib
import importlib
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from callboard.connect.endpoint import Endpoint, Place
from callboard.connect.message import (
    Message,
    answered,
    error_code,
    error_of,
    failure,
    on_one_line,
    parse,
    parse_error,
    with_id,
)
from callboard.connect.session import Session
from callboard.connect.sse import SseParser
from callboard.connect.stdio import Input, Output
from callboard.connect.tool_headers import ToolHeaders
from callboard.core.errors import CallboardError
from callboard.core.protocol import HEADER_MISMATCH, METHOD_NOT_FOUND

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

ACCEPT: Final = "application/json, text/event-stream"
_TRIES: Final = 4
_LAST_ANSWERS: Final = 30.0  # seconds for requests in flight when stdin ends
_FAREWELL: Final = 2.0  # seconds for ending the session
_ENDLESS: Final = frozenset({"subscriptions/listen"})


@dataclass(eq=False)
class _Flight:
    """A request on its way."""

    message: Message
    task: asyncio.Task[None]
    cancelled: bool = False  # by the client, which then wants no answer


class Bridge:
    """Carries messages. Used as a context manager on one loop; :meth:`serve` runs until the client has gone."""

    def __init__(self, endpoint: Endpoint, output: Output) -> None:
        self._endpoint = endpoint
        self._output = output
        self._flights: dict[bytes, _Flight] = {}
        self._http: httpx2.AsyncClient
        self._session = Session(self)
        self._tool_headers = ToolHeaders(self)

    async def __aenter__(self) -> Self:
        httpx2 = await asyncio.to_thread(importlib.import_module, "httpx2")
        self._http = httpx2.AsyncClient(
            headers={"accept": ACCEPT, "accept-encoding": "identity", "content-type": "application/json"},
            timeout=httpx2.Timeout(None, connect=10.0),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=False,
            verify=self._endpoint.encrypted,  # loading CA certificates takes time that a loopback address need not
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def serve(self, source: Input, ended: asyncio.Event) -> None:
        """Carry until stdin ends (then the last answers are waited for) or ``ended`` is set (then nothing is)."""
        reading = asyncio.create_task(self._read(source), name="read stdin")
        ending = asyncio.create_task(ended.wait(), name="wait for the end")
        try:
            await asyncio.wait([reading, ending], return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
                await self._finish(ending)
        finally:
            tasks = [reading, ending, *(flight.task for flight in self._flights.values())]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL):
                    await self._session.close()

    async def _read(self, source: Input) -> None:
        async for line in source.lines():
            if line is None:
                await self._output.write(parse_error("the message is longer than 64 MiB"))
                continue
            try:
                message = parse(line)
            except msgspec.DecodeError as error:
                await self._output.write(parse_error(str(error)))
                continue
            await self._take(message)

    async def _take(self, message: Message) -> None:
        """One message of the client. What must stay in order is waited for, requests run on their own."""
        if message.method == "notifications/cancelled":
            flight = self._flights.get(message.target)
            if flight is not None:
                flight.cancelled = True
            if flight is not None and flight.message.modern:
                # 2026-07-28, basic/patterns/cancellation: on HTTP the closed stream says it
                flight.task.cancel()
                return
        if message.ids:
            flight = self._send(message)
            if message.method == "initialize":
                await asyncio.wait([flight.task])
        else:
            await self._pass_on(message)

    def _send(self, message: Message) -> _Flight:
        flight = _Flight(message, asyncio.create_task(self._carry(message)))
        for request_id in message.ids:
            self._flights[request_id] = flight
        flight.task.add_done_callback(lambda _: self._landed(flight))
        return flight

    def _landed(self, flight: _Flight) -> None:
        for request_id in flight.message.ids:
            if self._flights.get(request_id) is flight:
                del self._flights[request_id]

    async def _finish(self, ending: asyncio.Task[Any]) -> None:
        """Stdin has ended: wait for answers, but not for subscriptions, which never end."""
        for flight in list(self._flights.values()):
            if flight.message.method in _ENDLESS:
                flight.task.cancel()
        landing = {flight.task for flight in self._flights.values()}
        if landing:
            everything = asyncio.create_task(asyncio.wait(landing))
            await asyncio.wait([everything, ending], timeout=_LAST_ANSWERS, return_when=asyncio.FIRST_COMPLETED)
            everything.cancel()

    # requests

    async def _carry(self, message: Message) -> None:
        """Bring a request to the gateway and every message that comes of it to the client; never without an answer."""
        unanswered = set(message.ids)
        try:
            async with contextlib.aclosing(self.exchange(message)) as messages:
                async for answer in messages:
                    unanswered.difference_update(answered(answer))
                    await self._output.write(on_one_line(answer))
            problem = CallboardError("engine-unreachable", "The gateway ended the answer before it was complete.")
        except CallboardError as error:
            problem = error
        except Exception as error:
            log.exception("A request could not be carried")
            problem = CallboardError("internal", f"The bridge failed: {type(error).__name__}.")
        for request_id in unanswered:
            flight = self._flights.get(request_id)
            if flight is None or not flight.cancelled:
                await self._output.write(with_id(request_id, failure(problem)))

    async def exchange(self, message: Message, *, renewing: bool = False) -> AsyncGenerator[bytes, None]:
        """Messages that a request gives rise to. Raises CallboardError when it does not get through.

        What did not reach the gateway is sent again, to a new engine if need be; what may have reached it is not.
        ``renewing``: the message is part of opening the session anew.
        """
        import httpx2

        extra: dict[str, str] = {}
        refused = False
        for _ in range(_TRIES):
            place = await self._endpoint.ready()
            session = "" if renewing else await self._session.settled()
            headers = {**self._headers(place, message), **extra}
            try:
                async with self._http.stream("POST", place.url, content=message.line, headers=headers) as answer:
                    if answer.status_code < 300:
                        self._session.note(message, answer.headers)
                        async for body in self._bodies(answer):
                            self._session.learn(message, body)
                            yield body
                        return
                    status, body = answer.status_code, await answer.aread()
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                self._endpoint.lost(place)
                continue
            except httpx2.HTTPError as error:
                self._endpoint.lost(place)
                raise _broken(error) from error
            if status == 401 and not refused:
                refused = True  # perhaps another engine has that port by now
                self._endpoint.lost(place)
            elif status == 404 and session and not message.modern and error_code(body) != METHOD_NOT_FOUND:
                await self._session.renew(session)
            elif not extra and error_code(body) == HEADER_MISMATCH and message.method == "tools/call":
                extra = await self._tool_headers.of(message)
                if not extra:
                    break
            else:
                break
        else:
            raise CallboardError("engine-unreachable", "The gateway cannot be reached.")
        for request_id in message.ids:
            yield _refusal(request_id, status, body)

    async def _pass_on(self, message: Message) -> None:
        """Bring a notification, or the client's answer to a server's question, to the gateway."""
        with contextlib.suppress(CallboardError, TimeoutError):  # nobody waits for an answer that could tell it
            async with asyncio.timeout(10.0), contextlib.aclosing(self.exchange(message)) as messages:
                async for _ in messages:
                    pass
        if message.method == "notifications/initialized":
            self._session.begin(message)

    def _headers(self, place: Place, message: Message | None) -> dict[str, str]:
        headers = {"authorization": f"Bearer {place.token}"} if place.token else {}
        if message is None or not message.modern:
            return headers | (self._session.headers if message is None or message.method != "initialize" else {})
        return headers | message.headers

    async def _bodies(self, answer: "httpx2.Response") -> AsyncGenerator[bytes, None]:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            parser = SseParser()
            async for chunk in answer.aiter_raw():
                for event in parser.feed(chunk):
                    if event.data:  # a stream may begin with an empty event that only has an id
                        yield event.data
        elif body := await answer.aread():
            yield body

    # for the session

    async def listen(self, last_event: str) -> AsyncGenerator[tuple[bytes, str], None]:
        """The server's own messages (GET), with the events' ids; raises CallboardError.

        ``data["status"]`` of the error is the HTTP status if the gateway refused.
        """
        import httpx2

        place = await self._endpoint.look()
        if place is None:
            raise CallboardError("engine-not-running", "No engine is running.")
        headers = self._headers(place, None) | {"accept": "text/event-stream"}
        if last_event:
            headers["last-event-id"] = last_event
        try:
            async with self._http.stream("GET", place.url, headers=headers) as answer:
                if answer.status_code != 200:
                    if answer.status_code == 401:
                        self._endpoint.lost(place)
                    message = f"The gateway refuses the stream: HTTP {answer.status_code}."
                    raise CallboardError("engine-unreachable", message, data={"status": answer.status_code})
                parser = SseParser()
                async for chunk in answer.aiter_raw():
                    for event in parser.feed(chunk):
                        yield event.data, event.id
        except httpx2.HTTPError as error:
            self._endpoint.lost(place)
            raise _broken(error) from error

    async def tell_client(self, message: bytes) -> None:
        """A message of the server's that belongs to no request."""
        await self._output.write(on_one_line(message))

    async def end_session(self) -> None:
        """Tell the gateway that the session is over, if it is still there to hear it."""
        import httpx2

        with contextlib.suppress(CallboardError, httpx2.HTTPError):
            place = await self._endpoint.look()
            if place is not None:
                await self._http.delete(place.url, headers=self._headers(place, None))


def _refusal(request_id: bytes, status: int, body: bytes) -> bytes:
    """The answer to a request that the gateway refused: its own error object, else one that says its status."""
    if request_id in answered(body):
        return body
    error = error_of(body)
    if error:
        return with_id(request_id, error)
    message, fix = f"The gateway answered HTTP {status}.", ""
    with contextlib.suppress(msgspec.DecodeError):
        told = msgspec.json.decode(body, type=dict[str, Any])
        message, fix = str(told.get("message") or message), str(told.get("fix") or "")
    return with_id(request_id, failure(CallboardError("engine-unreachable", message, fix=fix)))


def _broken(error: Exception) -> CallboardError:
    reason = str(error) or type(error).__name__
    return CallboardError("engine-unreachable", f"The connection to the gateway broke: {reason}.")
