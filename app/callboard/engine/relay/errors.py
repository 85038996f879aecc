"""A request that is answered with a JSON-RPC error of ours."""

from typing import Any

from callboard.core.errors import CallboardError
from callboard.core.protocol import INVALID_PARAMS, METHOD_NOT_FOUND, SERVER_ERROR
from callboard.engine.relay.envelope import error_answer
from callboard.engine.upstream.base import Answer


class RpcError(Exception):
    """Raised while a request is understood and routed; turned into the client's answer."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def answer(self) -> Answer:
        """The error as an answer."""
        return error_answer(self.code, self.message, self.data)


def unknown_method(method: str) -> RpcError:
    """No such method here."""
    return RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")


def invalid(message: str) -> RpcError:
    """The parameters are wrong."""
    return RpcError(INVALID_PARAMS, message)


def foreign_state() -> RpcError:
    """The ``requestState`` is not one that was given to this client for this request."""
    return invalid("requestState is not valid for this request")


def failure(error: CallboardError) -> RpcError:
    """An error of ours, with its code and fix for programs."""
    return RpcError(SERVER_ERROR, error.message, {**error.data, "code": error.code, "fix": error.fix})
