"""Shapes of the control API for signing in to remote servers; see :mod:`callboard.api.schema`."""

from typing import Literal

import msgspec

from callboard.api.schema import View

StepName = Literal["discovery", "registration", "authorisation", "token"]
StepState = Literal["pending", "running", "done", "failed"]
SignInState = Literal["none", "running", "waiting", "signed-in", "failed"]


class SignInRequest(View, frozen=True, kw_only=True):
    """One exchange with a server, its secrets masked. ``status`` is 0 where no answer came; ``error`` says why."""

    method: str
    url: str
    status: int = 0
    duration_ms: float = 0.0
    sent: str = ""
    received: str = ""
    error: str = ""


class SignInStep(View, frozen=True, kw_only=True):
    """One step of a sign-in. ``note`` is a clause about what came of it."""

    name: StepName
    state: StepState = "pending"
    note: str = ""
    requests: list[SignInRequest] = msgspec.field(default_factory=list)


class SignInView(View, frozen=True, kw_only=True):
    """The sign-in of one server (`GET /servers/NAME/sign-in`), and its newest attempt step by step.

    ``state``: "running" while the program is at work, "waiting" while the person is wanted at ``url``, "failed" if
    the newest attempt failed and there is no sign-in from before. ``shared_with`` names the other servers it is for.
    """

    server: str
    state: SignInState
    url: str = ""  # to open in a browser; good for one sign-in
    redirect_uri: str = ""  # where the browser comes back to, to be entered where a client is registered by hand
    resource: str = ""
    issuer: str = ""
    client_id: str = ""
    scopes: list[str] = msgspec.field(default_factory=list)
    expires_at: float | None = None  # of the present token; it is renewed by itself where the server allows that
    renewable: bool = False
    shared_with: list[str] = msgspec.field(default_factory=list)
    message: str = ""  # why the newest attempt failed, or why a sign-in is needed
    error_code: str = ""
    fix: str = ""
    began: float | None = None  # the newest attempt
    steps: list[SignInStep] = msgspec.field(default_factory=list)


class SignInAnswer(View, frozen=True, kw_only=True):
    """POST /servers/NAME/sign-in/answer: the address that the browser ended at, or just the code in it."""

    answer: str
