"""What a sign-in did, step by step, with what was sent and received; secrets never enter it."""

import time
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from callboard.api.sign_in_schema import SignInRequest, SignInStep, StepName, StepState
from callboard.core.redact import MASK

STEPS: Final[tuple[StepName, ...]] = ("discovery", "registration", "authorisation", "token")
LONGEST: Final = 4096  # characters of a body that are kept
_SECRET: Final = frozenset(
    {
        *("code", "state", "code_verifier", "access_token", "refresh_token", "id_token", "token", "client_secret"),
        *("client_assertion", "assertion", "registration_access_token", "password", "nonce"),
    }
)


class Trace:
    """The steps of one sign-in. Engine loop only."""

    def __init__(self) -> None:
        self.began = time.time()
        self.steps = {name: SignInStep(name=name) for name in STEPS}
        self.current: StepName = "discovery"

    def enter(self, name: StepName) -> None:
        """The next step begins; the one before is done."""
        if name != self.current:
            self.finish()
        self.current = name
        self._set(state="running")

    def note(self, text: str) -> None:
        """What came of the present step, one clause."""
        self._set(note=text)

    def finish(self, state: StepState = "done") -> None:
        """The present step has ended."""
        if self.steps[self.current].state == "running":
            self._set(state=state)

    def add(self, request: SignInRequest) -> None:
        """An exchange of the present step."""
        self._set(requests=[*self.steps[self.current].requests, request])

    def _set(self, **changes: Any) -> None:
        self.steps[self.current] = msgspec.structs.replace(self.steps[self.current], **changes)


def masked_url(url: str) -> str:
    """An address without the secrets of its query."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=masked_form(parts.query))) if parts.query else url


def masked_form(text: str) -> str:
    """A form (or query) with its secrets masked."""
    pairs = parse_qsl(text, keep_blank_values=True)
    return urlencode([(key, MASK if key in _SECRET else value) for key, value in pairs], safe="*:/ ").replace("+", " ")


def masked_json(value: Any) -> Any:
    """Plain values with their secrets masked."""
    if isinstance(value, dict):
        return {key: MASK if key in _SECRET and item else masked_json(item) for key, item in value.items()}
    return [masked_json(item) for item in value] if isinstance(value, list) else value


def shown_body(body: bytes, kind: str) -> str:
    """A body for display: data with its secrets masked, of anything else only what it is."""
    if not body:
        return ""
    if "json" in kind:
        try:
            text = msgspec.json.format(msgspec.json.encode(masked_json(msgspec.json.decode(body))), indent=2).decode()
        except (msgspec.DecodeError, UnicodeDecodeError):
            return f"{len(body)} bytes that are not JSON"
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    if "x-www-form-urlencoded" in kind:
        return masked_form(body.decode("utf-8", "replace"))[:LONGEST]
    return f"{len(body)} bytes of {kind.partition(';')[0] or 'an unknown kind'}"
