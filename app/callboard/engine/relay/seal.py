"""``requestState`` of ours: sealed, and bound to client, server, request and time (2026-07-28, basic/patterns/mrtr)."""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict
from typing import Final

import msgspec

from callboard.engine.relay.envelope import encode
from callboard.engine.storage.agreement import Agreement
from callboard.engine.upstream.base import Params

STATE_SECONDS: Final = 3600.0
MAX_SPENT: Final = 50_000  # states whose use is remembered
_OF_THE_ROUND: Final = frozenset({"_meta", "inputResponses", "requestState"})


class State(msgspec.Struct):
    """What a state holds once it was opened."""

    expires: float
    nonce: str
    caller: str
    server: str  # that asked
    digest: bytes
    agreed: bool  # the person was asked whether the call may be made, and agreed
    parked: str  # which waiting call the answers belong to, empty if none waits
    inner: msgspec.Raw  # the server's own state as raw JSON, "null" if it gave none


_state = msgspec.json.Decoder(State)


class Seal:
    """Makes and opens states. The key lives as long as the engine, or is what several engines agree on.

    What was used is remembered by each engine for itself. Engine loop only.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._spent: OrderedDict[str, float] = (
            OrderedDict()
        )  # nonces by when their states expire, in the order of their use
        self._oldest = 0.0  # what expires before this may have been used, and is refused

    def share(self, agreement: Agreement) -> None:
        """Open the states of other engines, and let them open those of this one."""
        agreement.follow("request-state-key", self._key, self._agreed)

    def _agreed(self, key: bytes) -> None:
        self._key = key

    def make(
        self,
        caller: str,
        server: str,
        method: str,
        params: Params,
        *,
        agreed: bool,
        parked: str = "",
        inner: bytes = b"null",
    ) -> str:
        """A state for the retry of one caller's request to one server; ``agreed`` as in :class:`State`."""
        body = encode(
            State(
                time.time() + STATE_SECONDS,
                secrets.token_urlsafe(12),
                caller,
                server,
                _digest(method, params),
                agreed,
                parked,
                msgspec.Raw(inner),
            )
        )
        return base64.urlsafe_b64encode(self._sign(body) + body).decode()

    def open(self, text: str, caller: str, method: str, params: Params) -> State | None:
        """What a state holds; None if it is forged, expired, used or somebody else's. The server is for the relay to
        compare, which knows where the request goes.

        A state is used by being opened; that of a waiting call counts as unused, as a call goes on only once.
        """
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
        if not state.parked and not self._spend(state):
            return None
        return state

    def _spend(self, state: State) -> bool:
        """Use a state up; False if it was used before, or may have been."""
        if state.nonce in self._spent or state.expires <= self._oldest:
            return False
        self._spent[state.nonce] = state.expires
        now = time.time()
        while len(self._spent) > MAX_SPENT or next(iter(self._spent.values())) < now:
            self._oldest = max(self._oldest, self._spent.popitem(last=False)[1])
        return True

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
