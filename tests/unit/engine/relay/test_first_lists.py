"""What is asked of a server that has just connected waits until its lists are there."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from callboard.core.launch import LocalLaunch
from callboard.engine.relay import first_lists
from callboard.engine.relay.link import ServerLink
from callboard.engine.upstream.base import Answer, Params
from callboard.engine.upstream.stdio import StdioUpstream
from callboard.system.child_environment import child_environment
from tests.support.gateway import FIXTURE, TestGateway, gateway, text_of


class LateLists(StdioUpstream):
    """An upstream whose lists come when the test says so."""

    def __init__(self, link: ServerLink) -> None:
        environment = child_environment(os.environ, frozen=False)
        super().__init__(link, environment=environment, on_stderr=lambda data: None)
        self.may_list = asyncio.Event()

    async def request(self, method: str, params: Params | None = None, *, seconds: float = 30.0) -> Answer:
        if method.endswith("/list"):
            await self.may_list.wait()
        return await super().request(method, params, seconds=seconds)


async def connect_late(front: TestGateway, name: str) -> asyncio.Event:
    """Connect the fixture; its lists come once the returned event is set."""
    upstream = LateLists(front.relay.links[name])
    await upstream.open(LocalLaunch((sys.executable, str(FIXTURE), "--era", "legacy", "--name", name)))
    front.servers.ready[name] = upstream
    front.relay.connected(name, upstream)
    return upstream.may_list


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("scope", ["", "old"])
async def test_the_first_list_and_the_first_call_are_whole(tmp_path: Path, era: str, scope: str) -> None:
    async with gateway(tmp_path, "old") as front:
        may_list = await connect_late(front, "old")
        async with getattr(front, era)(scope) as client:
            if era == "legacy":
                await client.initialize()
            listing = asyncio.create_task(client.request("tools/list"))
            calling = asyncio.create_task(client.call("echo" if scope else "old__echo", {"text": "first"}))
            _, waiting = await asyncio.wait([listing], timeout=0.2)
            assert waiting == {listing}
            may_list.set()
            names = [tool["name"] for tool in (await listing)["result"]["tools"]]
            assert ("echo" if scope else "old__echo") in names
            assert text_of(await calling) == "first"


async def test_a_server_that_starts_delays_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_lists, "READ_SECONDS", 600.0)
    async with gateway(tmp_path, "old", "starting") as front:
        await front.start_fixture("old", "legacy")
        async with front.legacy() as client:
            await client.initialize()
            async with asyncio.timeout(60):
                tools = (await client.request("tools/list"))["result"]["tools"]
            assert {tool["name"].split("__")[0] for tool in tools} == {"old"}
