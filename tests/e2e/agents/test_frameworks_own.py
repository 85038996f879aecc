"""What single frameworks have that others do not, through the gateway."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents.frameworks import CASES, ERAS, WEATHER, Caller, Case, conversation_of, kinds_of, ready
from tests.support.agent_environments import AgentEnvironments
from tests.support.engine import EngineProcess, Entry
from tests.support.mcp_client import mcp_client, text_of

pytestmark = pytest.mark.timeout(900)

BY_NAME = {case.framework: case for case in CASES}
MakeEntry = Callable[..., Entry]


@pytest.fixture
def entry_of(agent_environments: AgentEnvironments) -> MakeEntry:
    """Makes a roster's entry for a framework's agent."""

    def make(framework: str, attribute: str = "agent", **fields: Any) -> Entry:
        case: Case = BY_NAME[framework]
        return case.entry(agent_environments.python(framework), attribute, **fields)

    return make


async def test_pydantic_ai_hides_thoughts_unless_they_are_wanted(entry_of: MakeEntry, callboard_home: Path) -> None:
    servers = {"quiet": entry_of("pydantic-ai"), "aloud": entry_of("pydantic-ai", thoughts=True)}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, *servers)
        heard = {}
        for name in servers:
            async with mcp_client(engine, name) as client:
                dice = Caller(client, "dice")
                assert "secret" not in text_of(await dice("think of it"))
                heard[name] = dice.said
    assert "a secret thought" not in heard["quiet"]
    assert "a secret thought" in heard["aloud"]


@pytest.mark.parametrize(
    ("framework", "params", "request_", "answer"),
    [
        ("pydantic-ai", {"deps": {"name": "Ann"}}, "whoami", "whoami gave Ann"),
        ("openai-agents", {"context": {"name": "Ann"}, "max_turns": 3}, "whoami", "whoami gave Ann"),
        ("langgraph", {"config": {"configurable": {"name": "Ann"}}}, "hello", "asked by Ann"),
    ],
)
async def test_params(
    entry_of: MakeEntry, callboard_home: Path, framework: str, params: dict[str, Any], request_: str, answer: str
) -> None:
    servers = {"known": entry_of(framework, "known") | {"params": params}}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, "known")
        async with mcp_client(engine, "known") as client:
            assert text_of(await Caller(client, "known")(request_)) == answer


async def test_a_parameter_that_nothing_takes_is_an_error(entry_of: MakeEntry, callboard_home: Path) -> None:
    servers = {"dice": entry_of("pydantic-ai", restart={"max": 0}) | {"params": {"depth": 1}}}
    async with EngineProcess(callboard_home, servers) as engine:
        failed = await engine.wait_for("dice", "failed")
        assert failed.last_exit is not None
        assert "params are given" in "\n".join(failed.last_exit.stderr)


async def test_pydantic_ai_may_answer_with_text_or_json(entry_of: MakeEntry, callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"either": entry_of("pydantic-ai", "either")}) as engine:
        await ready(engine, "either")
        async with mcp_client(engine, "either") as client:
            either = Caller(client, "either")
            assert text_of(await either("say it")).strip() == "you said: say it"
            assert (await either("weather")).structured_content["result"] == WEATHER


@pytest.mark.parametrize("framework", ["pydantic-ai", "openai-agents"])
async def test_a_tool_that_a_person_must_allow_ends_the_call(
    entry_of: MakeEntry, callboard_home: Path, framework: str
) -> None:
    async with EngineProcess(callboard_home, {"careful": entry_of(framework, "careful")}) as engine:
        await ready(engine, "careful")
        async with mcp_client(engine, "careful") as client:
            careful = Caller(client, "careful")
            conversation = conversation_of(await careful("count"))
            waits = await careful("roll", conversation=conversation)
            assert waits.is_error
            assert "waits for a person to decide on: roll" in text_of(waits)
            assert text_of(await careful("count", conversation=conversation)) == "turn 2"


async def test_langgraph_asks_back(entry_of: MakeEntry, callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"asking": entry_of("langgraph", "asking")}) as engine:
        await ready(engine, "asking")
        async with mcp_client(engine, "asking") as client:
            asking = Caller(client, "asking")
            question = await asking("paint it")
            assert text_of(question) == "Which colour?"
            assert text_of(await asking("red", conversation=conversation_of(question))) == "red it is"


async def test_langgraph_graphs_without_messages_have_their_own_schema(
    entry_of: MakeEntry, callboard_home: Path
) -> None:
    servers = {
        "upper": entry_of("langgraph", "upper"),
        "whole": entry_of("langgraph", "upper", expose="whole") | {"params": {"input": "question", "output": "answer"}},
        "chain": entry_of("langgraph", "chain"),
        "add": entry_of("langgraph", "add"),
        "model": entry_of("langgraph", "model"),
    }
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, *servers)
        async with mcp_client(engine, "upper") as client:
            [tool] = await client.list_tools()
            assert set(tool.input_schema["properties"]) == {"question", "answer"}
            result = await client.call_tool("upper", {"question": "why?", "answer": ""})
            assert text_of(result) == "WHY?"
        async with mcp_client(engine, "whole") as client:
            assert text_of(await Caller(client, "upper")("why?")) == "WHY?"
        async with mcp_client(engine, "chain") as client:
            [tool] = await client.list_tools()
            assert tool.input_schema["required"] == ["topic"]
            result = await client.call_tool(tool.name, {"topic": "dice"})
            assert text_of(result).strip() == "you said: tell about dice"
        async with mcp_client(engine, "add") as client:
            assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
            wrong = await client.call_tool("add", {"a": 1, "b": "two"}, raise_on_error=False)
            assert wrong.is_error
        async with mcp_client(engine, "model") as client:
            [tool] = await client.list_tools()
            model = Caller(client, tool.name)
            first = await model("count")
            assert text_of(await model("count", conversation=conversation_of(first))) == "turn 2"


async def test_openai_agents_refuse_and_hand_over(entry_of: MakeEntry, callboard_home: Path) -> None:
    servers = {"guarded": entry_of("openai-agents", "guarded"), "desk": entry_of("openai-agents", "desk")}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, *servers)
        async with mcp_client(engine, "guarded") as client:
            guarded = Caller(client, "guarded")
            refused = await guarded("swear at me")
            assert refused.is_error
            assert "guardrail no_swearing has refused the request" in text_of(refused)
            assert text_of(await guarded("be kind")).startswith("you said")
        async with mcp_client(engine, "desk") as client:
            desk = Caller(client, "desk")
            first = await desk("count")
            assert "handed over to dice" in desk.said
            # the conversation goes on with the agent that it was handed to
            assert text_of(await desk("count", conversation=conversation_of(first))) == "turn 2"
            assert "handed over" not in desk.said


async def test_adk_errors_thoughts_and_artifacts(entry_of: MakeEntry, callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"dice": entry_of("google-adk")}) as engine:
        await ready(engine, "dice")
        for mode in ERAS:
            async with mcp_client(engine, "dice", mode=mode) as client:
                dice = Caller(client, "dice")
                overloaded = await dice("overloaded")
                assert overloaded.is_error
                assert "the model is overloaded" in text_of(overloaded).lower()
                assert "secret" not in text_of(await dice("think of it"))
                assert "secret" not in dice.said
                computed = await dice("compute it")
                assert [block.text for block in computed.content] == ["so it is:", "42", "done"]
                assert "→ code(print(6 * 7))" in dice.said
                saved = await dice("save this")
                assert kinds_of(saved) == ("text", "resource")
                resource = saved.content[1].resource
                assert resource.text == "kept"
                assert str(resource.uri).endswith("/note.txt")
                [again] = await client.read_resource(resource.uri)
                assert again.text == "kept"


async def test_adk_apps_runners_workflows_and_agents_without_a_model(entry_of: MakeEntry, callboard_home: Path) -> None:
    servers = {name: entry_of("google-adk", name) for name in ("app", "runner", "plain", "flow")}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, *servers)
        answers = {}
        for name in servers:
            async with mcp_client(engine, name) as client:
                [tool] = await client.list_tools()
                answers[name] = text_of(await Caller(client, tool.name)("hello")).strip()
    assert answers["app"] == answers["runner"] == "you said: hello"
    assert answers["plain"].startswith("for ")
    assert answers["flow"] == "HELLO"


async def test_smolagents_code_has_variables_of_its_conversation(entry_of: MakeEntry, callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"coder": entry_of("smolagents", "coder")}) as engine:
        await ready(engine, "coder")
        async with mcp_client(engine, "coder") as client:
            coder = Caller(client, "coder")
            kept = await coder("keep it")
            assert text_of(await coder("give it", conversation=conversation_of(kept))) == "42"
            await coder("give it")
            assert "`kept` is not defined" in coder.said


async def test_several_agents_of_agent_kernel_in_one_server(entry_of: MakeEntry, callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"both": entry_of("agentkernel", "both")}) as engine:
        await ready(engine, "both")
        async with mcp_client(engine, "both") as client:
            assert {tool.name for tool in await client.list_tools()} == {"dice", "second"}
            dice, second = Caller(client, "dice"), Caller(client, "second")
            conversation = conversation_of(await dice("count"))
            assert text_of(await second("count")) == "turn 1"
            assert text_of(await dice("count", conversation=conversation)) == "turn 2"


async def test_agent_kernel_labels_and_streams(entry_of: MakeEntry, callboard_home: Path) -> None:
    streaming = entry_of("agentkernel", "second") | {"params": {"stream": True}}
    servers = {"dice": entry_of("agentkernel"), "second": streaming}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, *servers)
        for mode in ERAS:
            async with mcp_client(engine, "dice", mode=mode) as client:
                dice = Caller(client, "dice")
                surface = await dice("surface")
                assert surface.structured_content == {"version": "v1.0"}
                assert surface.meta["media_type"] == "application/a2ui+json"
                assert text_of(surface) == '{"version":"v1.0"}'
                surfaces = await dice("surfaces")
                assert surfaces.structured_content == {"result": [{"id": 1}, {"id": 2}]}
                assert surfaces.meta["fastmcp"] == {"wrap_result": True}
                assert text_of(await dice("weather")) == '{"city": "Rome", "temp": 21.5}'
            async with mcp_client(engine, "second", mode=mode) as client:
                second = Caller(client, "second")
                assert text_of(await second("roll")).strip() == "rolled 4"
                assert "→ roll" in second.said
                assert "← 4" in second.said
