"""What becomes of requests upstream: waiting for an answer, and what answers say."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from callboard.core.errors import FIXES, CallboardError
from callboard.core.protocol import LATEST_LEGACY, META_SERVER, METHOD_NOT_FOUND, MODERN
from callboard.engine.relay.envelope import decode_json, error_answer
from callboard.engine.upstream.base import Answer, Closed, Params, ServerInfo


class Waiter:
    """The listener of a request of our own: a future for the answer."""

    wants_progress = False

    def __init__(self, on_progress: Callable[[Params], None] | None = None) -> None:
        self.future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.future.add_done_callback(_look)
        self._on_progress = on_progress
        if on_progress is not None:
            self.wants_progress = True

    def on_answer(self, answer: Answer) -> None:
        """Resolve the future."""
        if not self.future.done():
            self.future.set_result(answer)

    def on_gone(self, error: CallboardError) -> None:
        """Fail the future."""
        if not self.future.done():
            self.future.set_exception(error)

    def on_progress(self, params: Params) -> None:
        """Hand progress on, if anybody asked for it."""
        if self._on_progress is not None:
            self._on_progress(params)

    def on_notification(self, method: str, params: Params) -> None:
        """Nobody listens."""

    async def on_request(self, method: str, params: Params) -> Answer:
        """Requests of ours have no person behind them who could be asked."""
        return error_answer(METHOD_NOT_FOUND, f"{method} is not available here")


def _look(future: "asyncio.Future[Answer]") -> None:
    """Nobody need wait for an answer any more when it fails."""
    if not future.cancelled():
        future.exception()


def gone(closed: Closed) -> CallboardError:
    """The error of a request whose connection ended."""
    data = {key: value for key, value in (("exit_code", closed.code), ("signal", closed.signal)) if value is not None}
    return CallboardError("upstream-gone", f"The server ended: {closed.reason}.", data=data)


def error_code(answer: Answer) -> int:
    """The code of an error answer, 0 if there is none."""
    return int(_error(answer).get("code", 0) or 0)


def supported_revisions(answer: Answer) -> frozenset[str]:
    """What a server that refused a revision says that it speaks instead."""
    data = _error(answer).get("data")
    supported = data.get("supported") if isinstance(data, dict) else None
    return frozenset(map(str, supported)) if isinstance(supported, list) else frozenset()


def error_text(answer: Answer) -> str:
    """The message of an error answer, shortened."""
    return str(_error(answer).get("message") or "no reason given")[:300].rstrip(".")


def error_type(answer: Answer) -> str:
    """What kind of failure an error answer is: the code of an error of ours, else JSON-RPC's."""
    data = _error(answer).get("data")
    own = data.get("code") if isinstance(data, dict) else None
    return own if isinstance(own, str) and own in FIXES else str(error_code(answer))


def _error(answer: Answer) -> dict[str, Any]:
    if answer.error is None:
        return {}
    try:
        found = decode_json(answer.error)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("code", 0), int) else {}


def initialized(found: dict[str, Any]) -> ServerInfo:
    return _info(str(found.get("protocolVersion") or LATEST_LEGACY), False, found, found.get("serverInfo"))


def discovered(found: dict[str, Any]) -> ServerInfo:
    meta = found.get("_meta")
    return _info(MODERN, True, found, meta.get(META_SERVER) if isinstance(meta, dict) else None)


def _info(protocol: str, modern: bool, found: dict[str, Any], who: object) -> ServerInfo:
    identity = who if isinstance(who, dict) else {}
    capabilities = found.get("capabilities")
    return ServerInfo(
        protocol=protocol,
        modern=modern,
        name=str(identity.get("name") or ""),
        version=str(identity.get("version") or ""),
        instructions=str(found.get("instructions") or ""),
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        raw=identity,
    )
