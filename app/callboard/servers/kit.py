"""What the shipped servers share: a quiet FastMCP, and errors that are sentences."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from typing import Any, Final, NoReturn

from pydantic import ValidationError

from callboard import __version__
from callboard.servers import importing_fastmcp

with importing_fastmcp():
    import mcp_types
    from fastmcp import FastMCP
    from fastmcp.exceptions import ToolError
    from fastmcp.exceptions import ValidationError as ArgumentError
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
    from fastmcp.tools import FunctionTool, ToolResult

READS_ONLY: Final = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_SUBJECT: Final = re.compile(r"^\w+ should")
USAGE: Final = 2  # exit code: the server cannot start as it was told to


def new_server(name: str, instructions: str) -> FastMCP[Any]:
    """A server that shows callers no details of faults, and arguments that are wrong as sentences."""
    # A call with wrong arguments is the caller's affair; it is no news for this server's own log.
    logging.getLogger("fastmcp").setLevel(logging.ERROR)
    return FastMCP(
        name, version=__version__, instructions=instructions, mask_error_details=True, middleware=[_Sentences()]
    )


def add_tool(
    server: FastMCP[Any], function: Callable[..., Any], title: str, output_schema: dict[str, Any] | None = None
) -> None:
    """Offer a function as a tool that only reads; its docstring is the description.

    Without ``output_schema``, the type that it returns says it. An argument that may be left out gets no default of
    null in the schema where null is no value.
    """
    schema: dict[str, Any] = {"output_schema": output_schema} if output_schema else {}
    annotations = mcp_types.ToolAnnotations.model_validate(READS_ONLY)
    tool = FunctionTool.from_function(function, title=title, annotations=annotations, **schema)
    for argument in tool.parameters.get("properties", {}).values():
        if "default" in argument and argument["default"] is None:
            del argument["default"]
    server.add_tool(tool)


def refused(sentence: str) -> ToolError:
    """The error that tells a caller why a call was not answered."""
    return ToolError(sentence, log_level=logging.DEBUG)


def text_block(text: str) -> mcp_types.TextContent:
    """A text as a part of an answer."""
    return mcp_types.TextContent(type="text", text=text)


def note_block(text: str, *, for_person: bool = False) -> mcp_types.TextContent:
    """A remark beside the answer proper; ``for_person``: a model need not know it."""
    annotations = mcp_types.Annotations(audience=["user"]) if for_person else None
    return mcp_types.TextContent(type="text", text=f"Note: {text}", annotations=annotations)


def give_up(server: str, sentence: str) -> NoReturn:
    """End the process: the server cannot do its work, for the reason that is said on stderr."""
    print(f"{server}: {sentence}", file=sys.stderr)  # noqa: T201
    raise SystemExit(USAGE)


def tell_person(server: str, sentence: str) -> None:
    """Say on stderr, which is the server's log, what the person who runs it should know."""
    print(f"{server}: {sentence}", file=sys.stderr, flush=True)  # noqa: T201


class _Sentences(Middleware):
    """Tells what is wrong with a call's arguments without repeating their values."""

    async def on_call_tool(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        try:
            return await call_next(context)
        except ArgumentError as error:
            if isinstance(error.__cause__, ValidationError):
                raise refused(_sentence(error.__cause__)) from None
            raise


def _sentence(error: ValidationError) -> str:
    clauses = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        # beyond its name and positions in it, the way to an argument tells of types of ours
        name = ".".join(str(step) for n, step in enumerate(problem["loc"]) if not n or isinstance(step, int))
        match problem["type"]:
            case "none_required":
                continue  # of a value that was given, that it is not left out
            case "missing_argument" | "missing":
                clauses.append(f"{name} is missing")
            case "unexpected_keyword_argument":
                clauses.append(f"there is no argument {name}")
            case _:
                said = problem["msg"].removeprefix("Value error, ")
                clauses.append(f"{name} {_SUBJECT.sub('must', said)}")
    return f"Wrong arguments: {'; '.join(clauses)}."
