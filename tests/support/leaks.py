"""Fails a test that leaves something behind: tasks, threads, child processes, timers, windows, stray log records.

All checks are autouse fixtures. Each compares what is there after a test with what was there before it, so that
fixtures of a wider scope may keep things alive. Whoever means to leave something says so with a marker:
`allow_logs`, `allow_loop_errors`, `allow_leaks`. A test that uses `caplog` looks after its own log records.
A test that has already failed is not accused a second time, but is still cleaned up after.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

WATCHED_LOGGERS = ("callboard", "asyncio")
GRACE = 2.0  # seconds for what is ending when the test ends to be gone

_failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_failed] = True
    return report


def _accuse(request: pytest.FixtureRequest, problems: list[str]) -> None:
    if problems and not request.node.stash.get(_failed, False):
        pytest.fail("this test left behind:\n  " + "\n  ".join(problems), pytrace=False)


def _wait_until_empty(leftover: Callable[[], list[Any]]) -> list[Any]:
    deadline = time.monotonic() + GRACE
    pause = 0.002
    while (left := leftover()) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    return left


# ---- log records


class _Recorder(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = f"log record: {record.levelname} {record.name}: {record.getMessage()}"
        if record.exc_info and record.exc_info[1] is not None:
            line += f" ({record.exc_info[1]!r})"
        self.lines.append(line)


@contextlib.contextmanager
def _watched_logs() -> Iterator[list[str]]:
    recorder = _Recorder()
    loggers = [logging.getLogger(name) for name in WATCHED_LOGGERS]
    for logger in loggers:
        logger.addHandler(recorder)
    try:
        yield recorder.lines
    finally:
        for logger in loggers:
            logger.removeHandler(recorder)


# ---- threads and child processes


def _threads() -> set[threading.Thread]:
    # A dummy stands for a thread of somebody else's, such as Qt's, that once ran Python code.
    return {thread for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread)}


def _children() -> set[int]:
    if sys.platform == "linux":
        try:
            # Much cheaper than a walk over all processes. A child stands in the list of the thread that started it.
            lists = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
            if lists:
                return {int(pid) for pids in lists for pid in pids.split()}
        except OSError:
            pass
    return {child.pid for child in psutil.Process().children()}


def _describe_and_end(pid: int) -> str:
    """Kills a child with all its descendants, waits for it, and says what it was."""
    what = "gone meanwhile"
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            what = f"{process.name()} (ended, but never waited for)"
        else:
            what = f"{' '.join(process.cmdline())} ({process.status()})"
            for running in [*process.children(recursive=True), process]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    running.kill()
    if os.name == "posix":
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    return f"child process: {pid} {what}"


# ---- Qt


class _QtWatch:
    """Timers and threads started, and top-level widgets made, since it was constructed. Does not import Qt itself."""

    def __init__(self) -> None:
        self._started: weakref.WeakSet[Any] = weakref.WeakSet()
        self._undo: list[Callable[[], None]] = []
        self._before = {id(widget): widget for widget in self._top_levels()}

    @staticmethod
    def _top_levels() -> list[Any]:
        widgets = sys.modules.get("PySide6.QtWidgets")
        if widgets is None or not isinstance(widgets.QApplication.instance(), widgets.QApplication):
            return []
        return list(widgets.QApplication.topLevelWidgets())

    def watch_starts(self) -> None:
        """Notes every QTimer and QThread that Python code starts; Qt has no list of them."""
        core = sys.modules["PySide6.QtCore"]
        for kind in (core.QTimer, core.QThread):
            original = kind.start

            def start(started: Any, *arguments: Any, _original: Any = original, **named: Any) -> Any:
                self._started.add(started)
                return _original(started, *arguments, **named)

            kind.start = start
            self._undo.append(lambda kind=kind, original=original: setattr(kind, "start", original))

    def close(self) -> None:
        for undo in self._undo:
            undo()

    def leftover(self) -> list[str]:
        core = sys.modules.get("PySide6.QtCore")
        if core is None or core.QCoreApplication.instance() is None:
            return []
        core.QCoreApplication.sendPostedEvents(None, core.QEvent.Type.DeferredDelete.value)
        found = self._look()
        if found:
            # Perhaps only a reference cycle of the test's own keeps them.
            gc.collect()
            core.QCoreApplication.sendPostedEvents(None, core.QEvent.Type.DeferredDelete.value)
            found = self._look()
        return found

    def _look(self) -> list[str]:
        from shiboken6 import isValid

        core = sys.modules["PySide6.QtCore"]
        found = []
        for widget in self._top_levels():
            if id(widget) not in self._before:
                found.append(f"window: {widget!r} {widget.windowTitle()!r}")
        for started in list(self._started):
            if not isValid(started):
                continue
            if isinstance(started, core.QTimer) and started.isActive():
                found.append(f"running timer: {started!r}, child of {started.parent()!r}")
            elif isinstance(started, core.QThread) and started.isRunning():
                found.append(f"running thread: {started!r}")
        return found


# ---- the fixtures


@pytest.fixture(autouse=True)
def _leaves_nothing(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Set up first and torn down last of a test's own fixtures; checks all that needs no event loop."""
    lenient = request.node.get_closest_marker("allow_leaks") is not None
    logs_matter = request.node.get_closest_marker("allow_logs") is None and "caplog" not in request.fixturenames
    problems: list[str] = []
    threads, children = _threads(), _children()
    root_handlers = list(logging.getLogger().handlers)
    qt = _QtWatch()
    if "PySide6.QtCore" in sys.modules:
        qt.watch_starts()
    with _watched_logs() as lines:
        yield problems
    qt.close()
    if not lenient:
        problems += qt.leftover()
        problems += [f"thread: {thread!r}" for thread in _wait_until_empty(lambda: list(_threads() - threads))]
    ended = [_describe_and_end(pid) for pid in _wait_until_empty(lambda: list(_children() - children))]
    if not lenient:
        problems += ended
    for handler in [handler for handler in logging.getLogger().handlers if handler not in root_handlers]:
        if not type(handler).__module__.startswith("_pytest."):
            logging.getLogger().removeHandler(handler)
            problems.append(f"log handler on the root logger: {handler!r}")
    if logs_matter:
        problems += lines
    _accuse(request, problems)


@pytest.fixture
async def _watched_loop(_leaves_nothing: list[str], request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Reports tasks that outlive the test, and what the loop's exception handler was called with."""
    loop = asyncio.get_running_loop()
    errors: list[str] = []
    report = loop.call_exception_handler

    def call_exception_handler(context: dict[str, Any]) -> None:
        errors.append(f"event loop error: {context.get('message')}: {context.get('exception')!r}")
        report(context)

    loop.call_exception_handler = call_exception_handler  # type: ignore[method-assign]
    before = asyncio.all_tasks()
    yield
    before.add(asyncio.current_task())  # type: ignore[arg-type]
    left = asyncio.all_tasks() - before
    if left:
        # What was cancelled as the test's last act may need a moment.
        await asyncio.wait(left, timeout=0.1)
        left = {task for task in left if not task.done()}
    gc.collect(1)  # a task that failed and that nobody asked says so when it is collected
    if request.node.get_closest_marker("allow_leaks") is None:
        _leaves_nothing += [f"task: {task!r}" for task in left]
    if request.node.get_closest_marker("allow_loop_errors") is None:
        _leaves_nothing += errors


@pytest.fixture(autouse=True)
def _leaves_no_task(_leaves_nothing: list[str], request: pytest.FixtureRequest) -> None:
    """Looks at the event loop of the tests that have one."""
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("_watched_loop")
