"""Calls that need no MCP client, from the window, the command line or a script: as any client's, log included."""

from typing import Any

import msgspec

from callboard.core.errors import FIXES, CallboardError, fix_for
from callboard.core.protocol import RESOURCE_NOT_FOUND
from callboard.engine.policy.callers import Caller
from callboard.engine.relay.envelope import raw_json
from callboard.engine.relay.exchange import CANCELLED, Exchange
from callboard.engine.relay.relay import Relay
from callboard.engine.upstream.base import Answer, Params


async def call_tool(
    relay: Relay,
    server: str,
    tool: str,
    arguments: dict[str, Any],
    *,
    caller: Caller,
    meta: dict[str, str] | None = None,
) -> bytes:
    """MCP's result object as raw JSON, ``isError`` included; raises CallboardError for a call that was not made.

    ``meta`` goes into the request's ``_meta``.
    """
    params = {"name": raw_json(tool), "arguments": raw_json(arguments)}
    if meta:
        params["_meta"] = raw_json(meta)
    return await request(relay, server, "tools/call", params, caller=caller)


async def request(relay: Relay, server: str, method: str, params: Params, *, caller: Caller) -> bytes:
    """The result of any request that a client may make, as raw JSON; raises CallboardError if there is none."""
    if not relay.scope_exists(server):
        raise CallboardError("disabled", f"{server} is disabled.", fix=fix_for("disabled", server))
    exchange = Exchange(
        client=caller.client,
        caller=caller,
        owner=f"{caller.client} {object()!r}",
        request_id=b"1",
        method=method,
        params=params,
        modern=False,
        on_done=relay.done,
    )
    try:
        relay.submit(server, exchange, None)
        while not await exchange.wait():
            exchange.messages.clear()
            exchange.streaming = False
        if exchange.kept is not None:
            await exchange.kept.wait()
    finally:
        if not exchange.done:
            exchange.cancel("the caller went away")
    answer = exchange.answer or CANCELLED
    if answer.result is None:
        raise _refused(answer, method)
    return bytes(answer.result)


def _refused(answer: Answer, method: str) -> CallboardError:
    error: dict[str, Any] = msgspec.json.decode(answer.error or b"{}")
    message = str(error.get("message", "The server refused the call."))
    data = error.get("data")
    own = data.get("code") if isinstance(data, dict) else None
    if isinstance(data, dict) and own in FIXES:
        more = {key: value for key, value in data.items() if key not in ("code", "fix")}
        return CallboardError(own, message, fix=str(data.get("fix", "")), data=more)
    names_uri = isinstance(data, dict) and "uri" in data
    if error.get("code") == RESOURCE_NOT_FOUND or (method == "resources/read" and names_uri):
        return CallboardError("resource-unknown", f"The server refused: {message.rstrip('.')}.")
    return CallboardError("call-refused", f"The server refused the call: {message.rstrip('.')}.")
