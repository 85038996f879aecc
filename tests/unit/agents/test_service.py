"""A service over agents in this process, and over real workers."""

import asyncio
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from callboard.agents.conversations import Caller
from callboard.agents.link import AgentError
from callboard.agents.loading import adapt_all
from callboard.agents.results import META_CONVERSATION, META_TURN, Result
from callboard.agents.server import local_maker
from callboard.agents.service import META_ERROR, Service, UnknownError
from callboard.agents.settings import make_settings
from tests.unit.agents.agents_for_tests import Counter, GreeterAgent

ANN, BOB = Caller("ann", "session:1"), Caller("bob", "session:2")


@asynccontextmanager
async def serving(value: Any, **given: Any) -> AsyncIterator[Service]:
    settings = make_settings({"agent": "x:y", **given})
    service = Service(settings, [local_maker(adapt_all(value, settings.params))])
    await service.start()
    try:
        yield service
    finally:
        await service.close()


@asynccontextmanager
async def working(folder: Path, text: str, attribute: str = "agent", **given: Any) -> AsyncIterator[Service]:
    """A service whose agent lives in a worker process."""
    (folder / "my_agent.py").write_text(text, encoding="utf-8")
    service = Service(make_settings({"agent": f"{folder}/my_agent.py:{attribute}", **given}))
    await service.start()
    try:
        yield service
    finally:
        await service.close()


def text(result: Result) -> str:
    return "\n".join(block["text"] for block in result.content if block["type"] == "text")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  nothing tells when files are looked at
            await asyncio.sleep(0.01)


@pytest.mark.allow_logs
async def test_the_gaia_contract() -> None:
    async with serving(GreeterAgent, params={"word": "Hi"}) as service:
        result = await service.call("greet", {"name": "Ann", "class": "a", "x-y": None}, ANN)
        assert text(result) == '{\n  "message": "Hi, Ann!"\n}'
        assert result.structured is None
        assert not result.is_error
        failed = await service.call("fail", {}, ANN)
        assert failed.is_error
        assert '"error": "out of order"' in text(failed)
        raised = await service.call("greet", {"name": "boom"}, ANN)
        assert raised.is_error
        assert text(raised).startswith("KeyError: 'name' (error ")
        wrong = await service.call("greet", {"name": 5}, ANN)
        assert text(wrong) == "Invalid arguments: name: 5 is not of type 'string'"
        with pytest.raises(UnknownError):
            await service.call("nope", {}, ANN)
        assert await service.prompt("welcome", {"who": "Ann"}, ANN) == [
            {"role": "user", "content": {"type": "text", "text": "Welcome Ann!"}}
        ]
        (kept,) = await service.read("greeter://about", ANN)
        assert (kept.data, kept.media_type) == ("It greets.", "text/plain")


async def test_the_untyped_form_wraps_its_results() -> None:
    async with serving(GreeterAgent, typed=False) as service:
        for arguments in ({"name": "Ann"}, {"kwargs": {"name": "Ann"}}, {"kwargs": '{"name":"Ann"}'}):
            result = await service.call("greet", arguments, ANN)
            assert result.structured == {"result": {"message": "Hello, Ann!"}}
            assert text(result) == '{\n  "message": "Hello, Ann!"\n}'


@pytest.mark.allow_logs
async def test_errors_are_found_in_the_log_by_their_number(caplog: pytest.LogCaptureFixture) -> None:
    def agent(request: str) -> str:
        raise ValueError("kaboom secret=/root/x\nsecond line")

    async with serving(agent) as service:
        result = await service.call("agent", {"request": ""}, ANN)
    number = result.meta[META_ERROR]["id"]
    assert text(result) == f"ValueError: kaboom secret=*** second line (error {number})"
    assert f"Error {number}: Traceback" in caplog.text
    assert "/root/x" not in caplog.text


async def test_conversations_by_session_and_by_handle() -> None:
    async with serving(Counter, expose="whole") as service:
        first = await service.call("counter", {"request": "a"}, ANN)
        assert first.structured == {"result": "a 1", "conversation": first.meta[META_CONVERSATION]}
        second = await service.call("counter", {"request": "b"}, ANN)
        assert (text(second), second.meta[META_TURN]) == ("b 2", 2)
        assert text(await service.call("counter", {"request": "c"}, BOB)) == "c 1"
        handle = first.meta[META_CONVERSATION]
        third = await service.call("counter", {"request": "d", "conversation": handle}, Caller("ann"))
        assert text(third) == "d 3"
        foreign = await service.call("counter", {"request": "e", "conversation": handle}, BOB)
        assert foreign.is_error
        assert text(foreign) == f"There is no conversation {handle}; leave it out to begin one."


