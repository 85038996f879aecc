"""The relay: every client's requests to every server, and what servers say back.

One :class:`Relay` per engine, engine loop only. It owns the links to servers, the catalogue, the sessions and all
exchanges in flight; the gateway hands it messages, the supervisor tells it which servers are connected.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from callboard.core.errors import CallboardError
from callboard.core.mcp_headers import value_at
from callboard.core.policy import ALLOWED
from callboard.core.result_bound import bounded_result
from callboard.engine.calls.log import CallLog
from callboard.engine.policy.approvals import Approvals
from callboard.engine.policy.callers import Caller, Policies
from callboard.engine.policy.questions import Questions
from callboard.engine.relay.bridge import to_modern_client
from callboard.engine.relay.call_notes import CallNotes
from callboard.engine.relay.callers import name_caller
from callboard.engine.relay.catalogue import (
    BY_METHOD,
    PROMPTS,
    RESOURCES,
    TOOLS,
    Catalogue,
    Kind,
)
from callboard.engine.relay.delivery import Delivery
from callboard.engine.relay.envelope import Raw, decode_json, raw_json
from callboard.engine.relay.errors import RpcError, foreign_state
from callboard.engine.relay.exchange import Exchange, Watch
from callboard.engine.relay.first_lists import FirstLists
from callboard.engine.relay.gate import Gate
from callboard.engine.relay.link import ServerLink
from callboard.engine.relay.listeners import Listeners
from callboard.engine.relay.notices import Notices
from callboard.engine.relay.parking import Parking
from callboard.engine.relay.private import PrivateLink, PrivateLinks, PrivateServers
from callboard.engine.relay.router import Router, text_member
from callboard.engine.relay.seal import Seal
from callboard.engine.relay.sessions import Session, Sessions
from callboard.engine.relay.task_owners import TaskOwners
from callboard.engine.relay.views import View, Views, list_result
from callboard.engine.tasks import spawn
from callboard.engine.telemetry.tracing import Tracing
from callboard.engine.upstream.base import Answer, Params, Upstream

log = logging.getLogger(__name__)

GREET_SECONDS = 10.0  # clients wait for twenty and more


class Servers(PrivateServers, Protocol):
    """What the relay needs of whoever runs the servers (the supervisor and the roster behind it)."""

    async def upstream(self, name: str) -> Upstream:
        """The connection to a server, waiting for it or starting it; raises CallboardError."""

    def exposed(self, server: str, tool: str) -> str | None:
        """The name under which a tool is shown, None if the roster hides it."""

    def time_limit(self, server: str) -> float:
        """Seconds that a call may take without progress, 0 for no limit."""

    def touch(self, server: str) -> None:
        """The server is being used."""

    def sharing(self, server: str) -> str:
        """ "shared", "per-client" or "per-session"."""

    def is_told_callers(self, server: str) -> bool:
        """True for a server that keeps its clients apart by what the relay says of them."""


class Relay:
    """See the module."""

    def __init__(
        self,
        servers: Servers,
        call_log: CallLog,
        catalogue_folder: Path | None,
        *,
        on_catalogue: Callable[[str], None],
        on_noise: Callable[[str, bytes], None],
        policies: Policies | None = None,
        questions: Questions | None = None,
    ) -> None:
        """``on_catalogue`` hears which server's lists were read, ``on_noise`` what a server printed on stdout.

        Without ``policies`` those of an empty roster hold; without ``questions`` there is nobody to ask.
        """
        self.servers = servers
        self.call_log = call_log
        self.tracing: Tracing | None = None  # set while calls are traced
        self.links: dict[str, ServerLink] = {}
        self.catalogue = Catalogue(catalogue_folder, self._on_list_changed, on_catalogue)
        self.seal = Seal()
        self.parking = Parking(self.seal)
        self.sessions = Sessions(self._on_session_closed, self.done)
        self.listeners = Listeners()
        self.watch = Watch()
        self.router = Router(self)
        self.tasks = TaskOwners(lambda server: servers.sharing(server) == "shared")
        self.private = PrivateLinks(self, servers)
        self.policies = policies or Policies(Approvals(None))
        self.questions = questions or Questions()
        self.policies.definition = self.catalogue.definition
        self.gate = Gate(self)
        self._views = Views(self.catalogue, lambda: self.links, lambda server, tool: servers.exposed(server, tool))
        self._on_noise = on_noise
        self.notices = Notices(self)
        self.notes = CallNotes(self)
        self.first_lists = FirstLists(self)

    # servers

    def sync(self, names: Iterable[str]) -> None:
        """The roster's enabled servers in order: new ones get a link, those that are gone lose it."""
        names = list(names)
        previous = self.links
        self.links = {name: previous.get(name) or ServerLink(name, self) for name in names}
        self.private.forget(previous.keys() - self.links.keys())
        changed = list(previous) != names
        self._views.clear()
        if changed:
            for kind in (TOOLS, PROMPTS, RESOURCES):
                self.notices.add("", kind)

    def forget(self, name: str) -> None:
        """The server was taken out of the roster: what is remembered of it goes too."""
        self.catalogue.forget(name)
        self.tasks.forget(name)
        self.policies.forget()

    def connected(self, name: str, upstream: Upstream) -> None:
        """A server is ready."""
        link = self.links.get(name)
        if link is not None:
            if upstream.pid is not None:
                self.tasks.forget(name)
            link.connected(upstream)
            self.catalogue.read(name, upstream)

    def disconnected(self, name: str) -> None:
        """A server's connection ended."""
        link = self.links.get(name)
        if link is not None:
            link.disconnected()
        self.catalogue.ended(name)

    def scope_exists(self, scope: str) -> bool:
        """True for the aggregate ("") and for each enabled server's name."""
        return not scope or scope in self.links

    def upstreams(self, name: str) -> list[Upstream]:
        """All connections to a server: the shared one first, then those of clients with a process of their own."""
        link = self.links.get(name)
        shared = [link] if link is not None else []
        return [each.upstream for each in (*shared, *self.private.of(name)) if each.upstream is not None]

    async def greet(self, scope: str) -> None:
        """Wait a while for the server of an endpoint, so that a client that says hello hears who it is.

        Otherwise the client is served from what is known; each call says why it cannot be done. Raises
        ``server-unknown`` if the server was taken away meanwhile.
        """
        if scope and self.links[scope].upstream is None:
            with contextlib.suppress(CallboardError, TimeoutError):
                async with asyncio.timeout(GREET_SECONDS):
                    await self.servers.upstream(scope)
            if scope not in self.links:
                raise CallboardError("server-unknown", f'There is no enabled server named "{scope}".')

    def view(self, scope: str) -> View:
        """The lists as an endpoint shows them."""
        return self._views.whole(scope)

    def lists(self, scope: str, caller: Caller) -> View:
        """The lists as a caller sees them at an endpoint."""
        return self._views.of(scope, caller)

    # requests

    def answer_list(self, scope: str, exchange: Exchange, session: Session | None = None) -> None:
        """Answer a request for a list from memory, once what is on its way for the first time has come."""
        if self.first_lists.missing(scope):
            spawn(self._list_when_read(scope, exchange, session), name="wait for lists")
        else:
            self._list(scope, exchange, session)

    async def _list_when_read(self, scope: str, exchange: Exchange, session: Session | None) -> None:
        await self.first_lists.read(scope)
        self._list(scope, exchange, session)

    def _list(self, scope: str, exchange: Exchange, session: Session | None) -> None:
        kind = BY_METHOD[exchange.method]
        items = self.lists(scope, exchange.caller).list_bytes(kind)
        if session is not None:
            session.served[kind.name] = hash(items)
        exchange.complete(Answer(result=list_result(kind, items, modern=exchange.modern)))

    def submit(
        self,
        scope: str,
        exchange: Exchange,
        session: Session | None,
        *,
        waited: bool = False,
        looked: bool = False,
    ) -> None:
        """Route a client's request to its server; everything else happens on the exchange.

        ``waited``: for lists that are read for the first time. ``looked``: at the tools as they are in this run.
        """
        self.watch.add(exchange)
        method, caller = exchange.method, exchange.caller
        try:
            link, params, shown = self.router.route(scope, caller, method, exchange.params)
            if exchange.state is not None and exchange.state.server != link.name:
                raise foreign_state()
            verdict = self.gate.verdict(caller, method, link.name, params, shown)
        except RpcError as error:
            if not waited and self.first_lists.missing(scope):
                spawn(self._submit_when_read(scope, exchange, session), name="wait for lists")
                return
            self._refuse(exchange, self.gate.refusal(caller, scope, method, exchange.params, error))
            return
        if verdict is not ALLOWED:
            if verdict.by_hints and not waited and not self.catalogue.known(link.name):
                spawn(self._submit_when_known(link.name, scope, exchange, session), name=f"wait for {link.name}")
                return
            if verdict.effect == "deny":
                self.notes.denied(exchange, link.name, shown, verdict)
                self._refuse(exchange, self.gate.refusal(caller, scope, method, exchange.params))
                return
            if not self.gate.is_agreed(exchange, link.name, shown):
                self.notes.begin(exchange, link.name, params, shown)
                proceed = partial(self.submit, scope, exchange, session)
                self.gate.ask(exchange, link.name, shown, verdict, proceed)
                return
        by_definition = method == "tools/call" and caller.decides_by_definition
        if by_definition and not looked and not self.catalogue.is_current(link.name):
            self.notes.begin(exchange, link.name, params, shown)
            self._limit(exchange, link.name)
            spawn(self._submit_when_current(link.name, scope, exchange, session), name=f"look at {link.name}")
            return
        self._send(link, exchange, params, shown, session)

    def _refuse(self, exchange: Exchange, error: RpcError) -> None:
        answer = error.answer()
        exchange.complete(to_modern_client(exchange.method, answer) if exchange.modern else answer)

    def _send(self, link: ServerLink, exchange: Exchange, params: Params, shown: str, session: Session | None) -> None:
        """Send a request that may be made to its server, or to the client's own process of it."""
        link = self.link_for(link, exchange, session)
        if self.servers.is_told_callers(link.name):
            params = name_caller(params, exchange.caller.client, session)
        self._begin(exchange, link, params, shown)
        delivery = Delivery(self, link, exchange, params, session)
        if isinstance(link, PrivateLink):
            self.private.submit(link, exchange, delivery.send)
        elif link.upstream is not None:
            link.submit(exchange, delivery.send)
        else:
            spawn(self._submit_later(link, exchange, delivery.send), name=f"wait for {link.name}")

    def route_subscription(self, scope: str, exchange: Exchange, params: Params) -> tuple[ServerLink, str]:
        """The server of a resource that a client wants to hear of, and its URI there; raises RpcError."""
        link, params, own = self.router.route(scope, exchange.caller, "resources/subscribe", params)
        self.gate.check(exchange.caller, scope, "resources/subscribe", link.name, params, own)
        return link, own

    async def _submit_when_read(self, scope: str, exchange: Exchange, session: Session | None) -> None:
        await self.first_lists.read(scope)
        if not exchange.done:
            self.submit(scope, exchange, session, waited=True)

    async def _submit_when_known(self, server: str, scope: str, exchange: Exchange, session: Session | None) -> None:
        """What the tool declares of itself decides, and nothing is known of the server yet."""
        try:
            await self.servers.upstream(server)
        except CallboardError as error:
            exchange.fail(error)
            return
        await self.first_lists.settled(server)
        if not exchange.done:
            self.submit(scope, exchange, session, waited=True)

    async def _submit_when_current(self, server: str, scope: str, exchange: Exchange, session: Session | None) -> None:
        """What is known of the tool is of an earlier run: start the server, and decide by what it says now."""
        try:
            await self.servers.upstream(server)
            await self.catalogue.tools_read(server)
            link = self.links.get(server)
            if link is not None and link.upstream is None:
                raise CallboardError("server-not-ready", f"{server} ended while its tools were read.")
        except CallboardError as error:
            exchange.fail(error)
            return
        if not exchange.done:
            self.submit(scope, exchange, session, waited=True, looked=True)

    def link_for(self, link: ServerLink, exchange: Exchange, session: Session | None) -> ServerLink:
        """The link that a client's messages go to: a private one where the server's processes are not shared."""
        sharing = self.servers.sharing(link.name)
        return link if sharing == "shared" else self.private.link(link.name, sharing, exchange, session)

    async def _submit_later(self, link: ServerLink, exchange: Exchange, send: Callable[[], None]) -> None:
        try:
            await self.servers.upstream(link.name)
        except CallboardError as error:
            exchange.fail(error)
            return
        if not exchange.done:
            link.submit(exchange, send)

    def _begin(self, exchange: Exchange, link: ServerLink, params: Params, shown: str) -> None:
        exchange.link = link
        self._limit(exchange, link.name)
        self.notes.begin(exchange, link.name, params, shown)
        self.servers.touch(link.name)

    def _limit(self, exchange: Exchange, server: str) -> None:
        limit = self.servers.time_limit(server)
        if limit:
            now = exchange.started if not exchange.agreed else time.monotonic()
            exchange.time_limit = limit
            exchange.deadline = now + limit
            exchange.expires = now + 10 * limit

    def done(self, exchange: Exchange) -> None:
        """An exchange has its last answer: the end in the log, the next client's turn. Called by the exchange."""
        self.watch.discard(exchange)
        self.parking.forget(exchange)
        self.gate.forget(exchange)
        link = exchange.link
        if link is not None:
            link.finished(exchange)
            self.servers.touch(link.name)
        if exchange.record is not None:
            self.notes.end(exchange)
            self._bound(exchange)

    def _bound(self, exchange: Exchange) -> None:
        """Cut the text that the client gets at its bound; the log has taken what it keeps of the whole."""
        limit, answer = exchange.caller.max_result_chars, exchange.last_answer
        if limit and answer is not None and len(answer.result or b"") > limit:
            exchange.replace_answer(Answer(result=bounded_result(bytes(answer.result or b""), limit)))

    def argument_headers(self, scope: str, caller: Caller, params: Params) -> dict[str, Any]:
        """The arguments of a tools/call that must stand in ``Mcp-Param-*`` headers too, by lower-case header name."""
        shown = text_member(params, "name") if "name" in params else ""
        owner = self.lists(scope, caller).owner(TOOLS, shown)
        paths = self.catalogue.header_paths(*owner) if owner is not None else {}
        if not paths:
            return {}
        arguments = decode_json(params.get("arguments", Raw(b"{}")))
        return {name: value_at(arguments, path) for name, path in paths.items()}

    # what links tell (the Hub)

    def lists_changed(self, link: ServerLink, kinds: tuple[Kind, ...]) -> None:
        """Read the lists anew; clients hear of it when the new ones are there."""
        if link.upstream is not None:
            self.catalogue.read(link.name, link.upstream, kinds)
            spawn(self._tell_when_read(link.name, kinds), name=f"tell of {link.name}'s lists")

    async def _tell_when_read(self, server: str, kinds: tuple[Kind, ...]) -> None:
        await self.catalogue.settled(server)
        for kind in kinds:
            self.notices.add(server, kind)

    def resource_updated(self, link: ServerLink, uri: str, params: Params) -> None:
        """Tell those who subscribed."""
        for session in self.sessions:
            for of, own, shown in session.subscriptions:
                if of is link and own == uri and session.caller.sees("resource", link.name, own):
                    session.tell("notifications/resources/updated", params | {"uri": raw_json(shown)})
        self.listeners.resource_updated(link, uri, params)

    def log_message(self, link: ServerLink, level: int, params: Params) -> None:
        """A message outside of any call goes to the only client there is, or to nobody."""
        able = [
            session
            for session in self.sessions
            if session.scope in ("", link.name) and session.caller.may_use(link.name)
        ]
        if len(able) == 1 and level >= (able[0].log_rank or 0):
            able[0].tell("notifications/message", params)

    def noise(self, link: ServerLink, line: bytes) -> None:
        """Keep what a server printed on stdout."""
        self._on_noise(link.name, line)

    # what changed

    def _on_list_changed(self, server: str, kind: Kind) -> None:
        self._views.changed(server, kind)
        if kind is TOOLS:
            self.policies.forget()
        self.notices.add(server, kind)

    def policy_changed(self, callers: list[Caller]) -> None:
        """These callers may use other things now."""
        self._views.policy_changed(callers)
        self.notices.policy_changed(callers)

    # log levels and sessions

    def update_levels(self, scope: str) -> None:
        """Ask the servers of a scope for the least severe messages that any of its sessions wants."""
        for name, link in self.links.items():
            if scope in ("", name):
                ranks = [s.log_rank for s in self.sessions if s.scope in ("", name) and s.log_rank is not None]
                link.set_level(min(ranks, default=None))

    def _on_session_closed(self, session: Session) -> None:
        for link, uri, _ in session.subscriptions:
            link.unsubscribe(uri)
        self.private.session_closed(session)
        if session.log_rank is not None:
            self.update_levels(session.scope)

    async def close(self) -> None:
        """End all sessions, streams and readings."""
        self.sessions.close_all()
        self.listeners.close()
        self.watch.close()
        self.notices.close()
        await self.private.close()
        await self.catalogue.close()
