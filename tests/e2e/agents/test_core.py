"""The agents that come along, through the gateway: both eras, conversations, plain HTTP, reloading, and failures."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from tests.e2e.agents.frameworks import ready
from tests.support.engine import EngineProcess, Entry
from tests.support.mcp_client import LEGACY, MODERN, mcp_client, text_of

EXAMPLES = Path(__file__).parents[3] / "resources" / "examples"
ERAS = pytest.mark.parametrize("mode", [LEGACY, MODERN])


def example(spec: str, **fields: object) -> Entry:
    return {"agent": str(EXAMPLES / spec), **fields}


def agent(folder: Path, text: str, **fields: object) -> Entry:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "my_agent.py").write_text(text, encoding="utf-8")
    return {"agent": f"{folder}/my_agent.py:agent", **fields}


@ERAS
async def test_the_examples(mode: str, callboard_home: Path, tmp_path: Path) -> None:
    (tmp_path / "bread.md").write_text("Bread\n\nThe bread needs flour, water and salt.\n", encoding="utf-8")
    servers = {
        "dice": example("dice.py:Dice", params={"seed": 1}),
        "notes": example("folder.py", params={"folder": str(tmp_path)}),
        "counter": example("counter.py:counter"),
    }
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, *servers)
        async with mcp_client(engine, mode=mode) as client:
            names = {tool.name for tool in await client.list_tools()}
            assert names == {"dice__roll", "dice__history", "notes__folder", "counter__counter"}
            rolled = await client.call_tool("dice__roll", {"sides": 6, "count": 3})
            assert len(rolled.structured_content["rolled"]) == 3
            wrong = await client.call_tool("dice__roll", {"sides": "six"}, raise_on_error=False)
            assert wrong.is_error
            assert text_of(wrong) == "Invalid arguments: sides: 'six' is not of type 'integer'"
            found = await client.call_tool("notes__folder", {"request": "What does the bread need?"})
            assert "flour, water and salt" in text_of(found)
            assert found.content[1].type == "resource_link"
            heard: list[tuple[float, float | None]] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard.append((progress, total))

            counted = await client.call_tool("counter__counter", {"request": "count to 12"}, progress_handler=hear)
            assert text_of(counted) == "Counted to 12."
            assert heard == sorted(set(heard))
            assert heard[-1] == (12, 12)


@ERAS
async def test_conversations_and_clients_are_kept_apart(mode: str, callboard_home: Path) -> None:
    servers = {"counter": example("counter.py:counter")}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, "counter")
        async with (
            mcp_client(engine, "counter", mode=mode) as ann,
            mcp_client(engine, "counter", mode=mode, token_of="cursor") as bob,
        ):

            async def count(client: Any, **more: str) -> Any:
                result = await client.call_tool("counter", {"request": "1", **more}, raise_on_error=False)
                return result

            first = await count(ann)
            handle = first.structured_content["conversation"]
            assert first.meta["callboard/conversation"] == handle
            assert text_of(await count(ann, conversation=handle)) == "The count is 2 after 2 calls."
            by_default = text_of(await count(ann))
            assert by_default == (
                "The count is 3 after 3 calls." if mode == LEGACY else "The count is 1 after 1 calls."
            )
            assert text_of(await count(bob)) == "The count is 1 after 1 calls."
            stolen = await count(bob, conversation=handle)
            assert stolen.is_error
            assert text_of(stolen) == f"There is no conversation {handle}; leave it out to begin one."
            # nobody can pass for another client, or for another session, by saying so
            forged = await bob.call_tool(
                "counter",
                {"request": "1", "conversation": handle},
                meta={"callboard/client": "script"},
                raise_on_error=False,
            )
            assert forged.is_error


async def test_conversations_outlive_a_restart(callboard_home: Path) -> None:
    servers = {"counter": example("counter.py:counter", persist=True)}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, "counter")
        async with mcp_client(engine, "counter", mode=LEGACY) as client:
            first = await client.call_tool("counter", {"request": "40"})
            await engine.client.act("counter", "restart")
            await ready(engine, "counter")
            # the session goes on, and so does its conversation
            assert text_of(await client.call_tool("counter", {"request": "1"})) == "The count is 41 after 2 calls."
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, "counter")
        async with mcp_client(engine, "counter", mode=MODERN) as client:
            named = {"request": "1", "conversation": first.structured_content["conversation"]}
            assert text_of(await client.call_tool("counter", named)) == "The count is 42 after 3 calls."
    assert (callboard_home / "state" / "agents" / "counter.sqlite3").exists()


async def test_a_busy_agent_holds_up_nobody_else(callboard_home: Path, tmp_path: Path) -> None:
    source = (
        "import time\n"
        "def agent(request, context):\n"
        "    context.progress('begun')\n"
        "    while request == 'wait' and not context.is_cancelled: time.sleep(0.01)\n"
        "    return request\n"
    )
    async with EngineProcess(callboard_home, {"slow": agent(tmp_path, source)}) as engine:
        await ready(engine, "slow")
        begun = asyncio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        async with mcp_client(engine, "slow", mode=LEGACY) as one, mcp_client(engine, "slow", mode=LEGACY) as two:
            waiting = asyncio.create_task(one.call_tool("agent", {"request": "wait"}, progress_handler=hear))
            await begun.wait()
            assert await one.ping()
            assert text_of(await two.call_tool("agent", {"request": "quick"})) == "quick"
            assert not waiting.done()
            waiting.cancel()  # which the agent hears of, so that its conversation is free again
            await asyncio.wait([waiting])
            assert text_of(await one.call_tool("agent", {"request": "next"})) == "next"


async def test_a_call_that_takes_too_long_is_ended_whatever_it_does(callboard_home: Path, tmp_path: Path) -> None:
    source = (
        "import os, time\n"
        "def agent(request):\n"
        "    if request == 'block': time.sleep(600)\n"
        "    return str(os.getpid())\n"
    )
    slow = agent(tmp_path, source, timeouts={"call": 1}, limits={"grace": 0.2})
    async with EngineProcess(callboard_home, {"slow": slow}) as engine:
        await ready(engine, "slow")
        async with mcp_client(engine, "slow", mode=LEGACY) as client:
            first = text_of(await client.call_tool("agent", {"request": ""}))
            with pytest.raises(Exception, match="did not answer"):
                await client.call_tool("agent", {"request": "block"})
            async with asyncio.timeout(60):
                while psutil.pid_exists(int(first)):  # noqa: ASYNC110  it is another process
                    await asyncio.sleep(0.05)
            assert text_of(await client.call_tool("agent", {"request": ""})) != first


async def offered(client: Any) -> list[str]:
    return [tool.name for tool in await client.list_tools()]


async def test_an_agent_is_loaded_anew_and_its_clients_hear_of_it(callboard_home: Path, tmp_path: Path) -> None:
    servers = {"mine": agent(tmp_path, "def one() -> str:\n    return '1'\nagent = [one]\n", reload=True)}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, "mine")
        changed = asyncio.Event()

        async def hear(message: Any) -> None:
            if getattr(message, "method", "") == "notifications/tools/list_changed":
                changed.set()

        async with mcp_client(engine, "mine", mode=LEGACY, message_handler=hear) as client:
            assert await offered(client) == ["one"]
            await client.call_tool("one", {})
            # same length, same second: what Python compiled of the file before looks current
            (file,) = tmp_path.glob("*.py")
            second, rest = divmod(file.stat().st_mtime_ns, 10**9)
            agent(tmp_path, "def two() -> str:\n    return '2'\nagent = [two]\n")
            moment = second * 10**9 + (rest + 10**8) % 10**9
            os.utime(file, ns=(moment, moment))
            async with asyncio.timeout(60):
                while await offered(client) != ["two"]:  # an earlier word may come late
                    await changed.wait()
                    changed.clear()
            assert text_of(await client.call_tool("two", {})) == "2"


async def test_an_agent_that_cannot_be_loaded_says_where_it_is_wrong(callboard_home: Path, tmp_path: Path) -> None:
    servers = {"broken": agent(tmp_path, "import os\nvalue = 1 / 0\n", restart={"max": 0})}
    async with EngineProcess(callboard_home, servers) as engine:
        view = await engine.wait_for("broken", "failed")
        told = json.dumps([view.reason, *view.last_lines] if hasattr(view, "last_lines") else view.reason)
        log = "\n".join(line.text for line in (await engine.client.log("broken")).lines)
        assert "ZeroDivisionError" in told + log
        assert "my_agent.py, line 2" in told + log


async def test_files_can_be_read_afterwards_by_whose_they_are(callboard_home: Path, tmp_path: Path) -> None:
    source = (
        "from callboard.agents import Blob\n"
        "def agent(request):\n"
        "    return [Blob(request.encode(), 'application/pdf', 'a.pdf'), 'x' * 3000]\n"
    )
    servers = {"files": agent(tmp_path, source, limits={"result_kb": 1})}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, "files")
        async with (
            mcp_client(engine, "files", mode=MODERN) as ann,
            mcp_client(engine, "files", mode=MODERN, token_of="cursor") as bob,
        ):
            result = await ann.call_tool("agent", {"request": "%PDF-"})
            resource, cut, link = result.content
            (content,) = await ann.read_resource(resource.resource.uri)
            assert content.blob == "JVBERi0="
            assert cut.text.startswith("x" * 1024 + "… [1976 characters more")
            (whole,) = await ann.read_resource(link.uri)
            assert whole.text == "x" * 3000
            with pytest.raises(Exception, match=r"There is no|not found"):
                await bob.read_resource(link.uri)


async def test_plain_http_calls(callboard_home: Path) -> None:
    servers = {"dice": example("dice.py:Dice"), "counter": example("counter.py:counter")}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, *servers)
        url = engine.client.address.url
        headers = {"authorization": f"Bearer {await engine.token()}"}

        async with httpx2.AsyncClient(timeout=30) as http:

            async def post(path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
                answer = await http.post(url + path, json=body, **{"headers": headers, **more})
                return answer.status_code, answer.json()

            for path in ("/mcp/tools/dice__roll", "/mcp/tools/dice.roll", "/servers/dice/mcp/tools/roll"):
                status, answer = await post(path, {"sides": 6, "count": 2})
                assert status == 200
                assert (answer["success"], answer["status"]) == (True, "completed")
                assert len(answer["result"]["rolled"]) == 2
            _, first = await post("/mcp/tools/counter.counter", {"request": "3"})
            handle = first["_meta"]["callboard/conversation"]
            _, second = await post("/mcp/tools/counter.counter", {"request": "3", "conversation": handle})
            assert second["result"]["result"] == "The count is 6 after 2 calls."
            for path, body, status, code in (
                ("/mcp/tools/nope", {}, 404, "tool-unknown"),
                ("/mcp/tools/dice.nope", {}, 404, "tool-unknown"),
                ("/servers/dice/mcp/tools/nope", {}, 404, "tool-unknown"),
                ("/mcp/tools/dice.roll", [1], 400, "bad-request"),
                ("/mcp/tools/dice.roll", {"sides": 1}, 422, "tool-failed"),
                ("/servers/nobody/mcp/tools/x", {}, 404, "server-unknown"),
            ):
                got, answer = await post(path, body)
                assert got == status, path
                assert (answer.get("error") or answer)["code"] == code
            assert (await post("/mcp/tools/dice.roll", {}, headers={}))[0] == 401
            foreign = headers | {"origin": "http://evil.example"}
            assert (await post("/mcp/tools/dice.roll", {}, headers=foreign))[0] == 403
            assert (await http.get(f"{url}/mcp/tools/dice.roll", headers=headers)).status_code == 405
            bare = await http.post(f"{url}/mcp/tools/dice.history", headers=headers)
            assert (bare.status_code, bare.json()["result"]) == (200, [])
        page = await engine.client.calls(limit=50)
        assert {call.client for call in page.calls} == {"script"}
        assert {call.status for call in page.calls} == {"completed", "failed"}
