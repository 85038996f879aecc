"""The authorization scenarios of the suite: our sign-in to remote servers, with a person who agrees to everything."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from callboard.core.errors import CallboardError
from callboard.core.launch import OAuthLaunch, RemoteLaunch
from callboard.engine.secrets.store import SecretStore
from callboard.engine.sign_in.desk import SignIns
from callboard.engine.upstream.signed import TokenAuth

NAME = "suite"
PORT = 4470
DOCUMENT = "https://conformance-test.local/client-metadata.json"  # what the suite takes for ours
PATIENCE = 6  # times that the person signs in again before it is enough
_SECRETS = ("client_secret", "private_key_pem", "valid_jwt")
_GRANTS = {"auth/client-credentials": "client-credentials", "auth/wif": "jwt-bearer"}
WANTED = ("remote-sign-in", "remote-scope")


class Person:
    """Signs in to one server, whenever that is wanted."""

    def __init__(self, folder: Path, url: str) -> None:
        self._secrets = SecretStore(folder, environment={"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"})
        self._desk = SignIns(
            self._secrets,
            port=lambda: PORT,
            learn=lambda name, values: None,
            on_change=lambda name: None,
            on_signed_in=lambda name: None,
        )
        context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
        scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
        oauth = OAuthLaunch(
            client_id=context.get("client_id", ""),
            client_secret=next((context[name] for name in _SECRETS if name in context), ""),
            issuer=context.get("issuer", ""),
            client_metadata=DOCUMENT,
            grant=next((grant for start, grant in _GRANTS.items() if scenario.startswith(start)), "authorization-code"),
        )
        self._grant = self._desk.use(NAME, RemoteLaunch(url, oauth=oauth))
        self.auth = TokenAuth(self._grant)
        self._patience = PATIENCE

    async def help(self, error: CallboardError) -> None:
        """Sign in, if that helps; raises ``error`` otherwise."""
        if error.code not in WANTED or self._patience == 0:
            raise error
        self._patience -= 1
        await self._grant.begin()
        view = self._desk.view(NAME)
        if view.state == "waiting":
            await self._desk.callback(urlsplit(await _agree(view.url)).query)
            view = self._desk.view(NAME)
        if view.state != "signed-in" or view.error_code:
            raise CallboardError(view.error_code or "sign-in-failed", view.message)

    async def until_let_in(self, connect: Callable[[], Awaitable[Any]]) -> None:
        """Connect, signing in as often as it takes."""
        while True:
            try:
                await connect()
            except CallboardError as error:
                await self.help(error)
            else:
                return

    async def until_done(self, call: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        """Make a call through the gateway, signing in as often as it takes."""
        while "error" in (answer := await call()):
            problem = answer["error"].get("data") or {}
            await self.help(CallboardError(str(problem.get("code", "call-refused")), str(answer["error"]["message"])))

    async def close(self) -> None:
        """Leave nothing behind."""
        await self._desk.close()
        self._secrets.close()


@asynccontextmanager
async def person(folder: Path, url: str) -> AsyncIterator[Person]:
    """A person for one scenario."""
    made = Person(folder, url)
    try:
        yield made
    finally:
        await made.close()


async def _agree(url: str) -> str:
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(url, timeout=10)
    location: str = answer.headers["location"]
    return location
