"""`callboard connect` between a client that speaks stdio and a real engine."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from callboard.api.client import EngineClient
from callboard.system.engine_file import read_engine_file
from tests.e2e.command_line import CommandLine
from tests.support.engine import EngineProcess

FIXTURE = str(Path(__file__).parent.parent / "support" / "servers" / "mcp_fixture.py")
ROSTER: dict[str, dict[str, object]] = {
    era: {"command": sys.executable, "args": [FIXTURE, "--era", era]} for era in ("legacy", "modern")
}
ROSTER["legacy"]["sharing"] = "per-client"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "stdio-test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class StdioClient:
    """A client that writes and reads lines of a bridge process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._write = process.stdin
        self._read = process.stdout

    def send(self, method: str, request_id: Any = None, **params: Any) -> None:
        """Write a request, or a notification if there is no id."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if request_id is not None:
            message["id"] = request_id
        self._write.write(json.dumps(message).encode() + b"\n")

    async def receive(self) -> dict[str, Any]:
        """The next message."""
        message: dict[str, Any] = json.loads(await self._read.readuntil(b"\n"))
        return message

    async def answer(self, request_id: Any) -> dict[str, Any]:
        """The answer to a request; what comes before it is left out."""
        while True:
            message = await self.receive()
            if message.get("id") == request_id and "method" not in message:
                return message

    async def ask(self, method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self.send(method, request_id, **params)
        return await self.answer(request_id)

    async def shake_hands(self) -> dict[str, Any]:
        """The handshake of the legacy era."""
        result = await self.ask(
            "initialize",
            "hello",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "stdio-test", "version": "1"},
        )
        self.send("notifications/initialized")
        return result

    async def hang_up(self) -> int:
        """End its stdin; the exit code."""
        self._write.close()
        return await self.process.wait()


@asynccontextmanager
async def connected(home: Path, *arguments: str) -> AsyncIterator[StdioClient]:
    """A bridge process; it must end by itself once its stdin has ended, and say nothing on stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "callboard",
        "connect",
        *arguments,
        env={**os.environ, "CALLBOARD_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        limit=2**27,
    )
    client = StdioClient(process)
    try:
        yield client
        if process.returncode is None:
            assert await client.hang_up() == 0
        assert process.stderr is not None
        assert await process.stderr.read() == b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
async def engine(callboard_home: Path) -> AsyncIterator[EngineProcess]:
    """A running engine with one server of each era."""
    async with EngineProcess(callboard_home, ROSTER) as engine:
        for name in ROSTER:
            await engine.wait_for(name, "ready")
        yield engine


@pytest.fixture
async def no_engine(callboard_home: Path) -> AsyncIterator[EngineProcess]:
    """A home with a roster where no engine runs; what a test starts there is ended."""
    yield EngineProcess(callboard_home, ROSTER)
    await CommandLine(callboard_home)("quit")
    assert read_engine_file(callboard_home / "runtime" / "engine.json") is None


async def test_legacy_client(engine: EngineProcess) -> None:
    async with connected(engine.home) as client:
        hello = await client.shake_hands()
        assert hello["result"]["protocolVersion"] == "2025-06-18"
        tools = await client.ask("tools/list", 2)
        assert "modern__echo" in [tool["name"] for tool in tools["result"]["tools"]]
        result = await client.ask("tools/call", "3", name="legacy__echo", arguments={"text": "häl\u2028lo"})
        assert result["result"]["content"][0]["text"] == "häl\u2028lo"
    (call,) = (await engine.client.calls()).calls
    assert (call.client, call.server, call.tool, call.status) == ("stdio-test", "legacy", "echo", "completed")


@pytest.mark.parametrize("name", sorted(ROSTER))
async def test_modern_client_at_one_server(engine: EngineProcess, name: str) -> None:
    async with connected(engine.home, "--server", name) as client:
        found = await client.ask("server/discover", 1, _meta=META)
        assert "2026-07-28" in found["result"]["supportedVersions"]
        result = await client.ask("tools/call", 2, name="echo", arguments={"text": "x"}, _meta=META)
        assert result["result"]["content"][0]["text"] == "x"
        missing = await client.ask("tools/call", 3, name="nothing", arguments={}, _meta=META)
        assert "error" in missing


async def test_modern_progress_and_cancellation(engine: EngineProcess) -> None:
    async with connected(engine.home, "--server", "modern") as client:
        meta = META | {"progressToken": "p"}
        client.send("tools/call", 1, name="progress", arguments={"steps": 2}, _meta=meta)
        first, second, last = [await client.receive() for _ in range(3)]
        assert [each["params"]["progressToken"] for each in (first, second)] == ["p", "p"]
        assert last["id"] == 1
        client.send("tools/call", 2, name="slow", arguments={"ms": 60_000}, _meta=META)
        await _until_any(engine.client, "running")
        client.send("notifications/cancelled", requestId=2)
        assert (await client.ask("tools/call", 3, name="pid", arguments={}, _meta=META))["id"] == 3
        await _until_any(engine.client, "cancelled")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("name", sorted(ROSTER))
