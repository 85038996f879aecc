"""The command line as a process of its own."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)


class Running:
    """A command that goes on until it is interrupted."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self) -> str:
        """The next line of its output."""
        assert self.process.stdout is not None
        return (await self.process.stdout.readline()).decode().rstrip("\n")

    async def errors_until(self, text: str) -> list[str]:
        """The next lines of its standard error, up to one that holds a text."""
        assert self.process.stderr is not None
        lines: list[str] = []
        while not lines or text not in lines[-1]:
            line = await self.process.stderr.readline()
            assert line, f"it ended without saying {text!r}: {lines}"
            lines.append(line.decode().rstrip("\n"))
        return lines

    async def say(self, line: str) -> None:
        """Type a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        await self.process.stdin.drain()

    async def end(self) -> Ended:
        """Wait for its end, with its input still open."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        out, err = await asyncio.gather(self.process.stdout.read(), self.process.stderr.read())
        return Ended(await self.process.wait(), out.decode(), err.decode())

    async def interrupt(self) -> tuple[int, str]:
        """Ctrl-C; the exit code and what stands on stderr."""
        self.process.send_signal(signal.SIGINT)
        _, errors = await self.process.communicate()
        return self.process.returncode or 0, errors.decode()


class CommandLine:
    """Runs `callboard` with the files under one folder."""

    def __init__(self, home: Path) -> None:
        self._environment = {**os.environ, "CALLBOARD_HOME": str(home), "COLUMNS": "200"}

    async def __call__(self, *arguments: str, stdin: str | None = None) -> Ended:
        """Run a command to its end."""
        process = await self._start(arguments, subprocess.PIPE if stdin is not None else subprocess.DEVNULL)
        out, err = await process.communicate(stdin.encode() if stdin is not None else None)
        return Ended(process.returncode or 0, out.decode(), err.decode())

    @asynccontextmanager
    async def running(self, *arguments: str) -> AsyncIterator[Running]:
        """Run a command beside the test; it is ended with the block."""
        process = await self._start(arguments, subprocess.DEVNULL)
        try:
            yield Running(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    @asynccontextmanager
    async def talking(self, *arguments: str) -> AsyncIterator[Running]:
        """The same for a command that reads what is typed."""
        process = await self._start(arguments, subprocess.PIPE)
        try:
            yield Running(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def _start(self, arguments: tuple[str, ...], stdin: int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "callboard",
            *arguments,
            env=self._environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