async def test_a_conversation_is_one_agents(tmp_path: Path) -> None:
    source = "def maths(request): return 'm'\ndef history(request): return 'h'\nboth = [maths, history]\n"
    async with working(tmp_path, source, "both", persist=True) as service:
        first = await service.call("maths", {"request": ""}, ANN)
        handle = first.meta[META_CONVERSATION]
        other = await service.call("history", {"request": "", "conversation": handle}, ANN)
        assert text(other) == f"There is no conversation {handle}; leave it out to begin one."
        assert (await service.call("history", {"request": ""}, ANN)).meta[META_CONVERSATION] != handle


async def test_conversations_are_counted_and_shown_to_whose_they_are() -> None:
    async with serving(Counter, expose="whole", persist=True) as service:
        mine = await service.call("counter", {"request": "a"}, ANN)
        await service.call("counter", {"request": "a"}, ANN)
        await service.call("counter", {"request": "a"}, BOB)
        (kept,) = await service.read("agent://counter/conversations", ANN)
        told = json.loads(kept.data)
        assert (told["held"], told["limit"], told["stored"]) == (2, 500, 2)
        ((only,),) = [told["yours"]]
        assert (only["id"], only["turns"]) == (mine.meta[META_CONVERSATION], 2)
    async with serving(Counter, expose="whole", stateless=True) as service:
        with pytest.raises(UnknownError):
            await service.read("agent://counter/conversations", ANN)


async def test_a_stateless_server_adds_nothing() -> None:
    async with serving(Counter, expose="whole", stateless=True) as service:
        for _ in range(2):
            result = await service.call("counter", {"request": "a"}, ANN)
            assert (result.content, result.structured, result.meta) == ([{"type": "text", "text": "a 1"}], None, {})


async def test_attachments_reach_the_agent() -> None:
    def agent(request: str, context: Any) -> list[Any]:
        return [repr(each) for each in context.attachments]

    async with serving(agent) as service:
        given = [
            {"data": "aGk=", "mimeType": "text/plain", "name": "a.txt"},
            {"uri": "https://example.org/b.png", "mimeType": "image/png"},
            {"uri": "data:text/plain;base64,aGk="},
            {"uri": "data:text/plain,a%20b"},
        ]
        said = text(await service.call("agent", {"request": "", "attachments": given}, ANN))
        assert "Blob(data=b'hi', media_type='text/plain', name='a.txt')" in said
        assert "Link(uri='https://example.org/b.png'" in said
        assert said.count("data=b'hi'") == 2
        assert "data=b'a b'" in said
        for wrong, why in (
            ({"data": "*"}, "attachments[0].data is not base64"),
            ({"name": "x"}, "attachments[0] needs data or uri"),
        ):
            result = await service.call("agent", {"request": "", "attachments": [wrong]}, ANN)
            assert text(result) == f"Invalid arguments: {why}"
    async with serving(agent, limits={"attachment_kb": 1}) as service:
        result = await service.call("agent", {"request": "", "attachments": [{"data": "aaaa" * 1000}]}, ANN)
        assert text(result) == "Invalid arguments: the attachments are larger than 1 KiB"


async def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    source = (
        "import os\n"
        "def agent(request, context):\n"
        "    context.state['n'] = context.state.get('n', 0) + 1\n"
        "    if request == 'die': os._exit(3)\n"
        "    return f\"{os.getpid()} {context.state['n']}\"\n"
    )
    async with working(tmp_path, source) as service:
        first = await service.call("agent", {"request": ""}, ANN)
        died = await service.call("agent", {"request": "die"}, ANN)
        assert died.is_error
        assert text(died) == "The agent's worker ended during the call (exit code 3)"
        named = {"request": "", "conversation": first.meta[META_CONVERSATION]}
        lost = await service.call("agent", named, ANN)
        assert "ended with the agent's process; begin a new one" in text(lost)
        again = await service.call("agent", {"request": ""}, ANN)
        assert text(again).split()[1] == "1"
        assert text(again).split()[0] != text(first).split()[0]


