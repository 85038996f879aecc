"""Window, tray and the tasks behind them: made once, connected here, ended here."""

import asyncio
import contextlib
import importlib
import os
import signal
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSettings, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication, QMessageBox, QWidget

import callboard
from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.system.engine_child import EngineChild
from callboard.system.paths import Paths
from callboard.system.resources import resource
from callboard.ui.actions import ServerActions
from callboard.ui.engine_keeper import EngineKeeper
from callboard.ui.engine_link import EngineLink
from callboard.ui.engine_stop import stop_engine
from callboard.ui.icons import Icons
from callboard.ui.main_window import MainWindow, Page
from callboard.ui.notice_bar import Notice, NoticeAction
from callboard.ui.question_desk import QuestionDesk
from callboard.ui.question_dialog import QuestionDialog
from callboard.ui.standing_notices import StandingNotices
from callboard.ui.theme import Theme
from callboard.ui.tray import Tray
from callboard.ui.tray_icons import TrayIcons

if TYPE_CHECKING:
    from callboard.ui.calls_page import CallsPage
    from callboard.ui.clients.page import ClientsPage
    from callboard.ui.editor.editor import ServerEditor
    from callboard.ui.servers_page import ServersPage

TRAY_WAIT_MS = 6_000  # how long a tray may take to come (at log-in) or to come back (its panel restarts)
LATER = ("servers_page", "editor.editor", "calls_page", "clients.page")  # loaded after the first paint, in a thread


