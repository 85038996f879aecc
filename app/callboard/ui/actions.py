"""What a person can do with a server, from wherever it is shown."""

from collections.abc import Awaitable, Callable
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from callboard.api.client import EngineClient
from callboard.api.schema import EngineView, HealthView, ServerView, SnippetView
from callboard.core.errors import CallboardError
from callboard.core.health import Action, State
from callboard.ui.engine_link import EngineLink

STOPPABLE = frozenset({State.READY, State.DEGRADED, State.STARTING, State.RESTARTING})
STARTABLE = frozenset({State.STOPPED, State.FAILED, State.NEEDS_CONFIG, State.NEEDS_SIGN_IN})


class ServerActions(QObject):
    """Every action on a server or on the whole, shared by pages, tray and menus.

    Belongs to the window's loop. Nothing here waits: the engine is asked in a task, and what fails is told by
    :attr:`failed`. What needs a page is asked for by signal; the main window connects them.
    """

    openRequested = Signal(str)  # show this server ("": just the window)
    logRequested = Signal(str)  # show this server's log
    editRequested = Signal(str)  # open the editor on this entry
    duplicateRequested = Signal(str)  # open the editor on a copy of this entry
    signInRequested = Signal(str, bool)  # show this server's sign-in; begin it if true
    removeRequested = Signal(str)  # take this entry out of the roster
    addRequested = Signal()  # open the editor on a new entry
    callRequested = Signal(int)  # show this call of the call log
    failed = Signal(object)  # CallboardError
    said = Signal(str)  # something was done that the window should say
    lookingChanged = Signal(str)  # somebody goes and looks at this server, or has looked
    reloadingChanged = Signal(str)  # the agents of this server are being loaded anew, or were

    def __init__(self, link: EngineLink, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self.looking: set[str] = set()  # servers that are being looked at
        self.reloading: set[str] = set()  # servers whose agents are being loaded anew
        self._to_copy: tuple[str, str] | None = None
        app = QGuiApplication.instance()
        if isinstance(app, QGuiApplication):
            app.focusWindowChanged.connect(self._copy)
        link.tasks.failed.connect(self.failed)

    # one server

    def start(self, name: str) -> None:
        """Start a server."""
        self._act(name, Action.START)

    def stop(self, name: str) -> None:
        """Stop a server."""
        self._act(name, Action.STOP)

    def restart(self, name: str) -> None:
        """Stop a server and start it again."""
        self._act(name, "restart")

    def reload(self, name: str) -> None:
        """Load a server's Python agents anew while it runs."""
        if name in self.reloading:
            return
        self.reloading.add(name)
        self.reloadingChanged.emit(name)

        def ended(error: CallboardError | None = None) -> None:
            self.reloading.discard(name)
            self.reloadingChanged.emit(name)
            if error is not None:
                self.failed.emit(error)
            else:
                self.said.emit(self.tr("{server} was loaded anew").format(server=name))

        self._link.request(lambda client: client.reload(name), lambda _: ended(), ended, name=f"reload {name}")

    def check_health(self, name: str) -> None:
        """Ask a server for a sign of life; what is found comes with its view."""
        self._look(name, lambda client: client.check_health(name))

    def refresh(self, name: str) -> None:
        """Read a server's lists anew, and ask it for a sign of life."""
        self._look(name, lambda client: client.refresh(name))

    def _look(self, name: str, ask: Callable[[EngineClient], Awaitable[HealthView]]) -> None:
        if name in self.looking:
            return
        self.looking.add(name)
        self.lookingChanged.emit(name)

        def ended(error: CallboardError | None = None) -> None:
            self.looking.discard(name)
            self.lookingChanged.emit(name)
            if error is not None:
                self.failed.emit(error)

        self._link.request(ask, lambda _: ended(), ended, name=f"look at {name}")

    def retry(self, name: str) -> None:
        """Start a failed or waiting server now, with its counter cleared."""
        self._act(name, Action.RETRY)

    def reset(self, name: str) -> None:
        """Forget a server's earlier failures; what they brought down is started."""
        self._act(name, "reset")

    def cancel(self, name: str) -> None:
        """Give up a start."""
        self._act(name, Action.CANCEL)

    def enable(self, name: str) -> None:
        """Let a server be used."""
        self._act(name, Action.ENABLE)

    def disable(self, name: str) -> None:
        """Stop a server and keep it from being used."""
        self._act(name, "disable")

    def run(self, name: str, action: Action) -> None:
        """Do what the button of ``action`` says."""
        match action:
            case Action.NONE:
                return
            case Action.EDIT | Action.FILL_IN:
                self.editRequested.emit(name)
            case Action.SIGN_IN:
                self.signInRequested.emit(name, True)
            case Action.SHOW_LOG:
                self.logRequested.emit(name)
            case _:
                self._act(name, action)

    def run_primary(self, view: ServerView) -> None:
        """Do the one thing that helps this server most."""
        self.run(view.name, view.action)

    def remove(self, name: str) -> None:
        """Take a server out of the roster; it can be undone."""
        self.removeRequested.emit(name)

    # requests for a page

    def open(self, name: str) -> None:
        """Show the window with this server."""
        self.openRequested.emit(name)

    def show_log(self, name: str) -> None:
        """Show this server's log."""
        self.logRequested.emit(name)

    def edit(self, name: str) -> None:
        """Open the editor on this server."""
        self.editRequested.emit(name)

    def show_sign_in(self, name: str) -> None:
        """Show how this server's sign-in went; begins none."""
        self.signInRequested.emit(name, False)

    def duplicate(self, name: str) -> None:
        """Open the editor on a copy of this server."""
        self.duplicateRequested.emit(name)

    def add(self) -> None:
        """Open the editor on a new server."""
        self.addRequested.emit()

    def show_call(self, call_id: int) -> None:
        """Show one call of the call log."""
        self.callRequested.emit(call_id)

    # the clipboard

    def copy_text(self, text: str, said: str) -> None:
        """Put ``text`` on the clipboard and say so."""
        self._to_copy = (text, said)
        if QGuiApplication.platformName() == "wayland" and not _has_focus():
            self.openRequested.emit("")  # Wayland gives the clipboard to nobody but the window with the focus
        else:
            self._copy()

    def _copy(self, *_focus: object) -> None:
        if self._to_copy is None or (_focus and _focus[0] is None):
            return
        (text, said), self._to_copy = self._to_copy, None
        QGuiApplication.clipboard().setText(text)
        self.said.emit(said)

    def copy_gateway_url(self) -> None:
        """Copy the address that clients connect to."""
        engine: EngineView | None = self._link.engine
        if engine is None or not self._link.is_connected:
            self.failed.emit(CallboardError("engine-not-running", self.tr("The engine is not running.")))
            return
        self.copy_text(engine.mcp_url, self.tr("Gateway URL copied: {url}").format(url=engine.mcp_url))

    def copy_vscode_config(self, server: str = "") -> None:
        """Copy what makes VS Code a client of this gateway, or of one server on it."""
        self.copy_snippet("vscode", server)

    def copy_snippet(self, client: str, server: str = "") -> None:
        """Copy a client's configuration and say where it belongs."""

        def done(snippet: SnippetView) -> None:
            text = self.tr("Configuration copied. Paste it into {file}.")
            self.copy_text(snippet.text, text.format(file=snippet.file))

        async def ask(engine: EngineClient) -> SnippetView:
            return await engine.snippet(client, server=server)

        self._link.request(ask, done, self.failed.emit, name=f"snippet {client}")

    def _act(self, name: str, action: str) -> None:
        async def ask(client: EngineClient) -> Any:
            return await client.act(name, str(action))

        self._link.request(ask, None, self.failed.emit, name=f"{action} {name}")


def _has_focus() -> bool:
    return QGuiApplication.focusWindow() is not None
