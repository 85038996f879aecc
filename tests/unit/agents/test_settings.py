"""Settings of a served agent: from JSON, with the environment's overrides."""

import json
from typing import Any

import pytest

from callboard.agents.settings import AgentSettings, Limits, SettingsError, argument_aliases, read_settings
from callboard.core.roster import AgentEntry, AgentLimits


def settings(given: dict[str, Any] | None = None, **environment: str) -> AgentSettings:
    given = {"agent": "a:b"} | (given or {})
    return read_settings(environment | {"CALLBOARD_AGENT": json.dumps(given)})


def test_what_is_given() -> None:
    found = settings({"expose": ["*", "!x"], "typed": False, "limits": {"turns": 3}, "params": {"a": 1}})
    assert found.agent == ("a:b",)
    assert found.expose == ("*", "!x")
    assert found.typed is False
    assert found.limits == Limits(turns=3)
    assert found.params == {"a": 1}


def test_the_environment_stands_over_it() -> None:
    found = settings(
        {"expose": "tools", "typed": True, "limits": {"turns": 3, "queue": 2}},
        CALLBOARD_AGENT_AGENT="a:b, c:d",
        CALLBOARD_AGENT_EXPOSE="math, !history",
        CALLBOARD_AGENT_TYPED="no",
        CALLBOARD_AGENT_HEARTBEAT="2.5",
        CALLBOARD_AGENT_PARAMS='{"deep": [1]}',
        CALLBOARD_AGENT_NAME="My agent",
        CALLBOARD_AGENT_LIMITS_TURNS="7",
    )
    assert found.agent == ("a:b", "c:d")
    assert found.expose == ("math", "!history")
    assert found.typed is False
    assert found.heartbeat == 2.5
    assert found.params == {"deep": [1]}
    assert found.name == "My agent"
    assert found.limits == Limits(turns=7, queue=2)


@pytest.mark.parametrize("text", ['["m*", "x"]', "m*,x", " m* , x "])
def test_lists_in_the_environment_are_json_or_separated_by_commas(text: str) -> None:
    assert settings(CALLBOARD_AGENT_EXPOSE=text).expose == ("m*", "x")


def test_one_name_in_the_environment_is_a_list_of_one() -> None:
    assert settings(CALLBOARD_AGENT_EXPOSE="math").expose == ("math",)
    assert settings(CALLBOARD_AGENT_EXPOSE="whole").expose == "whole"


@pytest.mark.parametrize(
    ("given", "environment", "said"),
    [
        ({"agent": ""}, {}, "agent must name an agent"),
        ({"bogus": 1}, {}, "bogus is no setting"),
        ({"typed": "yes"}, {}, "typed must be true or false"),
        ({"name": 5}, {}, "name must be text"),
        ({"heartbeat": -1}, {}, "heartbeat must be a number"),
        ({"params": []}, {}, "params must be a mapping"),
        ({"expose": "all"}, {}, 'expose must be "auto", "tools", "whole" or a list'),
        ({"limits": {"turn": 1}}, {}, "limits has no turn"),
        ({"limits": {"turns": True}}, {}, "limits.turns must be a number"),
        ({"aliases": "docker"}, {}, 'there is no preset "docker"; there is gaia'),
        ({}, {"CALLBOARD_AGENT_TYPED": "perhaps"}, "CALLBOARD_AGENT_TYPED must be true or false"),
        ({}, {"CALLBOARD_AGENT_PARAMS": "{a"}, "CALLBOARD_AGENT_PARAMS is not JSON"),
        ({}, {"CALLBOARD_AGENT_LIMITS_TURNS": "many"}, "limits.turns must be a number"),
    ],
)
def test_what_cannot_be(given: dict[str, Any], environment: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(given, **environment)
    assert said in str(caught.value)


def test_what_is_no_json() -> None:
    with pytest.raises(SettingsError, match="CALLBOARD_AGENT is not JSON"):
        read_settings({"CALLBOARD_AGENT": "{"})


def test_other_names_for_all_tools_or_for_one() -> None:
    found = settings({"aliases": {"dir": "folder", "start": {"path": "appPath"}, "*": {"d": "depth"}}})
    assert argument_aliases(found, "start") == {"dir": "folder", "path": "appPath", "d": "depth"}
    assert argument_aliases(found, "stop") == {"dir": "folder", "d": "depth"}
    assert argument_aliases(settings({"aliases": "gaia"}), "any")["project_path"] == "appPath"


def test_the_rosters_fields_and_defaults_are_these() -> None:
    """What the roster leaves out is not handed over, so both must mean the same by it."""
    given = {"agent": "a:b"}
    entry, found = AgentEntry.model_validate(given), settings(given)
    for name in ("params", "expose", "name", "instructions", "typed", "stateless", "reload", "persist", "store"):
        assert getattr(entry, name) == getattr(found, name), name
    for name in ("attachments", "thoughts", "label", "heartbeat", "aliases"):
        assert getattr(entry, name) == getattr(found, name), name
    assert AgentLimits().model_dump() == {name: getattr(found.limits, name) for name in AgentLimits.model_fields}
