"""Telling one process from another that has its number later: a pid alone proves nothing."""

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class Identity:
    """A process for good: its pid and when it started, in the system's own words.

    ``pipes`` are the inode numbers of the pipes it has as standard streams (Linux).
    """

    pid: int
    started: str
    pipes: tuple[int, ...] = ()


def identify(pid: int) -> Identity | None:
    """The identity of a running process, None when there is none with this number (a zombie counts as none)."""
    started = _start_time(pid)
    return Identity(pid, started, _pipes(pid)) if started else None


def has_variable(pid: int, name: str, value: str) -> bool:
    """Whether the process was started with this environment variable. False when we may not look."""
    if sys.platform != "linux":
        import psutil

        with contextlib.suppress(psutil.Error, OSError):
            return psutil.Process(pid).environ().get(name) == value
        return False
    with contextlib.suppress(OSError):
        return f"{name}={value}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    return False


def _start_time(pid: int) -> str:
    if sys.platform != "linux":
        import psutil

        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            return "" if process.status() == psutil.STATUS_ZOMBIE else repr(process.create_time())
        return ""
    with contextlib.suppress(OSError, IndexError):
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        # Ticks since boot: the clock may be set, and two boots may share a number, so the boot's id belongs to it.
        return "" if fields[0] in "ZX" else f"{_boot_id()}/{fields[19]}"
    return ""


def _boot_id() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _pipes(pid: int) -> tuple[int, ...]:
    found = []
    for descriptor in ("0", "1", "2"):
        with contextlib.suppress(OSError, ValueError):
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")  # noqa: PTH115  # not a path in the file system
            if target.startswith("pipe:["):
                found.append(int(target[6:-1]))
    return tuple(found)
