"""The control API as coroutines: the only way from window and command line to the engine.

One :class:`EngineClient` belongs to one asyncio loop (qasync's included). Every method raises
:class:`~callboard.core.errors.CallboardError`: ``engine-not-running`` or ``engine-unreachable`` when the engine
cannot be reached, otherwise the code that the engine answered.
"""

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from callboard.api.agent_schema import AgentLook, AgentLookRequest, ConversationsView
from callboard.api.connection import EngineConnection
from callboard.api.offer_schema import PromptRequest, PromptView, ReadRequest, ResourceView, Result
from callboard.api.policy_client import PolicyClient
from callboard.api.registry_schema import BundleRequest, BundleView, OfferPage, OfferView
from callboard.api.schema import (
    CallDetail,
    CallPage,
    CallRequest,
    Check,
    ClientView,
    EngineView,
    EntryEdit,
    Event,
    EventKind,
    FiguresView,
    HealthView,
    LogPage,
    NetworkChange,
    RosterEdit,
    RosterView,
    SecretsView,
    SecretValue,
    ServerView,
    ShippedView,
    SnippetView,
    TokenView,
    ToolView,
    UndoRequest,
    ValidateRequest,
    Validation,
)
from callboard.api.sign_in_schema import SignInAnswer, SignInView

_event = msgspec.json.Decoder(Event)
_figures = msgspec.json.Decoder(FiguresView)


