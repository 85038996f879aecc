"""What tests need to know of processes."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

ODD_SERVER = Path(__file__).parent / "servers" / "odd.py"


def odd_server(*options: str | Path) -> list[str]:
    """The command of the misbehaving server, quick to start."""
    return [sys.executable, "-S", "-E", str(ODD_SERVER), *map(str, options)]


def is_running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX" and os.getpid() != pid


def processes_of_home(home: Path) -> dict[int, str]:
    """Every running process whose HOME is this folder, with its command: what a test has started, and all below it."""
    mark = f"HOME={home}".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0") and is_running(int(folder.name)):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(folder.name)] = command.decode(errors="replace")
        except OSError:
            continue  # it ended while we looked, or is another person's
    return found


async def until(condition: Callable[[], object], *, seconds: float = 60.0) -> None:
    """Wait until the condition holds; the test fails if it does not within ``seconds``."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  other processes set no event
            await asyncio.sleep(0.01)


async def pid_in(file: Path) -> int:
    """The pid that a process writes into ``file``, as soon as it stands there."""
    await until(lambda: file.exists() and file.read_text().strip())
    return int(file.read_text())
