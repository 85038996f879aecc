"""A function's signature as a tool's schema."""

import dataclasses
import enum
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pydantic
import pytest

from callboard.agents import Context
from callboard.agents.signatures import answers_requests, context_parameter, schema_of, tool_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict):
    depth: int
    note: NotRequired[str]


class Model(pydantic.BaseModel):
    name: str


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (int | None, {"type": ["integer", "null"]}),
        (str | list[int], {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Sequence[float], {"type": "array", "items": {"type": "number"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, Any], {"type": "object", "additionalProperties": {}}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"enum": ["red", "blue"]}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (Annotated[int, pydantic.Field(description="how many")], {"type": "integer", "description": "how many"}),
        (
            Point,
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                "required": ["x"],
            },
        ),
        (
            Options,
            {
                "type": "object",
                "properties": {"depth": {"type": "integer"}, "note": {"type": "string"}},
                "required": ["depth"],
            },
        ),
        (Any, {}),
        (object, {}),
        ("a name that is nowhere", {}),
    ],
    ids=str,
)
def test_annotations(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


def test_a_pydantic_model_tells_its_own() -> None:
    assert schema_of(Model) == Model.model_json_schema()


def test_a_function_as_a_tool() -> None:
    def roll(sides: int, count: int = 1, *, context: Context, exact: bool = True) -> dict[str, int]:
        """Roll dice.

        Several at once.

        Args:
            sides: How many sides
            count (int): How many dice

        Returns:
            What came.
        """
        return {}

    tool = tool_of(roll)
    assert tool.name == "roll"
    assert tool.description.startswith("Roll dice.\n\nSeveral at once.")
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "sides": {"type": "integer", "description": "How many sides"},
            "count": {"type": "integer", "description": "How many dice", "default": 1},
            "exact": {"type": "boolean", "default": True},
        },
        "additionalProperties": False,
        "required": ["sides"],
    }
    assert tool.output_schema == {"type": "object", "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
    ],
    ids=str,
)
def test_what_is_no_object_is_wrapped(hint: Any, schema: dict[str, Any]) -> None:
    def function() -> Any: ...

    function.__annotations__["return"] = hint
    assert tool_of(function).output_schema == {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
        "x-fastmcp-wrap-result": True,
    }


@pytest.mark.parametrize("hint", [Any, None, bytes, bytes | str, AsyncIterator[str]], ids=str)
def test_no_promise_is_made_of_what_json_cannot_hold(hint: Any) -> None:
    def function() -> Any: ...

    function.__annotations__["return"] = hint
    assert tool_of(function).output_schema is None


def test_which_functions_are_agents() -> None:
    def request(request: str) -> None: ...
    def prompt(prompt: str, context: Context, depth: int = 1) -> None: ...
    def text(text: str) -> None: ...
    def number(request: int) -> None: ...
    def two(request: str, other: str) -> None: ...
    async def generator(question: str) -> AsyncIterator[str]:
        yield question

    found = [each.__name__ for each in (request, prompt, text, number, two, generator) if answers_requests(each)]
    assert found == ["request", "prompt", "generator"]


def test_the_context_by_its_type_or_its_name() -> None:
    def typed(here: Context) -> None: ...
    def named(ctx) -> None: ...  # type: ignore[no-untyped-def]
    def other(context: str) -> None: ...

    assert [context_parameter(each) for each in (typed, named, other)] == ["here", "ctx", ""]


def test_parameters_without_a_name_in_json() -> None:
    def positional(x: int, /) -> None: ...

    with pytest.raises(TypeError, match="takes x only by position"):
        tool_of(positional)
