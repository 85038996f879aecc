"""What processes cost, and how they are ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
TICK = 1 / os.sysconf("SC_CLK_TCK")
STOP_SECONDS = 15.0


@dataclass(frozen=True)
class Usage:
    """What a process has used up to now: memory in bytes, CPU in seconds, switches of its own will since its start."""

    rss: int
    pss: int
    cpu: float
    switches: int


def usage(pid: int) -> Usage:
    """Read it from /proc; raises OSError when the process is gone."""
    folder = Path(f"/proc/{pid}")
    sizes = dict(line.split(":", 1) for line in (folder / "smaps_rollup").read_text().splitlines()[1:])
    switches = 0
    for task in (folder / "task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            lines = (task / "status").read_text().splitlines()
            switches += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return Usage(_kib(sizes["Rss"]), _kib(sizes["Pss"]), cpu(pid), switches)


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK


def _kib(text: str) -> int:
    return int(text.split()[0]) * 1024


@contextlib.contextmanager
def child(
    command: list[str], environment: dict[str, str], output: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended with the block: asked first, then killed."""
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(output.open("ab")) if output else subprocess.DEVNULL
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
        try:
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, kill it if it does not, and wait for it."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for(look: Callable[[], object], what: str, seconds: float = 30.0, pause: float = 0.005) -> float:
    """Look until there is something to see; the moment on the monotonic clock. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not look():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come within {seconds:g} s")
        time.sleep(pause)
    return time.monotonic()
