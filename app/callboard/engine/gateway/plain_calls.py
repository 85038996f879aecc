"""Tool calls by plain HTTP, for scripts: ``POST /mcp/tools/NAME`` with the arguments as a JSON object."""

import contextlib
from typing import Any

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.trace_context import from_headers
from callboard.engine.gateway.http import Headers, Receive, Send, read_body, respond, status_of, while_client_waits
from callboard.engine.manual_call import call_tool
from callboard.engine.policy.callers import Caller
from callboard.engine.relay.catalogue import TOOLS
from callboard.engine.relay.envelope import raw_json
from callboard.engine.relay.gate import denied
from callboard.engine.relay.relay import Relay


class PlainCalls:
    """Answers ``{"success", "status", "result"}``, or an error in ``"error"`` with a fitting HTTP status.

    The calls are those of any client: same names, same rules, same log. Engine loop only.
    """

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    async def __call__(
        self, method: str, scope: str, tool: str, caller: Caller, headers: Headers, receive: Receive, send: Send
    ) -> None:
        """Answer one request of ``caller`` for a tool of ``scope`` ("" for all servers)."""
        if method != "POST":
            await respond(send, 405, headers=((b"allow", b"POST"),))
            return
        try:
            arguments = _arguments(await read_body(receive), headers.get(b"content-type", b""))
            server, own = await self._find(scope, tool, caller)
            meta = from_headers(headers) if self._relay.tracing is not None else None
            calling = call_tool(self._relay, server, own, arguments, caller=caller, meta=meta)
            result = _decoded(await while_client_waits(calling, receive))
        except CallboardError as error:
            answer = {"code": error.code, "message": error.message, "fix": error.fix}
            await respond(
                send, status_of(error), msgspec.json.encode({"success": False, "status": "failed", "error": answer})
            )
            return
        if result.get("isError") is True:
            answer = {"code": "tool-failed", "message": _text(result) or "The tool failed.", "fix": ""}
            body: dict[str, Any] = {"success": False, "status": "failed", "error": answer}
            if isinstance(meta := result.get("_meta"), dict):
                body["_meta"] = meta
            await respond(send, 422, msgspec.json.encode(body))
            return
        await respond(send, 200, msgspec.json.encode(completed(result)))

    async def _find(self, scope: str, tool: str, caller: Caller) -> tuple[str, str]:
        """The scope to call in, and the tool's name there: a wire name, or server.tool.

        Raises ``tool-unknown``, or ``policy-denied`` for a name that the caller could not use if it were one.
        """
        if not scope and not await self._is_listed("", tool):
            server, dot, own = tool.partition(".")
            if dot and not caller.sees("tool", server, own):
                raise denied(caller)
            if not dot or server not in self._relay.links:
                raise self._unknown("", tool, caller, f'There is no tool "{tool}".')
            scope, tool = server, own
        if scope and self._relay.links[scope].upstream is not None and not await self._is_listed(scope, tool):
            raise self._unknown(scope, tool, caller, f'{scope} has no tool "{tool}".')
        return scope, tool

    def _unknown(self, scope: str, tool: str, caller: Caller, message: str) -> CallboardError:
        hidden = self._relay.gate.hides(caller, scope, "tools/call", {"name": raw_json(tool)})
        return denied(caller) if hidden else CallboardError("tool-unknown", message)

    async def _is_listed(self, scope: str, tool: str) -> bool:
        """Whether a tool of this name is offered, once all lists have been read that can have it."""
        if self._relay.view(scope).owner(TOOLS, tool) is not None:
            return True
        for server in [scope] if scope else list(self._relay.links):
            await self._relay.catalogue.settled(server)
        return self._relay.view(scope).owner(TOOLS, tool) is not None


def completed(result: dict[str, Any]) -> dict[str, Any]:
    """A result as plain JSON: structured content unwrapped, else the text, which is parsed where it is JSON.

    What is no text stands under "content" as well, so that nothing is lost.
    """
    content = [block for block in result.get("content") or [] if isinstance(block, dict)]
    structured, meta = result.get("structuredContent"), result.get("_meta")
    value: Any
    if structured is not None:
        value = structured
        if isinstance(structured, dict) and structured.keys() == {"result"}:
            value = structured["result"]
    else:
        value = _parsed(_text(result))
    answer: dict[str, Any] = {"success": True, "status": "completed", "result": value}
    if any(block.get("type") != "text" for block in content):
        answer["content"] = content
    if isinstance(meta, dict) and meta:
        answer["_meta"] = meta
    return answer


def _arguments(body: bytes, content_type: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    if not content_type.lower().startswith(b"application/json"):
        raise CallboardError("bad-request", "Content-Type must be application/json.")
    try:
        arguments = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CallboardError("bad-request", f"The body is not JSON: {error}.") from error
    if not isinstance(arguments, dict):
        raise CallboardError("bad-request", "The body must be a JSON object of arguments.")
    return arguments


def _parsed(text: str) -> Any:
    if text[:1] in ("{", "["):
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            return msgspec.json.decode(text)
    return text


def _text(result: dict[str, Any]) -> str:
    blocks = result.get("content")
    texts = [block.get("text") for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        result = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise CallboardError("call-refused", "The server's answer cannot be read.") from error
    return result if isinstance(result, dict) else {}
