"""Whether there is a screen to show a window on. Imports no Qt: without one, Qt would end the process."""

import os
import socket
import sys
from collections.abc import Mapping

X_SOCKETS = "/tmp/.X11-unix/X"  # where X servers listen on every system
SCREENLESS = ("offscreen", "minimal", "vnc", "linuxfb", "eglfs")


def has_display(environment: Mapping[str, str] | None = None) -> bool:
    """Whether a window can be opened here. A named X display that nobody serves counts as none."""
    env = os.environ if environment is None else environment
    if not sys.platform.startswith("linux") or env.get("QT_QPA_PLATFORM", "").split(":")[0] in SCREENLESS:
        return True
    return bool(env.get("WAYLAND_DISPLAY")) or _x_answers(env.get("DISPLAY", ""))


def _x_answers(display: str) -> bool:
    if not display:
        return False
    host, _, number = display.partition(":")
    number = number.partition(".")[0]
    if host not in ("", "unix") or not number.isdigit():
        return True  # over the network: Qt will tell
    path = X_SOCKETS + number
    for address in (path, "\0" + path):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1.0)
            try:
                connection.connect(address)
            except OSError:
                continue
            return True
    return False
