"""Servers that give each session or each client a process of its own."""

import asyncio
import sys
from pathlib import Path

import psutil

from tests.support.engine import EngineProcess
from tests.support.gateway import FIXTURE, LegacyClient, ModernClient, text_of, until


def entry(sharing: str, era: str = "legacy") -> dict[str, object]:
    return {"command": sys.executable, "args": [str(FIXTURE), "--era", era], "sharing": sharing}


async def legacy(engine: EngineProcess, client: str = "script", **capabilities: object) -> LegacyClient:
    token = await engine.client.token(client)
    connected = LegacyClient(f"{engine.client.address.url}/servers/fixture/mcp", token, capabilities)
    await connected.initialize()
    return connected


async def test_each_session_has_a_process_that_ends_with_it(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"fixture": entry("per-session")}) as engine:
        shared = await engine.wait_for("fixture", "ready")
        async with await legacy(engine) as one, await legacy(engine) as two:
            pids = [int(text_of(await client.call("pid"))) for client in (one, two, one)]
            assert pids[0] == pids[2]
            assert len({pids[0], pids[1], shared.pid}) == 3
            await one.http.delete(one.url, headers=one.headers)
            await until(lambda: not psutil.pid_exists(pids[0]))
            assert psutil.pid_exists(pids[1])
            assert int(text_of(await two.call("pid"))) == pids[1]
        assert (await engine.client.server("fixture")).pid == shared.pid
    await until(lambda: not psutil.pid_exists(pids[1]))


async def test_a_session_answers_for_its_own_roots(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"fixture": entry("per-session")}) as engine:
        await engine.wait_for("fixture", "ready")
        async with await legacy(engine, roots={}) as one, await legacy(engine, roots={}) as two:
            one.answers["roots/list"] = lambda params: {"roots": [{"uri": "file:///one"}]}
            two.answers["roots/list"] = lambda params: {"roots": [{"uri": "file:///two"}]}
            answers = await asyncio.gather(*(client.call("roots") for client in (one, two, one, two)))
        assert [text_of(answer) for answer in answers] == ["file:///one", "file:///two"] * 2


async def test_sessions_of_one_client_share_its_process(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"fixture": entry("per-client")}) as engine:
        await engine.wait_for("fixture", "ready")
        async with await legacy(engine) as one, await legacy(engine) as again, await legacy(engine, "cursor") as other:
            pids = [int(text_of(await client.call("pid"))) for client in (one, again, other)]
        assert pids[0] == pids[1] != pids[2]


async def test_a_modern_client_has_a_process_too(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"fixture": entry("per-client", "modern")}) as engine:
        shared = await engine.wait_for("fixture", "ready")
        url = f"{engine.client.address.url}/servers/fixture/mcp"
        async with ModernClient(url, await engine.client.token("script"), {}) as client:
            pids = {int(text_of(await client.call("pid"))) for _ in range(2)}
        assert len(pids) == 1
        assert shared.pid not in pids
