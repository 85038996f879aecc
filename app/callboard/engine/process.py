"""One child process and everything that it starts in turn."""

import asyncio
import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from callboard.core.errors import CallboardError
from callboard.core.launch import LocalLaunch
from callboard.engine import tasks
from callboard.engine.command import find_program, refused
from callboard.system.exit_watch import ExitWatch
from callboard.system.process_group import signal_name

if sys.platform == "win32":
    from callboard.engine import thread_pipes as pipes
    from callboard.system.job_object import start_tree
else:
    from callboard.engine import pipes
    from callboard.system.process_group import start_tree

_GRACE = 1.5  # seconds that each step of a stop is waited for; all of it must fit into the five of a log-out
_LINGER = 0.5  # seconds for the rest of a tree whose first process ended by itself
_LAST_RESORT = 1.0  # seconds that a process gets to vanish after SIGKILL
_MUTE = 1.0  # seconds after which a process that has closed its input or output, but goes on, is ended
_POLL = 0.05
# As fast as the largest (1 MiB); and a person's pipes may be 64 MiB in all before the kernel makes new ones tiny.
_STDOUT_PIPE = 512 * 1024


@dataclass(frozen=True)
class ExitStatus:
    """How a process ended: exactly one of ``code`` and ``signal`` is set.

    ``lost``: the standard stream that it had closed before, which is why it was ended.
    """

    code: int | None
    signal: str | None
    lost: str = ""

    @classmethod
    def of(cls, returncode: int, lost: str = "") -> "ExitStatus":
        """From :attr:`subprocess.Popen.returncode`."""
        if returncode < 0:
            return cls(None, signal_name(-returncode), lost)
        return cls(returncode, None, lost)

    def sentence(self) -> str:
        """What happened, such as "exited with code 3" or "ended by SIGKILL"."""
        end = f"exited with code {self.code}" if self.signal is None else f"ended by {self.signal}"
        return f"closed its {self.lost} and was stopped; {end}" if self.lost else end


class Tree(Protocol):
    """A process and all that it started, as the platform knows them."""

    def members(self, *, pipes_held: bool) -> list[int]:
        """Who of it lives. ``pipes_held``: somebody still has an output pipe."""

    def ask_to_end(self, pids: list[int]) -> None:
        """Ask these, and all who belong to them, to end."""

    def kill(self, pids: list[int]) -> None:
        """End these, and all who belong to them."""

    def close(self) -> None:
        """The first process is about to be waited for; nothing else is called afterwards."""