@pytest.mark.allow_logs
async def test_a_call_that_does_not_heed_its_end_takes_the_worker_along(tmp_path: Path) -> None:
    source = (
        "import os, time\n"
        "def agent(request, context):\n"
        "    context.state['n'] = context.state.get('n', 0) + 1\n"
        "    if request == 'block': context.progress('begun'); time.sleep(600)\n"
        "    return f\"{os.getpid()} {context.state['n']}\"\n"
    )
    async with working(tmp_path, source, limits={"grace": 0.2}, persist=True) as service:
        first = text(await service.call("agent", {"request": ""}, ANN))
        begun = asyncio.Event()

        async def report(progress: float, total: float | None, message: str) -> None:
            begun.set()

        call = asyncio.create_task(service.call("agent", {"request": "block"}, ANN, report=report))
        await begun.wait()
        call.cancel()
        await asyncio.wait([call])
        # the same conversation waits for the end of the call that was cancelled, then goes on in a new worker
        again = text(await service.call("agent", {"request": ""}, ANN))
        assert again.split()[0] != first.split()[0]
        assert again.split()[1] == "2"
        with pytest.raises(ProcessLookupError):
            os.kill(int(first.split()[0]), 0)


async def test_conversations_outlive_the_server(tmp_path: Path) -> None:
    source = (
        "def agent(request, context):\n"
        "    context.state.setdefault('said', []).append(request)\n"
        "    return ' '.join(context.state['said'])\n"
    )
    async with working(tmp_path, source, persist=True) as service:
        first = await service.call("agent", {"request": "a"}, ANN)
    async with working(tmp_path, source, persist=True) as service:
        named = {"request": "b", "conversation": first.meta[META_CONVERSATION]}
        assert text(await service.call("agent", named, ANN)) == "a b"
        assert (await service.call("agent", named, BOB)).is_error


async def test_a_changed_file_is_loaded_anew(tmp_path: Path) -> None:
    def source(word: str) -> str:
        return (
            "def agent(request, context):\n"
            "    context.state['n'] = context.state.get('n', 0) + 1\n"
            f"    return f\"{word} {{context.state['n']}}\"\n"
        )

    async with working(tmp_path, source("old"), reload=True) as service:
        changes = []
        service.on_change = lambda: changes.append(True)
        assert text(await service.call("agent", {"request": ""}, ANN)) == "old 1"
        (tmp_path / "my_agent.py").write_text(source("new") + "agent.__doc__ = 'Changed.'\n", encoding="utf-8")
        await until(lambda: bool(changes))
        assert service.tools["agent"].description == "Changed."
        assert text(await service.call("agent", {"request": ""}, ANN)) == "new 2"  # the conversation goes on


@pytest.mark.allow_logs
async def test_a_change_with_a_mistake_leaves_the_old_agent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with working(tmp_path, "def agent(request):\n    return 'old'\n", reload=True) as service:
        (tmp_path / "my_agent.py").write_text("def agent(request):\n    return 'new'\n)\n", encoding="utf-8")
        await until(lambda: "the old one stays" in caplog.text)
        assert "line 3" in caplog.text
        assert text(await service.call("agent", {"request": ""}, ANN)) == "old"


async def test_an_agent_that_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"ZeroDivisionError in .*my_agent\.py, line 1"):
        async with working(tmp_path, "1 / 0\n"):
            pass


async def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"the interpreter /not/there cannot be started: No such file"):
        async with working(tmp_path, "", python="/not/there"):
            pass


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there are no signals on Windows")
async def test_a_worker_that_is_killed_says_how(tmp_path: Path) -> None:
    source = "import os, signal\ndef agent(request):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    async with working(tmp_path, source) as service:
        assert text(await service.call("agent", {"request": ""}, ANN)).endswith("(signal 9)")


async def test_several_agents_in_one_server(tmp_path: Path) -> None:
    source = "def maths(request): return 'm'\ndef history(request): return 'h'\nboth = [maths, history]\n"
    async with working(tmp_path, source, "both", expose=["*", "!history"]) as service:
        assert list(service.tools) == ["maths"]
    async with working(tmp_path, source, "both") as service:
        assert text(await service.call("history", {"request": ""}, ANN)) == "h"


async def test_what_is_said_in_the_log_of_a_talkative_server(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(GreeterAgent) as service:
        service.verbose = True
        with caplog.at_level(logging.INFO):
            await service.call("greet", {"name": "sk-SECRET"}, ANN)
    assert "greet is called with name" in caplog.text
    assert "SECRET" not in caplog.text
