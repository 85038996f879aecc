"""A gateway in the test's own process, in front of real servers; and clients of both eras that talk to it over HTTP."""

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from callboard.api.schema import CallView
from callboard.core.errors import CallboardError
from callboard.core.launch import Launch, LocalLaunch, RemoteLaunch
from callboard.core.mcp_headers import NAMED, encode_value
from callboard.core.protocol import META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN
from callboard.engine.calls.log import CallLog
from callboard.engine.gateway.access import Access
from callboard.engine.gateway.address import LOOPBACK_ADDRESS
from callboard.engine.gateway.app import GatewayApp
from callboard.engine.gateway.mcp import McpEndpoint
from callboard.engine.gateway.server import GatewayServer, listen
from callboard.engine.relay.relay import Relay
from callboard.engine.upstream.base import Upstream
from callboard.engine.upstream.http import HttpUpstream
from callboard.engine.upstream.stdio import StdioUpstream
from callboard.system.child_environment import child_environment

SERVERS = Path(__file__).parent / "servers"
FIXTURE = SERVERS / "mcp_fixture.py"
TOKENS = {"token-a": "a", "token-b": "b"}


class PlainServers:
    """The servers that a relay asks for, without a supervisor."""

    def __init__(self) -> None:
        self.ready: dict[str, Upstream] = {}
        self.limit = 30.0
        self.hidden: set[str] = set()
        self.told: set[str] = set()

    async def upstream(self, name: str) -> Upstream:
        if name not in self.ready:
            raise CallboardError("server-not-ready", f"{name} is stopped.")
        return self.ready[name]

    def exposed(self, server: str, tool: str) -> str | None:
        return None if tool in self.hidden else tool

    def time_limit(self, server: str) -> float:
        return self.limit

    def touch(self, server: str) -> None:
        pass

    def sharing(self, server: str) -> str:
        return "shared"

    def is_told_callers(self, server: str) -> bool:
        return server in self.told

    async def open_private(self, name: str, key: str) -> Upstream:
        raise CallboardError("server-not-ready", f"{name} is shared.")

    async def close_private(self, name: str, key: str) -> None:
        pass


class TestGateway:
    """See :func:`gateway`."""

    __test__ = False

    def __init__(self, relay: Relay, servers: PlainServers, call_log: CallLog, url: str) -> None:
        self.relay = relay
        self.servers = servers
        self.call_log = call_log
        self.url = url
        self.noise: list[tuple[str, bytes]] = []

    async def connect(self, name: str, make: Callable[[Any], Upstream], launch: Launch) -> Upstream:
        """Connect a server under a name that the relay knows."""
        upstream = make(self.relay.links[name])
        await upstream.open(launch)
        self.servers.ready[name] = upstream
        self.relay.connected(name, upstream)
        await self.relay.catalogue.settled(name)
        self.tell_now()  # that the server is there is not told during the test
        return upstream

    def tell_now(self) -> None:
        """Tell at once what changed, if it is still to be told."""
        if self.relay.notices._timer is not None:
            self.relay.notices.send()

    async def start_fixture(self, name: str, era: str, *options: str, modern: bool | None = None) -> Upstream:
        """Start the fixture server over stdio."""
        return await self.start(name, FIXTURE, "--era", era, "--name", name, *options, modern=modern)

    async def start(self, name: str, script: Path, *options: str, modern: bool | None = None) -> Upstream:
        """Start a server that is a script."""
        return await self.connect(name, lambda link: stdio(link, modern), python(script, *options))

    async def reach(
        self,
        name: str,
        url: str,
        *,
        modern: bool | None = None,
        transport: str = "http",
        auth: httpx2.Auth | None = None,
    ) -> Upstream:
        """Connect a server over HTTP."""

        def make(link: Any) -> HttpUpstream:
            paths = partial(self.relay.catalogue.header_paths, name)
            return HttpUpstream(link, modern=modern, header_paths=paths, auth=auth)

        return await self.connect(name, make, RemoteLaunch(url, transport=transport))

    async def lose(self, name: str) -> None:
        """Wait until a server's connection has ended, and say so to the relay, as the supervisor does."""
        upstream = self.servers.ready[name]
        await upstream.closed
        await upstream.close()
        del self.servers.ready[name]
        self.relay.disconnected(name)

    async def rows(self, tool: str) -> list[CallView]:
        """What the call log holds of a tool, oldest first."""
        return [row for row in await self.call_log.recent(1000) if row.tool == tool]

    def legacy(self, scope: str = "", token: str = "token-a", **capabilities: Any) -> "LegacyClient":
        """A legacy client, not yet initialized."""
        return LegacyClient(self.endpoint(scope), token, capabilities)

    def modern(self, scope: str = "", token: str = "token-a", **capabilities: Any) -> "ModernClient":
        """A modern client."""
        return ModernClient(self.endpoint(scope), token, capabilities)

    def endpoint(self, scope: str) -> str:
        """The address of an endpoint."""
        return f"{self.url}/servers/{scope}/mcp" if scope else f"{self.url}/mcp"


