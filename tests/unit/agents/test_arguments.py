"""What clients send as arguments, and what a tool is called with."""

import logging
from typing import Any

import pytest

from callboard.agents.arguments import Arguments, ArgumentsError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "mode": {"enum": ["fast", "slow"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "opts": {
            "type": "object",
            "properties": {"depth": {"type": "integer"}},
            "required": ["depth"],
        },
        "note": {"type": ["string", "null"]},
        "class": {"type": "string"},
        "x-y": {"type": "string"},
    },
    "required": ["name"],
}


def read(given: dict[str, Any], aliases: dict[str, str] | None = None, schema: dict[str, Any] = SCHEMA) -> Any:
    return Arguments("tool", schema, aliases).read(given)


@pytest.mark.parametrize(
    "given",
    [{"name": "Ann", "port": 1}, {"kwargs": {"name": "Ann", "port": 1}}, {"kwargs": '{"name": "Ann", "port": 1}'}],
)
def test_plain_or_in_an_envelope(given: dict[str, Any]) -> None:
    assert read(given) == {"name": "Ann", "port": 1}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{name:Ann", "kwargs is not valid JSON: line 1 column 2"),
        ('{\n"name": }', "kwargs is not valid JSON: line 2 column 9"),
        ("[1,2]", "kwargs must be a JSON object, not an array"),
        ("null", "kwargs must be a JSON object, not null"),
        (None, "kwargs must be a JSON object, not null"),
        ('"str"', "kwargs must be a JSON object, not a str"),
        (True, "kwargs must be a JSON object, not a boolean"),
        ("", "kwargs is not valid JSON: line 1 column 1"),
    ],
)
def test_an_envelope_without_arguments_in_it(content: Any, said: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        read({"kwargs": content})
    assert str(caught.value) == said


def test_a_tools_own_kwargs_are_no_envelope() -> None:
    schema = {"type": "object", "properties": {"kwargs": {"type": "object"}}}
    assert read({"kwargs": {"a": 1}}, schema=schema) == {"kwargs": {"a": 1}}


def test_an_envelope_beside_other_arguments_is_none() -> None:
    assert read({"kwargs": {}, "name": "x"}) == {"kwargs": {}, "name": "x"}


@pytest.mark.parametrize("wrap", [dict, lambda given: {"kwargs": given}], ids=["plain", "enveloped"])
def test_other_names_of_arguments(wrap: Any) -> None:
    schema = {"type": "object", "properties": {"appPath": {"type": "string"}}, "required": ["appPath"]}
    aliases = {"app_dir": "appPath", "directory": "appPath"}
    assert read(wrap({"app_dir": "/a"}), aliases, schema) == {"appPath": "/a"}
    assert read(wrap({"appPath": "/a"}), aliases, schema) == {"appPath": "/a"}
    for both in ({"appPath": "/a", "app_dir": "/b"}, {"app_dir": "/a", "directory": "/b"}):
        with pytest.raises(ArgumentsError, match="are the same argument; give only one of them"):
            read(wrap(both), aliases, schema)


def test_an_argument_that_the_tool_has_is_no_alias() -> None:
    assert read({"name": "x", "mode": "fast"}, {"mode": "name"}) == {"name": "x", "mode": "fast"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "'name' is a required property"),
        ({"name": 5}, "name: 5 is not of type 'string'"),
        ({"name": "x", "port": 99999999}, "port: 99999999 is greater than the maximum of 65535"),
        ({"name": "x", "mode": "bogus"}, "mode: 'bogus' is not one of ['fast', 'slow']"),
        ({"name": "x", "opts": {}}, "opts: 'depth' is a required property"),
        ({"name": "x", "tags": ["a", 1]}, "tags[1]: 1 is not of type 'string'"),
        ({"name": "x", "class": 1}, "class: 1 is not of type 'string'"),
        ({"name": "x", "x-y": 1}, "x-y: 1 is not of type 'string'"),
    ],
)
def test_the_schema_is_enforced(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        read(given)
    assert str(caught.value) == said
    assert "\n" not in str(caught.value)


def test_null_counts_as_left_out_unless_the_schema_knows_it() -> None:
    assert read({"name": "x", "port": None, "note": None}) == {"name": "x", "note": None}
    with pytest.raises(ArgumentsError, match="name: None is not of type"):
        read({"name": None})


def test_lists_and_objects_that_come_as_text() -> None:
    given = {"name": '["a"]', "tags": '["a"]', "opts": '{"depth": 1}', "note": "[1]"}
    assert read(given) == {"name": '["a"]', "tags": ["a"], "opts": {"depth": 1}, "note": "[1]"}
    with pytest.raises(ArgumentsError, match="tags"):
        read({"name": "x", "tags": "[a"})


def test_a_long_complaint_is_cut() -> None:
    with pytest.raises(ArgumentsError) as caught:
        read({"name": "x", "mode": "y" * 5000})
    assert len(str(caught.value)) < 400


def test_a_schema_that_is_none_is_not_enforced(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert read({"a": 1}, schema={"type": "objekt"}) == {"a": 1}
    assert "is not valid" in caplog.text
