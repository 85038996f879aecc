"""A remote MCP server on loopback that keeps the headers of every request, or answers each with one status."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

Headers = dict[str, str]


@dataclass
class Recorder:
    """``url`` ends in the path of the server; ``seen`` holds method and headers (lower case) of each request."""

    url: str = ""
    seen: list[tuple[str, Headers]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection; a path like /403 answers with that status."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                path = head[0].split()[1]
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                message = json.loads(body) if body else {}
                self.seen.append((message.get("method", ""), headers))
                writer.write(_answer(path, message))
                await writer.drain()
        writer.close()


def _answer(path: str, message: dict[str, object]) -> bytes:
    status, body = "200 OK", b""
    if path[1:].isdecimal():
        status = f"{path[1:]} Status"
    elif message.get("id") is None:
        status = "202 Accepted"
    elif path != "/empty":
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **_result(str(message.get("method")))}).encode()
    kind = b"content-type: application/json\r\n" if body else b""
    return b"HTTP/1.1 %s\r\n%scontent-length: %d\r\n\r\n%s" % (status.encode(), kind, len(body), body)


def _result(method: str) -> dict[str, object]:
    if method == "initialize":
        capabilities: dict[str, object] = {"tools": {}}
        who = {"name": "recorder", "version": "1"}
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": who}}
    if method == "tools/list":
        return {"result": {"tools": []}}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": "Method not found"}}


@contextlib.asynccontextmanager
async def recorder() -> AsyncIterator[Recorder]:
    """A server that listens until the block ends."""
    it = Recorder()
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    it.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield it
    finally:
        server.close()
        await server.wait_closed()
