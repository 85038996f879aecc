"""The engine: everything that runs without a screen, behind one façade.

Every action of the control API is one method of :class:`Engine`, or of a part that it shows (``clients``, ``policy``,
``agents``, ``sign_ins`` …). The engine process makes, starts and stops it; all of it lives on one asyncio loop.
"""

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from callboard import __version__
from callboard.api.schema import (
    CallDetail,
    Check,
    EngineView,
    EntryEdit,
    LogPage,
    Notice,
    RosterEdit,
    RosterView,
    ServerView,
    ShippedView,
    Validation,
)
from callboard.clients.snippets import load_clients
from callboard.engine import tasks
from callboard.engine.agent_servers import AgentServers
from callboard.engine.announcement import Announcement
from callboard.engine.bus import Bus
from callboard.engine.calls.events import CallEvents
from callboard.engine.calls.log import CallLog
from callboard.engine.calls.record import MIB
from callboard.engine.doctor import examine
from callboard.engine.editing import RosterEditor, refers_to_secrets
from callboard.engine.environment import Environment
from callboard.engine.figures import FigureWatch
from callboard.engine.gateway.access import Access
from callboard.engine.gateway.address import LOOPBACK_ADDRESS, find_host, gateway_notices, is_exposed, is_local, url_of
from callboard.engine.gateway.app import ControlApi, GatewayApp
from callboard.engine.gateway.client_desk import ClientDesk
from callboard.engine.gateway.clients import ClientTokens
from callboard.engine.gateway.mcp import McpEndpoint
from callboard.engine.gateway.server import GatewayServer, listen
from callboard.engine.machine import Machine
from callboard.engine.manual_call import call_tool
from callboard.engine.masking import Masking
from callboard.engine.offers import Offers
from callboard.engine.output import OutputLog
from callboard.engine.policy.approvals import Approvals
from callboard.engine.policy.callers import Policies
from callboard.engine.policy.desk import PolicyDesk
from callboard.engine.policy.notify import notify
from callboard.engine.policy.questions import Questions
from callboard.engine.publisher import Publisher
from callboard.engine.registry.bundles import Bundles
from callboard.engine.registry.registry import Registry
from callboard.engine.relay.relay import Relay
from callboard.engine.roster_file import RosterFile
from callboard.engine.secrets.desk import SecretDesk
from callboard.engine.secrets.store import SecretStore
from callboard.engine.server_table import ServerTable
from callboard.engine.shipped import ShippedServers
from callboard.engine.storage.opening import open_storage
from callboard.engine.storage.setting import setting_notices, share_conversations
from callboard.engine.telemetry.telemetry import Telemetry
from callboard.system.engine_file import EngineAddress
from callboard.system.paths import Paths
from callboard.system.resources import resource
from callboard.system.sleep_watch import SleepWatch

if TYPE_CHECKING:
    from callboard.engine.storage.shared import SharedStorage

log = logging.getLogger(__name__)

RECENT_SECONDS = 600.0
WINDOW_SECONDS = 8.0  # in which a window that starts, or lost its connection, comes to show a question


