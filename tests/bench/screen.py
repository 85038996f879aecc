"""A desktop session for the window under measurement: a virtual screen, a session bus and a tray."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jeepney import DBusAddress, Properties
from jeepney.io.blocking import open_dbus_connection

from tests.bench.figures import Unavailable
from tests.bench.processes import end

SNI_HOST = Path(__file__).resolve().parents[1] / "support" / "sni_host.py"
WATCHER = DBusAddress(
    "/StatusNotifierWatcher", "org.kde.StatusNotifierWatcher", interface="org.kde.StatusNotifierWatcher"
)


@dataclass(frozen=True)
class Session:
    """What a program needs to know to run in the session."""

    display: str
    bus: str
    environment: dict[str, str]

    def has_tray_icon(self) -> bool:
        """Whether a program has put an icon into the tray."""
        with open_dbus_connection(self.bus) as connection:
            ((_, names),) = connection.send_and_get_reply(Properties(WATCHER).get("RegisteredStatusNotifierItems")).body
        return bool(names)


@contextlib.contextmanager
def session() -> Iterator[Session]:
    """A session of its own, so that nothing of the person's own screen, bus and tray is seen or touched."""
    missing = [tool for tool in ("Xvfb", "dbus-daemon") if shutil.which(tool) is None]
    if missing:
        raise Unavailable(f"{' and '.join(missing)} not found; `sh packaging/dev.sh test` installs what is missing")
    with contextlib.ExitStack() as stack:
        display = f":{_start(stack, ['Xvfb', '-displayfd', '1', '-screen', '0', '1280x800x24', '-nolisten', 'tcp'])}"
        bus = _start(stack, ["dbus-daemon", "--session", "--nofork", "--print-address", "1"])
        runtime = stack.enter_context(tempfile.TemporaryDirectory(prefix="callboard-bench-"))
        environment = {
            "DISPLAY": display,
            "DBUS_SESSION_BUS_ADDRESS": bus,
            "XDG_RUNTIME_DIR": runtime,
            "QT_QPA_PLATFORM": "xcb",
            "NO_AT_BRIDGE": "1",
            "WAYLAND_DISPLAY": "",
            "XDG_CURRENT_DESKTOP": "",
        }
        yield Session(display, bus, environment)


@contextlib.contextmanager
def tray(where: Session) -> Iterator[None]:
    """A StatusNotifier host on the session's bus."""
    process = subprocess.Popen(
        [sys.executable, str(SNI_HOST)],
        env={**os.environ, **where.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("the tray's host did not start")
        yield
    finally:
        end(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _start(stack: contextlib.ExitStack, command: list[str]) -> str:
    """Start a daemon that prints one line when it is ready; the line."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    stack.callback(end, process)
    assert process.stdout is not None
    stack.callback(process.stdout.close)
    line = process.stdout.readline().decode().strip()
    if not line:
        raise RuntimeError(f"{command[0]} did not start")
    return line