class ChildProcess:
    """A running program with its three pipes, leader of a session of its own.

    Owned by whoever spawned it, who must call :meth:`stop` unless ``exited`` is done. Used on the engine's loop only.
    The pipes' callbacks run on the loop; output that was written before the end is delivered before ``exited``.
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        tree: Tree,
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None],
    ) -> None:
        """Use :meth:`spawn`."""
        self._process = process
        self._tree = tree
        self._loop = asyncio.get_running_loop()
        self._leader_gone = asyncio.Event()
        self._output_ended = asyncio.Event()
        self._linger = _LINGER
        self._stopping: asyncio.Task[None] | None = None
        self._open_outputs = 2
        self._lost = ""
        self._mute_timer: asyncio.TimerHandle | None = None
        self.pid = process.pid
        self.exited: asyncio.Future[ExitStatus] = self._loop.create_future()
        stdin, stdout, stderr = map(_take, (process.stdin, process.stdout, process.stderr))
        pipes.enlarge(stdout, _STDOUT_PIPE)
        self._stdin = pipes.InputPipe(stdin, lambda: self._on_lost("standard input"))
        self._stdout = pipes.OutputPipe(stdout, on_stdout, self._on_stdout_end, burst=True)
        self._stderr = pipes.OutputPipe(stderr, on_stderr, self._on_output_end)
        self._watch = ExitWatch(process, self._leader_gone.set)
        tasks.spawn(self._bury(), f"await end of {self.pid}")

    @classmethod
    async def spawn(
        cls,
        launch: LocalLaunch,
        *,
        environment: Mapping[str, str],
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None],
    ) -> "ChildProcess":
        """Start the program of ``launch`` with ``environment`` and, over it, the launch's own variables.

        The working folder is the person's home unless the launch names one. Raises CallboardError: ``cwd-missing``,
        ``command-not-found``, ``command-not-executable``, ``start-refused``.
        """
        cwd = launch.cwd or Path.home()
        if not cwd.is_dir():
            raise CallboardError("cwd-missing", f"The working folder {cwd} does not exist.")
        variables = {**environment, **launch.env}
        _set_aside(launch.written_once)
        program = find_program(launch.argv[0], path=variables.get("PATH", os.defpath), cwd=cwd)
        try:
            # In this thread, which lives on, and at once: the call returns as soon as the program has been loaded.
            process, tree = start_tree([program, *launch.argv[1:]], cwd=cwd, environment=variables)
        except OSError as error:
            raise refused(error, program) from error
        except ValueError as error:  # a NUL byte
            raise CallboardError("start-refused", f"The system refused to start {program}: {error}.") from error
        return cls(process, tree, on_stdout, on_stderr)

    def write(self, data: bytes) -> None:
        """Write to standard input, all of it, in order. Never waits; dropped once the child has closed its end."""
        self._stdin.write(data)

    @property
    def input_left(self) -> int:
        """Bytes of input that the child had not read when it ended, as far as the system tells."""
        return self._stdin.left

    async def drain(self) -> None:
        """Wait while more than 256 KiB of input is pending."""
        await self._stdin.drain()

    def close_stdin(self) -> None:
        """Close standard input once everything written was taken. Idempotent."""
        self._stdin.finish()

    def pause_stdout(self) -> None:
        """Stop reading standard output; the child blocks once the pipe is full. Idempotent."""
        self._stdout.pause()

    def resume_stdout(self) -> None:
        """Read standard output again. Idempotent."""
        self._stdout.resume()

    async def stop(self, *, grace: float = _GRACE) -> ExitStatus:
        """End the whole tree and say how its first process ended. Idempotent; may be called by many at once.

        Closes standard input and waits; asks all with SIGTERM and waits; ends what is left with SIGKILL. Each wait is
        ``grace`` seconds at most. A cancelled caller does not stop the stopping.
        """
        if self._stopping is None:
            self._stopping = tasks.spawn(self._stop(grace), f"stop {self.pid}")
        await asyncio.shield(self._stopping)
        return self.exited.result()

    def _on_output_end(self) -> None:
        self._open_outputs -= 1
        if not self._open_outputs:
            self._output_ended.set()

    def _on_stdout_end(self) -> None:
        self._on_output_end()
        self._on_lost("standard output")

    def _on_lost(self, stream: str) -> None:
        """Nobody can talk with it any more. Mostly it is about to end; if not, it would be waited for in vain."""
        if self._mute_timer is None and not self._leader_gone.is_set() and self._stopping is None:
            self._mute_timer = self._loop.call_later(_MUTE, self._end_mute, stream)

    def _end_mute(self, stream: str) -> None:
        if not self._leader_gone.is_set() and self._stopping is None:
            self._lost = stream
            self._stopping = tasks.spawn(self._stop(_GRACE), f"stop {self.pid}")

    async def _stop(self, grace: float) -> None:
        self._linger = grace
        self._stdout.resume()  # a child that waits for its output to be taken would not see the end of its input
        self._stdin.finish()
        if await self._ended_within(grace):
            return
        self._tree.ask_to_end(self._members())
        if await self._ended_within(grace):
            return
        self._tree.kill(self._members())
        self._linger = 0
        if not await self._ended_within(_LAST_RESORT) and not self.exited.done():
            # It hangs in the kernel; nobody can do more.
            self.exited.set_result(ExitStatus(None, "SIGKILL", self._lost))

    async def _ended_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(self.exited)
        return self.exited.done()

    async def _bury(self) -> None:
        await self._leader_gone.wait()
        # Not yet waited for: until then nobody else can get its pid, so its session and group are surely ours.
        await self._end_rest()
        self._tree.close()
        self._process.wait()
        self._watch.close()
        if self._mute_timer is not None:
            self._mute_timer.cancel()
        self._stdin.close()
        self._stdout.close()
        self._stderr.close()
        if not self.exited.done():
            self.exited.set_result(ExitStatus.of(self._process.returncode, self._lost))

    async def _end_rest(self) -> None:
        """The first process has ended: let what it wrote arrive, and end what it left behind."""
        since = self._loop.time()
        asked = False
        while True:
            rest = self._members()
            if not rest and self._output_ended.is_set():
                return
            if rest and not asked:
                self._tree.ask_to_end(rest)
                asked = True
            if self._loop.time() - since >= self._linger:
                break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL):
                    await self._wait_for_rest()
        self._tree.kill(self._members())

    async def _wait_for_rest(self) -> None:
        if self._output_ended.is_set():
            await asyncio.sleep(_POLL)
        else:
            await self._output_ended.wait()

    def _members(self) -> list[int]:
        return self._tree.members(pipes_held=not self._output_ended.is_set())


def _set_aside(file: Path | None) -> None:
    """Move a file of an earlier start out of the way, beside itself."""
    if file is not None and file.exists():
        with contextlib.suppress(OSError):  # the program says what is in its way
            file.rename(file.with_stem(f"{file.stem}-{uuid.uuid4().hex[:8]}"))


def _take(file: IO[bytes] | None) -> int:
    """The descriptor of a pipe, from now on ours alone."""
    assert file is not None
    descriptor = os.dup(file.fileno())
    file.close()
    return descriptor
