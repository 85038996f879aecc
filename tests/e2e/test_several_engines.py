"""Several engines behind a plain load balancer, with one PostgreSQL: what clients notice, and that nothing is lost."""

import asyncio
import contextlib
import itertools
import json
import re
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from callboard.api.schema import CallPage, CallView, EntryEdit
from callboard.core.errors import CallboardError
from tests.e2e.command_line import CommandLine
from tests.support.balancer import Balancer
from tests.support.engine import EngineProcess, fixture_entry
from tests.support.gateway import LegacyClient, ModernClient, text_of, until
from tests.support.postgresql import OWNER, PostgresServer

pytestmark = pytest.mark.timeout(300)  # two engines to start, and calls of a dead one to be ended by the other

SERVERS = {"one": fixture_entry("one", "modern"), "old": fixture_entry("old", "legacy")}
AGENT = '''
def agent(request, context):
    """Remembers what was said."""
    said = context.state.setdefault("said", [])
    said.append(request)
    return " ".join(said)
'''


class Group:
    """Engines that share a database, and the balancer in front of them."""

    def __init__(self, engines: list[EngineProcess], balancer: Balancer, wire: Balancer) -> None:
        self.engines = engines
        self.balancer = balancer
        self.wire = wire  # the way to the database

    @property
    def url(self) -> str:
        """The balancer's address, without a path."""
        return f"http://127.0.0.1:{self.balancer.port}"

    async def modern(self, server: str = "one", **capabilities: Any) -> ModernClient:
        """A client whose every request is a connection of its own, so that each goes to the next engine."""
        client = ModernClient(f"{self.url}/servers/{server}/mcp", await self.engines[0].token(), capabilities)
        client.headers["connection"] = "close"
        return client

    async def all_calls(self, asked: EngineProcess, **filters: str) -> list[CallView]:
        """Every call of the log that matches, as the engine that is asked tells."""
        found: list[CallView] = []
        while True:
            page: CallPage = await asked.client.calls(offset=len(found), limit=1000, **filters)
            found += page.calls
            if len(found) >= page.total:
                return found


@pytest.fixture
async def group(callboard_home: Path, postgresql: PostgresServer) -> AsyncIterator[Group]:
    """Two engines, "left" and "right", each with a home of its own."""
    database = postgresql.make_database()
    async with AsyncExitStack() as stack:
        wire = await stack.enter_async_context(Balancer(postgresql.socket))
        engines = []
        for name in ("left", "right"):
            environment = {
                "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
                "DATABASE_PASSWORD": "hunter2",
                "CALLBOARD_ENGINE_NAME": name,
            }
            engine = EngineProcess(callboard_home / name, environment=environment)
            address = f"postgresql://{OWNER}:${{env:DATABASE_PASSWORD}}@127.0.0.1:{wire.port}/{database}"
            engine.write_roster(SERVERS, storage=address)
            engines.append(await stack.enter_async_context(engine))
        for engine in engines:
            for server in SERVERS:
                await engine.wait_for(server, "ready")
        ports = [("127.0.0.1", (await engine.client.engine()).port) for engine in engines]
        balancer = await stack.enter_async_context(Balancer(*ports))
        yield Group(engines, balancer, wire)


async def test_a_token_of_one_engine_is_good_at_the_other(group: Group) -> None:
    left, right = group.engines
    assert await left.token() == await right.token()
    async with await group.modern() as client:
        for number in range(4):
            assert text_of(await client.call("echo", {"text": f"round {number}"})) == f"round {number}"
    assert len(set(group.balancer.taken)) == 2
    calls = await group.all_calls(left, tool="echo")
    assert Counter(call.engine for call in calls) == {"left": 2, "right": 2}
    assert await group.all_calls(right, tool="echo") == calls
    assert {call.engine for call in await group.all_calls(right, engine="left")} == {"left"}
    (check,) = [check for check in await right.client.doctor() if check.name == "storage"]
    assert check.status == "ok"
    assert check.message.endswith(" is shared by left, right; this engine is right.")
    assert "hunter2" not in check.message


async def test_an_engine_that_is_killed_loses_no_call_that_was_answered(group: Group) -> None:
    left, right = group.engines
    answered: list[str] = []
    numbers = itertools.count()
    killed = asyncio.Event()

    async def work(client: ModernClient) -> None:
        """Call until there were answers for some time after the kill; repeat what failed, as a client may."""
        later = 0
        while later < 25:
            text = f"call {next(numbers)}"
            while True:
                with contextlib.suppress(httpx2.HTTPError):
                    assert text_of(await client.call("echo", {"text": text})) == text
                    answered.append(text)
                    later += killed.is_set()
                    break

    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(await group.modern()) for _ in range(8)]
        workers = [asyncio.ensure_future(work(client)) for client in clients]
        await until(lambda: len(answered) >= 300 or any(worker.done() for worker in workers), seconds=60)
        left.kill()
        killed.set()
        await asyncio.gather(*workers)

    assert len(set(answered)) == len(answered) >= 500
    completed = Counter[str]()
    for call in await group.all_calls(right, tool="echo"):
        if call.status == "completed":
            completed[call.engine] += 1
    logged = await _texts(right, "completed")
    assert [text for text in answered if text not in logged] == []
    assert min(completed.values()) > 100, "both had their share"
    # what was in flight at the killed engine does not stay running for ever
    async with asyncio.timeout(90):
        while await group.all_calls(right, status="running"):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    for call in await group.all_calls(right, status="failed"):
        assert (call.engine, call.error) == ("left", "The engine ended during the call.")


