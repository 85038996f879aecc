"""The engine's process as those who start it see it: the window, and the bridge on stdio. Imports no Qt."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from callboard.system.engine_file import read_engine_file
from callboard.system.paths import Paths

OUTPUT_LIMIT = 1 << 20  # bytes of the output file above which it is begun anew
ANSWER_TIME = 0.3  # seconds for a connection to loopback


class EngineChild:
    """Starts the engine and knows how it ended, if it was this process that started it.

    The engine has a session of its own and no pipe to us: it goes on when the window ends in whatever way. What it
    prints goes to ``engine-output.log`` in the folder of logs. ``with_screen``: it ends with the screen that it is
    started on.
    """

    def __init__(self, paths: Paths, *, with_screen: bool = False) -> None:
        self._paths = paths
        self._with_screen = with_screen
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def output(self) -> Path:
        """What the engine printed (its own log is another file)."""
        return self._paths.logs / "engine-output.log"

    @property
    def pid(self) -> int | None:
        """Process id of the engine that we started, while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def is_alive(self) -> bool:
        """Whether an engine runs, ours or another's. Takes no longer than :data:`ANSWER_TIME`."""
        return self.pid is not None or self.other_is_alive()

    def other_is_alive(self) -> bool:
        """Whether the engine that wrote the engine file answers. A process id alone proves nothing."""
        address = read_engine_file(self._paths.engine_file)
        if address is None or not _pid_exists(address.pid):
            return False
        url = urlsplit(address.url)
        try:
            with socket.create_connection((url.hostname or "127.0.0.1", url.port or 80), ANSWER_TIME):
                return True
        except OSError:
            return False

    def left_a_file(self) -> bool:
        """Whether an engine file is there; an engine that ends in order takes its own away."""
        return read_engine_file(self._paths.engine_file) is not None

    def start(self) -> None:
        """Start an engine. If another one runs after all, ours ends by itself; raises OSError."""
        self._paths.create()
        if self.output.exists() and self.output.stat().st_size > OUTPUT_LIMIT:
            self.output.replace(self.output.with_suffix(".log.1"))
        home = Path.home()
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [*engine_command(), *(["--with-screen"] if self._with_screen else [])],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=home if home.is_dir() else None,
                start_new_session=True,
                creationflags=_DETACHED,
            )

    def take_exit(self) -> int | None:
        """The exit code of the engine that we started, once (negative: a signal); None if it runs or is not ours."""
        if self._process is None or (code := self._process.poll()) is None:
            return None
        self._process = None
        return code

    def terminate(self) -> None:
        """Ask the engine that we started to end, the hard way."""
        if self.pid is not None and self._process is not None:
            self._process.terminate()

    def last_words(self) -> str:
        """The last line that the engine printed."""
        try:
            with self.output.open("rb") as file:
                file.seek(max(0, self.output.stat().st_size - 4096))
                lines = file.read().decode("utf-8", "replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1].strip()[:300] if lines else ""


def engine_command() -> list[str]:
    """How this installation starts its engine; a frozen program is its own interpreter."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "engine"]
    return [sys.executable, "-m", "callboard", "engine"]


def describe_exit(code: int) -> str:
    """An exit code as a person may have met it: "exit code 1", "signal 9 (SIGKILL)"."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"


def _pid_exists(pid: int) -> bool:
    if os.name != "posix":
        return True  # os.kill would end it there; the connection decides
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_DETACHED = 0
if sys.platform == "win32":
    _DETACHED = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