class Engine:
    """See the module. :meth:`start` and :meth:`stop` once each; the rest in between."""

    def __init__(self, paths: Paths, masking: Masking) -> None:
        """``masking`` learns what must show nowhere, the engine's log included."""
        self.paths = paths
        self.bus = Bus()
        self._publisher = Publisher(self.bus, self.view, self._known_view)
        self.quit = asyncio.Event()
        self._started = time.time()
        self._admin_token = secrets.token_urlsafe(32)
        clients = load_clients()
        self._tokens = ClientTokens(paths.clients_file, clients.ids, lambda: self._access.forget())
        self._masking = masking
        self.output = OutputLog(paths.logs, self._publisher.lines, on_problem=self._publisher.engine_changed)
        self.secrets = SecretStore(paths.state, on_change=lambda: self.secret_desk.publish())
        self.roster_file = RosterFile(paths.roster, resource("starter-roster.yaml"), self._on_roster)
        self._editor = RosterEditor(self.roster_file, self.secrets)
        self._environment = Environment(os.environ, Path.home())
        self.telemetry = Telemetry(
            os.environ,
            Path.home(),
            self.secrets.get_many,
            self._masking,
            states=lambda: self._table.count_states(),  # made below
            on_change=self._publisher.engine_changed,
        )
        self._call_events = CallEvents(self._publisher.call_events, self._masking.mask_text)
        self.call_log = CallLog(
            paths.calls_db,
            self._masking.mask_payload,
            None,
            self._publisher.calls,
            self._publisher.engine_changed,
            watchers=(self._call_events, self.telemetry),
        )
        machine = Machine(self._environment, self.secrets)
        self.shipped_servers = ShippedServers(resource("shipped.yaml"), machine)
        bundles = Bundles(paths.bundles, Path.home(), self.roster_file.remembered)
        self.registry = Registry(resource("registry.yaml"), machine, bundles, Path.home(), self._registry_place)
        self._sleep = SleepWatch(self._on_wake)
        self._table = ServerTable(
            self.output,
            self.secrets,
            self._environment,
            self._masking,
            paths.state,
            port=lambda: self._port,
            on_change=self._publisher.server_changed,
        )
        self.sign_ins = self._table.sign_ins
        self.secret_desk = SecretDesk(self.secrets, self._table, self.telemetry, self.bus)
        self.clients = ClientDesk(clients, self._tokens, self._table.entry, lambda: self.url)
        self._approvals = Approvals(paths.state / "approvals.json", self._on_approvals)
        self.policies = Policies(self._approvals)
        self.policies.program = self._table.program
        self.questions = Questions(
            mask=self._masking.mask_shown, on_change=self._on_questions, notify=notify, patience=WINDOW_SECONDS
        )
        self.policy = PolicyDesk(
            self.policies,
            self.questions,
            self.roster_file,
            self._tokens,
            {view.id: view.name for view in clients.views()},
            last_seen=lambda client: self._callers.get(client),
            url=lambda: self.url,
        )
        self.relay = Relay(
            self._table,
            self.call_log,
            paths.state / "catalogue",
            on_catalogue=self._publisher.lists_read,
            on_noise=self._table.noise,
            policies=self.policies,
            questions=self.questions,
        )
        self._table.attach(self.relay)
        self.telemetry.attach(self.relay)
        self.agents = AgentServers(self._table, self.relay)
        self.looks = self._table.looks
        self.offers = Offers(self.relay, self._table.entry, self.policies.person)
        self._access = Access(self._admin_token, self._tokens.client_of)
        self._app = GatewayApp(
            self._access,
            McpEndpoint(self.relay),
            self.policies,
            self.relay.scope_exists,
            self._on_caller,
            self.sign_ins.callback,
            lambda: self.storage is None or self.storage.is_known,
            self._may_control,
        )
        self.storage: SharedStorage | None = None
        self._storage_setting = ""  # the roster's, as it was at the start
        self._gateway: GatewayServer | None = None
        self._host = LOOPBACK_ADDRESS
        self._port = self._wanted_port = 0
        self._callers: dict[str, float] = {}
        self._watcher: asyncio.Task[None] | None = None
        self._announcement = Announcement(paths.engine_file)

    # life

    async def start(self, control: ControlApi) -> None:
        """Listen, read the roster and start its servers; returns when the gateway answers."""
        self._app.control = control
        await self.roster_file.load()
        gateway = self.roster_file.roster.settings.gateway
        self._wanted_port = gateway.port
        self._host = find_host(gateway.host, os.environ)
        sock = listen(gateway.port, self._host)
        self._port = sock.getsockname()[1]
        await self._open_storage()
        self._environment.start()
        self._gateway = GatewayServer(self._app, sock)
        await self._table.end_leftovers()
        self._on_roster()
        await self.telemetry.settled()  # so that the first call is traced too, where calls are
        await self._gateway.start()
        self._sleep.start()
        self._watcher = tasks.spawn(self.roster_file.watch(), name="watch the roster")
        await self._announcement.make(self.address)

    async def stop(self) -> None:
        """End everything in order: nothing new is let in, servers are stopped, logs are written.

        What cannot be ended properly is logged, and the rest is ended all the same.
        """
        self._sleep.close()
        steps: list[Callable[[], Awaitable[None]]] = [
            self._announcement.withdraw,
            self._end_watching,
            self.relay.close,
            self._table.close,
            self._close_gateway,
            self._close_bundles,
            self._environment.close,
            self.call_log.close,
            self.telemetry.close,
            self._close_storage,
        ]
        for step in steps:
            try:
                await step()
            except Exception:
                log.exception("ending in order failed at one step")
        self.output.close()
        self.secrets.close()

    async def _open_storage(self) -> None:
        self._storage_setting = self.roster_file.roster.settings.storage
        storage = self.storage = await open_storage(
            self._storage_setting, os.environ, self.secrets, self._masking, self.call_log.notices_changed
        )
        if storage is not None:
            self._tokens.share(storage)
            self.relay.seal.share(storage)
            storage.follow_calls(self._publisher.calls, lambda: self.bus.is_read)
            self._approvals.share(storage)
            await storage.start()
        await self.call_log.open(storage.call_place if storage is not None else None)

    async def _close_storage(self) -> None:
        if self.storage is not None:
            await self.storage.close()

    async def _end_watching(self) -> None:
        if self._watcher is not None:
            await tasks.cancel_and_wait(self._watcher)

    async def _close_bundles(self) -> None:
        self.roster_file.forget_edits()
        await self.registry.bundles.close()

    async def _close_gateway(self) -> None:
        self._publisher.close()
        self._call_events.close()
        self.bus.close()
        if self._gateway is not None:
            await self._gateway.stop()

    @property
    def url(self) -> str:
        """The gateway's address, without a path."""
        return url_of(self._host, self._port)

    @property
    def figures(self) -> FigureWatch:
        """CPU and memory of the servers."""
        return self._table.figures

    @property
    def address(self) -> EngineAddress:
        """What window and command line need to reach this engine."""
        return EngineAddress(pid=os.getpid(), url=self.url, admin_token=self._admin_token, version=__version__)

    def ask_to_quit(self) -> None:
        """Make the process end; returns at once."""
        self.quit.set()

    async def view(self) -> EngineView:
        """Who and where the engine is."""
        now = time.time()
        return EngineView(
            version=__version__,
            pid=os.getpid(),
            started=self._started,
            url=self.url,
            mcp_url=f"{self.url}/mcp",
            port=self._port,
            wanted_port=self._wanted_port,
            config_dir=str(self.paths.config),
            state_dir=str(self.paths.state),
            log_dir=str(self.paths.logs),
            clients=sum(now - seen < RECENT_SECONDS for seen in self._callers.values()),
            calls_last_hour=await self.call_log.count_since(now - 3600),
            notices=self._notices(),
        )

    def _notices(self) -> list[Notice]:
        control_is_remote = self.roster_file.roster.settings.gateway.control == "remote"
        notices = gateway_notices(
            self._host,
            self._port,
            self._wanted_port,
            is_open=self._access.open,
            control_is_remote=control_is_remote,
        )
        notices += setting_notices(self._storage_setting, self.roster_file.roster.settings.storage)
        return notices + self._tokens.notices + self.output.notices + self.call_log.notices + self.telemetry.notices

    def network(self, *, online: bool) -> None:
        """The window's system says that this computer has, or has lost, its network, or got another one."""
        log.info("this computer is %s", "connected to a network" if online else "not connected to a network")
        self._table.supervisor.network(online=online)

    def _on_wake(self) -> None:
        log.info("the computer slept")
        self._table.supervisor.interrupted()

    async def doctor(self, server: str = "") -> list[Check]:
        """Run the checks of the engine, or of one server."""
        return await examine(self, self._table, server)

    # servers

    def servers(self) -> list[ServerView]:
        """Every server in roster order."""
        return [self.server(name) for name in self.roster_file.roster.servers]

    def server(self, name: str) -> ServerView:
        """One server; raises ``server-unknown``."""
        return self._table.view(name, self.url)

    async def act(self, name: str, action: str) -> ServerView:
        """Start, stop, restart, retry, cancel, enable or disable a server."""
        entry = self._table.entry(name)
        if action in ("enable", "disable"):
            written = dict(self.roster_file.roster.written[name])
            written.pop("enabled", None)
            if action == "disable":
                written["enabled"] = False
            if entry.enabled != (action == "enable"):
                await self.roster_file.save_entry(name, written)
        else:
            self._table.act(name, action)
            if action == "cancel":
                await self.sign_ins.cancel(name)
        return self.server(name)

    def log_page(self, name: str, after: int, limit: int) -> LogPage:
        """Lines of a server's output."""
        self._table.entry(name)
        return self.output.page(name, after, limit)

    async def call_tool(self, name: str, tool: str, arguments: dict[str, Any]) -> bytes:
        """Call a tool by hand; MCP's result object as raw JSON."""
        self._table.entry(name)
        return await call_tool(self.relay, name, tool, arguments, caller=self.policies.person)

    async def call(self, call_id: int) -> CallDetail:
        """One call of the log with its payloads; raises ``not-found``."""
        detail = await self.call_log.detail(call_id)
        arguments, result = await asyncio.to_thread(
            lambda: (self._masking.mask_shown(detail.arguments), self._masking.mask_shown(detail.result))
        )
        return msgspec.structs.replace(detail, arguments=arguments, result=result)

    # the roster

    def roster_view(self) -> RosterView:
        """The roster in force."""
        return self.roster_file.view()

    def validate(self, name: str, entry: dict[str, Any], editing: str) -> Validation:
        """What is wrong with an entry under edit, and what looks like a credential in it.

        Where there is a secret, a keyring is looked for, so that a person learns before saving if there is none.
        """
        validation = self._editor.validate(name, entry, editing)
        if validation.hints or refers_to_secrets(entry):
            tasks.spawn(self.secrets.look(), name="look for a keyring")
        return validation

    async def save_entry(self, name: str, edit: EntryEdit) -> RosterEdit:
        """Store the secrets, then the entry."""
        saved = await self._editor.save(name, edit)
        if edit.secrets:
            self.secret_desk.stored(edit.secrets)
        return saved

    async def remove_entry(self, name: str, revision: str) -> RosterEdit:
        """Take an entry out of the roster. Its secrets stay, so that it can be taken back."""
        return await self.roster_file.remove_entry(name, revision=revision)

    async def shipped(self) -> list[ShippedView]:
        """The catalogue of servers, with what each needs and what of that is missing here."""
        return await self.shipped_servers.views(self.roster_file.roster.written)

    async def undo(self, token: str) -> RosterEdit:
        """Take back a change."""
        return await self.roster_file.undo(token)

    # what happens inside

    def _on_roster(self) -> None:
        roster = self.roster_file.roster
        gateway = roster.settings.gateway
        hosts = [*gateway.hosts, self._host]
        self._access.configure(open_gateway=gateway.auth == "open", hosts=hosts, exposed=is_exposed(self._host))
        settings = roster.settings
        changed = self.policies.configure(settings.policy, settings.clients, settings.profiles)
        self.relay.policy_changed(changed)
        if self._tokens.know(settings.clients):
            self._access.forget()
        self.bus.publish("policy", {})
        kept = settings.log
        self.call_log.keep(payload=kept.payload_kb * 1024, age=kept.max_age_days * 86400, size=kept.max_size_mb * MIB)
        if self.storage is not None:
            roster = share_conversations(roster, self.storage.address)
        self.telemetry.configure(roster.settings.telemetry)
        gone = self._table.apply(roster)
        self.policies.forget()  # servers may run other programs now
        self.registry.bundles.collect_soon()
        for name in gone:
            tasks.spawn(self.policies.forget_server(name), name=f"forget what was allowed of {name}")
            self.bus.publish("server-removed", {"name": name})
        for name in roster.servers:
            self._publisher.server_changed(name)
        self.bus.publish("roster", self.roster_view())
        self._publisher.engine_changed()

    def _known_view(self, name: str) -> ServerView | None:
        return self.server(name) if name in self.roster_file.roster.servers else None

    def _registry_place(self) -> str:
        return self.roster_file.roster.settings.registry.url

    def _on_approvals(self) -> None:
        self.policies.forget()
        self.bus.publish("policy", {})

    def _on_questions(self) -> None:
        self.bus.publish("questions", {"questions": self.policy.questions()})

    def _may_control(self, peer: str) -> bool:
        return self.roster_file.roster.settings.gateway.control == "remote" or is_local(peer, self._host)

    def _on_caller(self, caller: str) -> None:
        now = time.time()
        if now - self._callers.get(caller, 0.0) > RECENT_SECONDS:
            self._publisher.engine_changed()
        self._callers[caller] = now
