"""The screen that windows are shown on: whether there is one, and when it goes away. Imports no Qt.

Qt would end the process where there is none.
"""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

X_SOCKETS = "/tmp/.X11-unix/X"  # where X servers listen on every system
SCREENLESS = ("offscreen", "minimal", "vnc", "linuxfb", "eglfs")
PAUSE = 0.5  # seconds between two connections: a server may close one at once, or any after a minute without a word


def has_screen(environment: Mapping[str, str] | None = None) -> bool:
    """Whether a window can be opened here. A named X display that nobody serves counts as none."""
    env = os.environ if environment is None else environment
    if not sys.platform.startswith("linux") or env.get("QT_QPA_PLATFORM", "").split(":")[0] in SCREENLESS:
        return True
    if env.get("WAYLAND_DISPLAY"):
        return True
    display = env.get("DISPLAY", "")
    addresses = _x_addresses(display)
    return _answers(addresses) if addresses else bool(display)  # over the network: Qt will tell


async def screen_gone(environment: Mapping[str, str]) -> None:
    """Return once nobody serves the screen of an environment any more, as after a log-out.

    Never returns where that cannot be told: without a screen, with one over the network, on other systems. Holds one
    connection on which nothing is said, and wakes up only when it ends.
    """
    addresses = _addresses(environment)
    if not await asyncio.to_thread(_answers, addresses):
        await asyncio.Event().wait()
    while (connection := await asyncio.to_thread(_connect, addresses)) is not None:
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        try:
            with contextlib.suppress(ConnectionError):
                await reader.read()
        finally:
            writer.close()
        await asyncio.sleep(PAUSE)


def _addresses(environment: Mapping[str, str]) -> list[str]:
    if not sys.platform.startswith("linux") or environment.get("QT_QPA_PLATFORM", "").split(":")[0] in SCREENLESS:
        return []
    if name := environment.get("WAYLAND_DISPLAY"):
        return [str(Path(environment.get("XDG_RUNTIME_DIR", "/"), name))]
    return _x_addresses(environment.get("DISPLAY", ""))


def _x_addresses(display: str) -> list[str]:
    host, _, number = display.partition(":")
    number = number.partition(".")[0]
    if host not in ("", "unix") or not number.isdigit():
        return []
    path = X_SOCKETS + number
    return [path, "\0" + path]


def _answers(addresses: list[str]) -> bool:
    connection = _connect(addresses)
    if connection is None:
        return False
    connection.close()
    return True


def _connect(addresses: list[str]) -> socket.socket | None:
    for address in addresses:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(1.0)
        try:
            connection.connect(address)
        except OSError:
            connection.close()
            continue
        connection.setblocking(False)
        return connection
    return None
