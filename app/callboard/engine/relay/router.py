"""Which server a request is for, and what the request is called there."""

from dataclasses import dataclass, replace
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
_JUDGED: Final = frozenset(
    {
        "tools/call",
        "prompts/get",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "completion/complete",
    }
)
_MEMBERS: Final = frozenset(
    {"_meta", "name", "arguments", "uri", "ref", "taskId", "argument", "requestState", "inputResponses"}
)
_FOLDED: Final = frozenset(member.casefold() for member in _MEMBERS)
_REFERENCES: Final = {"ref/prompt": "name", "ref/resource": "uri"}  # by type, the member that names it
Route = tuple[ServerLink, Params, str]  # link, parameters as the server wants them, the tool, prompt or URI there


@dataclass(frozen=True)
class Reference:
    """What a completion is for (2025-11-25, server/utilities/completion): a prompt's name or a template's URI."""

    type: str
    name: str

    @classmethod
    def of(cls, params: Params) -> "Reference":
        """Read ``ref``. Its type decides, as it does at the server; raises RpcError for one that is two at once."""
        try:
            ref = decode_params(params.get("ref", Raw(b"")))
        except msgspec.DecodeError:
            raise invalid("ref must be an object") from None
        kind = text_member(ref, "type")
        if kind not in _REFERENCES:
            raise invalid(f"ref.type must be one of {', '.join(_REFERENCES)}")
        if "name" in ref and "uri" in ref:
            raise invalid("ref has both a name and a uri")
        return cls(kind, text_member(ref, _REFERENCES[kind]))

    @property
    def is_prompt(self) -> bool:
        """Whether it is of a prompt, and else of a resource."""
        return self.type == "ref/prompt"

    def plain(self) -> dict[str, str]:
        """``ref`` with these members and no others."""
        return {"type": self.type, _REFERENCES[self.type]: self.name}


class Router:
    """Finds the way of each request. Owned by the relay; engine loop only."""

    def __init__(self, relay: "Relay") -> None:
        self._relay = relay

    def route(self, scope: str, caller: Caller, method: str, params: Params) -> Route:
        """The way of one caller's request; raises RpcError when there is none."""
        if not _MEMBERS.issuperset(params) and (method in _JUDGED or method.startswith("tasks/")):
            _refuse_lookalikes(params)
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
        reference = Reference.of(params)
        if scope:
            server, own = scope, reference.name
        else:
            view = self._relay.view("")
            owner = view.owner(PROMPTS, reference.name) if reference.is_prompt else view.owner_of_uri(reference.name)
            if owner is None:
                raise invalid(f"Unknown reference: {reference.name}")
            server, own = owner
        return self._relay.links[server], params | {"ref": raw_json(replace(reference, name=own).plain())}, ""

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


def _refuse_lookalikes(params: Params) -> None:
    """Refuse members that some servers would read as the one that was judged: they pass over upper and lower case."""
    for member in params:
        if member not in _MEMBERS and member.casefold() in _FOLDED:
            raise invalid(f"{member} is spelt like another member but for upper and lower case")


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
