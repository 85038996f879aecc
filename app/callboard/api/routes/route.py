"""What a route is: a method, a path, and a handler whose signature says what goes in and what comes out."""

import contextlib
import inspect
import re
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, get_args, get_origin, get_type_hints
from urllib.parse import parse_qs, unquote

import msgspec

from callboard.core.errors import CallboardError
from callboard.engine.engine import Engine

_PARAMETER: Final = re.compile(r"\{(\w+)\}")


class Route:
    """One route of the control API.

    ``handler`` takes the engine, then by name: each parameter of ``path`` (text, a number or one of a choice), and if
    it wants them ``query`` (a Struct, each field with a default) and ``body`` (a Struct). What it returns is answered:

    - a shape of the schema, sent as JSON; ``None``: nothing (204); ``msgspec.Raw``: JSON as it is; ``str``: plain text
    - an async generator of lists of a shape: a stream of them, one JSON object a line, an empty line for an empty list

    It raises :class:`CallboardError`. Its docstring is what the API's document says of the route. ``media`` is the
    type of a plain text, where it is a special one. ``waits``: the handler waits for somebody else, and is cancelled if
    the client goes away meanwhile.
    """

    def __init__(
        self, method: str, path: str, handler: Callable[..., Any], *, media: str = "text/plain", waits: bool = False
    ) -> None:
        hints = get_type_hints(handler, include_extras=True)
        self.method = method
        self.path = path
        self.handler = handler
        self.media = media
        self.waits = waits
        self.parameters: dict[str, Any] = {name: hints[name] for name in _PARAMETER.findall(path)}
        self.query: Any = hints.get("query")
        self.body: Any = hints.get("body")
        self.answer: Any = hints["return"]
        self.topic = handler.__module__.rpartition(".")[2]
        self.summary = inspect.getdoc(handler) or ""
        self.streams = get_origin(self.answer) is AsyncGenerator
        if self.streams:
            (self.answer,) = get_args(get_args(self.answer)[0])
        self._pattern = re.compile(_PARAMETER.sub("([^/]+)", path))
        self._body: msgspec.json.Decoder[Any] | None = msgspec.json.Decoder(self.body) if self.body else None

    def match(self, path: str) -> dict[str, Any] | None:
        """The parameters in a path of this route; None for any other path."""
        found = self._pattern.fullmatch(path)
        if found is None:
            return None
        with contextlib.suppress(msgspec.ValidationError):
            return {
                name: msgspec.convert(unquote(text), kind, strict=False)
                for (name, kind), text in zip(self.parameters.items(), found.groups(), strict=True)
            }
        return None

    def arguments(self, query: str, body: bytes) -> dict[str, Any]:
        """What the handler is called with in addition; raises ``bad-request``."""
        arguments = {}
        if self.query is not None:
            values = {key: entries[-1] for key, entries in parse_qs(query, keep_blank_values=True).items()}
            try:
                arguments["query"] = msgspec.convert(values, self.query, strict=False)
            except msgspec.ValidationError as error:
                raise CallboardError("bad-request", f"The query is wrong: {error}.") from None
        if self._body is not None:
            try:
                arguments["body"] = self._body.decode(body)
            except (msgspec.DecodeError, RecursionError) as error:
                raise CallboardError("bad-request", f"The body is wrong: {error}.") from None
        return arguments

    def call(self, engine: Engine, arguments: dict[str, Any]) -> Any:
        """The handler's coroutine, or its async generator."""
        return self.handler(engine, **arguments)
