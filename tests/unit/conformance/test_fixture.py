"""The fixture server in its variants, over both transports, as our own connection to servers sees it."""

import asyncio
import os
import sys
from typing import Any

import httpx2
import pytest

from callboard.core.errors import CallboardError
from callboard.core.launch import LocalLaunch, RemoteLaunch
from callboard.engine.upstream.base import Answer, Params
from callboard.engine.upstream.http import HttpUpstream
from callboard.engine.upstream.stdio import StdioUpstream
from callboard.system.child_environment import child_environment
from tests.conformance.stage import ROOT, http_fixture

ENVIRONMENT = child_environment(os.environ, frozen=False)


def local(era: str) -> LocalLaunch:
    return LocalLaunch((sys.executable, "-m", "tests.conformance.fixture", "--era", era), cwd=ROOT)


class Nobody:
    """A peer that hears nothing."""

    def on_server_notification(self, method: str, params: Params) -> None:
        pass

    async def on_server_request(self, method: str, params: Params) -> Answer:
        return Answer(error=b"{}")

    def on_noise(self, line: bytes) -> None:
        raise AssertionError(line)


@pytest.mark.parametrize(("era", "modern"), [("both", True), ("modern", True), ("legacy", False)])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_each_variant_speaks_its_era(era: str, modern: bool, transport: str) -> None:
    async with asyncio.timeout(25):
        if transport == "http":
            async with http_fixture(era) as url:
                await check(HttpUpstream(Nobody()), RemoteLaunch(url), modern)
        else:
            upstream = StdioUpstream(Nobody(), environment=ENVIRONMENT, on_stderr=lambda data: None)
            await check(upstream, local(era), modern)


async def check(upstream: Any, launch: Any, modern: bool) -> None:
    try:
        await upstream.open(launch)
        assert upstream.info.modern is modern
        assert upstream.info.name == "conformance-fixture"
        answer = await upstream.request("tools/list", {})
        tools = bytes(answer.result)
        assert b"test_simple_text" in tools
        assert (b"slow_compute" in tools) is modern  # tasks are an extension of the modern era
    finally:
        await upstream.close()


async def test_the_modern_variant_refuses_a_handshake() -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    async with http_fixture("modern") as url, httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.post(url, json=message, headers={"accept": "application/json, text/event-stream"})
        assert answer.status_code == 400
    upstream = StdioUpstream(Nobody(), environment=ENVIRONMENT, on_stderr=lambda data: None, modern=False)
    with pytest.raises(CallboardError, match="Unsupported protocol version"):
        await check(upstream, local("modern"), True)
