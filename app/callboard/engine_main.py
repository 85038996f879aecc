"""The engine process: composition root of everything without a screen."""

import asyncio
import contextlib
import gc
import importlib
import logging
import logging.handlers
import os
import signal
import sys
from collections.abc import Callable

from callboard.core.errors import CallboardError
from callboard.engine.masking import Masking
from callboard.engine.tasks import spawn
from callboard.system.file_lock import FileLock
from callboard.system.memory import keep_freed_memory
from callboard.system.paths import Paths, find_paths
from callboard.system.screen import screen_gone

log = logging.getLogger("callboard.engine")

STOP_SECONDS = 5.0  # what a log-out or a shutdown of the system leaves
YOUNG = 20_000  # objects after which cycles are looked for: calls leave none, and looking costs them a tenth


def main(*, with_screen: bool = False) -> int:
    """Run the engine until a signal to end or the control API's quit. Exit code 0, or 1 if it could not start.

    ``with_screen``: also until the screen is gone on which the person works who started it.
    """
    keep_freed_memory()
    paths = find_paths()
    try:
        _make_folders(paths)
        masking = Masking()
        _log_to(paths, masking.mask_log)
        with FileLock(paths.engine_lock) as lock:
            if not lock.held:
                raise CallboardError("engine-running", "An engine is running already.")
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                return runner.run(_run(paths, masking, with_screen=with_screen))
    except CallboardError as error:
        _say(f"callboard: {error.message}\n  {error.fix}")
        return 1
    except OSError as error:
        _say(f"callboard: the engine cannot start: {error}")
        return 1


def _make_folders(paths: Paths) -> None:
    """Make the folders; without the one that others find us by there is no use in going on."""
    try:
        paths.create()
    except OSError as error:
        paths.runtime.mkdir(parents=True, exist_ok=True, mode=0o700)
        _say(f"callboard: not all folders of the program can be made: {error}")


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's loop where it can be had: a call takes a fifth less time. None for asyncio's own."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _run(paths: Paths, masking: Masking, *, with_screen: bool) -> int:
    from callboard.api.server import ControlServer
    from callboard.engine.engine import Engine

    engine = Engine(paths, masking)
    _take_signals(engine.ask_to_quit)
    sys.setswitchinterval(0.0005)  # the loop must not wait five milliseconds for the thread that writes the call log
    await engine.start(ControlServer(engine))
    gc.collect()
    gc.freeze()  # what is loaded now stays: later collections need not look at it
    gc.set_threshold(YOUNG)
    log.info("listening on %s", engine.url)
    _say(f"callboard: the engine listens on {engine.url}")
    for notice in (await engine.view()).notices:
        _say(f"callboard: {notice.message}\n  {notice.fix}")
    if with_screen:
        spawn(_quit_with_screen(engine.ask_to_quit), name="watch the screen")
    await engine.quit.wait()
    log.info("stopping")
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await engine.stop()
    except TimeoutError:
        log.error("stopping took longer than %g s; ending all the same", STOP_SECONDS)
    return 0


async def _quit_with_screen(quit_: Callable[[], None]) -> None:
    """The person has logged out: nobody is there to see servers any more, or to end them."""
    await screen_gone(os.environ)
    log.info("the screen is gone")
    quit_()


def _take_signals(on_signal: Callable[[], None]) -> None:
    """Let the signals by which a person, a closed terminal, a log-out or the system's end show mean the same."""
    loop = asyncio.get_running_loop()
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is None or signal.getsignal(number) is signal.SIG_IGN:  # as nohup has it
            continue
        try:
            loop.add_signal_handler(number, on_signal)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(on_signal))


def _log_to(paths: Paths, mask: Callable[[str], str]) -> None:
    """Write a log of what we do and of what libraries complain of: what they tell besides has whole addresses in it."""
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    logging.getLogger("callboard").setLevel(logging.INFO)
    handler: logging.Handler
    try:
        handler = _LogFile(paths.logs / "engine.log", maxBytes=1024 * 1024, backupCount=3, encoding="utf-8")
    except OSError as error:
        _say(f"callboard: the engine's log cannot be written: {error}")
        handler = logging.StreamHandler()
    handler.setFormatter(_MaskingFormatter(mask))
    root.addHandler(handler)


class _MaskingFormatter(logging.Formatter):
    """Makes a record's text, tracebacks included, without the secrets in it. Any thread."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        return self._mask(super().format(record))


class _LogFile(logging.handlers.RotatingFileHandler):
    """The engine's log. What a full disk does not take is lost, and nobody is told on every line."""

    def handleError(self, record: logging.LogRecord) -> None:
        """A record could not be written."""


def _say(text: str) -> None:
    """Tell whoever started the engine; the file that this goes to may be full."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