async def test_fastmcp_client(engine: EngineProcess, mode: Any, name: str) -> None:
    progress: list[float] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    transport = StdioTransport(
        sys.executable,
        ["-m", "callboard", "connect", "--server", name],
        env={**os.environ, "CALLBOARD_HOME": str(engine.home)},
        keep_alive=False,
    )
    async with Client(transport, mode=mode, progress_handler=on_progress) as client:
        assert "echo" in [tool.name for tool in await client.list_tools()]
        results = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(20)))
        assert [result.content[0].text for result in results] == [str(n) for n in range(20)]  # type: ignore[union-attr]
        await client.call_tool("progress", {"steps": 3})
        assert len(progress) == 3


async def test_large_result(engine: EngineProcess) -> None:
    async with connected(engine.home, "--server", "legacy") as client:
        await client.shake_hands()
        result = await client.ask("tools/call", 1, name="big", arguments={"size": 20_000_000})
        assert len(result["result"]["content"][0]["text"]) == 20_000_000


async def test_starts_the_engine_which_outlives_it(no_engine: EngineProcess) -> None:
    async with connected(no_engine.home) as client:
        await client.shake_hands()
        assert "result" in await client.ask("tools/list", 1)
    async with EngineClient.from_file(no_engine.paths.engine_file) as engine:
        assert (await engine.engine()).pid != os.getpid()


async def test_several_that_start_at_once_share_one_engine(no_engine: EngineProcess) -> None:
    async with (
        connected(no_engine.home) as first,
        connected(no_engine.home) as second,
        connected(no_engine.home) as third,
    ):
        hellos = await asyncio.gather(*(client.shake_hands() for client in (first, second, third)))
        assert all("result" in hello for hello in hellos)
        for client in (first, second, third):
            assert "result" in await client.ask("tools/list", 1)


async def test_survives_the_engines_death_without_the_client_noticing(no_engine: EngineProcess) -> None:
    async with connected(no_engine.home, "--server", "legacy") as client:
        await client.shake_hands()
        before = await client.ask("tools/call", 1, name="pid", arguments={})
        address = read_engine_file(no_engine.paths.engine_file)
        assert address is not None
        client.send("tools/call", 2, name="slow", arguments={"ms": 60_000})
        async with EngineClient(address) as engine:
            await _until_any(engine, "running")
        os.kill(address.pid, signal.SIGKILL)
        lost = await client.answer(2)
        assert lost["error"]["data"]["code"] == "engine-unreachable"
        after = await client.ask("tools/call", 3, name="pid", arguments={})
        assert "result" in after
        assert after["result"] != before["result"]
    async with EngineClient.from_file(no_engine.paths.engine_file) as engine:
        by_status = {call.status: call for call in (await engine.calls()).calls if call.tool == "slow"}
        assert set(by_status) == {"failed"}


async def test_address_and_token_can_be_given(engine: EngineProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", await engine.client.token("codex"))
    url = f"{engine.client.address.url}/servers/modern/mcp"
    async with connected(engine.home / "elsewhere", "--url", url, "--token-env", "TOKEN_OF_TEST") as client:
        result = await client.ask("tools/call", 1, name="echo", arguments={"text": "x"}, _meta=META)
        assert result["result"]["content"][0]["text"] == "x"
    async with connected(engine.home, "--url", url) as client:
        refused = await client.ask("ping", 1)
        assert refused["error"]["message"] == "A valid bearer token is needed."


async def test_end_of_input_lets_calls_finish(engine: EngineProcess) -> None:
    async with connected(engine.home, "--server", "legacy") as client:
        await client.shake_hands()
        client.send("tools/call", 1, name="slow", arguments={"ms": 300})
        await _until_any(engine.client, "running")
        ended = asyncio.create_task(client.hang_up())
        assert "result" in await client.answer(1)
        assert await ended == 0


async def test_termination_is_prompt(engine: EngineProcess) -> None:
    async with connected(engine.home, "--server", "legacy") as client:
        await client.shake_hands()
        client.send("tools/call", 1, name="slow", arguments={"ms": 60_000})
        await _until_any(engine.client, "running")
        client.process.terminate()
        assert await client.process.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "words"), [(("--server", "nobody"), '"nobody"'), (("--client", "nobody"), '"nobody"')]
)
async def test_what_is_not_there_is_told_to_the_client(
    engine: EngineProcess, arguments: tuple[str, ...], words: str
) -> None:
    async with connected(engine.home, *arguments) as client:
        hello = await client.shake_hands()
        assert words in hello["error"]["message"]
        assert hello["error"]["data"]["fix"]


async def _until_any(client: EngineClient, status: str) -> None:
    async with asyncio.timeout(20):
        while not (await client.calls(status=status)).total:  # noqa: ASYNC110  # asks another process
            await asyncio.sleep(0.02)