async def _texts(engine: EngineProcess, status: str) -> set[str]:
    """What the log's calls of echo were asked to say."""
    found = set()
    total = (await engine.client.calls(limit=0, tool="echo", status=status)).total
    for offset in range(0, total, 1000):
        page = await engine.client.calls(offset=offset, limit=1000, tool="echo", status=status)
        for detail in await asyncio.gather(*(engine.client.call(call.id) for call in page.calls)):
            found.add(detail.arguments.partition('"text":')[2].strip(' "}'))
    return found


async def test_a_question_asked_by_one_engine_is_answered_to_the_other(group: Group) -> None:
    async with await group.modern(elicitation={}) as client:
        client.answers["elicitation/create"] = lambda _: {"action": "accept", "content": {"name": "Ada"}}
        answer = await client.call("elicit")
        assert text_of(answer) == "hello Ada / state of one"
        assert len(client.asked) == 1
        first, second = group.balancer.taken[-2:]
        assert first != second
        # three rounds, each with the engine that did not have the one before
        assert text_of(await client.call("rounds")) == "Ada and Ada"
        assert len(set(group.balancer.taken[-3:])) == 2


async def test_a_question_of_an_old_server_needs_its_engine(group: Group) -> None:
    async with await group.modern("old", elicitation={}) as client:
        client.answers["elicitation/create"] = lambda _: {"action": "accept", "content": {"name": "Ada"}}
        answer = await client.call("elicit")  # the call waits at the engine that asked
        assert answer["error"]["message"] == "The call that asked is over; begin it anew"
        group.balancer.targets[1:] = []
        assert text_of(await client.call("elicit")) == "hello Ada"


async def test_a_subscription_is_made_anew_with_the_other_engine(group: Group) -> None:
    async with await group.modern() as client:
        async with client.listening(toolsListChanged=True):
            here = group.engines[[port for _, port in group.balancer.targets].index(group.balancer.taken[-1][1])]
            here.kill()
        client.heard.clear()
        async with client.listening(number="again", toolsListChanged=True):
            await client.call("toggle")
            await until(lambda: client.of("notifications/tools/list_changed"), seconds=30)


