"""The engine process: composition root of everything without a screen."""

import asyncio
import contextlib
import gc
import importlib
import logging
import logging.handlers
import signal
import sys
from collections.abc import Callable, Sequence

from callboard.core.errors import CallboardError
from callboard.system.file_lock import FileLock
from callboard.system.paths import Paths, find_paths

log = logging.getLogger("callboard.engine")

STOP_SECONDS = 8.0


def main(argv: Sequence[str] = ()) -> int:
    """Run the engine until SIGTERM, SIGINT or the control API's quit. Exit code 0, or 1 if it could not start."""
    paths = find_paths()
    try:
        paths.create()
        _log_to(paths)
        with FileLock(paths.engine_lock) as lock:
            if not lock.held:
                raise CallboardError("engine-running", "An engine is running already.")
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                return runner.run(_run(paths))
    except CallboardError as error:
        sys.stderr.write(f"callboard: {error.message}\n  {error.fix}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"callboard: the engine cannot start: {error}\n")
        return 1


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's loop where it can be had: a call takes a fifth less time. None for asyncio's own."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _run(paths: Paths) -> int:
    from callboard.api.server import ControlServer
    from callboard.engine.engine import Engine

    engine = Engine(paths)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, engine.ask_to_quit)
    sys.setswitchinterval(0.0005)  # the loop must not wait five milliseconds for the thread that writes the call log
    await engine.start(ControlServer(engine))
    gc.collect()
    gc.freeze()  # what is loaded now stays: later collections need not look at it
    log.info("listening on %s", engine.url)
    sys.stderr.write(f"callboard: the engine listens on {engine.url}\n")
    await engine.quit.wait()
    log.info("stopping")
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await engine.stop()
    except TimeoutError:
        log.error("stopping took longer than %g s; ending all the same", STOP_SECONDS)
    return 0


def _log_to(paths: Paths) -> None:
    handler = logging.handlers.RotatingFileHandler(
        paths.logs / "engine.log", maxBytes=1024 * 1024, backupCount=3, encoding="utf-8"
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