class Shell(QObject):
    """The whole of the window's process above QApplication. One per process, in Qt's thread.

    What the first paint does not need (the editor, the page of calls, the tray) is made right after it.
    """

    ending = Signal()  # the person has quit; what follows is the end

    def __init__(
        self, app: QApplication, paths: Paths, child: EngineChild, *, background: bool, first_start: bool
    ) -> None:
        super().__init__()
        self._app = app
        self._paths = paths
        self._child = child
        self._quit = asyncio.Event()
        self._settings = QSettings(str(paths.window_settings), QSettings.Format.IniFormat)
        if first_start:
            self._settings.setValue("welcome", True)
        self._welcoming = bool(self._settings.value("welcome", False, type=bool))
        self.theme = Theme(app, self._settings, self)
        self.icons = Icons(self.theme, resource("icons"), self)
        self.link = EngineLink(paths.engine_file, self)
        self.actions = ServerActions(self.link, self)
        self.keeper = EngineKeeper(self.link, child, self)
        self.window = self._make_window()
        glyph = TrayIcons(resource("app-icon", "callboard-symbolic.svg"))
        self.tray = Tray(self.link, self.actions, self.theme, glyph, self)
        # of no window: it must be seen while the main window is hidden
        self.questions = QuestionDesk(self.link, self.window.notices, lambda: QuestionDialog(self.theme, self.icons))
        self.notices = StandingNotices(self.link, self.keeper, self.window.notices, lambda: self._open_folder("logs"))
        self._connect()
        if background:
            QTimer.singleShot(TRAY_WAIT_MS, self, self._show_if_unreachable)
        else:
            self.window.show()

    def take_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let SIGINT and SIGTERM mean :meth:`quit`."""
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # not on Windows
                loop.add_signal_handler(number, self.quit)

    async def run(self) -> int:
        """Everything from the first paint to the end; the exit code."""
        await asyncio.sleep(0.001)  # Qt paints first
        spawn = self.link.tasks.spawn
        link = spawn(self.link.run(), "engine link")
        keeper = spawn(self.keeper.run(), "engine keeper")
        self.tray.start()
        spawn(self._prepare(), "prepare")
        await self._quit.wait()
        await self._end(link, keeper)
        return 0

    def quit(self) -> None:
        """End engine, servers and window, in order."""
        self._quit.set()

    def show(self, activation: str = "") -> None:
        """Bring the window up; ``activation`` is the desktop's token that allows it."""
        if activation:
            os.environ["XDG_ACTIVATION_TOKEN"] = activation  # Qt's Wayland platform looks for it there
        self.window.bring_to_front()

    def open_bundle(self, path: str) -> None:
        """Show what the bundle in a file would become, over the window, once there is an engine to ask."""
        if self.link.is_connected:
            self._over_window(lambda: self.editor.open_bundle(path))
        else:
            kind = Qt.ConnectionType.SingleShotConnection
            self.link.connected.connect(lambda: self._over_window(lambda: self.editor.open_bundle(path)), kind)

    # making

    def _make_window(self) -> MainWindow:
        pages = [
            Page("servers", self.tr("Servers"), lambda: self.servers_page, "servers"),
            Page("calls", self.tr("Calls"), lambda: self.calls_page, "calls"),
            Page("clients", self.tr("Clients"), lambda: self.clients_page, "key"),
            Page("welcome", self.tr("Welcome"), self._make_welcome),
        ]
        window = MainWindow(self.link, self.actions, self.theme, self.icons, self._settings, pages)
        if self._welcoming:
            window.open_page("welcome")
        else:
            window.open_last_page()
        return window

    @cached_property
    def servers_page(self) -> "ServersPage":
        """The page of servers."""
        from callboard.ui.servers_page import ServersPage

        return ServersPage(self.link, self.actions, self.theme, self.icons, self._settings, self._make_form)

    @cached_property
    def calls_page(self) -> "CallsPage":
        """The page of calls."""
        from callboard.ui.calls_page import CallsPage

        return CallsPage(self.link, self.actions, self.theme, self.icons, self._settings)

    @cached_property
    def clients_page(self) -> "ClientsPage":
        """The page of clients and profiles."""
        from callboard.ui.clients.page import ClientsPage

        return ClientsPage(self.link, self.actions, self.theme, self.icons, self._settings)

    @cached_property
    def editor(self) -> "ServerEditor":
        """What adds, edits and removes servers."""
        from callboard.ui.editor.editor import ServerEditor

        editor = ServerEditor(self.link, self.theme, self.icons, self.window, self)
        editor.saved.connect(self._show_server)
        editor.undo.said.connect(self.actions.said)
        editor.undo.failed.connect(self.actions.failed)
        editor.undo.removed.connect(self._offer_undo)
        self.window.add_edit_actions(editor.undo.undo_action, editor.undo.redo_action)
        return editor

    def _make_welcome(self) -> QWidget:
        from callboard.ui.welcome import WelcomePage

        picture = resource("app-icon", "callboard.svg")
        welcome = WelcomePage(self.link, self.actions, self.theme, self.icons, picture)
        welcome.dismissed.connect(self._dismiss_welcome)
        return welcome

    def _make_form(self, name: str) -> QWidget:
        return self.editor.make_form(name)

    async def _prepare(self) -> None:
        """Make the rest, in pieces short enough not to be felt."""
        for module in LATER:
            await asyncio.to_thread(importlib.import_module, f"callboard.ui.{module}")
        _ = self.editor
        for key in ("servers", "calls", "clients"):
            await asyncio.sleep(0)
            self.window.prepare_page(key)
        from callboard.ui.network_watch import NetworkWatch

        NetworkWatch(self.link, self).start()

    def _connect(self) -> None:
        self.window.closeRequested.connect(self._close)
        self.window.quitRequested.connect(self.quit)
        self.window.aboutRequested.connect(self._about)
        self.window.folderRequested.connect(self._open_folder)
        self.window.bundleDropped.connect(self.open_bundle)
        self.tray.openRequested.connect(self.show)
        self.tray.quitRequested.connect(self.quit)
        self.tray.startEngineRequested.connect(self.keeper.start_now)
        self.tray.questionRequested.connect(self.questions.show)
        self.questions.failed.connect(self.actions.failed)
        self.tray.availableChanged.connect(self._tray_changed)
        actions = self.actions
        actions.openRequested.connect(self._show_server)
        actions.logRequested.connect(self._show_log)
        actions.callRequested.connect(self._show_call)
        actions.addRequested.connect(lambda: self._over_window(self.editor.add_server))
        actions.editRequested.connect(lambda name: self._over_window(lambda: self.editor.edit_server(name)))
        actions.duplicateRequested.connect(lambda name: self._over_window(lambda: self.editor.duplicate_server(name)))
        actions.signInRequested.connect(lambda name, begin: self._over_window(lambda: self._sign_in(name, begin)))
        actions.removeRequested.connect(lambda name: self.editor.remove_server(name))
        actions.failed.connect(self._show_trouble)
        self.link.rosterChanged.connect(self._roster_changed)
        self.link.connected.connect(lambda: self._say_down(self.tr("Starting the engine…"), starting=True))
        self.keeper.restarting.connect(lambda *_: self._say_down(self.tr("Starting the engine again…"), starting=True))
        self.keeper.stopped.connect(lambda: self._say_down(self.tr("The engine is stopped"), starting=False))

    # showing and hiding

    def _close(self) -> None:
        if self.tray.available:
            self.window.hide()
            return
        self.window.showMinimized()
        if not self._settings.value("told-of-minimising", False, type=bool):
            self._settings.setValue("told-of-minimising", True)
            text = self.tr("Closing only minimises the window: this desktop has no tray to find Callboard in.")
            fix = self.tr("Quit ends it. On GNOME, the AppIndicator extension adds a tray.")
            leave = NoticeAction(self.tr("Quit"), self.quit)
            self.window.notices.put(Notice("no-tray", Severity.OFF, text, fix, (leave,)))

    def _tray_changed(self, available: bool) -> None:
        if available:
            self.window.notices.drop("no-tray")
        elif not self.window.isVisible():
            QTimer.singleShot(TRAY_WAIT_MS, self, self._show_if_unreachable)

    def _show_if_unreachable(self) -> None:
        if not self.tray.available and not self.window.isVisible() and not self._quit.is_set():
            self.window.show()

    def _show_server(self, name: str) -> None:
        self.window.open_page("servers")
        if name:
            self.servers_page.show_server(name)
        self.show()

    def _show_log(self, name: str) -> None:
        self.window.open_page("servers")
        self.servers_page.show_log(name)
        self.show()

    def _show_call(self, call_id: int) -> None:
        self.window.open_page("calls")
        self.calls_page.show_call(call_id)
        self.show()

    def _over_window(self, open_dialog: Callable[[], object]) -> None:
        self.show()
        open_dialog()

    def _sign_in(self, name: str, begin: bool) -> None:
        from callboard.ui.sign_in import SignInDialog

        open_ones = [each for each in self.window.findChildren(SignInDialog) if each.server == name]
        dialog = (
            open_ones[0] if open_ones else SignInDialog(self.link, self.theme, self.icons, name, parent=self.window)
        )
        dialog.open()
        dialog.raise_()
        if begin:
            dialog.sign_in()

    def _show_trouble(self, _error: CallboardError) -> None:
        if not self.window.isVisible():
            self.show()  # it was asked for from the tray: say why it did not work

    def _offer_undo(self, name: str) -> None:
        undo = NoticeAction(self.tr("Undo"), self.editor.undo.undo)
        self.window.toast.say(self.tr("Removed {name}").format(name=name), undo)

    def _say_down(self, text: str, *, starting: bool) -> None:
        self.tray.say_down(text, starting=starting)
        self.window.status_line.say_waiting(text)

    def _dismiss_welcome(self) -> None:
        self._welcoming = False
        self._settings.setValue("welcome", False)
        if self.window.page == "welcome":
            self.window.open_page("servers")

    def _roster_changed(self, _roster: object) -> None:
        """The welcome ends with the first change of the roster."""
        if self._welcoming and self.link.roster is not None and not self.link.roster.starter:
            self._dismiss_welcome()

    def _open_folder(self, which: str) -> None:
        folder = self._paths.logs if which == "logs" else self._paths.config
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    def _about(self) -> None:
        engine = self.link.engine
        lines = [self.tr("Version {version}").format(version=callboard.__version__)]
        if engine is not None and engine.version != callboard.__version__:
            lines.append(self.tr("Engine {version}").format(version=engine.version))
        lines.append(self.tr("Runs your MCP servers and serves them to every AI client on this machine."))
        icon, title = QMessageBox.Icon.NoIcon, self.tr("About Callboard")
        box = QMessageBox(icon, title, self.tr("Callboard"), QMessageBox.StandardButton.Close, self.window)
        box.setInformativeText("\n".join(lines))
        box.setIconPixmap(self._app.windowIcon().pixmap(64, 64))
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()

    # the end

    async def _end(self, link: "asyncio.Task[None]", keeper: "asyncio.Task[None]") -> None:
        self.ending.emit()
        self.window.save_state()
        self.window.hide()
        self.tray.say_down(self.tr("Stopping the servers…"), starting=True)
        keeper.cancel()
        await stop_engine(self.link.client, self._child, self._paths)
        link.cancel()
        await self.link.close()
        self.tray.stop()
        self.questions.close()
        self._settings.sync()
        self.window.deleteLater()
