"""A client on raw sockets that costs next to nothing: one thread, any number of kept-alive connections."""

from __future__ import annotations

import json
import selectors
import socket
import statistics
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

ANSWER_SECONDS = 30.0
CLIENT = {"name": "bench", "version": "1"}


@dataclass(frozen=True)
class Measured:
    """Latencies in seconds, in the order in which the answers came, and the time from the first to the last."""

    latencies: list[float]
    seconds: float

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """The latency that this share of the answers did not exceed."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    @property
    def median(self) -> float:
        """The middle latency."""
        return statistics.median(self.latencies)


class Connection:
    """One kept-alive connection with one request on its way at a time."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.socket = socket.create_connection((str(parts.hostname), parts.port or 80), ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent = 0.0
        self._parts: list[bytes] = []
        self._missing = -1  # bytes of the body still to come; -1 while the head is not whole
        self._body = 0

    def send(self, request: bytes) -> None:
        """Send a whole request."""
        self._parts, self._missing = [], -1
        self.sent = time.perf_counter()
        self.socket.sendall(request)

    def take(self) -> bool:
        """Read what has come; whether the answer is whole. Raises when it is not a success."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the connection was closed")
        self._parts.append(data)
        if self._missing >= 0:
            self._missing -= len(data)
            return self._missing <= 0
        whole = b"".join(self._parts)
        end = whole.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = whole[:end].lower()
        if not head.startswith(b"http/1.1 20"):
            raise RuntimeError(whole[:500].decode(errors="replace"))
        start = head.index(b"content-length:") + 15
        self._body = end + 4
        self._missing = int(head[start:].split(b"\r\n", 1)[0]) - (len(whole) - self._body)
        return self._missing <= 0

    def answer(self) -> tuple[bytes, bytes]:
        """Head and body of the answer, once it is whole."""
        whole = b"".join(self._parts)
        return whole[: self._body], whole[self._body :]

    def exchange(self, request: bytes) -> tuple[bytes, bytes]:
        """Send a request and wait for its answer."""
        self.send(request)
        while not self.take():
            pass
        return self.answer()

    def close(self) -> None:
        """Close it."""
        self.socket.close()


def post(url: str, body: Any, headers: dict[str, str]) -> bytes:
    """The bytes of a POST with a JSON body."""
    content = json.dumps(body).encode()
    parts = urlsplit(url)
    lines = [
        f"POST {parts.path} HTTP/1.1",
        f"host: {parts.netloc}",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        *(f"{name}: {value}" for name, value in headers.items()),
        f"content-length: {len(content)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


class Session:
    """A client of the handshake era, as most are: initialized, and ready to call."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
        connection = Connection(url)
        head, _ = connection.exchange(self.request("initialize", params))
        for line in head.decode().split("\r\n"):
            name, _, value = line.partition(":")
            if name.lower() == "mcp-session-id":
                self._headers |= {"mcp-session-id": value.strip(), "mcp-protocol-version": "2025-11-25"}
        connection.exchange(post(url, {"jsonrpc": "2.0", "method": "notifications/initialized"}, self._headers))
        connection.close()

    def request(self, method: str, params: dict[str, Any] | None = None) -> bytes:
        """The bytes of a request."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        return post(self.url, message, self._headers)

    def call(self, tool: str, size: int = 2) -> bytes:
        """The bytes of a tools/call of the light server's tool."""
        return self.request("tools/call", {"name": tool, "arguments": {"size": size}})


def drive(url: str, request: bytes, *, connections: int, seconds: float, rate: float | None = None) -> Measured:
    """Send the same request on each connection again as soon as its answer is there.

    With ``rate`` a single connection sends so many a second instead, evenly.
    """
    pool = [Connection(url) for _ in range(connections)]
    try:
        if rate is not None:
            return _paced(pool[0], request, seconds, rate)
        return _flat_out(pool, request, seconds)
    finally:
        for connection in pool:
            connection.close()


def _flat_out(pool: list[Connection], request: bytes, seconds: float) -> Measured:
    latencies: list[float] = []
    with selectors.DefaultSelector() as selector:
        for connection in pool:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
        began = time.perf_counter()
        for connection in pool:
            connection.send(request)
        open_requests = len(pool)
        while open_requests:
            events = selector.select(ANSWER_SECONDS)
            if not events:
                raise TimeoutError(f"no answer within {ANSWER_SECONDS:g} s")
            for key, _ in events:
                if not key.data.take():
                    continue
                now = time.perf_counter()
                latencies.append(now - key.data.sent)
                if now - began < seconds:
                    key.data.send(request)
                else:
                    open_requests -= 1
    return Measured(latencies, time.perf_counter() - began)


def _paced(connection: Connection, request: bytes, seconds: float, rate: float) -> Measured:
    latencies = []
    began = time.perf_counter()
    for number in range(int(seconds * rate)):
        time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        connection.exchange(request)
        latencies.append(time.perf_counter() - connection.sent)
    return Measured(latencies, time.perf_counter() - began)
