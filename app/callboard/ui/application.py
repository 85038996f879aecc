"""The window's process: makes everything once, connects it, and owns its end."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from logging.handlers import RotatingFileHandler

from PySide6.QtCore import QEvent, QObject, QSettings, Qt, QTimer, QtMsgType, QUrl, qInstallMessageHandler
from PySide6.QtGui import QDesktopServices, QIcon
from PySide6.QtWidgets import QApplication, QMessageBox

import callboard
from callboard.api.client import EngineClient
from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.system.paths import Paths
from callboard.system.resources import resource
from callboard.ui.actions import ServerActions
from callboard.ui.calls_page import CallsPage
from callboard.ui.editor.editor import ServerEditor
from callboard.ui.engine_child import EngineChild
from callboard.ui.engine_keeper import EngineKeeper
from callboard.ui.engine_link import EngineLink
from callboard.ui.hand_over import hand_over
from callboard.ui.icons import Icons
from callboard.ui.loop import WindowLoop
from callboard.ui.main_window import MainWindow, Page
from callboard.ui.notice_bar import Notice, NoticeAction
from callboard.ui.servers_page import ServersPage
from callboard.ui.single_instance import SingleInstance
from callboard.ui.standing_notices import StandingNotices
from callboard.ui.theme import Theme
from callboard.ui.tray import Tray
from callboard.ui.tray_icons import TrayIcons
from callboard.ui.welcome import WelcomePage

log = logging.getLogger(__name__)

DESKTOP_ID = "io.github.callboard.Callboard"
QUIT_TIME = 5.0  # seconds that the engine gets to stop every server
TRAY_WAIT_MS = 6_000  # started hidden at log-in: how long a tray may take to come
LOG_BYTES = 1 << 20


def run_window(paths: Paths, child: EngineChild, *, background: bool, first_start: bool) -> int:
    """Show the window and run until the person quits. The engine's start is under way."""
    set_up_logging(paths)
    app = make_application()
    instance = SingleInstance(paths)
    if not instance.acquire():
        return 0 if _reach_winner(paths) else 1
    executor = ThreadPoolExecutor(4, thread_name_prefix="window")

    def make_loop() -> asyncio.AbstractEventLoop:
        loop = WindowLoop(app)
        loop.set_default_executor(executor)
        return loop

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.get_loop()
        shell = Shell(app, paths, child, instance, background=background, first_start=first_start)
        return runner.run(shell.run())


