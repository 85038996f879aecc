"""`callboard agent serve`: over stdio and HTTP, in both eras, without an engine."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from tests.e2e.command_line import CommandLine, Running
from tests.support.mcp_client import LEGACY, MODERN, text_of

EXAMPLES = Path(__file__).parents[3] / "resources" / "examples"
DICE = f"{EXAMPLES}/dice.py:Dice"
COUNTER = f"{EXAMPLES}/counter.py:counter"
ERAS = pytest.mark.parametrize("mode", [LEGACY, MODERN])


@pytest.fixture
def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
    return port


@asynccontextmanager
async def stdio_client(mode: str, log: Path, *arguments: str, **environment: str) -> AsyncIterator[Any]:
    transport = StdioTransport(
        sys.executable,
        ["-m", "callboard", "agent", "serve", *arguments],
        env={**os.environ, **environment},
        log_file=log,
        keep_alive=False,
    )
    async with Client(transport, mode=mode, timeout=30) as client:
        yield client


@asynccontextmanager
async def http_server(home: Path, *arguments: str, port: int) -> AsyncIterator[tuple[Running, str]]:
    """A running server and its endpoint, once it says so."""
    async with CommandLine(home).running(
        "agent", "serve", *arguments, "--transport", "http", "--port", str(port)
    ) as run:
        said = ""
        while not said.endswith("=" * 60) or said.count("=" * 60) < 3:
            line = await run.line()
            assert line or not run.process.stdout.at_eof(), said  # type: ignore[union-attr]
            said += "\n" + line
        found = re.search(r"MCP Endpoint: (\S+)", said)
        assert found is not None
        yield run, found[1]


@ERAS
async def test_over_stdio(mode: str, callboard_home: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    async with stdio_client(mode, log, COUNTER, "--set", "name=tally") as client:
        (tool,) = await client.list_tools()
        assert tool.name == "tally"
        for turn in (1, 2):  # one process is one conversation, in either era
            result = await client.call_tool("tally", {"request": "1"})
            assert text_of(result) == f"The count is {turn} after {turn} calls."
    banner = log.read_text(encoding="utf-8")
    assert "Tools: 1\n  - tally: Counts up by the number" in banner
    assert "Transport: stdio (JSON-RPC over stdin/stdout)" in banner


@ERAS
async def test_over_http(mode: str, callboard_home: Path, free_port: int) -> None:
    async with http_server(callboard_home, DICE, port=free_port) as (run, url):
        async with Client(StreamableHttpTransport(url), mode=mode, timeout=30) as client:
            assert {tool.name for tool in await client.list_tools()} == {"roll", "history"}
            await client.call_tool("roll", {"count": 2})
            known = len((await client.call_tool("history", {})).structured_content["result"])
            assert known == (2 if mode == LEGACY else 0)
        async with httpx2.AsyncClient(timeout=30) as http:
            answer = await http.post(f"{url}/tools/roll", json={"kwargs": '{"count": 2}'})
            assert len(answer.json()["result"]["rolled"]) == 2
            assert (await http.post(f"{url}/tools/nope", json={})).status_code == 404
            assert (await http.post(f"{url}/tools/roll", content="{")).status_code == 400
            assert (await http.post(f"{url}/tools/roll", json={"sides": 1})).status_code == 422
            for address in (url, f"{url}/", f"{url}/tools/roll", url.replace("/mcp", "/healthz")):
                # every route is guarded: a page elsewhere can neither call it nor point its own name at it
                evil = await http.post(address, json={}, headers={"origin": "http://evil.example"})
                assert evil.status_code == 403, address
                assert (await http.post(address, json={}, headers={"host": "evil.example"})).status_code == 421
            assert (await http.post(f"{url}/", json={})).status_code not in (307, 308, 404)
        run.process.send_signal(signal.SIGTERM if mode == LEGACY else signal.SIGINT)
        assert await run.process.wait() == 0


async def test_a_token_is_asked_for_everywhere(
    callboard_home: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "open-sesame")
    arguments = (DICE, "--token-env", "MY_TOKEN", "--set", "stateless=true")
    async with http_server(callboard_home, *arguments, port=free_port) as (_, url):
        async with httpx2.AsyncClient(timeout=30) as http:
            for headers in ({}, {"authorization": "Bearer wrong"}):
                for address in (url, f"{url}/tools/roll", url.replace("/mcp", "/healthz")):
                    assert (await http.post(address, json={}, headers=headers)).status_code == 401
        async with Client(StreamableHttpTransport(url, auth="open-sesame"), mode=LEGACY, timeout=30) as client:
            assert len((await client.call_tool("roll", {})).structured_content["rolled"]) == 1


async def test_a_port_in_use_is_said_before_anything_else(callboard_home: Path, free_port: int) -> None:
    async with http_server(callboard_home, DICE, port=free_port):
        ended = await CommandLine(callboard_home)(
            "agent", "serve", DICE, "--transport", "http", "--port", str(free_port)
        )
    assert ended.code == 1
    assert ended.out == ""
    assert f"Port {free_port} of 127.0.0.1 is in use." in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nope.py:x",), 1, "There is no file"),
        (("nope",), 1, "There is no module nope"),
        ((f"{EXAMPLES}/dice.py:Dise",), 1, "has no Dise; did you mean Dice?"),
        ((DICE, "--whole"), 1, "answers no requests, it only has tools"),
        ((DICE, "--set", "expose=rol"), 1, "there is no rol; did you mean roll?\n"),
        ((DICE, "--set", "typed=perhaps"), 2, "CALLBOARD_AGENT_TYPED must be true or false"),
        ((DICE, "--set", "tped=no"), 2, "did you mean typed?"),
        ((DICE, "--set", "typed"), 2, "--set wants NAME=VALUE"),
        ((DICE, "--transport", "sse"), 2, "invalid choice"),
        ((DICE, "--transport", "http", "--host", "0.0.0.0"), 2, "name a token's variable with --token-env"),
        ((DICE, "--transport", "http", "--token-env", "NOT_SET"), 1, "The environment variable NOT_SET is not set"),
        ((DICE, "--python", "/not/there"), 1, "The interpreter /not/there cannot be started"),
    ],
)
async def test_what_cannot_be_served(
    arguments: tuple[str, ...], code: int, said: str, callboard_home: Path, tmp_path: Path
) -> None:
    ended = await CommandLine(callboard_home)("agent", "serve", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


async def test_settings_from_the_environment(callboard_home: Path, tmp_path: Path) -> None:
    environment = {"CALLBOARD_AGENT_EXPOSE": "*, !history", "CALLBOARD_AGENT_TYPED": "false"}
    async with stdio_client(LEGACY, tmp_path / "log", DICE, **environment) as client:
        (tool,) = await client.list_tools()
        assert (tool.name, tool.input_schema["required"]) == ("roll", ["kwargs"])


async def test_the_worker_ends_with_its_client(callboard_home: Path, tmp_path: Path) -> None:
    async with stdio_client(MODERN, tmp_path / "log", COUNTER) as client:
        await client.call_tool("counter", {"request": "1"})
    await asyncio.sleep(0)  # that nothing is left is what every test here checks
