"""Sign-ins beside a real secret store, servers that use them over real HTTP, and a person with a browser."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from callboard.api.sign_in_schema import SignInStep, SignInView
from callboard.core.errors import CallboardError
from callboard.core.launch import OAuthLaunch, RemoteLaunch
from callboard.engine.masking import Masking
from callboard.engine.relay.envelope import raw_json
from callboard.engine.secrets.store import SecretStore
from callboard.engine.sign_in.desk import SignIns
from callboard.engine.upstream.http import HttpUpstream
from callboard.engine.upstream.signed import TokenAuth
from tests.support.authorisation import browse
from tests.unit.engine.secrets.conftest import MemoryKeyring
from tests.unit.engine.upstream.conftest import Listener, Peer

PORT = 4470


class Stand:
    """An engine's sign-ins. ``port`` is where its gateway listens."""

    def __init__(self, folder: Path) -> None:
        self.secrets = SecretStore(folder, environment={})
        self.masking = Masking()
        self.port = PORT
        self.changed: list[str] = []
        self.signed_in: list[str] = []
        self.desk = SignIns(
            self.secrets,
            port=lambda: self.port,
            learn=self.masking.learn_passing,
            on_change=self.changed.append,
            on_signed_in=self.signed_in.append,
        )

    async def close(self) -> None:
        """As the engine ends."""
        await self.desk.close()
        self.secrets.close()

    @asynccontextmanager
    async def connected(self, url: str, name: str = "one", **oauth: Any) -> AsyncIterator[HttpUpstream]:
        """A connection to a server, its sign-in being this stand's."""
        launch = _launch(url, oauth)
        grant = self.desk.use(name, launch)
        await grant.load()
        upstream = HttpUpstream(Peer(), modern=False, auth=TokenAuth(grant))
        try:
            await upstream.open(launch)
            yield upstream
        finally:
            await upstream.close()

    async def begin(self, url: str, name: str = "one", **oauth: Any) -> SignInView:
        """The person wants to sign in."""
        await self.desk.use(name, _launch(url, oauth)).begin()
        return self.desk.view(name)

    async def agree(self, url: str, name: str = "one", **oauth: Any) -> tuple[SignInView, int, bytes]:
        """The person signs in and agrees to all; returns what became of it, and the page at its end."""
        view = await self.begin(url, name, **oauth)
        assert view.state == "waiting", view.message
        status, page = await self.desk.callback(urlsplit(await browse(view.url)).query)
        return self.desk.view(name), status, page

    async def refused(self, url: str, name: str = "one", **oauth: Any) -> CallboardError:
        """Why a server does not let us in."""
        with pytest.raises(CallboardError) as caught:
            async with self.connected(url, name, **oauth):
                pass
        return caught.value


def _launch(url: str, oauth: dict[str, Any]) -> RemoteLaunch:
    return RemoteLaunch(url, transport="sse" if url.endswith("/sse") else "http", oauth=OAuthLaunch(**oauth))


@pytest.fixture
async def stand(tmp_path: Path, memory_keyring: Any) -> AsyncIterator[Stand]:
    made = Stand(tmp_path)
    yield made
    await made.close()


@pytest.fixture
def small_keyring(memory_keyring: Any) -> Iterator[Any]:
    """A keyring that takes no value of more than 2,560 bytes, and notes in which threads it is used."""
    import keyring

    small = MemoryKeyring()
    small.limit = 2560
    keyring.set_keyring(small)
    yield small
    keyring.set_keyring(memory_keyring)


async def call(upstream: HttpUpstream) -> str:
    """Who the server says we are, and what we may: "client-1 read write"; raises what the call ends with."""
    listener = Listener()
    upstream.send("tools/call", {"name": raw_json("whoami"), "arguments": raw_json({})}, listener)
    async with asyncio.timeout(60):
        found = await listener.done
    if isinstance(found, CallboardError):
        raise found
    text: str = found["content"][0]["text"]
    return text.strip()


def step(view: SignInView, name: str) -> SignInStep:
    """One step of an attempt."""
    return next(one for one in view.steps if one.name == name)
