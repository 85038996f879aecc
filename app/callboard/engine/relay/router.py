"""Which server a request is for, and what the request is called there."""

from typing import TYPE_CHECKING, Final

import msgspec

from callboard.core.protocol import INVALID_PARAMS, RESOURCE_NOT_FOUND
from callboard.engine.policy.callers import Caller
from callboard.engine.relay.catalogue import PROMPTS, TOOLS, Kind
from callboard.engine.relay.envelope import Raw, decode_json, decode_params, raw_json
from callboard.engine.relay.errors import RpcError, invalid, unknown_method
from callboard.engine.relay.link import ServerLink
from callboard.engine.upstream.base import Params

if TYPE_CHECKING:
    from callboard.engine.relay.relay import Relay

OF_A_TASK: Final = frozenset({"tasks/get", "tasks/result", "tasks/cancel", "tasks/update"})
Route = tuple[ServerLink, Params, str]  # link, parameters as the server wants them, the tool, prompt or URI there


class Router:
    """Finds the way of each request. Owned by the relay; engine loop only."""

    def __init__(self, relay: "Relay") -> None:
        self._relay = relay

    def route(self, scope: str, caller: Caller, method: str, params: Params) -> Route:
        """The way of one caller's request; raises RpcError when there is none."""
        if method == "tools/call":
            return self._named(scope, TOOLS, params)
        if method == "prompts/get":
            return self._named(scope, PROMPTS, params)
        if method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
            return self._resource(scope, params)
        if method == "completion/complete":
            return self._completion(scope, params)
        if method.startswith("tasks/"):
            return self._task(scope, caller, method, params)
        if scope:
            return self._relay.links[scope], params, ""
        raise unknown_method(method)

    def _named(self, scope: str, kind: Kind, params: Params) -> Route:
        shown = text_member(params, "name")
        owner = self._relay.view(scope).owner(kind, shown)
        if owner is None:
            if not scope:
                raise RpcError(INVALID_PARAMS, f"Unknown {kind.capability.removesuffix('s')}: {shown}")
            if kind is TOOLS and self._hidden(scope, shown):
                raise RpcError(INVALID_PARAMS, f"Unknown tool: {shown}")
            # the list may not be read yet, or the server knows more than it lists
            return self._relay.links[scope], params, shown
        server, own = owner
        if own != shown:
            params = params | {"name": raw_json(own)}
        return self._relay.links[server], params, own

    def _hidden(self, server: str, tool: str) -> bool:
        return self._relay.servers.exposed(server, tool) != tool

    def _resource(self, scope: str, params: Params) -> Route:
        shown = text_member(params, "uri")
        if scope:
            return self._relay.links[scope], params, shown
        owner = self._relay.view("").owner_of_uri(shown)
        if owner is None:
            able = [
                link
                for link in self._relay.links.values()
                if link.upstream is not None and "resources" in link.upstream.info.capabilities
            ]
            if len(able) != 1:
                raise RpcError(RESOURCE_NOT_FOUND, f"Resource not found: {shown}", {"uri": shown})
            return able[0], params, shown
        server, own = owner
        if own != shown:
            params = params | {"uri": raw_json(own)}
        return self._relay.links[server], params, own

    def _completion(self, scope: str, params: Params) -> Route:
        if scope:
            return self._relay.links[scope], params, ""
        ref = decode_params(params.get("ref", Raw(b"")))
        view = self._relay.view("")
        if "name" in ref:
            name = text_member(ref, "name")
            owner, key = view.owner(PROMPTS, name), "name"
        else:
            name = text_member(ref, "uri")
            owner, key = view.owner_of_uri(name), "uri"
        if owner is None:
            raise invalid(f"Unknown reference: {name}")
        return self._relay.links[owner[0]], params | {"ref": raw_json(ref | {key: raw_json(owner[1])})}, ""

    def _task(self, scope: str, caller: Caller, method: str, params: Params) -> Route:
        if method not in OF_A_TASK and not (scope and method == "tasks/list"):
            raise unknown_method(method)
        if scope:
            return self._relay.links[scope], params, ""
        task_id = text_member(params, "taskId")
        for server, link in self._relay.links.items():
            if caller.client in self._relay.tasks.of(server, task_id):
                return link, params, ""
        raise invalid("Unknown task")


def text_member(params: Params, key: str) -> str:
    """A member that must be a string; raises RpcError."""
    raw = params.get(key)
    if raw is None:
        raise invalid(f"{key} is missing")
    try:
        text: str = decode_json(raw, str)
        return text
    except msgspec.DecodeError:
        raise invalid(f"{key} must be a string") from None
