"""For programs that embed agents: AgentServer, to_mcp_server and the registry."""

import asyncio
import io
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from callboard.agents import AgentRegistry, AgentServer, to_mcp_server
from callboard.agents.serving import say
from callboard.core.errors import CallboardError
from tests.unit.agents.agents_for_tests import Counter, GreeterAgent


@pytest.fixture
def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
    return port


@contextmanager
def started(server: AgentServer) -> Iterator[str]:
    """The server in a thread, as an embedding program may run it; its endpoint."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            server.start()
        except BaseException as error:  # noqa: BLE001  told to the test
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}/mcp"
    finally:
        server.stop()
        thread.join(15)
    assert not thread.is_alive()
    assert not failures


async def up(url: str) -> None:
    async with asyncio.timeout(20), httpx2.AsyncClient() as http:
        while True:
            try:
                await http.get(url.replace("/mcp", "/healthz"))
                return
            except httpx2.TransportError:
                await asyncio.sleep(0.05)


def texts(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


def test_what_is_assumed() -> None:
    server = AgentServer(GreeterAgent)
    assert (server.port, server.host, server.transport) == (8080, "localhost", "streamable-http")
    assert server.name == "GreeterAgent MCP"
    assert server.stop() is None  # type: ignore[func-returns-value]  # before it runs, it does nothing
    assert AgentServer(GreeterAgent, "My name", 1, "127.0.0.1").name == "My name"


@pytest.mark.parametrize(
    ("agent_class", "said"),
    [
        (dict, "dict must have get_mcp_tool_definitions and execute_mcp_tool"),
        (Counter, "Counter must have get_mcp_tool_definitions and execute_mcp_tool"),
        (42, "agent_class must be a class, not int"),
    ],
)
def test_what_is_no_agent_class(agent_class: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        AgentServer(agent_class)
    assert str(caught.value) == said


def test_parameters_that_the_class_does_not_take() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'bogus'"):
        AgentServer(GreeterAgent, agent_params={"bogus": 1})


def test_an_unknown_transport_is_an_error() -> None:
    with pytest.raises(ValueError, match="There is no transport 'sse'"):
        AgentServer(GreeterAgent, transport="sse")
    with pytest.raises(ValueError, match="There is no transport 'htpp'"):
        AgentServer(GreeterAgent).start("htpp")


def test_a_port_in_use_is_said_before_the_banner(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        server = AgentServer(GreeterAgent, host="127.0.0.1", port=sock.getsockname()[1])
        with pytest.raises(CallboardError, match="is in use"):
            server.start()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("typed", [False, True], ids=["untyped", "typed"])
async def test_it_serves_until_it_is_stopped(typed: bool, free_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    server = AgentServer(
        GreeterAgent,
        "Front desk",
        free_port,
        "127.0.0.1",
        verbose=True,
        agent_params={"word": "Hi"},
        register_typed_tools=typed,
    )
    with started(server) as url:
        await up(url)
        async with Client(StreamableHttpTransport(url), timeout=20) as client:
            tools = {tool.name: tool for tool in await client.list_tools()}
            assert tools["greet"].input_schema["required"] == (["name"] if typed else ["kwargs"])
            for arguments in ({"name": "Ann"}, {"kwargs": {"name": "Ann"}}, {"kwargs": '{"name": "Ann"}'}):
                result = await client.call_tool("greet", arguments)
                assert texts(result) == '{\n  "message": "Hi, Ann!"\n}'
                assert result.structured_content == (None if typed else {"result": {"message": "Hi, Ann!"}})
            (prompt,) = await client.list_prompts()
            assert texts_of_prompt(await client.get_prompt(prompt.name, {"who": "Ann"})) == "Welcome Ann!"
            (resource,) = await client.list_resources()
            assert (await client.read_resource(resource.uri))[0].text == "It greets."
        async with Client(StreamableHttpTransport(url), mode="legacy", timeout=20) as client:
            about = client.initialize_result.server_info
            assert (about.name, about.version) == ("Front desk", "2.0.0")
    banner = capsys.readouterr().out
    for line in (
        "Server: Front desk",
        "Agent: GreeterAgent",
        "Tools: 2",
        "  - greet: Greet a person by name",
        f"MCP Endpoint: {url}",
        "Verbose Mode: ENABLED",
        "Press Ctrl+C to stop",
    ):
        assert line in banner.splitlines()


def texts_of_prompt(result: Any) -> str:
    return "\n".join(message.content.text for message in result.messages)


def test_a_console_of_few_characters_is_no_obstacle() -> None:
    for encoding in ("cp1252", "cp437", "ascii"):
        written = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        say("Tools: 1\n  - greet: Grüßt 🚀", written)
        written.seek(0)
        assert "Tools: 1" in written.read()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_object_as_a_fastmcp_server(mode: str) -> None:
    server = to_mcp_server(Counter(), name="tally", instructions="Count.")
    async with Client(server, mode=mode) as client:
        (tool,) = await client.list_tools()
        assert (tool.name, tool.description) == ("tally", "Counts.")
        for number in (1, 2):
            assert texts(await client.call_tool("tally", {"request": "n"})) == f"n {number}"
        if mode == "legacy":
            assert client.initialize_result.instructions == "Count."
            assert client.initialize_result.server_info.name == "tally"


async def test_an_agents_own_name_and_instructions() -> None:
    async with Client(to_mcp_server(Counter()), mode="legacy") as client:
        assert [tool.name for tool in await client.list_tools()] == ["counter"]
        assert client.initialize_result.instructions == "Count with it."


async def test_a_runner_stands_in_for_the_agent() -> None:
    async with Client(to_mcp_server(object(), runner=Counter())) as client:
        assert [tool.name for tool in await client.list_tools()] == ["counter"]


def test_what_is_no_agent() -> None:
    with pytest.raises(TypeError, match="object is no agent that is known here"):
        to_mcp_server(object())


@pytest.mark.allow_logs
async def test_a_name_that_no_tool_can_have(caplog: pytest.LogCaptureFixture) -> None:
    async with Client(to_mcp_server(Counter(), name="other name!")) as client:
        (tool,) = await client.list_tools()
        assert (tool.name, tool.title) == ("other_name", "other name!")
    assert "it is called other_name" in caplog.text


@pytest.mark.parametrize("order", ["tools first", "agents first"])
async def test_tools_and_agents_in_any_order(order: str) -> None:
    registry = AgentRegistry()

    def add_tools() -> None:
        @registry.tool
        def custom_tool(param: str) -> str:
            """Processes."""
            return f"Processed: {param}"

        @registry.tool(name="numbers", description="Numbers.")
        def other() -> dict[str, int]:
            return {"n": 3}

    if order == "tools first":
        add_tools()
    registry.add(Counter())
    registry.add(Counter(), name="second")
    if order == "agents first":
        add_tools()
    async with Client(registry.server()) as client:
        assert {tool.name for tool in await client.list_tools()} == {"counter", "second", "custom_tool", "numbers"}
        result = await client.call_tool("custom_tool", {"param": "Hello!"})
        assert texts(result) == "Processed: Hello!"
        assert result.structured_content == {"result": "Processed: Hello!"}
        assert result.meta["fastmcp"] == {"wrap_result": True}
        assert (await client.call_tool("numbers", {})).structured_content == {"n": 3}


async def test_a_registry_changes_while_it_is_served() -> None:
    registry = AgentRegistry(expose=["*"])
    registry.add(Counter())
    changes = asyncio.Queue[str]()

    async def hear(message: Any) -> None:
        changes.put_nowait(getattr(message, "method", ""))

    async with Client(registry.server(), mode="legacy", message_handler=hear) as client:
        assert texts(await client.call_tool("counter", {"request": "n"})) == "n 1"
        registry.add(Counter(), name="late")
        registry.tool(double)
        async with asyncio.timeout(60):
            wanted = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}
            while wanted:
                wanted.discard(await changes.get())
        assert {tool.name for tool in await client.list_tools()} == {"counter", "late", "double"}
        assert texts(await client.call_tool("counter", {"request": "n"})) == "n 2"  # its conversation goes on
        registry.expose("l*")
        registry.remove("double")
        async with asyncio.timeout(60):
            while {tool.name for tool in await client.list_tools()} != {"late"}:
                await changes.get()


def double(number: int) -> int:
    return 2 * number


def test_names_are_taken_once() -> None:
    registry = AgentRegistry()
    registry.add(Counter())
    with pytest.raises(ValueError, match="there is an agent counter already"):
        registry.add(Counter())
    with pytest.raises(KeyError):
        registry.remove("nobody")
