"""The part of the control API about clients, policies and profiles; see :class:`~callboard.api.client.EngineClient`."""

from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from callboard.api.policy_schema import (
    Answer,
    ApprovalView,
    Choice,
    Effect,
    ItemEdit,
    ItemKind,
    PolicyView,
    QuestionView,
    Revoked,
    RuleEdit,
    VerdictView,
)
from callboard.api.schema import RosterEdit, TokenView

T = TypeVar("T")


class Send(Protocol):
    """Makes one request and decodes its answer."""

    async def __call__(self, method: str, path: str, body: msgspec.Struct | None, kind: type[T]) -> T: ...


class PolicyClient:
    """Every method raises what the engine answers: ``client-unknown``, ``profile-unknown``, ``entry-invalid``, …"""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def view(self) -> PolicyView:
        """Every client and profile with its rules."""
        return await self._send("GET", "/policy", None, PolicyView)

    async def save(self, entry: dict[str, Any], *, revision: str = "") -> RosterEdit:
        """Set the rules of all clients that have none of their own."""
        return await self._send("PUT", "/policy", ItemEdit(entry=entry, revision=revision), RosterEdit)

    async def save_client(self, client: str, entry: dict[str, Any], *, revision: str = "") -> RosterEdit:
        """Set what the roster says of a client; a new one gets a token."""
        body = ItemEdit(entry=entry, revision=revision)
        return await self._send("PUT", f"/clients/{quote(client, safe='')}", body, RosterEdit)

    async def reset_client(self, client: str, *, revision: str = "") -> RosterEdit:
        """Take a client out of the roster: the default holds for it."""
        path = f"/clients/{quote(client, safe='')}?revision={quote(revision)}"
        return await self._send("DELETE", path, None, RosterEdit)

    async def change_rules(self, client: str, effect: Effect, patterns: list[str]) -> RosterEdit:
        """Allow, ask for or deny patterns for a client, or for "default"."""
        body = RuleEdit(effect=effect, patterns=patterns)
        return await self._send("POST", f"/clients/{quote(client, safe='')}/rules", body, RosterEdit)

    async def rotate(self, client: str) -> str:
        """Replace a client's token; answers with the new one."""
        return (await self._send("POST", f"/clients/{quote(client, safe='')}/rotate", None, TokenView)).token

    async def save_profile(self, name: str, entry: dict[str, Any], *, revision: str = "") -> RosterEdit:
        """Add or change a profile."""
        body = ItemEdit(entry=entry, revision=revision)
        return await self._send("PUT", f"/profiles/{quote(name, safe='')}", body, RosterEdit)

    async def remove_profile(self, name: str, *, revision: str = "") -> RosterEdit:
        """Take a profile out; raises ``profile-in-use`` while clients are bound to it."""
        path = f"/profiles/{quote(name, safe='')}?revision={quote(revision)}"
        return await self._send("DELETE", path, None, RosterEdit)

    async def verdict(
        self, client: str, server: str, name: str, *, kind: ItemKind = "tool", profile: str = ""
    ) -> VerdictView:
        """What would become of a call now, and why."""
        query = urlencode({"client": client, "server": server, "name": name, "kind": kind, "profile": profile})
        return await self._send("GET", f"/policy/verdict?{query}", None, VerdictView)

    async def questions(self) -> list[QuestionView]:
        """The calls that wait for the person, oldest first."""
        return await self._send("GET", "/policy/questions", None, list[QuestionView])

    async def answer(self, question: int, choice: Choice) -> None:
        """Settle a question; raises ``question-over``."""
        await self._send("POST", f"/policy/questions/{question}", Answer(choice=choice), type(None))

    async def approvals(self) -> list[ApprovalView]:
        """What the person has allowed for good, oldest first."""
        return await self._send("GET", "/policy/approvals", None, list[ApprovalView])

    async def revoke(self, client: str, *, server: str = "", name: str = "", kind: str = "") -> int:
        """Forget answers "always": all of a client's, or those that fit. Answers how many."""
        query = urlencode({"client": client, "server": server, "name": name, "kind": kind})
        return (await self._send("DELETE", f"/policy/approvals?{query}", None, Revoked)).count
