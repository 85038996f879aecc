"""What tests of widgets share: a theme, icons, and a link that is fed by hand."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication

from callboard.api.client import EngineClient
from callboard.api.schema import CallView, EngineView, Event, FiguresView, RosterView, SecretsView, ServerView
from callboard.core.errors import CallboardError
from callboard.core.health import PRIMARY_ACTION, SEVERITY, State
from callboard.system.engine_file import EngineAddress
from callboard.system.resources import resource
from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme

NOW = 1_800_000_000.0


def server_view(name: str, state: State = State.READY, **fields: Any) -> ServerView:
    """A server as the engine would describe it; what follows from the state is filled in."""
    known: dict[str, Any] = {
        "display_name": name,
        "kind": "local",
        "transport": "stdio",
        "enabled": state is not State.DISABLED,
        "start": "at-launch",
        "severity": SEVERITY[state],
        "action": PRIMARY_ACTION[state],
        "since": NOW - 60,
    }
    return ServerView(name=name, state=state, **(known | fields))


def call_view(number: int, **fields: Any) -> CallView:
    """A call of the log."""
    known: dict[str, Any] = {
        "started": time.time() - 30,
        "client": "vscode",
        "server": "local-tools",
        "method": "tools/call",
        "tool": "echo",
        "status": "completed",
        "duration_ms": 12.0,
    }
    return CallView(id=number, **(known | fields))


def engine_view(**fields: Any) -> EngineView:
    """An engine that listens where it should."""
    known: dict[str, Any] = {
        "version": "0.1.0",
        "pid": 4711,
        "started": NOW - 600,
        "url": "http://127.0.0.1:4470",
        "mcp_url": "http://127.0.0.1:4470/mcp",
        "port": 4470,
        "wanted_port": 4470,
        "config_dir": "",
        "state_dir": "",
        "log_dir": "",
    }
    return EngineView(**(known | fields))


def roster_view(names: list[str], **fields: Any) -> RosterView:
    """A roster of servers with these names."""
    known: dict[str, Any] = {"path": "", "revision": "1", "servers": {name: {"command": name} for name in names}}
    return RosterView(**(known | fields))


class HandClient(EngineClient):
    """Notes what the engine is asked. Answers what the test put there; everything else fails as unreachable."""

    def __init__(self) -> None:
        super().__init__(EngineAddress(pid=0, url="http://127.0.0.1:9", admin_token="", version=""))
        self.asked: list[tuple[str, str, Any]] = []  # verb, path below the API's prefix, body
        self.answers: dict[str, Any] = {}  # by path without its query
        self.samples: asyncio.Queue[FiguresView] = asyncio.Queue()
        self.looking = 0

    async def figures(self) -> AsyncGenerator[FiguresView, None]:
        self.looking += 1
        try:
            while True:
                yield await self.samples.get()
        finally:
            self.looking -= 1

    async def _send(self, method: str, path: str, body: Any, kind: Any, limit: float | None = -1.0) -> Any:
        self.asked.append((method, path, body))
        answer = self.answers.get(path.partition("?")[0])
        if answer is None:
            raise CallboardError("engine-unreachable", f"Nobody answers {method} {path}.")
        if isinstance(answer, CallboardError):
            raise answer
        return answer


class HandLink(EngineLink):
    """A link without an engine: tests say what the engine would say (:class:`HandClient` for what it is asked)."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "engine.json")
        self.hand = HandClient()
        self._number = 0

    @property
    def is_connected(self) -> bool:
        """Connected by hand, or by a client that the test has put there."""
        return self.client is not None

    def connect_by_hand(self, *views: ServerView, calls: list[CallView] | None = None, **state: Any) -> None:
        """Behave as after a new connection to an engine with these servers."""
        self.client = self.hand
        self.reset(
            engine=state.get("engine") or engine_view(),
            servers=list(views),
            roster=state.get("roster") or roster_view([view.name for view in views]),
            secrets=state.get("secrets") or SecretsView(kind="session", backend=""),
            calls=calls or [],
        )
        self.connected.emit()

    def disconnect_by_hand(self, reason: str = "The engine has ended.") -> None:
        """Behave as after the connection broke."""
        self._detach()
        self.disconnected.emit(reason)

    def say(self, kind: Any, data: Any) -> None:
        """Take an event, and tell it at once instead of with the next batch."""
        self._number += 1
        self.feed(Event(seq=self._number, at=time.time(), kind=kind, data=data))
        self.flush()


async def until(holds: Callable[[], object], what: str = "it", *, seconds: float = 30.0) -> None:
    """Let Qt and the loop work until ``holds()`` is true; fails after ``seconds``."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not holds():
        assert loop.time() < end, f"{what} did not come true within {seconds} s"
        await asyncio.sleep(0.005)


@pytest.fixture
def settings(tmp_path: Path) -> QSettings:
    """Empty settings in a file of their own."""
    return QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)


@pytest.fixture
def theme(qapp: QApplication, settings: QSettings) -> Iterator[Theme]:
    """The theme, as the system is; the application's palette is put back afterwards."""
    palette = qapp.palette()
    theme = Theme(qapp, settings)
    yield theme
    theme.deleteLater()
    qapp.styleHints().unsetColorScheme()
    qapp.setPalette(palette)


@pytest.fixture
def icons(theme: Theme) -> Icons:
    """The program's own icons."""
    return Icons(theme, resource("icons"))


@pytest.fixture
def link(qapp: QApplication, tmp_path: Path) -> Iterator[HandLink]:
    """A link that the test feeds."""
    link = HandLink(tmp_path)
    yield link
    link.flush()
    link.deleteLater()


@pytest.fixture
def actions(link: HandLink) -> ServerActions:
    """Actions on that link: what needs the engine fails, what needs a page is signalled."""
    return ServerActions(link)
