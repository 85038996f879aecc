"""Which tools a server has."""

from typing import Any

import pytest

from callboard.agents.contract import AdaptedAgent, ToolSpec, agent_to_wire
from callboard.agents.exposing import ExposeError, chosen, proper_name, tools_of
from callboard.agents.keeper import Keeper
from callboard.agents.settings import AgentSettings, make_settings


def agent(name: str, *tools: str, runs: bool = False, **more: Any) -> dict[str, Any]:
    made = AdaptedAgent(name)
    made.can_run = runs
    made.tools = [ToolSpec(tool, input_schema={"type": "object", "properties": {"x": {}}}) for tool in tools]
    return agent_to_wire(made) | more


def names(*agents: dict[str, Any], **given: Any) -> list[str]:
    return [tool.name for tool in found(*agents, **given)]


def found(*agents: dict[str, Any], **given: Any) -> Any:
    nothing: Any = None  # nothing is started
    keeper = Keeper(nothing, grace=1, on_agents=nothing, on_replace=nothing)
    keeper.agents = list(agents)
    settings: AgentSettings = make_settings({"agent": "a:b", **given})
    return tools_of([keeper], settings)


def test_the_tools_that_an_agent_uses_itself() -> None:
    """They are published only where they are asked for, each by itself or beside the agent, without conversations."""
    inner = agent("dice", "roll", "draw", runs=True, has_inner_tools=True)
    assert names(inner, expose="tools") == ["roll", "draw"]
    assert names(inner, expose="whole") == ["dice"]
    assert names(inner, expose=["*"]) == ["roll", "draw", "dice"]
    assert names(inner, expose=["dice"]) == ["dice"]
    assert [tool.converses for tool in found(inner, expose=["roll", "dice"])] == [False, True]
    keeping = agent("dice", "roll", runs=True, has_inner_tools=True, inner_tools_converse=True)
    assert [tool.converses for tool in found(keeping, expose="tools")] == [True]
    none = agent("dice", runs=True, no_tools="it has none")
    assert names(none) == names(none, expose=["*"]) == ["dice"]
    with pytest.raises(ExposeError, match=r'expose: tools of dice: it has none; as a single tool it is "whole"'):
        found(none, expose="tools")
    assert names(agent("plain", runs=True), expose="tools") == ["plain"]


def test_tools_or_the_whole_agent() -> None:
    both = agent("greeter", "greet", "part", runs=True)
    assert names(both) == ["greet", "part"]
    assert names(both, expose="whole") == ["greeter"]
    assert names(both, expose="whole", name="front desk") == ["front_desk"]
    assert names(agent("talker", runs=True)) == ["talker"]


def test_an_agent_that_only_has_tools_cannot_be_one() -> None:
    with pytest.raises(ExposeError, match="greeter answers no requests"):
        found(agent("greeter", "greet"), expose="whole")


def test_names_of_tools_are_chosen() -> None:
    tools = agent("all", "read_file", "read_dir", "write_file")
    assert names(tools, expose=["read_*"]) == ["read_file", "read_dir"]
    assert names(tools, expose=["!write_file"]) == ["read_file", "read_dir"]
    assert names(tools, expose=["*", "!read_*", "read_file"]) == ["write_file"]


def test_names_of_agents_are_chosen() -> None:
    agents = [agent("math", runs=True), agent("history", runs=True), agent("maths2", runs=True)]
    assert names(*agents, expose=["*", "math"]) == ["math", "history", "maths2"]
    assert names(*agents, expose=["m*", "!maths2"]) == ["math"]
    with pytest.raises(ExposeError, match="there is no maht; did you mean math"):
        found(*agents, expose=["maht"])
    with pytest.raises(ExposeError, match="there is no zzz; there is math, history, maths2"):
        found(*agents, expose=["*", "!zzz"])


def test_globs_that_match_nothing_are_no_mistake() -> None:
    assert chosen(["a"], ["z*"]) == set()


def test_several_agents_with_tools_of_one_name() -> None:
    assert names(agent("one", "run", "a"), agent("two", "run")) == ["one_run", "a", "two_run"]


def test_tools_that_are_always_there() -> None:
    custom = agent("extra", "extra", is_always_exposed=True)
    assert names(agent("math", runs=True), agent("old", runs=True), custom, expose=["math"]) == ["math", "extra"]


@pytest.mark.parametrize(
    ("name", "proper"), [("my_agent", "my_agent"), ("other name!", "other_name"), ("a/b:c", "a_b_c"), ("!!", "agent")]
)
def test_names_that_every_client_takes(name: str, proper: str) -> None:
    assert proper_name(name) == proper


def test_the_form_of_a_whole_agent() -> None:
    (tool,) = found(agent("my agent", runs=True))
    assert (tool.name, tool.title, tool.description) == ("my_agent", "my agent", "Run the my agent agent.")
    assert set(tool.input_schema["properties"]) == {"request", "conversation", "attachments"}
    assert tool.input_schema["required"] == ["request"]
    assert tool.annotations == {"openWorldHint": True}
    (careful,) = found(agent("a", runs=True, annotations={"readOnlyHint": True}))
    assert careful.annotations == {"readOnlyHint": True}
    assert set(tool.output_schema["properties"]) == {"result", "conversation"}
    (bare,) = found(agent("a", runs=True), stateless=True, attachments=False)
    assert set(bare.input_schema["properties"]) == {"request"}
    assert bare.output_schema is None


def test_a_tools_own_schema_is_published_as_it_is() -> None:
    (tool,) = found(agent("a", "greet"))
    assert tool.input_schema == {"type": "object", "properties": {"x": {}}}


def test_the_untyped_form() -> None:
    (tool,) = found(agent("a", "greet"), typed=False)
    assert tool.input_schema["required"] == ["kwargs"]
    assert tool.input_schema["properties"]["kwargs"]["anyOf"] == [
        {"type": "object", "properties": {"x": {}}},
        {"type": "string"},
    ]
    assert tool.output_schema["required"] == ["result"]
    assert tool.arguments.read({"x": 1}) == tool.arguments.read({"kwargs": '{"x": 1}'}) == {"x": 1}