async def test_a_session_of_the_older_eras_is_told_to_begin_anew(group: Group) -> None:
    token = await group.engines[0].token()
    async with LegacyClient(f"{group.url}/servers/one/mcp", token, {}) as client:
        client.headers["connection"] = "close"
        group.balancer.targets.reverse()
        only = group.balancer.targets.pop()
        await client.initialize()
        assert text_of(await client.call("echo", {"text": "here"})) == "here"
        group.balancer.targets[:] = [only]
        message = {"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}}
        assert (await client.post(message)).status_code == 404
        for header in ("mcp-session-id", "mcp-protocol-version"):
            del client.headers[header]
        await client.initialize()
        assert text_of(await client.call("echo", {"text": "there"})) == "there"


async def test_calls_go_on_while_the_database_is_away(group: Group) -> None:
    left, right = group.engines
    async with await group.modern() as client:
        await client.call("echo", {"text": "before"})
        await group.wire.cut()
        for number in range(20):
            assert text_of(await client.call("echo", {"text": f"away {number}"})) == f"away {number}"
        for engine in group.engines:
            codes = [notice.code for notice in (await engine.client.engine()).notices]
            assert "storage-away" in codes
            assert any(check.code == "storage-away" for check in await engine.client.doctor())
        with pytest.raises(CallboardError) as failed:
            await left.client.calls()
        assert failed.value.code == "storage-away"
        await group.wire.restore()
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(CallboardError):
                    if len(await group.all_calls(right, tool="echo", status="completed")) == 21:
                        break
                await asyncio.sleep(0.1)


async def test_a_conversation_goes_on_with_the_other_engine(group: Group, callboard_home: Path) -> None:
    (callboard_home / "my_agent.py").write_text(AGENT, encoding="utf-8")
    for engine in group.engines:
        entry = {"agent": f"{callboard_home}/my_agent.py:agent"}
        await engine.client.save_entry("talker", EntryEdit(entry=entry))
        await engine.wait_for("talker", "ready")
    async with await group.modern("talker") as client:
        first = await client.call("agent", {"request": "one"})
        handle = first["result"]["structuredContent"]["conversation"]
        for words in ("one two", "one two three", "one two three four"):
            answer = await client.call("agent", {"request": words.split()[-1], "conversation": handle})
            assert text_of(answer) == words
    assert len(set(group.balancer.taken)) == 2
    calls = await group.all_calls(group.engines[0], server="talker")
    assert Counter(call.engine for call in calls) == {"left": 2, "right": 2}


async def test_the_command_line_shows_whose_calls_they_are(group: Group, callboard_home: Path) -> None:
    left = CommandLine(callboard_home / "left")
    async with await group.modern() as client:
        for number in range(2):
            await client.call("echo", {"text": f"{number}"})
        head, *rows = (await left("calls", "--tool", "echo")).out.splitlines()
        assert head.split()[:4] == ["ID", "TIME", "ENGINE", "CLIENT"]
        assert sorted(row.split()[2] for row in rows) == ["left", "right"]
        (call,) = (await left("calls", "--engine", "right", "--tool", "echo", "--json")).json
        assert call["engine"] == "right"
        assert "right" in (await left("calls", str(call["id"]))).out
        # whoever follows the calls at one engine hears of the other's too
        async with left.running("calls", "-f", "-n", "2", "--tool", "echo", "--json") as following:
            told = [json.loads(await following.line()) for _ in range(2)]
            for number in range(4):
                await client.call("echo", {"text": f"later {number}"})
            async with asyncio.timeout(60):
                told += [json.loads(await following.line()) for _ in range(4)]
    assert len({each["id"] for each in told}) == 6
    assert Counter(each["engine"] for each in told) == {"left": 3, "right": 3}


async def test_an_engine_that_starts_before_its_database_lets_clients_in_once_it_is_there(
    callboard_home: Path, postgresql: PostgresServer
) -> None:
    database = postgresql.make_database()
    async with Balancer(postgresql.socket) as wire, httpx2.AsyncClient(trust_env=False, timeout=30) as http:
        address = f"postgresql://{OWNER}:hunter2@127.0.0.1:{wire.port}/{database}"
        environment = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring", "CALLBOARD_STORAGE": address}
        await wire.cut()
        async with EngineProcess(callboard_home, {"one": fixture_entry("one")}, environment=environment) as engine:
            url = (await engine.client.engine()).url
            assert (await http.get(f"{url}/healthz")).status_code == 503
            refused = await http.post(f"{url}/mcp", headers={"authorization": "Bearer cb_x"}, json={})
            assert (refused.status_code, refused.json()["code"]) == (503, "storage-away")
            await engine.wait_for("one", "ready")  # servers start all the same
            await wire.restore()
            async with asyncio.timeout(60):
                while (await http.get(f"{url}/healthz")).status_code != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            async with ModernClient(f"{url}/servers/one/mcp", await engine.token(), {}) as client:
                assert text_of(await client.call("echo", {"text": "at last"})) == "at last"
            assert "psycopg" in Path(f"/proc/{engine.pid}/maps").read_text()
            assert "hunter2" not in engine.output.read_text()
            assert "hunter2" not in (engine.paths.logs / "engine.log").read_text()


async def test_what_cannot_be_a_database_keeps_the_engine_from_starting(callboard_home: Path) -> None:
    for setting, said in (
        ("sqlite:///x", "CALLBOARD_STORAGE must be the address of a PostgreSQL database"),
        ("postgresql://u:${env:NOT_SET}@h/d", "The environment variable NOT_SET is not set."),
    ):
        engine = EngineProcess(callboard_home, {}, environment={"CALLBOARD_STORAGE": setting})
        process = engine.launch()
        assert await asyncio.to_thread(process.wait, 30) == 1
        assert said in engine.output.read_text()


async def test_without_the_setting_nothing_of_it_is_loaded(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"one": fixture_entry("one")}) as engine:
        await engine.wait_for("one", "ready")
        await engine.client.call_tool("one", "echo", {"text": "x"})
        assert [call.engine for call in (await engine.client.calls()).calls] == [""]
        maps = Path(f"/proc/{engine.pid}/maps").read_text()
        assert not re.search("sqlalchemy|psycopg|libpq|alembic", maps)


async def test_the_password_may_come_from_a_vault_that_engines_have_copies_of(
    callboard_home: Path, postgresql: PostgresServer
) -> None:
    database = postgresql.make_database()
    address = f"postgresql://{OWNER}:${{secret:db}}@/{database}?host={postgresql.folder}"
    passphrase = callboard_home / "passphrase"
    passphrase.write_text("correct horse\n", encoding="utf-8")
    environment = {"CALLBOARD_VAULT_PASSPHRASE_FILE": str(passphrase)}
    first = EngineProcess(callboard_home / "first", {}, environment=environment)
    async with first:
        await first.client.set_secret("db", "pass/word@")
    other = EngineProcess(callboard_home / "other", environment=environment)
    other.write_roster({}, storage=address)
    process = other.launch()
    assert await asyncio.to_thread(process.wait, 30) == 1
    assert "callboard secrets set db" in other.output.read_text()
    other.paths.state.mkdir(parents=True, exist_ok=True)
    shutil.copy(first.paths.state / "secrets.vault", other.paths.state)
    first.write_roster({}, storage=address)
    async with first, other:
        assert await first.token() == await other.token()
        for engine in (first, other):
            assert any(check.name == "storage" and check.status == "ok" for check in await engine.client.doctor())
