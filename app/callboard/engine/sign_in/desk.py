"""All sign-ins to remote servers: which server uses which, and the browser's way back."""

import asyncio
from collections.abc import Callable
from html import escape
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from callboard.api.sign_in_schema import SignInView
from callboard.core.errors import CallboardError
from callboard.core.launch import RemoteLaunch
from callboard.engine.gateway.app import CALLBACK_PATH
from callboard.engine.sign_in.grant import Grant, Surroundings
from callboard.engine.sign_in.keeper import Secrets
from callboard.engine.sign_in.records import SECRET_PREFIX, secret_name

PAGE_SECONDS: Final = 20.0  # that the browser waits to be told how it ended
_PARAMETERS: Final = ("code", "state", "iss", "error", "error_description")


class SignIns:
    """Engine loop only. ``on_change`` hears of each server whose sign-in changed; ``on_signed_in`` of those that have
    new tokens. ``port`` is the gateway's.
    """

    def __init__(
        self,
        secrets: Secrets,
        *,
        port: Callable[[], int],
        learn: Callable[[str, list[str]], None],
        on_change: Callable[[str], None],
        on_signed_in: Callable[[str], None],
    ) -> None:
        self._grants: dict[str, Grant] = {}
        self._expected: dict[str, Grant] = {}  # by the state that the answer will bear
        self._port = port
        self._surroundings = Surroundings(
            secrets=secrets,
            redirect_uris=self._redirect_uris,
            learn=learn,
            expect=self._expect,
            on_change=lambda grant: self._tell(grant, on_change),
            on_signed_in=lambda grant: self._tell(grant, on_signed_in),
        )

    # servers

    def use(self, server: str, launch: RemoteLaunch) -> Grant:
        """The sign-in that a server needs; from now on it is among those that are told of it."""
        name = secret_name(launch.url, launch.oauth) if launch.oauth is not None else ""
        grant = self._grants.get(name)
        if grant is None:
            grant = self._grants[name] = Grant(launch, self._surroundings)
        grant.launch = launch  # the newest secret and scopes
        if server not in grant.servers:
            self.leave(server)
            grant.servers.add(server)
        return grant

    def leave(self, server: str) -> None:
        """A server is gone, or signs in in another way."""
        for grant in self._grants.values():
            grant.servers.discard(server)

    def find(self, server: str) -> Grant | None:
        """The sign-in that a server uses, None if it never wanted one."""
        return next((grant for grant in self._grants.values() if server in grant.servers), None)

    def view(self, server: str) -> SignInView:
        """As the control API shows it."""
        grant = self.find(server)
        if grant is None:
            return SignInView(server=server, state="none", redirect_uri=self._redirect_uris()[0])
        return grant.view(server)

    def users(self) -> dict[str, list[str]]:
        """The names in the secret store that belong to sign-ins, with the servers that use them."""
        return {grant.name: sorted(grant.servers) for grant in self._grants.values()}

    def secret_gone(self, name: str) -> None:
        """A person took something out of the secret store."""
        if name.startswith(SECRET_PREFIX) and name in self._grants:
            self._grants[name].forgotten()

    # answers

    def pasted(self, server: str, text: str) -> None:
        """The address that a browser on another computer ended at, or the code in it.

        Raises ``sign-in-unknown`` if no sign-in of that server waits for it.
        """
        grant = self.find(server)
        answer = answer_in(text)
        state = answer.pop("state", None)
        expected = self._expected.get(state) if state is not None else grant
        if grant is None or expected is not grant or grant.answer(answer) is None:
            raise CallboardError("sign-in-unknown", "No sign-in is waiting for this address or code.")
        if state is not None:
            del self._expected[state]

    async def callback(self, query: str) -> tuple[int, bytes]:
        """The browser came back with an answer; returns the status and page that it is shown."""
        answer = answer_in(f"?{query}")
        grant = self._expected.pop(answer.pop("state", ""), None)
        attempt = grant.answer(answer) if grant is not None else None
        if grant is None or attempt is None:
            return 400, page("No sign-in is waiting for this", "It has ended, or was begun elsewhere. Begin it anew.")
        await asyncio.wait([attempt], timeout=PAGE_SECONDS)
        view = grant.view("")
        if view.state == "signed-in" and not view.message:
            return 200, page("You are signed in", "Callboard goes on by itself. You can close this page.")
        if view.state == "running":
            return 200, page("Thank you", "Callboard is still at work. You can close this page.")
        return 400, page("The sign-in did not work", f"{view.message} {view.fix}")

    async def close(self) -> None:
        """End all attempts."""
        for grant in self._grants.values():
            await grant.close()

    def _redirect_uris(self) -> tuple[str, ...]:
        return tuple(f"http://{host}:{self._port()}{CALLBACK_PATH}" for host in ("127.0.0.1", "localhost"))

    def _expect(self, state: str, grant: Grant) -> None:
        self._expected = {key: other for key, other in self._expected.items() if other is not grant}
        self._expected[state] = grant

    def _tell(self, grant: Grant, tell: Callable[[str], None]) -> None:
        if not grant.busy:
            self._expected = {key: other for key, other in self._expected.items() if other is not grant}
        for server in sorted(grant.servers):
            tell(server)


def answer_in(text: str) -> dict[str, str]:
    """What an address, its query or a bare code says; raises ``bad-request`` for what says one thing twice."""
    text = text.strip()
    if "?" in text:
        query = urlsplit(text).query
    elif text.startswith(tuple(f"{name}=" for name in _PARAMETERS)):
        query = text
    else:
        return {"code": text} if text else {}
    answer: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key in answer:
            raise CallboardError("bad-request", f"The answer says twice what its {key} is.")
        if key in _PARAMETERS:
            answer[key] = value
    return answer


def page(title: str, text: str) -> bytes:
    """A page of our own, without anything that runs."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Callboard</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>body{{font:1.1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:20vh auto;padding:0 1.5rem}}</style>
</head><body><h1>{escape(title)}</h1><p>{escape(text)}</p></body></html>
""".encode()
