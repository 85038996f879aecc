"""The environment of all servers, with the PATH that the person's login shell would give them."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from callboard.core.errors import CallboardError
from callboard.core.launch import Launch, LocalLaunch
from callboard.engine import tasks
from callboard.engine.command import find_program
from callboard.engine.process import ChildProcess
from callboard.system import shell_path
from callboard.system.child_environment import child_environment

_SHELL_LIMIT = 5.0  # seconds
_MAX_ANSWER = 1024 * 1024

_logger = logging.getLogger(__name__)


class Environment:
    """What children inherit. The shell is asked in the background from :meth:`start` on; see :meth:`prepare`.

    ``own`` is our own environment (``${env:NAME}`` in the roster reads it). Engine loop only.
    """

    def __init__(
        self,
        own: Mapping[str, str],
        home: Path,
        *,
        added: Mapping[str, str] | None = None,
        shell_limit: float = _SHELL_LIMIT,
    ) -> None:
        """``added``: what every child gets beside the person's variables. ``shell_limit`` in seconds."""
        self.own = dict(own)
        self.home = home
        self._limit = shell_limit
        self._base = {**child_environment(own, frozen=bool(getattr(sys, "frozen", False))), **(added or {})}
        self._usual = shell_path.usual_folders(home, own)
        self._asking: asyncio.Task[None] | None = None
        self.variables: Mapping[str, str] = {}
        self._set_path(None)

    def start(self) -> None:
        """Begin to ask the login shell, where there is one."""
        shell = shell_path.login_shell(self.own)
        if shell is not None and self._asking is None:
            self._asking = tasks.spawn(self._ask(shell), "ask the login shell")

    async def prepare(self, launch: Launch) -> None:
        """Wait for the shell's answer if the program of ``launch`` cannot be found without it.

        Returns at once when it can; after :meth:`prepare`, ``variables`` are the best that can be had.
        """
        if self._asking is None or self._asking.done() or not isinstance(launch, LocalLaunch):
            return
        path = launch.env.get("PATH", self.variables.get("PATH", os.defpath))
        try:
            find_program(launch.argv[0], path=path, cwd=launch.cwd or self.home)
        except CallboardError:
            await asyncio.wait([self._asking])

    async def close(self) -> None:
        """End the shell if it still runs."""
        if self._asking is not None:
            await tasks.cancel_and_wait(self._asking)

    def _set_path(self, shell: str | None) -> None:
        path = shell_path.merge(self.own.get("PATH", os.defpath), shell, self._usual)
        self.variables = {**self._base, "PATH": path}

    async def _ask(self, shell: Path) -> None:
        output = bytearray()
        told = asyncio.Event()

        def keep(data: bytes) -> None:
            output.extend(data[: _MAX_ANSWER - len(output)])
            if shell_path.read_answer(bytes(output)) is not None:
                told.set()

        command = LocalLaunch(tuple(shell_path.question(shell)), dict(shell_path.QUIET), self.home)
        try:
            child = await ChildProcess.spawn(command, environment=self._base, on_stdout=keep, on_stderr=_ignore)
        except CallboardError as error:
            _logger.info("The login shell could not be asked for its PATH: %s", error.message)
            return
        child.exited.add_done_callback(lambda _: told.set())
        child.close_stdin()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limit):
                    await told.wait()
        finally:
            await child.stop(grace=0.2)
        answer = shell_path.read_answer(bytes(output))
        if answer is None:
            _logger.info("The login shell %s did not tell its PATH within %g s", shell, self._limit)
        else:
            self._set_path(answer)


def _ignore(data: bytes) -> None:
    """Start files complain about the missing terminal; nobody needs to know."""
