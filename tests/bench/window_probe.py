"""The window as it ships, with a timer beside it that notes each gap of its loop.

window_probe.py PAGE [SERVER]    opens the page, and the log of a server; runs until SIGTERM; prints one line for each
                                 gap: its end on the monotonic clock, its length, and how much of it this thread was
                                 at work, in seconds
"""

import asyncio
import functools
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from PySide6.QtCore import Qt, QTimer

from callboard.system.engine_child import EngineChild
from callboard.system.paths import find_paths
from callboard.ui.application import make_application, set_up_logging
from callboard.ui.loop import WindowLoop
from callboard.ui.shell import Shell

EVERY_MS = 5
WORTH_TELLING = 0.010  # seconds


class GapWatch:
    """Every five milliseconds: how long was it really?"""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._worked = time.thread_time()
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(EVERY_MS)
        self._timer.timeout.connect(self._tick)
        self._timer.start()

    def _tick(self) -> None:
        now, worked = time.monotonic(), time.thread_time()
        if now - self._last > WORTH_TELLING:
            print(f"{now} {now - self._last} {worked - self._worked}", flush=True)
        self._last, self._worked = time.monotonic(), time.thread_time()

    def stop(self) -> None:
        """Stop watching."""
        self._timer.stop()


def main() -> int:
    """Compose the window as callboard.ui.application does, and watch its loop."""
    paths = find_paths()
    paths.create()
    set_up_logging(paths)
    app = make_application()
    watch = GapWatch()

    def make_loop() -> asyncio.AbstractEventLoop:
        loop = WindowLoop(app)
        loop.set_default_executor(ThreadPoolExecutor(4, thread_name_prefix="window"))
        return loop

    with asyncio.Runner(loop_factory=make_loop) as runner:
        shell = Shell(app, paths, EngineChild(paths), background=False, first_start=False)
        shell.take_signals(runner.get_loop())
        shell.window.open_page(sys.argv[1])
        for server in filter(None, sys.argv[2:]):
            shell.link.connected.connect(functools.partial(shell.actions.show_log, server))
        app.paletteReplaced.connect(shell.theme.follow_system)
        code = runner.run(shell.run())
    watch.stop()
    return code


signal.signal(signal.SIGTERM, signal.SIG_DFL)
sys.exit(main())
