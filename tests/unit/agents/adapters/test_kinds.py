"""How adapters tell what an object is, and what they make of small things."""

import sys
from types import ModuleType

import pytest

from callboard.agents.adapters import agent_kernel, find_adapter, google_adk, langgraph, openai_agents, pydantic_ai
from callboard.agents.adapters import smolagents as smol
from callboard.agents.adapters.kinds import family, is_kind, of_objects, parsed, take_params


def made_by(module: str, name: str, **attributes: object) -> type:
    """A class that looks as if ``module`` had defined it."""
    return type(name, (), {"__module__": module, **attributes})


def test_a_kind_is_told_by_the_names_of_its_classes() -> None:
    base = made_by("google.adk.agents.base_agent", "BaseAgent")
    own = type("Mine", (base,), {"__module__": "my_agents"})
    assert is_kind(own, "google.adk", "BaseAgent")
    assert is_kind(own(), "google.adk", "BaseAgent", "App")
    assert not is_kind(own(), "google.adk", "App")
    assert not is_kind(made_by("google.adkish", "BaseAgent")(), "google.adk", "BaseAgent")
    assert not is_kind("BaseAgent", "google.adk", "BaseAgent")


@pytest.mark.parametrize(
    ("adapter", "module", "name"),
    [
        (google_adk, "google.adk.agents.llm_agent", "BaseAgent"),
        (google_adk, "google.adk.apps.app", "App"),
        (google_adk, "google.adk.runners", "Runner"),
        (agent_kernel, "agentkernel.core.base", "Agent"),
        (pydantic_ai, "pydantic_ai.agent.abstract", "AbstractAgent"),
        (smol, "smolagents.agents", "MultiStepAgent"),
        (langgraph, "langchain_core.runnables.base", "Runnable"),
        (langgraph, "langgraph.graph.state", "StateGraph"),
    ],
)
def test_each_framework_is_known_without_being_there(adapter: ModuleType, module: str, name: str) -> None:
    assert adapter.matches(made_by(module, name)())
    assert not adapter.matches(made_by("my_agents", name)())
    assert module not in sys.modules


def test_another_package_called_agents_is_not_taken_for_openais() -> None:
    theirs = made_by("agents.agent", "Agent", handoffs=[], model_settings=None)
    assert openai_agents.matches(theirs())
    assert not openai_agents.matches(made_by("agents.agent", "Agent")())
    assert not openai_agents.matches(made_by("agents.dice", "Agent", handoffs=[], model_settings=None)())


def test_an_agent_of_a_framework_that_is_not_imported_is_nobodys() -> None:
    assert find_adapter(made_by("google.adk.agents.base_agent", "BaseAgent")()) is None


def test_params_of_the_adapter_are_kept_from_the_agent() -> None:
    assert take_params({"deps": 1, "retries": 2}, ["deps"]) == ({"deps": 1}, {"retries": 2})


def test_arguments_are_values_where_they_are_json() -> None:
    assert parsed('{"a": 1}') == {"a": 1}
    assert parsed("{a") == "{a"
    assert parsed({"a": 1}) == {"a": 1}


def test_families_of_media() -> None:
    assert [family(each) for each in ("image/png", "audio/wav", "video/mp4", "application/pdf", "")] == [
        "image",
        "audio",
        "video",
        "document",
        "document",
    ]


def test_only_schemas_of_objects_are_published() -> None:
    assert of_objects({"type": "object", "properties": {}}) == {"type": "object", "properties": {}}
    assert of_objects({"anyOf": [{"type": "string"}, {"type": "object"}]}) is None
    assert of_objects({"type": "array"}) is None
