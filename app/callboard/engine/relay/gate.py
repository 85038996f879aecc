"""The gate before every request: whether this caller may make it, and the question to the person where its policy asks.

What is denied and what does not exist are answered alike, from the request and the rules alone: a client learns nothing
of what it may not use.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.names import JOINT
from callboard.core.policy import ALLOWED, Verdict
from callboard.core.policy_words import ItemKind
from callboard.core.protocol import RESOURCE_NOT_FOUND
from callboard.engine.policy.approvals import Item as ApprovalItem
from callboard.engine.policy.callers import Caller
from callboard.engine.relay.envelope import notification_bytes, raw_json
from callboard.engine.relay.errors import RpcError, failure, invalid
from callboard.engine.relay.exchange import Exchange
from callboard.engine.relay.router import OF_A_TASK, Reference, text_member
from callboard.engine.tasks import spawn
from callboard.engine.upstream.base import Params

if TYPE_CHECKING:
    from callboard.engine.relay.relay import Relay

Item = tuple[ItemKind, str]  # with the server's own name or URI
_BY_METHOD: Final[dict[str, ItemKind]] = {
    "tools/call": "tool",
    "prompts/get": "prompt",
    "resources/read": "resource",
    "resources/subscribe": "resource",
    "resources/unsubscribe": "resource",
}
_OUTSIDE: Final = Verdict("deny", "speaks of no tool, prompt or resource, and not all of the server is allowed")


class Gate:
    """Owned by the relay; engine loop only."""

    def __init__(self, relay: "Relay") -> None:
        self._relay = relay
        self._asking: dict[Exchange, asyncio.Task[None]] = {}

    def verdict(self, caller: Caller, method: str, server: str, params: Params, own: str) -> Verdict:
        """What becomes of a request that was routed; ``params`` and ``own`` are as the server names things.

        Raises RpcError for a task of another client, which is as unknown as one that never was.
        """
        kind = _BY_METHOD.get(method)
        if kind is not None:
            return caller.verdict(kind, server, own)
        if method == "completion/complete" and not caller.policy.covers(server):
            kind, name = _shown(method, params)
            verdict = caller.verdict(kind, server, name)
            return verdict if verdict.effect == "deny" else ALLOWED
        if method in OF_A_TASK:
            owners = self._relay.tasks.of(server, text_member(params, "taskId"))
            if owners:
                if caller.client not in owners:
                    raise invalid("Unknown task")
                return ALLOWED
        return ALLOWED if caller.policy.covers(server) else _OUTSIDE

    def check(self, caller: Caller, scope: str, method: str, server: str, params: Params, own: str) -> None:
        """Let a request pass that needs no question; raises what :meth:`refusal` says."""
        if self.verdict(caller, method, server, params, own).effect == "deny":
            raise self.refusal(caller, scope, method, params)

    def refusal(
        self, caller: Caller, scope: str, method: str, params: Params, unknown: RpcError | None = None
    ) -> RpcError:
        """The error of a request for what is denied, or does not exist (``unknown`` then says how that is told)."""
        if self.hides(caller, scope, method, params):
            return failure(denied(caller))
        return unknown or _unknown(method, params)

    def hides(self, caller: Caller, scope: str, method: str, params: Params) -> bool:
        """Whether the caller could not use what a request names, if it existed: by the name and the rules alone."""
        if caller.policy.is_open:
            return False
        if method not in _BY_METHOD and method != "completion/complete":
            return bool(scope) and not caller.policy.covers(scope)
        try:
            kind, shown = _shown(method, params)
        except RpcError:
            return False  # the request is wrong by itself
        if scope:
            return not caller.sees(kind, scope, shown)
        if kind == "resource":
            return not any(caller.sees(kind, server, shown) for server in self._relay.links)
        server, _, own = shown.partition(JOINT)
        return not caller.sees(kind, server, own)

    def ask(self, exchange: Exchange, server: str, own: str, verdict: Verdict, proceed: Callable[[], None]) -> None:
        """Ask the person whether a call may be made. Meanwhile the connection is kept alive.

        After a yes ``proceed`` submits it again: meanwhile the rules, the tool and its server may have become others.
        """
        exchange.deadline = exchange.expires = 0.0  # the person's time is not the server's
        task = spawn(self._ask(exchange, server, own, verdict, proceed), name=f"ask for {server}.{own}")
        self._asking[exchange] = task

    async def _ask(
        self, exchange: Exchange, server: str, own: str, verdict: Verdict, proceed: Callable[[], None]
    ) -> None:
        relay = self._relay
        item, mark = self._asked_for(exchange, server, own)
        try:
            choice = await relay.questions.ask(
                item,
                exchange.client,
                verdict.reason,
                bytes(exchange.params.get("arguments", b"")),
                seconds=relay.policies.ask_seconds,
                mark=mark,
                pattern=verdict.pattern,
                on_wait=lambda part: _tell_waiting(exchange, part),
            )
            if choice == "always":
                await relay.policies.approve(item, mark)
        except CallboardError as error:
            self._asking.pop(exchange, None)
            exchange.fail(error)
            return
        self._asking.pop(exchange, None)
        exchange.agreed, exchange.agreed_to = True, (item, mark)
        try:
            proceed()
        except msgspec.DecodeError as error:
            exchange.complete(invalid(f"Invalid params: {error}").answer())

    def _asked_for(self, exchange: Exchange, server: str, own: str) -> tuple[ApprovalItem, str]:
        kind = _BY_METHOD[exchange.method]
        return (exchange.caller.client, kind, server, own), self._relay.policies.mark(kind, server, own)

    def is_agreed(self, exchange: Exchange, server: str, own: str) -> bool:
        """Whether the person has said yes to this call, and to the tool as it is now.

        A later round of a call (2026-07-28, basic/patterns/mrtr) knows no more than that there was a yes.
        """
        if not exchange.agreed or exchange.agreed_to is None:
            return exchange.agreed
        return exchange.agreed_to == self._asked_for(exchange, server, own)

    def forget(self, exchange: Exchange) -> None:
        """A request is over: it need not be asked for any more."""
        task = self._asking.pop(exchange, None)
        if task is not None:
            task.cancel()


def denied(caller: Caller) -> CallboardError:
    """The one answer to everything that a client may not use."""
    return CallboardError("policy-denied", f"The client {caller.client} may not use this.")


def _tell_waiting(exchange: Exchange, part: float) -> None:
    """Show a client that its call is alive. From -1 up to 0, since the server's own progress must go on rising."""
    if exchange.token is not None:
        message = "Waiting for permission in Callboard"
        values = {
            "progressToken": exchange.token,
            "progress": raw_json(round(part, 3) - 1),
            "message": raw_json(message),
        }
        exchange.push(notification_bytes("notifications/progress", values))


def _shown(method: str, params: Params) -> Item:
    kind = _BY_METHOD.get(method)
    if kind is None:
        reference = Reference.of(params)
        return "prompt" if reference.is_prompt else "resource", reference.name
    return kind, text_member(params, "uri" if kind == "resource" else "name")


def _unknown(method: str, params: Params) -> RpcError:
    kind, shown = _shown(method, params)
    if kind == "resource":
        return RpcError(RESOURCE_NOT_FOUND, f"Resource not found: {shown}", {"uri": shown})
    return invalid(f"Unknown {kind}: {shown}")
