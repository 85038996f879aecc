"""A small HTTP/1.1 server inside a test, for servers whose answers the test decides."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True)
class Seen:
    """A request that came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        """The body as a form."""
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def bearer(self) -> str:
        """The token that it bears, whatever the scheme; empty if none."""
        return self.headers.get("authorization", "").partition(" ")[2]


@dataclass(frozen=True)
class Said:
    """An answer."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    stream: "asyncio.Queue[bytes] | None" = None  # what follows the body, until the connection ends


def data(value: Any, status: int = 200, **headers: str) -> Said:
    """An answer of JSON; underscores in names of headers become hyphens."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Said(status, json.dumps(value).encode(), {"content-type": "application/json", **named})


Handler = Callable[[Seen], Awaitable[Said]]


class Site:
    """Use as an async context manager; subclasses answer in :meth:`answer`. ``seen`` holds every request."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.seen: list[Seen] = []
        self.url = ""
        self._context = context
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.streams: list[asyncio.Queue[bytes]] = []  # those that are open; an empty part ends one

    async def answer(self, seen: Seen) -> Said:
        """What a request is told."""
        return Said(404)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'http' if self._context is None else 'https'}://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for queue in self.streams:
            queue.put_nowait(b"")
        for writer in list(self._open):
            writer.close()
        await self._server.wait_closed()

    def requests(self, path: str) -> list[Seen]:
        """The requests to a path."""
        return [one for one in self.seen if one.path == path]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while (seen := await _read(reader)) is not None:
                self.seen.append(seen)
                said = await self.answer(seen)
                lines = [f"HTTP/1.1 {said.status} Said"]
                lines += [] if said.stream is not None else [f"content-length: {len(said.body)}"]
                lines += [f"{name}: {text}" for name, text in said.headers.items()]
                writer.write("\r\n".join([*lines, "", ""]).encode() + said.body)
                await writer.drain()
                while said.stream is not None and (part := await said.stream.get()):
                    writer.write(part)
                    await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Seen(method, unquote(parts.path), query, headers, body)
