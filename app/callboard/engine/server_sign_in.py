"""Servers and their sign-ins: which one a server needs, and what a new one changes for it."""

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from callboard.api.sign_in_schema import SignInView
from callboard.core.errors import CallboardError
from callboard.core.launch import Launch, RemoteLaunch
from callboard.core.references import names_in
from callboard.core.resolve import Values, resolve
from callboard.core.roster import AnyEntry
from callboard.engine.environment import Environment
from callboard.engine.masking import Masking
from callboard.engine.secrets.store import SecretStore
from callboard.engine.sign_in.desk import SignIns
from callboard.engine.sign_in.grant import Grant
from callboard.engine.supervisor import Supervisor

if TYPE_CHECKING:
    from callboard.engine.upstream.signed import TokenAuth

MORE_RIGHTS = "remote-scope"
SecretValues = Callable[[Iterable[str]], Awaitable[Mapping[str, str]]]


class ServerSignIns:
    """Engine loop only; owned by the server table. :meth:`attach` is called once, before anything else."""

    def __init__(
        self,
        secrets: SecretStore,
        environment: Environment,
        masking: Masking,
        *,
        port: Callable[[], int],
        entry_of: Callable[[str], AnyEntry],
        secret_values: SecretValues,
        on_change: Callable[[str], None],
    ) -> None:
        """``port`` is the gateway's; ``entry_of`` raises ``server-unknown``; ``on_change`` hears of changed views."""
        self._environment = environment
        self._entry_of = entry_of
        self._secret_values = secret_values
        self._on_change = on_change
        self._mask = masking.mask_text
        self._supervisor: Supervisor | None = None
        self._desk = SignIns(
            secrets, port=port, learn=masking.learn_passing, on_change=self._changed, on_signed_in=self._signed_in
        )

    def attach(self, supervisor: Supervisor) -> None:
        """Who runs the servers."""
        self._supervisor = supervisor

    # for a start

    async def unlock(self, server: str, launch: Launch) -> None:
        """Read what is kept of a server's sign-in; raises what the secret store raises."""
        if isinstance(launch, RemoteLaunch) and launch.oauth is not None:
            await self._desk.use(server, launch).load()
        else:
            self._desk.leave(server)

    def auth(self, server: str, launch: RemoteLaunch) -> "TokenAuth | None":
        """What signs the requests to a server; None if it signs in in another way."""
        if launch.oauth is None:
            return None
        from callboard.engine.upstream.signed import TokenAuth

        return TokenAuth(self._desk.use(server, launch))

    def leave(self, server: str) -> None:
        """A server was taken out of the roster. Its sign-in stays, so that it can be taken back."""
        self._desk.leave(server)

    # for a person

    async def begin(self, server: str) -> SignInView:
        """Sign in; returns when the person is wanted at ``url``, or when it is over.

        Raises ``sign-in-unavailable`` for a server that signs in in another way, and what a start raises.
        """
        await (await self._grant(server)).begin()
        return self._view(server)

    async def view(self, server: str) -> SignInView:
        """The sign-in of a server; raises ``server-unknown``, ``sign-in-unavailable`` and what a start raises."""
        await (await self._grant(server)).load()
        return self._view(server)

    def pasted(self, server: str, text: str) -> SignInView:
        """Take the address that a browser elsewhere ended at; raises ``sign-in-unknown``, ``bad-request``."""
        self._entry_of(server)
        self._desk.pasted(server, text)
        return self._view(server)

    async def cancel(self, server: str) -> None:
        """Give up the attempt under way, if there is one."""
        grant = self._desk.find(server)
        if grant is not None:
            await grant.cancel()

    async def sign_out(self, server: str) -> SignInView:
        """Forget a sign-in; servers that were let in by it are connected anew."""
        grant = await self._grant(server)
        await grant.sign_out()
        assert self._supervisor is not None
        for name in grant.servers:
            if self._supervisor.ready_upstream(name) is not None:
                self._supervisor.restart(name)
        return self._view(server)

    async def callback(self, query: str) -> tuple[int, bytes]:
        """The browser came back; see :meth:`SignIns.callback`."""
        return await self._desk.callback(query)

    def shown(self, server: str) -> SignInView | None:
        """What a server's view tells of its sign-in, without asking the secret store."""
        return self._view(server) if self._desk.find(server) is not None else None

    def secret_users(self) -> dict[str, list[str]]:
        """Names in the secret store that belong to sign-ins, with the servers that use them."""
        return self._desk.users()

    def secret_gone(self, name: str) -> None:
        """A person took something out of the secret store."""
        self._desk.secret_gone(name)

    async def close(self) -> None:
        """End all attempts."""
        await self._desk.close()

    def _view(self, server: str) -> SignInView:
        """The view, with what servers said in it masked."""
        view, mask = self._desk.view(server), self._mask
        replace = msgspec.structs.replace
        steps = [
            replace(
                step,
                note=mask(step.note),
                requests=[
                    replace(one, url=mask(one.url), sent=mask(one.sent), received=mask(one.received))
                    for one in step.requests
                ],
            )
            for step in view.steps
        ]
        return replace(view, message=mask(view.message), steps=steps)

    async def _grant(self, server: str) -> Grant:
        entry = self._entry_of(server)
        secrets = await self._secret_values(names_in(entry).secrets)
        launch = resolve(entry, Values(self._environment.own, secrets, sys.executable, self._environment.home))
        if not isinstance(launch, RemoteLaunch) or launch.oauth is None:
            raise CallboardError("sign-in-unavailable", f"{server} does not sign in with OAuth.")
        return self._desk.use(server, launch)

    # what changes

    def _changed(self, server: str) -> None:
        grant = self._desk.find(server)
        if self._supervisor is not None and grant is not None:
            if grant.needed is not None and grant.needed.code == MORE_RIGHTS:
                self._supervisor.degraded(server, MORE_RIGHTS, grant.needed.message.rstrip("."))
            else:
                self._supervisor.clear_degraded(server, MORE_RIGHTS)
        self._on_change(server)

    def _signed_in(self, server: str) -> None:
        if self._supervisor is not None:
            self._supervisor.signed_in(server)
