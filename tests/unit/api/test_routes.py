import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any, Literal

import msgspec
import pytest

from callboard.api.routes import ROUTES
from callboard.api.routes.document import document
from callboard.api.routes.route import Route
from callboard.api.schema import ServerView, View
from callboard.core.errors import CallboardError
from callboard.engine.engine import Engine


class Query(View, frozen=True, kw_only=True):
    after: int = -1
    loud: bool = False


class Body(View, frozen=True, kw_only=True):
    text: str


async def tell(engine: Engine, name: str, word: Literal["yes", "no"], query: Query, body: Body) -> ServerView:
    """Tell a server something.

    It may not listen.
    """
    raise NotImplementedError


async def follow(engine: Engine, number: int) -> AsyncGenerator[list[ServerView], None]:
    """What is told."""
    yield []


TELL, FOLLOW = Route("POST", "/servers/{name}/{word}", tell), Route("GET", "/told/{number}", follow)


@pytest.mark.parametrize(
    ("route", "path", "found"),
    [
        (TELL, "/servers/one/yes", {"name": "one", "word": "yes"}),
        (TELL, "/servers/a%2Fb%20c/no", {"name": "a/b c", "word": "no"}),
        (TELL, "/servers/one/perhaps", None),
        (TELL, "/servers/one", None),
        (TELL, "/servers//yes", None),
        (TELL, "/servers/one/yes/", None),
        (FOLLOW, "/told/12", {"number": 12}),
        (FOLLOW, "/told/twelve", None),
    ],
)
def test_a_path_is_a_routes_own_if_its_parameters_are(route: Route, path: str, found: dict[str, Any] | None) -> None:
    assert route.match(path) == found


def test_query_and_body_come_as_their_shapes():
    arguments = TELL.arguments("after=5&loud=1&after=7&unknown=x", b'{"text": "hi", "unknown": 1}')
    assert arguments == {"query": Query(after=7, loud=True), "body": Body(text="hi")}
    assert TELL.arguments("", b'{"text": ""}')["query"] == Query()
    assert FOLLOW.arguments("after=5", b"") == {}


@pytest.mark.parametrize(
    ("query", "body", "words"),
    [
        ("after=now", b'{"text": ""}', "query is wrong"),
        ("loud=perhaps", b'{"text": ""}', "query is wrong"),
        ("", b"", "body is wrong"),
        ("", b'{"text": 5}', "body is wrong"),
        ("", b'{"text": "\xff"}', "body is wrong"),
        ("", b"[" * 100_000, "body is wrong"),
    ],
)
def test_what_is_not_of_a_shape_is_a_bad_request(query: str, body: bytes, words: str) -> None:
    with pytest.raises(CallboardError, match=words) as caught:
        TELL.arguments(query, body)
    assert caught.value.code == "bad-request"


def test_every_route_is_in_the_document_and_the_reverse():
    described = {
        (method.upper(), path) for path, operations in document(ROUTES)["paths"].items() for method in operations
    }
    assert described == {(route.method, route.path) for route in ROUTES}
    assert len(described) == len(ROUTES)
    assert ("GET", "/openapi.json") in described


def test_the_document_says_all_of_a_route():
    described = document([TELL, FOLLOW])
    operation = described["paths"]["/servers/{name}/{word}"]["post"]
    assert (operation["summary"], operation["description"]) == ("Tell a server something.", "It may not listen.")
    assert operation["parameters"] == [
        {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}},
        {"name": "word", "in": "path", "required": True, "schema": {"enum": ["no", "yes"]}},
        {"name": "after", "in": "query", "schema": {"type": "integer", "default": -1}},
        {"name": "loud", "in": "query", "schema": {"type": "boolean", "default": False}},
    ]
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Body"}
    server = {"schema": {"$ref": "#/components/schemas/ServerView"}}
    assert operation["responses"]["200"]["content"] == {"application/json": server}
    stream = described["paths"]["/told/{number}"]["get"]
    assert stream["responses"]["200"]["content"] == {"application/x-ndjson": server}
    assert described["components"]["schemas"].keys() >= {"Body", "ServerView", "ErrorView"}
    assert "Query" not in described["components"]["schemas"]


def test_the_document_is_whole():
    described = msgspec.to_builtins(document(ROUTES))
    components = described["components"]["schemas"]
    assert {reference.rpartition("/")[2] for reference in _references(described)} <= components.keys()
    operations = [operation for path in described["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    assert all(operation["summary"].endswith(".") for operation in operations)
    assert json.loads(json.dumps(described)) == described


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)