def python(script: Path, *options: str) -> LocalLaunch:
    """A script that needs the standard library alone."""
    return LocalLaunch((sys.executable, "-S", "-E", str(script), *options))


def stdio(link: Any, modern: bool | None = None) -> StdioUpstream:
    """An unconnected stdio upstream with this process's environment."""
    return StdioUpstream(
        link, environment=child_environment(os.environ, frozen=False), on_stderr=lambda data: None, modern=modern
    )


@contextmanager
def http_server(script: Path, *options: str) -> Iterator[str]:
    """A script that serves HTTP on loopback and prints its port; yields its address without a path."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", str(script), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield f"http://{LOOPBACK_ADDRESS}:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


def http_fixture(era: str, name: str = "one", *options: str) -> Any:
    """The fixture server over HTTP; see :func:`http_server`."""
    return http_server(FIXTURE, "--era", era, "--name", name, "--http", "0", *options)


@asynccontextmanager
async def gateway(folder: Path, *names: str, clients: Mapping[str, str] | None = None) -> AsyncIterator[TestGateway]:
    """A gateway for servers of these names, none of them connected; ``clients`` are more of them by their tokens."""
    servers = PlainServers()
    call_log = CallLog(folder / "calls.sqlite3", lambda payload: payload)
    await call_log.open()
    noise: list[tuple[str, bytes]] = []
    relay = Relay(
        servers,
        call_log,
        None,
        on_catalogue=lambda name: None,
        on_noise=lambda name, line: noise.append((name, line)),
    )
    relay.sync(names)
    access = Access("admin-token", {**TOKENS, **(clients or {})}.get)
    app = GatewayApp(access, McpEndpoint(relay), relay.policies, relay.scope_exists, lambda client: None)
    sock = listen(0)
    server = GatewayServer(app, sock)
    await server.start()
    test = TestGateway(relay, servers, call_log, f"http://{LOOPBACK_ADDRESS}:{sock.getsockname()[1]}")
    test.noise = noise
    try:
        yield test
    finally:
        await relay.close()
        for upstream in servers.ready.values():
            await upstream.close()
        await server.stop()
        await call_log.close()


class _Client:
    def __init__(self, url: str, token: str, capabilities: dict[str, Any]) -> None:
        self.url = url
        self.capabilities = capabilities
        self.headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
        self.http = httpx2.AsyncClient(
            trust_env=False, verify=False, timeout=10.0, limits=httpx2.Limits(max_connections=None)
        )
        self.numbers = itertools.count(1)
        self.heard: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], Any]] = {}

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def post(self, message: Any, headers: dict[str, str] | None = None) -> httpx2.Response:
        """POST one message and read the whole answer."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        every = {**self.headers, "content-type": "application/json", **(headers or {})}
        return await self.http.post(self.url, content=body, headers=every)

    async def exchange(self, message: dict[str, Any], headers: dict[str, str] | None = None) -> dict[str, Any]:
        """POST a request, answer what the server asks on the way, and return its answer."""
        every = {**self.headers, "content-type": "application/json", **(headers or {})}
        async with self.http.stream("POST", self.url, content=json.dumps(message).encode(), headers=every) as answer:
            if "text/event-stream" not in answer.headers.get("content-type", ""):
                await answer.aread()
                return json.loads(answer.content)
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    found = json.loads(line[5:])
                    if found.get("id") == message["id"] and "method" not in found:
                        return found
                    await self.hear(found)
        raise AssertionError("the stream ended without the answer")

    async def hear(self, message: dict[str, Any]) -> None:
        """Take a message that is no answer."""
        self.heard.append(message)

    def of(self, method: str) -> list[dict[str, Any]]:
        """The notifications and requests of a method that were heard."""
        return [message for message in self.heard if message.get("method") == method]


class Refuse:
    """An answer of a legacy client that is an error."""

    def __init__(self, code: int, message: str) -> None:
        self.error = {"code": code, "message": message}


