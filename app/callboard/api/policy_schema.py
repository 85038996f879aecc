"""Shapes of the control API about clients, what each may use, and the questions to the person."""

from typing import Any, Literal

from callboard.api.schema import View

Effect = Literal["allow", "ask", "deny"]
ItemKind = Literal["tool", "prompt", "resource"]
Choice = Literal["once", "always", "deny"]


class ClientPolicyView(View, frozen=True, kw_only=True):
    """One client and what it may use."""

    id: str
    name: str
    known: bool = True  # a program that Callboard knows; false for one that the roster names
    entry: dict[str, Any] | None = None  # as it stands in the roster; None: nothing does
    profile: str = ""
    has_policy: bool = False  # rules of its own; else the default's hold
    last_seen: float | None = None  # in this engine's life
    approvals: int = 0  # answers "always" that hold


class ProfileView(View, frozen=True, kw_only=True):
    """A named selection of servers and tools."""

    name: str
    entry: dict[str, Any]  # as it stands in the roster
    endpoint: str
    clients: list[str]  # whose tokens are bound to it


class PolicyView(View, frozen=True, kw_only=True):
    """All rules. ``revision`` is the roster's; ``policy`` what it says of every client without rules of its own."""

    revision: str
    policy: dict[str, Any] | None
    clients: list[ClientPolicyView]
    profiles: list[ProfileView]


class ItemEdit(View, frozen=True, kw_only=True):
    """PUT of a client, a profile or the policy: all that shall stand in the roster ("" to not check the revision)."""

    entry: dict[str, Any]
    revision: str = ""


class RuleEdit(View, frozen=True, kw_only=True):
    """POST /clients/NAME/rules: patterns that shall be allowed, asked for or denied from now on."""

    effect: Effect
    patterns: list[str]


class VerdictQuery(View, frozen=True, kw_only=True):
    """GET /policy/verdict: may this client use this? ``profile``: at the endpoint of one."""

    client: str = ""
    server: str = ""
    name: str = ""
    kind: ItemKind = "tool"
    profile: str = ""


class VerdictView(View, frozen=True, kw_only=True):
    """What becomes of a call, and why: a clause that follows the item's name."""

    effect: Effect
    reason: str = ""


class QuestionView(View, frozen=True, kw_only=True):
    """A call that waits for the person. ``program`` is what the client calls itself, ``reason`` why it is asked for.

    ``name`` and ``arguments`` (JSON) have their secrets masked, and their middle left out where they are long.
    ``arguments_size`` counts the characters of the whole; with ``arguments_cut`` there is no answer "always".
    """

    id: int
    client: str
    client_name: str
    program: str
    kind: ItemKind
    server: str
    name: str
    reason: str
    arguments: str
    arguments_cut: bool = False
    arguments_size: int = 0
    asked: float
    expires: float


class Answer(View, frozen=True, kw_only=True):
    """POST /policy/questions/ID."""

    choice: Choice


class ApprovalView(View, frozen=True, kw_only=True):
    """An answer "always". ``holds`` is false once the tool is not what it was: it is asked for again."""

    client: str
    kind: ItemKind
    server: str
    name: str
    at: float
    holds: bool = True


class ApprovalsQuery(View, frozen=True, kw_only=True):
    """DELETE /policy/approvals: those of a client, all of them or the ones that fit."""

    client: str = ""
    server: str = ""
    name: str = ""
    kind: str = ""


class Revoked(View, frozen=True, kw_only=True):
    """How many answers are forgotten."""

    count: int
