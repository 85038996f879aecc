"""The window's process: QApplication, log, loop, and the place of the one window."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, auto
from logging.handlers import RotatingFileHandler

from PySide6.QtCore import QEvent, QtMsgType, Signal, qInstallMessageHandler
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

import callboard
from callboard.system.engine_child import EngineChild
from callboard.system.paths import Paths
from callboard.system.resources import resource
from callboard.ui.engine_stop import stop_engine
from callboard.ui.hand_over import hand_over
from callboard.ui.loop import DisplayLostError, WindowLoop
from callboard.ui.shell import Shell
from callboard.ui.single_instance import SingleInstance

log = logging.getLogger(__name__)

DESKTOP_ID = "io.github.callboard.Callboard"
LOG_BYTES = 1 << 20
PLACE_TIME = 12.0  # seconds in which a window that holds the place answers, or has ended


class Place(Enum):
    """How a start found the place of the one window."""

    TAKEN = auto()  # it is ours now
    HANDED_OVER = auto()
    BLOCKED = auto()


class WindowApplication(QApplication):
    """QApplication that passes on what concerns the whole. No event filter: that would see every event of all."""

    quitAsked = Signal()  # by the system: log-out, the dock's menu
    paletteReplaced = Signal()

    def event(self, event: QEvent) -> bool:
        """Events sent to the application itself."""
        if event.type() == QEvent.Type.Quit:
            self.quitAsked.emit()  # Qt's own way would stop the loop under the tasks
            return True
        handled = super().event(event)
        if event.type() == QEvent.Type.ApplicationPaletteChange:
            self.paletteReplaced.emit()
        return handled


def run_window(
    paths: Paths,
    child: EngineChild,
    *,
    background: bool,
    first_start: bool,
    bundle: str,
    asked_to_quit: Callable[[], bool],
) -> int:
    """Show the window and run until the person quits, or the screen is gone. The engine's start is under way.

    ``bundle`` is the path of a bundle's file to be opened, "" for none.

    ``asked_to_quit`` tells whether a signal to quit has come before the loop could take it.
    """
    set_up_logging(paths)
    app = make_application()
    instance = SingleInstance(paths)
    place = _find_place(instance, paths, bundle)
    if place is not Place.TAKEN:
        return 0 if place is Place.HANDED_OVER else 1
    executor = ThreadPoolExecutor(4, thread_name_prefix="window")

    def make_loop() -> asyncio.AbstractEventLoop:
        loop = WindowLoop(app)
        loop.set_default_executor(executor)
        return loop

    try:
        with asyncio.Runner(loop_factory=make_loop) as runner:
            shell = Shell(app, paths, child, background=background, first_start=first_start)
            _connect(app, instance, shell)
            shell.take_signals(runner.get_loop())
            if bundle:
                shell.open_bundle(bundle)
            if asked_to_quit():
                shell.quit()
            code = runner.run(shell.run())
    except DisplayLostError as error:
        # mostly a log-out: nobody is there to see servers any more, or to end them
        log.warning("%s Engine and servers are ended.", error)
        asyncio.run(stop_engine(None, child, paths))
        code = 1
    instance.release()
    return code


def _connect(app: WindowApplication, instance: SingleInstance, shell: Shell) -> None:
    instance.showRequested.connect(shell.show)
    instance.bundleGiven.connect(shell.open_bundle)
    shell.ending.connect(instance.stop_listening)
    app.quitAsked.connect(shell.quit)
    app.paletteReplaced.connect(shell.theme.follow_system)


def make_application() -> WindowApplication:
    """QApplication with our name on it."""
    QApplication.setApplicationName("callboard")
    QApplication.setApplicationDisplayName("Callboard")
    QApplication.setApplicationVersion(callboard.__version__)
    QApplication.setDesktopFileName(DESKTOP_ID)
    qInstallMessageHandler(_log_qt)
    app = WindowApplication(["callboard"])
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


def _find_place(instance: SingleInstance, paths: Paths, bundle: str) -> Place:
    """Take the place of the one window, wait for one that is ending, or let one that just started show itself."""
    deadline = time.monotonic() + PLACE_TIME
    while not instance.acquire():
        if hand_over(paths, bundle=bundle):
            return Place.HANDED_OVER
        if time.monotonic() > deadline:
            log.error("Another window holds the place and does not answer")
            return Place.BLOCKED
        time.sleep(0.05)
    return Place.TAKEN
