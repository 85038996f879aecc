"""The OpenAPI 3.1 document of the control API, made of its routes and of the shapes that their handlers name."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from callboard import __version__
from callboard.api.routes.route import Route
from callboard.api.schema import API_PREFIX, ErrorView

Json = dict[str, Any]

_REFERENCE: Final = "#/components/schemas/{name}"
_DESCRIPTION: Final = (
    "Everything that Callboard's window and command line do, they do over these routes, and so may a script. "
    "They are served to programs on the engine's own computer, and not through a proxy, unless the roster says "
    "`gateway: {control: remote}`; what goes there is not encrypted. "
    "The token is the engine's own, not a client's: it stands with the address "
    "in the file `engine.json` of the runtime folder, and changes with each start. "
    "What is not 2xx is an ErrorView: a stable code, one sentence, and the fix."
)


def document(routes: Iterable[Route]) -> Json:
    """The document that describes these routes."""
    routes = list(routes)
    shapes = [kind for route in routes for kind in _shapes(route)] + [ErrorView]
    schemas, components = msgspec.json.schema_components(shapes, ref_template=_REFERENCE)
    found = iter(schemas)
    paths: dict[str, Json] = {}
    queries = set()
    for route in routes:
        described = {kind: next(found) for kind in _shapes(route)}
        if route.query is not None:
            queries.add(route.query.__name__)
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, described, components)
    content: Json = {
        "openapi": "3.1.0",
        "info": {"title": "Callboard", "version": __version__, "description": _DESCRIPTION},
        "servers": [{"url": API_PREFIX}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return content


def _shapes(route: Route) -> list[Any]:
    """What a document must describe of a route, each once."""
    kinds = [*route.parameters.values(), route.query, route.body, route.answer]
    return list(dict.fromkeys(kind for kind in kinds if kind not in (None, type(None))))


def _operation(route: Route, described: dict[Any, Json], components: dict[str, Json]) -> Json:
    first, _, rest = route.summary.partition("\n")
    operation: Json = {
        "operationId": f"{route.topic}.{route.handler.__name__}",
        "tags": [route.topic],
        "summary": first,
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": described[kind]}
                for name, kind in route.parameters.items()
            ),
            *_query(route, components),
        ],
        "responses": {**_answer(route, described), "default": _failure()},
    }
    if rest.strip():
        operation["description"] = rest.strip()
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": described[route.body]}},
        }
    return operation


def _query(route: Route, components: dict[str, Json]) -> list[Json]:
    if route.query is None:
        return []
    shape = components[route.query.__name__]
    return [{"name": name, "in": "query", "schema": schema} for name, schema in shape["properties"].items()]


def _answer(route: Route, described: dict[Any, Json]) -> Json:
    if route.answer is type(None):
        return {"204": {"description": "Done."}}
    media = "application/json"
    if route.streams:
        media = "application/x-ndjson"
    elif route.answer is str:
        media = route.media
    text = "One object a line." if route.streams else "The answer."
    return {"200": {"description": text, "content": {media: {"schema": described[route.answer]}}}}


def _failure() -> Json:
    return {
        "description": "It failed.",
        "content": {"application/json": {"schema": {"$ref": _REFERENCE.format(name=ErrorView.__name__)}}},
    }