class EngineClient(EngineConnection):
    """Talks to one running engine. Use as an async context manager, or call :meth:`close`."""

    # the engine

    async def engine(self) -> EngineView:
        """Who and where the engine is."""
        return await self._get("/engine", EngineView)

    async def quit(self) -> None:
        """Stop the engine and every server it started; returns when it has accepted."""
        await self._exchange("POST", "/engine/quit", None)

    async def tell_network(self, *, online: bool) -> None:
        """Say that this computer is, or is not, connected to a network, or that the network is another one."""
        await self._exchange("POST", "/engine/network", NetworkChange(online=online))

    async def doctor(self, server: str = "") -> list[Check]:
        """Run the checks of the engine, or of one server; the latter is started for it, which may take its time."""
        path = "/doctor" + (f"?server={quote(server)}" if server else "")
        return await self._send("GET", path, None, list[Check], limit=None if server else -1.0)

    # servers

    async def servers(self, *, figures: bool = False) -> list[ServerView]:
        """Every server in roster order; with ``figures``, CPU and memory are measured for it."""
        return await self._get("/servers" + ("?figures=1" if figures else ""), list[ServerView])

    async def server(self, name: str, *, figures: bool = False) -> ServerView:
        """One server; with ``figures``, CPU and memory are measured for it."""
        return await self._get(f"/servers/{_part(name)}" + ("?figures=1" if figures else ""), ServerView)

    async def metrics(self) -> str:
        """Counts and durations of calls, servers by state and the engine's memory in Prometheus' text format."""
        return (await self._exchange("GET", "/metrics", None)).decode()

    async def figures(self) -> AsyncGenerator[FiguresView, None]:
        """Samples of CPU and memory, one every two seconds as long as they are read.

        Ends when the engine closes it; raises ``engine-unreachable`` when the connection breaks.
        """
        async with contextlib.aclosing(self._lines("/figures")) as lines:
            async for line in lines:
                yield _figures.decode(line)

    async def act(self, name: str, action: str) -> ServerView:
        """Do one of the actions of ``ServerAction``; answers at once with the server's new state."""
        return await self._send("POST", f"/servers/{_part(name)}/{action}", None, ServerView)

    async def tools(self, name: str) -> list[ToolView]:
        """The tools of a server (the last known ones while it is stopped)."""
        return await self._get(f"/servers/{_part(name)}/tools", list[ToolView])

    async def resources(self, name: str) -> list[ResourceView]:
        """The resources of a server and their templates (the last known ones while it is stopped)."""
        return await self._get(f"/servers/{_part(name)}/resources", list[ResourceView])

    async def prompts(self, name: str) -> list[PromptView]:
        """The prompts of a server (the last known ones while it is stopped)."""
        return await self._get(f"/servers/{_part(name)}/prompts", list[PromptView])

    async def read_resource(self, name: str, uri: str) -> Result:
        """Read a resource and return MCP's result object."""
        path = f"/servers/{_part(name)}/resources/read"
        return await self._send("POST", path, ReadRequest(uri=uri), Result, limit=None)

    async def get_prompt(self, name: str, prompt: str, arguments: dict[str, str]) -> Result:
        """Get a prompt and return MCP's result object."""
        body = PromptRequest(prompt=prompt, arguments=arguments)
        return await self._send("POST", f"/servers/{_part(name)}/prompts/get", body, Result, limit=None)

    async def health(self) -> list[HealthView]:
        """What the last look at each server found; mind its age."""
        return await self._get("/health", list[HealthView])

    async def check_health(self, name: str) -> HealthView:
        """Ask a server that runs for a sign of life; one that does not is told as it is."""
        return await self._send("POST", f"/servers/{_part(name)}/health-check", None, HealthView)

    async def check_all(self) -> list[HealthView]:
        """The same for every server."""
        return await self._send("POST", "/health-check", None, list[HealthView])

    async def refresh(self, name: str) -> HealthView:
        """Read a server's lists anew, and ask it for a sign of life. One that starts on demand is started for it."""
        return await self._send("POST", f"/servers/{_part(name)}/refresh", None, HealthView, limit=None)

    async def refresh_all(self) -> list[HealthView]:
        """The same for every server."""
        return await self._send("POST", "/refresh", None, list[HealthView], limit=None)

    async def test(self, name: str) -> list[Check]:
        """Every step from a server's settings to its answer; it is started for that if need be."""
        return await self._send("POST", f"/servers/{_part(name)}/test", None, list[Check], limit=None)

    async def sign_in_view(self, name: str) -> SignInView:
        """The OAuth sign-in of a server; raises ``sign-in-unavailable``. May wait while a keyring's prompt is open."""
        return await self._send("GET", f"/servers/{_part(name)}/sign-in", None, SignInView, limit=None)

    async def sign_in(self, name: str) -> SignInView:
        """Sign in: answers with the ``url`` that the person is wanted at, or with how it ended without one."""
        return await self._send("POST", f"/servers/{_part(name)}/sign-in", None, SignInView, limit=None)

    async def answer_sign_in(self, name: str, answer: str) -> SignInView:
        """Hand over the address that a browser ended at on another computer, or the code in it."""
        body = SignInAnswer(answer=answer)
        return await self._send("POST", f"/servers/{_part(name)}/sign-in/answer", body, SignInView)

    async def cancel_sign_in(self, name: str) -> SignInView:
        """Give up a sign-in that is under way."""
        return await self._send("DELETE", f"/servers/{_part(name)}/sign-in", None, SignInView, limit=None)

    async def sign_out(self, name: str) -> SignInView:
        """Forget a server's sign-in."""
        return await self._send("POST", f"/servers/{_part(name)}/sign-out", None, SignInView, limit=None)

    async def log(self, name: str, *, after: int = 0, limit: int = 5000) -> LogPage:
        """At most ``limit`` lines with numbers above ``after``, oldest first; a negative ``after``: the newest."""
        return await self._get(f"/servers/{_part(name)}/log?after={after}&limit={limit}", LogPage)

    async def call_tool(self, name: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and return MCP's result object (`isError` included)."""
        body = CallRequest(tool=tool, arguments=arguments)
        return await self._send("POST", f"/servers/{_part(name)}/call", body, dict[str, Any], limit=None)

    # the roster

    async def roster(self) -> RosterView:
        """The roster in force."""
        return await self._get("/roster", RosterView)

    async def validate(self, name: str, entry: dict[str, Any], *, editing: str = "") -> Validation:
        """What is wrong with an entry, and which of its values look like credentials."""
        return await self._send(
            "POST", "/roster/validate", ValidateRequest(name=name, entry=entry, editing=editing), Validation
        )

    async def look_at_agent(
        self, agent: str, *, python: str = "", params: dict[str, Any] | None = None, cwd: str = ""
    ) -> AgentLook:
        """What there is at a Python agent's place; takes as long as the import of the agent's packages."""
        request = AgentLookRequest(agent=agent, python=python, params=params or {}, cwd=cwd)
        return await self._send("POST", "/agents/look", request, AgentLook, None)

    async def conversations(self, name: str) -> ConversationsView:
        """What the server of a Python agent holds; raises ``bad-request`` for any other server."""
        return await self._get(f"/servers/{_part(name)}/conversations", ConversationsView)

    async def reload(self, name: str) -> None:
        """Load a server's Python agents anew; raises ``agent-load``, and then the old ones go on.

        What the agents offer has been read when it returns, which takes as long as the import of their packages.
        """
        await self._exchange("POST", f"/servers/{_part(name)}/reload", None, None)

    async def save_entry(self, name: str, edit: EntryEdit) -> RosterEdit:
        """Add or change an entry; raises ``entry-invalid``, ``name-taken``, ``roster-changed``, ``secrets-…``.

        With secrets it waits while the keyring's own prompt is open.
        """
        limit = None if edit.secrets else -1.0
        return await self._send("PUT", f"/roster/servers/{_part(name)}", edit, RosterEdit, limit=limit)

    async def shipped(self) -> list[ShippedView]:
        """The catalogue of servers that are ready to be added, with what each needs and what of that is missing."""
        return await self._get("/shipped", list[ShippedView])

    async def remove_entry(self, name: str, *, revision: str = "") -> RosterEdit:
        """Take an entry out of the roster."""
        return await self._send("DELETE", f"/roster/servers/{_part(name)}?revision={quote(revision)}", None, RosterEdit)

    async def undo(self, token: str) -> RosterEdit:
        """Take back the change that returned ``token``; its answer's ``undo`` is the redo."""
        return await self._send("POST", "/roster/undo", UndoRequest(undo=token), RosterEdit)

    # registries and bundles

    async def search_registry(self, words: str, *, source: str = "", cursor: str = "") -> OfferPage:
        """Servers that a registry offers; ``source`` is an address or a full path, "" for the one that is set.

        Raises ``registry-invalid`` and ``remote-…`` codes.
        """
        query = urlencode({"search": words, "source": source, "cursor": cursor})
        return await self._send("GET", f"/registry?{query}", None, OfferPage, limit=None)

    async def find_offer(self, name: str, *, source: str = "") -> OfferView:
        """One server of a registry; raises ``registry-unknown``."""
        query = urlencode({"name": name, "source": source})
        return await self._send("GET", f"/registry/offer?{query}", None, OfferView, limit=None)

    async def open_bundle(self, request: BundleRequest) -> BundleView:
        """Fetch or read a bundle and unpack it; nothing in it is run. Raises ``bundle-…`` and ``remote-…`` codes."""
        return await self._send("POST", "/bundles", request, BundleView, limit=None)

    async def release_bundle(self, key: str) -> None:
        """An opened bundle is wanted no more."""
        await self._exchange("DELETE", f"/bundles/{_part(key)}", None, None)

    # secrets

    async def secrets(self) -> SecretsView:
        """The secret store and the names in use."""
        return await self._get("/secrets", SecretsView)

    async def set_secret(self, name: str, value: str) -> None:
        """Store a secret's value. Waits while the keyring's own prompt is open."""
        await self._exchange("PUT", f"/secrets/{_part(name)}", SecretValue(value=value), None)

    async def delete_secret(self, name: str) -> None:
        """Forget a secret's value."""
        await self._exchange("DELETE", f"/secrets/{_part(name)}", None, None)

    # calls

    async def calls(
        self,
        *,
        offset: int = -1,
        limit: int = 256,
        server: str = "",
        tool: str = "",
        client: str = "",
        status: str = "",
        text: str = "",
        engine: str = "",
    ) -> CallPage:
        """A page of the log, oldest first; a negative ``offset`` means the last ``limit`` rows."""
        query = f"?offset={offset}&limit={limit}"
        filters = {"server": server, "tool": tool, "client": client, "status": status, "text": text, "engine": engine}
        for key, value in filters.items():
            if value:
                query += f"&{key}={quote(value)}"
        return await self._get("/calls" + query, CallPage)

    async def call(self, call_id: int) -> CallDetail:
        """One call with its payloads."""
        return await self._get(f"/calls/{call_id}", CallDetail)

    # connecting clients

    async def clients(self) -> list[ClientView]:
        """The programs for which a configuration can be copied."""
        return await self._get("/clients", list[ClientView])

    async def snippet(self, client: str, *, server: str = "", with_token: bool = False) -> SnippetView:
        """A configuration for a client, for the aggregate or for one server's endpoint."""
        query = f"?server={quote(server)}" + ("&with_token=1" if with_token else "")
        return await self._get(f"/snippet/{_part(client)}{query}", SnippetView)

    async def token(self, client: str) -> str:
        """The token with which a client calls the gateway; raises ``client-unknown``."""
        view = await self._get(f"/token/{_part(client)}", TokenView)
        return view.token

    @property
    def policy(self) -> PolicyClient:
        """Clients, what each may use, profiles, and the questions to the person."""
        return PolicyClient(self._send)

    # events

    async def events(
        self,
        after: int = -1,
        kinds: Iterable[EventKind] = (),
        *,
        opened: Callable[[], None] | None = None,
        asks: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """The event stream from sequence number ``after`` on (-1: from now on, beginning with a "reset").

        Ends when the engine closes it; raises ``engine-unreachable`` when the connection breaks. The caller
        connects again with the last ``seq`` it saw; an event of kind "reset" tells that some were missed. With
        ``kinds`` no others come but "reset", which then may also tell that only others were missed. ``opened`` is
        called once the engine has accepted, also when no event comes yet. With ``asks`` the engine counts on the
        caller to show questions to the person.
        """
        path = f"/events?after={after}&kinds={','.join(kinds)}" + ("&asks=1" if asks else "")
        async with contextlib.aclosing(self._lines(path, opened=opened)) as lines:
            async for line in lines:
                yield _event.decode(line)


def _part(name: str) -> str:
    return quote(name, safe="")