class Shell(QObject):
    """Window, tray and the tasks behind them. Made once per process, in Qt's thread."""

    def __init__(
        self,
        app: QApplication,
        paths: Paths,
        child: EngineChild,
        instance: SingleInstance,
        *,
        background: bool,
        first_start: bool,
    ) -> None:
        super().__init__()
        self._app = app
        self._paths = paths
        self._child = child
        self._instance = instance
        self._quit = asyncio.Event()
        self._settings = QSettings(str(paths.window_settings), QSettings.Format.IniFormat)
        self._welcoming = self._settings.value("welcome", first_start, type=bool)
        self.theme = Theme(app, self._settings, self)
        self.icons = Icons(self.theme, resource("icons"), self)
        self.link = EngineLink(paths.engine_file, self)
        self.actions = ServerActions(self.link, self)
        self.keeper = EngineKeeper(self.link, child, self)
        self.editor = ServerEditor(self.link, self.theme, self.icons, parent=self)
        self.window = self._make_window()
        self.editor.set_window(self.window)
        self.tray = Tray(
            self.link,
            self.actions,
            self.theme,
            TrayIcons(resource("app-icon", "callboard-symbolic.svg")),
            self,
        )
        self.notices = StandingNotices(self.link, self.keeper, self.window.notices, lambda: self._open_folder("logs"))
        self._connect()
        if background:
            QTimer.singleShot(TRAY_WAIT_MS, self, self._show_if_unreachable)
        else:
            self.window.show()

    async def run(self) -> int:
        """Everything from the first paint to the end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # not on Windows
                loop.add_signal_handler(number, self.quit)
        link = self.link.tasks.spawn(self.link.run(), "engine link")
        keeper = self.link.tasks.spawn(self.keeper.run(), "engine keeper")
        QTimer.singleShot(0, self, self.tray.start)
        await self._quit.wait()
        self.window.save_state()
        self.window.hide()
        self.tray.say_down(self.tr("Stopping the servers…"), starting=True)
        keeper.cancel()
        await self._stop_engine()
        link.cancel()
        await self.link.close()
        self.tray.stop()
        self._instance.release()
        self._settings.sync()
        self.window.deleteLater()
        return 0

    def quit(self) -> None:
        """End engine, servers and window, in order."""
        self._quit.set()

    def show(self, activation: str = "") -> None:
        """Bring the window up; ``activation`` is the desktop's token that allows it."""
        if activation:
            os.environ["XDG_ACTIVATION_TOKEN"] = activation  # Qt's Wayland platform looks for it there
        self.window.bring_to_front()

    # making

    def _make_window(self) -> MainWindow:
        welcome = WelcomePage(self.link, self.actions, self.theme, self.icons, resource("app-icon", "callboard.svg"))
        welcome.dismissed.connect(self._dismiss_welcome)
        self.servers_page = ServersPage(
            self.link, self.actions, self.theme, self.icons, self._settings, self.editor.make_form
        )
        self.calls_page = CallsPage(self.link, self.actions, self.theme, self.icons, self._settings)
        window = MainWindow(
            self.link,
            self.actions,
            self.theme,
            self.icons,
            self._settings,
            [
                Page("servers", self.tr("Servers"), self.servers_page, "servers"),
                Page("calls", self.tr("Calls"), self.calls_page, "calls"),
                Page("welcome", self.tr("Welcome"), welcome),
            ],
        )
        window.add_edit_actions(self.editor.undo.undo_action, self.editor.undo.redo_action)
        if self._welcoming:
            window.open_page("welcome")
        return window

    def _connect(self) -> None:
        self._app.installEventFilter(self)
        self._instance.showRequested.connect(self.show)
        self.window.closeRequested.connect(self._close)
        self.window.quitRequested.connect(self.quit)
        self.window.aboutRequested.connect(self._about)
        self.window.folderRequested.connect(self._open_folder)
        self.tray.openRequested.connect(self.show)
        self.tray.quitRequested.connect(self.quit)
        self.tray.startEngineRequested.connect(self.keeper.start_now)
        self.tray.availableChanged.connect(self._tray_changed)
        self.actions.openRequested.connect(self._show_server)
        self.actions.logRequested.connect(self._show_log)
        self.actions.callRequested.connect(self._show_call)
        self.actions.failed.connect(self._show_trouble)
        self._connect_editor()
        self.link.rosterChanged.connect(lambda _view: self._note_roster())
        self.keeper.restarting.connect(lambda *_: self._say_down(self.tr("Starting the engine again…"), starting=True))
        self.keeper.stopped.connect(lambda: self._say_down(self.tr("The engine is stopped"), starting=False))
        self.link.connected.connect(lambda: self._say_down(self.tr("Starting the engine…"), starting=True))

    def _connect_editor(self) -> None:
        editor, undo = self.editor, self.editor.undo
        self.actions.addRequested.connect(self._add_server)
        self.actions.editRequested.connect(lambda name: self._over_window(editor.edit_server, name))
        self.actions.duplicateRequested.connect(lambda name: self._over_window(editor.duplicate_server, name))
        self.actions.removeRequested.connect(editor.remove_server)
        editor.saved.connect(self._show_server)
        undo.said.connect(self.actions.said)
        undo.failed.connect(self.actions.failed)
        undo.removed.connect(self._offer_undo)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Turn the system's request to quit into ours: Qt's own would stop the loop under the tasks."""
        if watched is self._app and event.type() == QEvent.Type.Quit:
            self.quit()
            return True
        return False

    # showing and hiding

    def _close(self) -> None:
        if self.tray.available:
            self.window.hide()
            return
        self.window.showMinimized()
        if not self._settings.value("told-of-minimising", False, type=bool):
            self._settings.setValue("told-of-minimising", True)
            self.window.notices.put(
                Notice(
                    "no-tray",
                    Severity.OFF,
                    self.tr("Closing only minimises the window: this desktop has no tray to find Callboard in."),
                    self.tr("Quit ends it. On GNOME, the AppIndicator extension adds a tray."),
                    (NoticeAction(self.tr("Quit"), self.quit),),
                )
            )

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

    def _show_trouble(self, _error: CallboardError) -> None:
        if not self.window.isVisible():
            self.show()  # asked for from the tray: say why it did not work

    def _add_server(self) -> None:
        self.show()
        self.editor.add_server()

    def _over_window(self, open_dialog: Callable[[str], object], name: str) -> None:
        self.show()
        open_dialog(name)

    def _offer_undo(self, name: str) -> None:
        undo = NoticeAction(self.tr("Undo"), self.editor.undo.undo)
        self.window.toast.say(self.tr("Removed {name}").format(name=name), undo)

    def _say_down(self, text: str, *, starting: bool) -> None:
        self.tray.say_down(text, starting=starting)
        self.window.status_line.say_waiting(text)

    def _dismiss_welcome(self) -> None:
        self._welcoming = False
        self._settings.setValue("welcome", False)
        self.window.open_page("servers")

    def _note_roster(self) -> None:
        """The welcome ends with the first change of the roster."""
        if self._welcoming and self.link.roster is not None and not self.link.roster.starter:
            self._dismiss_welcome()

    def _open_folder(self, which: str) -> None:
        folder = self._paths.logs if which == "logs" else self._paths.config
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    def _about(self) -> None:
        engine = self.link.engine
        lines = [
            self.tr("Version {version}").format(version=callboard.__version__),
            self.tr("Engine {version}").format(version=engine.version) if engine else "",
            self.tr("Runs your MCP servers and serves them to every AI client on this machine."),
        ]
        box = QMessageBox(QMessageBox.Icon.NoIcon, self.tr("About Callboard"), self.tr("Callboard"), parent=self.window)
        box.setInformativeText("\n".join(line for line in lines if line))
        box.setIconPixmap(self._app.windowIcon().pixmap(64, 64))
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()

    # the end

    async def _stop_engine(self) -> None:
        try:
            async with asyncio.timeout(QUIT_TIME):
                await self._ask_to_quit()
                while await asyncio.to_thread(self._child.is_alive):  # noqa: ASYNC110  a process has no event
                    await asyncio.sleep(0.05)
        except TimeoutError:
            log.warning("The engine did not end within %s s", QUIT_TIME)
            self._child.terminate()
        self._child.take_exit()

    async def _ask_to_quit(self) -> None:
        try:
            if self.link.client is not None:
                await self.link.client.quit()
                return
            async with EngineClient.from_file(self._paths.engine_file) as client:
                await client.quit()
        except CallboardError as error:
            log.info("The engine could not be asked to quit: %s", error.message)
            self._child.terminate()


def make_application() -> QApplication:
    """QApplication with our name on it."""
    QApplication.setApplicationName("callboard")
    QApplication.setApplicationDisplayName("Callboard")
    QApplication.setApplicationVersion(callboard.__version__)
    QApplication.setDesktopFileName(DESKTOP_ID)
    qInstallMessageHandler(_log_qt)
    app = QApplication(["callboard"])
    app.setQuitOnLastWindowClosed(False)
    app.setWindowIcon(QIcon(str(resource("app-icon", "callboard.svg"))))
    return app


def set_up_logging(paths: Paths) -> None:
    """The window's own log: a file of bounded size in the folder of logs."""
    handler = RotatingFileHandler(paths.logs / "window.log", maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line per request otherwise


def _log_qt(kind: QtMsgType, _context: object, message: str) -> None:
    levels = {
        QtMsgType.QtDebugMsg: logging.DEBUG,
        QtMsgType.QtInfoMsg: logging.INFO,
        QtMsgType.QtWarningMsg: logging.WARNING,
        QtMsgType.QtCriticalMsg: logging.ERROR,
        QtMsgType.QtFatalMsg: logging.CRITICAL,
    }
    logging.getLogger("callboard.qt").log(levels.get(kind, logging.WARNING), "%s", message)


def _reach_winner(paths: Paths) -> bool:
    """Two starts at once: the other one won; let it show itself as soon as it listens."""
    deadline = time.monotonic() + 3.0
    while time.monotonic() < deadline:
        if hand_over(paths):
            return True
        time.sleep(0.05)
    return False
