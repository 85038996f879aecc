"""Two servers of one agent that share a PostgreSQL database, as engines on two computers would."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp.shared.exceptions import MCPError

from tests.support.mcp_client import text_of
from tests.support.postgresql import PostgresServer

pytestmark = pytest.mark.timeout(120)

SOURCE = '''
import os, time
from pathlib import Path

HERE = Path(__file__).parent

def agent(request, context):
    """Remembers what was said; "wait" takes as long as there is a file of this name."""
    said = context.state.setdefault("said", [])
    said.append(request)
    (HERE / f"{os.environ['HOST']}-{request}").write_text("begun")
    while request.startswith("wait") and (HERE / request).exists() and not context.is_cancelled:
        time.sleep(0.01)
    return " ".join(said)
'''


@asynccontextmanager
async def host(name: str, folder: Path, store: str, **limits: float) -> AsyncIterator[Any]:
    """A client with a server of its own process, which has the agent's worker."""
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    settings = {"agent": f"{folder}/my_agent.py:agent", "store": store, "limits": limits}
    environment = {**os.environ, "CALLBOARD_AGENT": json.dumps(settings), "HOST": name}
    transport = StdioTransport(
        sys.executable,
        ["-m", "callboard.agents.host"],
        env=environment,
        keep_alive=False,
        log_file=folder / f"{name}.log",
    )
    async with Client(transport, timeout=60) as client:
        yield client


def server_of(folder: Path, name: str) -> psutil.Process:
    """The server's process."""
    for child in psutil.Process().children(recursive=True):
        if "callboard.agents.host" in child.cmdline() and child.environ().get("HOST") == name:
            return child
    raise AssertionError(f"{name} does not run: {(folder / f'{name}.log').read_text()}")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  other processes
            await asyncio.sleep(0.02)


@pytest.fixture
def place(tmp_path: Path, postgresql: PostgresServer) -> tuple[Path, str]:
    postgresql.ask("DROP TABLE IF EXISTS callboard_conversations", database="agents")
    (tmp_path / "my_agent.py").write_text(SOURCE, encoding="utf-8")
    return tmp_path, postgresql.address("owner", "agents")


def asked_for_turns(postgresql: PostgresServer) -> int:
    """How many servers have asked for a turn last."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_try_advisory_lock%'"
    return int(postgresql.ask(asked)[0][0])


async def say(client: Any, request: str, conversation: str = "") -> Any:
    named = {"conversation": conversation} if conversation else {}
    return await client.call_tool("agent", {"request": request, **named}, raise_on_error=False)


async def test_one_call_at_a_time_at_both(place: tuple[Path, str], postgresql: PostgresServer) -> None:
    folder, store = place
    async with host("one", folder, store) as one, host("two", folder, store) as two:
        first = await say(one, "a")
        handle = first.structured_content["conversation"]
        assert text_of(await say(two, "b", handle)) == "a b", "it is there as soon as it was answered"
        (folder / "wait").touch()
        slow = asyncio.create_task(say(one, "wait", handle))
        await until((folder / "one-wait").exists)
        waiting = asyncio.create_task(say(two, "c", handle))
        other = await say(two, "elsewhere")
        assert text_of(other) == "elsewhere", "other conversations do not wait"
        await until(lambda: asked_for_turns(postgresql) == 2)
        assert not (folder / "two-c").exists()
        (folder / "wait").unlink()
        assert text_of(await slow) == "a b wait"
        assert text_of(await waiting) == "a b wait c"
        assert text_of(await say(one, "d", handle)) == "a b wait c d"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there are no signals on Windows")
async def test_the_turn_of_a_server_that_was_killed_goes_on(place: tuple[Path, str]) -> None:
    folder, store = place
    async with (
        host("one", folder, store) as one,
        host("two", folder, store) as two,
        host("impatient", folder, store, wait=0.1) as impatient,
    ):
        handle = (await say(one, "a")).structured_content["conversation"]
        (folder / "wait").touch()
        lost = asyncio.create_task(say(one, "wait", handle))
        await until((folder / "one-wait").exists)
        waiting = asyncio.create_task(say(two, "b", handle))
        busy = await say(impatient, "c", handle)
        assert busy.is_error
        assert text_of(busy) == f"Conversation {handle} is busy in another engine; try again later."
        assert not waiting.done()
        server_of(folder, "one").kill()
        assert text_of(await waiting) == "a b", "what the killed one was at is lost, and nothing else"
        with pytest.raises(MCPError, match="Connection closed"):
            await lost
        assert text_of(await say(impatient, "d", handle)) == "a b d"
