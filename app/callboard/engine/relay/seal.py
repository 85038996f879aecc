"""``requestState`` of ours: sealed, and bound to client, request and time (2026-07-28, basic/patterns/mrtr)."""

import base64
import hashlib
import hmac
import json
import secrets
import time
from typing import Final

import msgspec

from callboard.engine.relay.envelope import encode
from callboard.engine.storage.agreement import Agreement
from callboard.engine.upstream.base import Params

STATE_SECONDS: Final = 3600.0
_OF_THE_ROUND: Final = frozenset({"_meta", "inputResponses", "requestState"})


class _State(msgspec.Struct):
    expires: float
    caller: str
    digest: bytes
    parked: str  # which waiting call the answers belong to, empty if none waits
    inner: msgspec.Raw  # the server's own state as raw JSON, "null" if it gave none


_state = msgspec.json.Decoder(_State)


class Seal:
    """Makes and opens states. The key lives as long as the engine, or is what several engines agree on."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def share(self, agreement: Agreement) -> None:
        """Open the states of other engines, and let them open those of this one."""
        agreement.follow("request-state-key", self._key, self._agreed)

    def _agreed(self, key: bytes) -> None:
        self._key = key

    def make(self, caller: str, method: str, params: Params, *, parked: str = "", inner: bytes = b"null") -> str:
        """A state for the retry of one request by one caller."""
        state = _State(time.time() + STATE_SECONDS, caller, _digest(method, params), parked, msgspec.Raw(inner))
        body = encode(state)
        return base64.urlsafe_b64encode(self._sign(body) + body).decode()

    def open(self, text: str, caller: str, method: str, params: Params) -> tuple[str, bytes] | None:
        """Which waiting call and which inner state a state holds; None if it is forged, expired or somebody else's."""
        try:
            sealed = base64.urlsafe_b64decode(text)
            if base64.urlsafe_b64encode(sealed).decode() != text:
                return None  # the decoder passes over characters that are none of ours
            signature, body = sealed[:32], sealed[32:]
            if not hmac.compare_digest(signature, self._sign(body)):
                return None
            state = _state.decode(body)
        except (ValueError, msgspec.DecodeError):
            return None
        if state.expires < time.time() or state.caller != caller or state.digest != _digest(method, params):
            return None
        return state.parked, bytes(state.inner)

    def _sign(self, body: bytes) -> bytes:
        return hmac.new(self._key, body, hashlib.sha256).digest()


def _digest(method: str, params: Params) -> bytes:
    """What must be the same in the retry: everything but the answers and the metadata."""
    salient = {key: _spelt_alike(bytes(raw)) for key, raw in params.items() if key not in _OF_THE_ROUND}
    return hashlib.sha256(json.dumps([method, salient], sort_keys=True).encode()).digest()


def _spelt_alike(raw: bytes) -> str:
    try:
        return json.dumps(json.loads(raw, parse_int=_Whole), sort_keys=True)
    except (RecursionError, ValueError):
        return raw.decode("utf-8", "replace")  # whoever nests that deeply must spell it twice the same way


class _Whole(dict[str, str]):
    """A whole number as it is written: it may have more digits than Python likes to count."""

    def __init__(self, text: str) -> None:
        super().__init__({"": text})