class LegacyClient(_Client):
    """A client of revision 2025-11-25. ``answers`` says what it answers to the server's questions, by method."""

    session = ""
    name = "legacy-test"

    async def initialize(self) -> dict[str, Any]:
        """Open a session."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": self.capabilities,
            "clientInfo": {"name": self.name, "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}
        answer = await self.post(message)
        self.session = answer.headers["mcp-session-id"]
        self.headers |= {"mcp-session-id": self.session, "mcp-protocol-version": "2025-11-25"}
        await self.notify("notifications/initialized")
        result: dict[str, Any] = answer.json()["result"]
        return result

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        answer = await self.post({"jsonrpc": "2.0", "method": method, "params": params or {}})
        assert answer.status_code == 202

    async def request(self, method: str, params: dict[str, Any] | None = None, *, number: Any = None) -> dict[str, Any]:
        """Send a request and return the whole answer."""
        number = next(self.numbers) if number is None else number
        return await self.exchange({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Call a tool and return the whole answer."""
        return await self.request("tools/call", {"name": tool, "arguments": arguments or {}, **more})

    async def hear(self, message: dict[str, Any]) -> None:
        await super().hear(message)
        if "id" in message and message.get("method") in self.answers:
            result = self.answers[message["method"]](message["params"])
            part = {"error": result.error} if isinstance(result, Refuse) else {"result": result}
            answer = await self.post({"jsonrpc": "2.0", "id": message["id"], **part})
            assert answer.status_code == 202

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Hold the GET stream open and take what comes."""
        ready = asyncio.Event()
        async with in_background(self._listen(ready)):
            await ready.wait()
            yield

    async def _listen(self, ready: asyncio.Event) -> None:
        async with self.http.stream("GET", self.url, headers=self.headers, timeout=None) as answer:
            assert answer.status_code == 200
            ready.set()
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    await self.hear(json.loads(line[5:]))


class ModernClient(_Client):
    """A client of revision 2026-07-28."""

    name = "modern-test"

    def message(
        self, method: str, params: dict[str, Any] | None = None, *, number: Any = None, **meta: Any
    ) -> dict[str, Any]:
        """A request with the metadata that every one needs."""
        own = {
            META_VERSION: MODERN,
            META_CLIENT: {"name": self.name, "version": "1"},
            META_CAPABILITIES: self.capabilities,
            **meta,
        }
        number = next(self.numbers) if number is None else number
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**(params or {}), "_meta": own}}

    def headers_for(self, message: dict[str, Any]) -> dict[str, str]:
        """The headers that mirror a message."""
        headers = {"mcp-protocol-version": MODERN, "mcp-method": message["method"]}
        name = message["params"].get(NAMED.get(message["method"], ""))
        if name:
            headers["mcp-name"] = encode_value(name)
        return headers

    async def request(
        self, method: str, params: dict[str, Any] | None = None, *, number: Any = None, **meta: Any
    ) -> Any:
        """Send a request and return the whole answer."""
        message = self.message(method, params, number=number, **meta)
        return await self.exchange(message, self.headers_for(message))

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, **meta: Any) -> Any:
        """Call a tool, answer what it asks as ``answers`` says, and return the whole answer."""
        return await self.complete("tools/call", {"name": tool, "arguments": arguments or {}}, **meta)

    async def complete(self, method: str, params: dict[str, Any], **meta: Any) -> Any:
        """Make a request and repeat it with the answers to what is asked, in as many rounds as it takes."""
        answer = await self.request(method, params, **meta)
        while answer.get("result", {}).get("resultType") == "input_required":
            self.asked.append(answer["result"])
            answer = await self.request(method, {**params, **self.retry(answer["result"])}, **meta)
        return answer

    def retry(self, result: dict[str, Any]) -> dict[str, Any]:
        """What the repeated request carries besides."""
        questions = result.get("inputRequests", {})
        responses = {key: self.answers[asked["method"]](asked.get("params", {})) for key, asked in questions.items()}
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        return {"inputResponses": responses, **state}

    @asynccontextmanager
    async def listening(self, *, number: Any = "listen", **wanted: Any) -> AsyncIterator[None]:
        """Hold ``subscriptions/listen`` open and take what comes, once it was acknowledged."""
        message = self.message("subscriptions/listen", {"notifications": wanted}, number=number)
        async with in_background(self.exchange(message, self.headers_for(message))) as task:
            await until(lambda: task.done() or self.of("notifications/subscriptions/acknowledged"))
            yield


@asynccontextmanager
async def in_background(coroutine: Coroutine[Any, Any, Any]) -> AsyncIterator["asyncio.Task[Any]"]:
    """Run something beside the body, and end it with the body."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def text_of(answer: dict[str, Any]) -> str:
    """The first text of a tool's result."""
    text: str = answer["result"]["content"][0]["text"]
    return text


async def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait for a condition."""
    async with asyncio.timeout(seconds):
        while not (found := condition()):  # noqa: ASYNC110  whatever the condition is of tells nobody
            await asyncio.sleep(0.01)
    return found
