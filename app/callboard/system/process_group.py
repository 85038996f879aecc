"""POSIX: the processes that belong to a child of ours, started apart, found as a whole, signalled as a whole.

Each child leads a session of its own. Its tree is everyone in that session, and everyone who still holds a pipe that
we gave to it, wherever it has moved. On Linux the kernel kills the child when our thread ends.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

_PROC = Path("/proc")


class SessionTree:
    """A child and everything that it started. Valid until the child is waited for: only until then nobody else can
    have its pid, so that what has it as session or group is surely ours.
    """

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._session = process.pid
        self._pipes = {os.fstat(pipe.fileno()).st_ino for pipe in (process.stdout, process.stderr) if pipe is not None}

    def members(self, *, pipes_held: bool) -> list[int]:
        """Living processes of the tree. ``pipes_held``: somebody still has an output pipe, so look for that too."""
        found = set(session_members(self._session))
        if pipes_held:
            found.update(holders(self._pipes))
        return sorted(found)

    def ask_to_end(self, pids: list[int]) -> None:
        """Send SIGTERM to these, and to whole process groups of the session."""
        signal_all(pids, signal.SIGTERM, session=self._session)

    def kill(self, pids: list[int]) -> None:
        """Send SIGKILL to these, and to whole process groups of the session."""
        signal_all(pids, signal.SIGKILL, session=self._session)

    def close(self) -> None:
        """The child is about to be waited for."""


def start_tree(
    argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str]
) -> "tuple[subprocess.Popen[bytes], SessionTree]":
    """Start a program with three pipes, leader of a new session, tied to the calling thread. Raises OSError."""
    process = subprocess.Popen(
        tie_to_parent(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=cwd,
        env=environment,
        start_new_session=True,
    )
    return process, SessionTree(process)


def tie_to_parent(argv: Iterable[str]) -> list[str]:
    """The command that runs ``argv``, pid unchanged, so that the kernel kills it when its parent thread ends.

    Only Linux with util-linux knows how; elsewhere ``argv`` comes back as it is, and leftovers are found at the next
    start. A hook between fork and exec would do as well, but it may deadlock in a program with threads.
    """
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin")
    return [setpriv, "--pdeathsig", "KILL", "--", *argv] if setpriv else list(argv)


def session_members(session: int) -> list[int]:
    """Living processes of a session, its leader included; zombies do not count."""
    members = []
    for pid in all_pids():
        try:
            if os.getsid(pid) == session and not _is_zombie(pid):
                members.append(pid)
        except OSError:
            continue
    return members


def holders(pipes: Collection[int]) -> list[int]:
    """Living processes, other than this one, that have one of the pipes (inode numbers) as a standard stream.

    Linux only; elsewhere nobody is found.
    """
    wanted = {f"pipe:[{inode}]" for inode in pipes}
    if not wanted or not _PROC.joinpath("self", "fd").is_dir():
        return []
    own = os.getpid()
    return [pid for pid in all_pids() if pid != own and _holds(pid, wanted)]


def signal_all(pids: Iterable[int], number: int, *, session: int | None = None) -> None:
    """Send a signal to each process, and to each process group of the session.

    ``session`` must be the pid of a child that was not yet waited for: only then nobody else can have its number.
    """
    if session is not None:
        groups = {session}
        for pid in pids:
            with contextlib.suppress(OSError):
                if os.getsid(pid) == session:
                    groups.add(os.getpgid(pid))
        for group in groups:
            with contextlib.suppress(OSError):
                os.killpg(group, number)
    for pid in pids:
        with contextlib.suppress(OSError):
            if session is None or os.getsid(pid) != session:
                os.kill(pid, number)


def signal_name(number: int) -> str:
    """ "SIGKILL" for 9; "signal 99" for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def all_pids() -> list[int]:
    """Every process that there is, zombies included."""
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208  # a list of names is wanted
    except OSError:
        import psutil

        return psutil.pids()


def _is_zombie(pid: int) -> bool:
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return _PROC.joinpath("self").exists()  # gone meanwhile; where there is no /proc it counts as living
    return stat.rpartition(b")")[2].split()[0] in (b"Z", b"X")


def _holds(pid: int, wanted: set[str]) -> bool:
    for descriptor in ("0", "1", "2"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{descriptor}") in wanted:  # noqa: PTH115  # not a path in the file system
                return True
    return False
