"""What every test gets: an isolated home, the right event loop, a time limit, and a check for what it leaves behind."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

# Before anything imports Qt: without a virtual screen (packaging/session.sh) windows are drawn into memory.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

pytest_plugins = ["tests.support.leaks", "tests.support.agent_environments", "tests.support.postgresql", "pytester"]

# A shell without job control starts what it puts into the background with Ctrl-C ignored, and children inherit that:
# commands that tests interrupt would go on for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
QT_SUITES = ("ui", "desktop")
SLOW_SUITES = {"desktop": 120, "e2e": 120}
DEVELOPER_ENVIRONMENT = dict(os.environ)


def suite_of(path: Path) -> str:
    """The folder under tests/ that a test stands in: unit, ui, desktop, e2e and so on."""
    return path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""


def _qasync_loop() -> asyncio.AbstractEventLoop:
    import qasync
    import shiboken6
    from PySide6.QtWidgets import QApplication

    class Loop(qasync.QEventLoop):  # type: ignore[misc]  # qasync has no types
        """Ends its timers with it: the garbage collector may come by in another thread, where that fails."""

        def close(self) -> None:
            closed = self.is_closed()
            super().close()
            if not closed:
                shiboken6.delete(self._timer)

    app = QApplication.instance()
    if app is None:
        app = _qasync_loop.app = QApplication(["callboard-tests"])  # type: ignore[attr-defined]  # Qt wants an owner
    app.setQuitOnLastWindowClosed(False)
    return Loop(app)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests of the window run on Qt's loop, as the window does; all others on asyncio's own, as the engine does."""
    if suite_of(item.path) in QT_SUITES:
        return {"qasync": _qasync_loop}
    return {"asyncio": asyncio.new_event_loop}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    in_session = os.environ.get("CALLBOARD_TEST_SESSION") == "ready"
    for item in items:
        suite = suite_of(item.path)
        if suite in SLOW_SUITES and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SLOW_SUITES[suite]))
        if suite == "desktop" and not in_session:
            # They would write into the person's own keyring and tray.
            reason = "needs a desktop session of its own: sh packaging/dev.sh test"
            item.add_marker(pytest.mark.skip(reason=reason))


# Qt's loop sleeps in C++, where a signal's handler has to wait until Python code runs again, and what the handler then
# raises is lost. So tests on it are timed by the loop itself; should even that hang, faulthandler_timeout ends the run.

_limit_on_loop = pytest.StashKey[float]()


def _is_timed_by_loop(item: pytest.Item) -> bool:
    return suite_of(item.path) in QT_SUITES and inspect.iscoroutinefunction(getattr(item, "obj", None))


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    if not _is_timed_by_loop(item):
        return None
    item.stash[_limit_on_loop] = settings.timeout
    return True


@pytest.fixture
async def _timed_loop(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    limit = request.node.stash.get(_limit_on_loop, None)
    loop = asyncio.get_running_loop()

    def give_up() -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel(f"took longer than {limit} s")

    timer = loop.call_later(limit, give_up) if limit else None
    yield
    if timer:
        timer.cancel()


@pytest.fixture(autouse=True)
def _time_limit_on_qt_loop(request: pytest.FixtureRequest) -> None:
    if _is_timed_by_loop(request.node):
        request.getfixturevalue("_timed_loop")


@pytest.fixture(autouse=True)
def _isolated_home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Gives the test and its children an empty folder for each that a program may take for the person's own."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))
    monkeypatch.setenv("APPDATA", str(home / "AppData" / "Roaming"))
    monkeypatch.setenv("LOCALAPPDATA", str(home / "AppData" / "Local"))
    monkeypatch.setenv("CALLBOARD_HOME", str(home / "callboard"))
    for name in [name for name in os.environ if name.startswith("CALLBOARD_")]:
        if name not in ("CALLBOARD_HOME", "CALLBOARD_TEST_SESSION"):
            monkeypatch.delenv(name)
    suite = suite_of(request.path)
    if suite not in ("desktop", "e2e") or os.environ.get("CALLBOARD_TEST_SESSION") != "ready":
        monkeypatch.setenv("XDG_DATA_HOME", str(home / ".local" / "share"))
        # No keyring but one that a test sets on purpose, and no bus to find the person's own by.
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    if suite == "unit":
        monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    return home


@pytest.fixture
def callboard_home(_isolated_home: Path) -> Path:
    """The empty folder, already made, in which Callboard keeps every file during this test (CALLBOARD_HOME)."""
    home = _isolated_home / "callboard"
    home.mkdir(mode=0o700)
    return home


@pytest.fixture
def developer_environment() -> dict[str, str]:
    """The environment before isolation, for tests that run tools which keep caches and settings in the real home."""
    return dict(DEVELOPER_ENVIRONMENT)


@pytest.fixture
def memory_keyring() -> Iterator[Any]:
    """A keyring that lives in this process's memory, made the chosen backend for the test; `.entries` is its dict."""
    import keyring
    import keyring.backend
    import keyring.errors

    from tests.support.keyrings import only_when_chosen

    @only_when_chosen
    class MemoryKeyring(keyring.backend.KeyringBackend):
        priority = 1  # type: ignore[assignment]  # the base class computes it

        def __init__(self) -> None:
            super().__init__()
            self.entries: dict[tuple[str, str], str] = {}

        def get_password(self, service: str, username: str) -> str | None:
            return self.entries.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.entries[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            if self.entries.pop((service, username), None) is None:
                raise keyring.errors.PasswordDeleteError("no such password")

    before = keyring.get_keyring()
    backend = MemoryKeyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


@pytest.fixture
def real_keyring() -> Iterator[Any]:
    """The unlocked gnome-keyring of the test session, made the chosen backend for the test (tests/desktop only)."""
    import keyring
    from keyring.backends import SecretService

    before = keyring.get_keyring()
    backend = SecretService.Keyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)
