"""The one crossing point between the engine's API and Qt."""

import asyncio
import contextlib
import importlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec
import shiboken6
from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal

from callboard.api.client import EngineClient
from callboard.api.policy_schema import QuestionView
from callboard.api.schema import CallView, EngineView, Event, EventKind, LogLine, RosterView, SecretsView, ServerView
from callboard.core.errors import CallboardError
from callboard.core.health import PRIMARY_ACTION, SEVERITY, State
from callboard.system.engine_file import EngineAddress, read_engine_file
from callboard.ui.spawn import Tasks

log = logging.getLogger(__name__)

FLUSH_MS = 60
RECENT_CALLS = 50
FIRST_DELAY = 0.05  # seconds between attempts, for the first QUICK_ATTEMPTS; then doubled up to LAST_DELAY
QUICK_ATTEMPTS = 100
LAST_DELAY = 2.0
FOLLOWED: tuple[EventKind, ...] = tuple(kind for kind in get_args(EventKind) if kind != "call-events")
T = TypeVar("T")


class EngineLink(QObject):
    """What the window knows about the engine, kept true by the engine's event stream.

    Lives in the window's thread and on its loop; widgets get it in their constructor, read its properties and
    connect to its signals. Everything that it holds survives a lost connection (last known state) until the next
    one brings the truth; once it is known that the engine has ended (:meth:`engine_ended`), no server runs.
    Changes come in batches of :data:`FLUSH_MS`: of a server that changed three times within one batch, only the
    newest state is told.

    Logs, tools and pages of the call log are not held here: who shows them reads them through :meth:`request` on
    :attr:`resynced` (on every new connection, and when events were missed) and then follows the signals.
    """

    connected = Signal()  # the engine answers, and all properties hold its present state
    disconnected = Signal(str)  # why, one sentence
    resynced = Signal()  # everything was read anew; what a widget has loaded by itself may be stale
    serversReset = Signal(object)  # list[ServerView] in roster order
    serverChanged = Signal(object)  # ServerView, also for a new one
    serverRemoved = Signal(str)
    toolsChanged = Signal(str)
    logLines = Signal(str, object)  # server, list[LogLine]
    callsChanged = Signal(object)  # list[CallView]: new and changed rows, oldest first
    rosterChanged = Signal(object)  # RosterView
    engineChanged = Signal(object)  # EngineView
    secretsChanged = Signal(object)  # SecretsView
    questionsChanged = Signal(object)  # list[QuestionView]: all calls that wait for the person
    policyChanged = Signal()  # rules, profiles or answers for good

    def __init__(self, engine_file: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.tasks = Tasks(self)
        self.servers: dict[str, ServerView] = {}  # in roster order
        self.roster: RosterView | None = None
        self.engine: EngineView | None = None
        self.secrets: SecretsView | None = None
        self.questions: list[QuestionView] = []  # oldest first; empty while no engine answers
        self.recent_calls: list[CallView] = []  # oldest first, at most RECENT_CALLS
        self.client: EngineClient | None = None  # None while no engine answers
        self._engine_file = engine_file
        self._address: EngineAddress | None = None
        self._seq = -1
        self._connected = False
        self._told = False  # :attr:`connected` was emitted for this connection
        self._lost = False  # the connection is gone, and :attr:`disconnected` not yet told
        self._pending = _Pending()
        self._flush_timer = QTimer(self)
        self._flush_timer.setSingleShot(True)
        self._flush_timer.setInterval(FLUSH_MS)
        self._flush_timer.timeout.connect(self.flush)

    @property
    def is_connected(self) -> bool:
        """Whether the engine answers and all properties hold its present state."""
        return self._connected

    # for widgets

    def request(
        self,
        ask: Callable[[EngineClient], Awaitable[T]],
        on_done: Callable[[T], object] | None = None,
        on_error: Callable[[CallboardError], object] | None = None,
        *,
        owner: QObject | None = None,
        name: str = "request",
    ) -> asyncio.Task[None]:
        """Ask the engine something and go on in ``on_done`` with the answer.

        ``link.request(lambda client: client.tools(name), self._show_tools, owner=self)``. Without ``on_error`` a
        failure is shown in the window's notice bar. Neither is called once ``owner`` has been deleted. The returned
        task may be cancelled when the answer is no longer wanted.
        """

        async def work() -> None:
            try:
                if self.client is None:
                    raise CallboardError("engine-not-running", _no_engine())
                answer = await ask(self.client)
            except CallboardError as error:
                if on_error is None:
                    raise
                if owner is None or shiboken6.isValid(owner):
                    on_error(error)
                return
            if on_done is not None and (owner is None or shiboken6.isValid(owner)):
                on_done(answer)

        return self.tasks.spawn(work(), name)

    def engine_ended(self) -> None:
        """No engine lives: the servers ended with it, whatever was heard of them last."""
        self._address, self._seq = None, -1
        stopped = {name: _without_engine(view) for name, view in self.servers.items()}
        if stopped != self.servers:
            self.servers = stopped
            self.serversReset.emit(list(stopped.values()))

    # the connection

    async def run(self) -> None:
        """Connect, follow the events, connect again when the connection breaks; runs until cancelled."""
        await asyncio.to_thread(importlib.import_module, "httpx2")  # while the engine still starts
        delay, attempts = FIRST_DELAY, 0
        while True:
            address = read_engine_file(self._engine_file)
            if address is not None:
                try:
                    await self._follow(address)
                    reason = ""
                except CallboardError as error:
                    reason = error.message
                except msgspec.MsgspecError as error:
                    log.warning("The engine said what this window does not understand: %s", error)
                    reason = QCoreApplication.translate("EngineLink", "The engine is of another version.")
                if self._lost:
                    self._lost = False
                    delay, attempts = FIRST_DELAY, 0
                    self.disconnected.emit(reason or QCoreApplication.translate("EngineLink", "The engine has ended."))
            await asyncio.sleep(delay)
            attempts += 1
            if attempts > QUICK_ATTEMPTS:
                delay = min(delay * 2, LAST_DELAY)

    async def close(self) -> None:
        """End all requests. Cancel :meth:`run` first."""
        self._flush_timer.stop()
        await self.tasks.close()

    async def _follow(self, address: EngineAddress) -> None:
        """One connection: from its start to its end. To the same engine as before, only what was missed is read."""
        after = self._seq if address == self._address else -1
        opened = asyncio.Event()
        async with EngineClient(address) as client:
            events = client.events(after, FOLLOWED, opened=opened.set, asks=True)
            first = asyncio.ensure_future(anext(events, None))
            try:
                await _first_of(first, opened)
                self.client = client
                if after >= 0:
                    self._tell_connected(address)
                event = await first
                while event is not None:
                    if event.kind == "reset":
                        await self._read_all(client)
                        self._tell_connected(address)
                    else:
                        self.feed(event)
                    self._seq = event.seq
                    event = await anext(events, None)
            finally:
                self._detach()
                first.cancel()
                with contextlib.suppress(asyncio.CancelledError, CallboardError):
                    await first
                await events.aclose()

    def _tell_connected(self, address: EngineAddress) -> None:
        self._address = address
        if not self._told:
            self._told = self._connected = True
            self.connected.emit()

    async def _read_all(self, client: EngineClient) -> None:
        engine, servers, roster, secrets, page, questions = await asyncio.gather(
            client.engine(),
            client.servers(),
            client.roster(),
            client.secrets(),
            client.calls(limit=RECENT_CALLS),
            client.policy.questions(),
        )
        self.reset(
            engine=engine, servers=servers, roster=roster, secrets=secrets, calls=page.calls, questions=questions
        )

    # state in

    def _detach(self) -> None:
        self._lost = self._told
        self._told = self._connected = False
        self.client = None
        self.flush()
        self._set_questions([])

    def reset(
        self,
        *,
        engine: EngineView,
        servers: list[ServerView],
        roster: RosterView,
        secrets: SecretsView,
        calls: list[CallView],
        questions: Sequence[QuestionView] = (),
    ) -> None:
        """Take over a whole new state, and tell it."""
        self._connected = True
        self._pending = _Pending()
        self.engine, self.roster, self.secrets = engine, roster, secrets
        self.servers = {view.name: view for view in servers}
        self.recent_calls = calls[-RECENT_CALLS:]
        self.engineChanged.emit(engine)
        self.rosterChanged.emit(roster)
        self.secretsChanged.emit(secrets)
        self._set_questions(list(questions))
        self.serversReset.emit(servers)
        self.resynced.emit()

    def feed(self, event: Event) -> None:
        """Take one event of the stream; it is told with the next batch."""
        data, pending = event.data, self._pending
        match event.kind:
            case "server":
                view = msgspec.convert(data, ServerView)
                pending.removed.discard(view.name)
                pending.servers[view.name] = view
            case "server-removed":
                pending.servers.pop(data["name"], None)
                pending.removed.add(data["name"])
            case "tools":
                pending.tools.add(data["server"])
            case "log":
                pending.lines.setdefault(data["server"], []).extend(msgspec.convert(data["lines"], list[LogLine]))
            case "calls":
                for call in msgspec.convert(data["calls"], list[CallView]):
                    pending.calls[call.id] = call
            case "roster":
                pending.roster = msgspec.convert(data, RosterView)
            case "engine":
                pending.engine = msgspec.convert(data, EngineView)
            case "secrets":
                pending.secrets = msgspec.convert(data, SecretsView)
            case "questions":
                pending.questions = msgspec.convert(data["questions"], list[QuestionView])
            case "policy":
                pending.policy = True
            case _:
                return
        if not self._flush_timer.isActive():
            self._flush_timer.start()

    def flush(self) -> None:
        """Tell all that has come since the last batch."""
        self._flush_timer.stop()
        pending, self._pending = self._pending, _Pending()
        if pending.engine is not None:
            self.engine = pending.engine
            self.engineChanged.emit(pending.engine)
        if pending.secrets is not None:
            self.secrets = pending.secrets
            self.secretsChanged.emit(pending.secrets)
        if pending.roster is not None:
            self.roster = pending.roster
            self.rosterChanged.emit(pending.roster)
        self._flush_servers(pending)
        if pending.questions is not None:
            self._set_questions(pending.questions)
        if pending.policy:
            self.policyChanged.emit()
        for name in pending.tools:
            self.toolsChanged.emit(name)
        for name, lines in pending.lines.items():
            self.logLines.emit(name, lines)
        if pending.calls:
            self._remember(pending.calls)
            self.callsChanged.emit(list(pending.calls.values()))

    def _flush_servers(self, pending: "_Pending") -> None:
        for name in pending.removed:
            if self.servers.pop(name, None) is not None:
                self.serverRemoved.emit(name)
        self.servers.update(pending.servers)
        order = list(self.roster.servers) if self.roster else []
        if [name for name in self.servers if name in order] != [name for name in order if name in self.servers]:
            rank = {name: place for place, name in enumerate(order)}
            self.servers = dict(sorted(self.servers.items(), key=lambda item: rank.get(item[0], len(rank))))
            self.serversReset.emit(list(self.servers.values()))
            return
        for view in pending.servers.values():
            self.serverChanged.emit(view)

    def _set_questions(self, questions: list[QuestionView]) -> None:
        if questions != self.questions:
            self.questions = questions
            self.questionsChanged.emit(questions)

    def _remember(self, calls: dict[int, CallView]) -> None:
        known = {call.id: call for call in self.recent_calls}
        known.update(calls)
        self.recent_calls = sorted(known.values(), key=lambda call: call.id)[-RECENT_CALLS:]


class _Pending:
    """Changes since the last batch."""

    def __init__(self) -> None:
        self.servers: dict[str, ServerView] = {}
        self.removed: set[str] = set()
        self.tools: set[str] = set()
        self.lines: dict[str, list[LogLine]] = {}
        self.calls: dict[int, CallView] = {}
        self.roster: RosterView | None = None
        self.engine: EngineView | None = None
        self.secrets: SecretsView | None = None
        self.questions: list[QuestionView] | None = None
        self.policy = False


def _without_engine(view: ServerView) -> ServerView:
    """A server as it is while no engine runs: what only the roster decides stays, all else has stopped."""
    if view.state in (State.DISABLED, State.NEEDS_CONFIG, State.NEEDS_SIGN_IN, State.STOPPED):
        return view
    return msgspec.structs.replace(
        view,
        state=State.STOPPED,
        severity=SEVERITY[State.STOPPED],
        action=PRIMARY_ACTION[State.STOPPED],
        since=time.time(),
        ready_since=None,
        reason="",
        error_code="",
        fix="",
        pid=None,
        attempt=0,
        max_attempts=0,
        next_retry=None,
        cached=True,
        health=None,
    )


async def _first_of(first: "asyncio.Future[Any]", opened: asyncio.Event) -> None:
    """Wait until the stream is open; raises what its opening raised."""
    waiting = asyncio.ensure_future(opened.wait())
    try:
        await asyncio.wait({first, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if first.done() and not opened.is_set():
        first.result()


def _no_engine() -> str:
    return QCoreApplication.translate("EngineLink", "The engine is not running.")
