"""The host's end of the pipe: one worker process, the calls in flight in it, and its end."""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from callboard.agents.contract import VERSION, Part, part_from_wire

log = logging.getLogger(__name__)

WORKER: Final = Path(__file__).with_name("worker.py")
MAX_LINE: Final = 256 * 1024 * 1024
END_WAIT: Final = 4.0  # seconds for a worker to end after its input was closed
GONE: Final = "agent-gone"

Message = dict[str, Any]
OnProgress = Callable[[Message], None]


class AgentError(Exception):
    """An agent that could not be loaded, or whose worker has gone: the ERROR of the contract, its message as text."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error = dict(error)


@dataclass
class Outcome:
    """What came of a call: parts, and an ERROR if it failed; ``state`` if the worker told it."""

    parts: list[Part] = field(default_factory=list)
    error: Message | None = None
    state: dict[str, Any] | None = None


class WorkerLink:
    """One worker process. ``start`` it, and ``close`` it from the same loop."""

    def __init__(self) -> None:
        self.agents: list[Message] = []
        self.files: list[str] = []
        self._numbers = itertools.count(1)
        self._calls: dict[int, tuple[asyncio.Future[Outcome], OnProgress | None]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._open = False

    @property
    def is_open(self) -> bool:
        """False once the worker has ended or was told to."""
        return self._open

    @property
    def pending(self) -> "list[asyncio.Future[Outcome]]":
        """The calls in flight."""
        return [future for future, _ in self._calls.values()]

    @property
    def pid(self) -> int:
        """The worker's process, 0 before it runs."""
        return self._process.pid if self._process is not None else 0

    async def spawn(self, python: str, cwd: Path | None = None) -> None:
        """Start the process, which gets ready for :meth:`load` by itself. Raises AgentError."""
        python = python or sys.executable
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}
        for ours in ("CALLBOARD_AGENT", "CALLBOARD_HOME"):  # params may be secret, and the agent has them anyway
            environment.pop(ours, None)
        try:
            self._process = await asyncio.create_subprocess_exec(
                python,
                str(WORKER),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=MAX_LINE,
                env=environment,
                cwd=cwd,
            )
        except OSError as error:
            message = f"the interpreter {python} cannot be started: {error.strerror or error}"
            raise AgentError(failure_of("agent-python", message)) from error

    async def load(
        self, agent: str, params: Mapping[str, Any], *, persist: bool, thoughts: bool, tools: bool = False
    ) -> None:
        """Have the worker load the agent. Raises AgentError with what its own code said.

        ``tools``: it is also to tell the tools that the agent uses itself.
        """
        process = self._process
        assert process is not None
        assert process.stdout is not None
        self._write(
            {
                "type": "load",
                "version": VERSION,
                "agent": agent,
                "params": dict(params),
                "persist": persist,
                "thoughts": thoughts,
                "tools": tools,
            }
        )
        while True:
            message = await _next(process.stdout)
            if message is None:
                code = await process.wait()
                raise AgentError(failure_of(GONE, f"the worker ended while it loaded {agent} ({_ending(code)})"))
            if message["type"] == "refused":
                raise AgentError(message["error"])
            if message["type"] == "schema":
                break
        self.agents, self.files = message["agents"], message["files"]
        self._open = True
        self._reader = asyncio.get_running_loop().create_task(self._read(process.stdout), name=f"worker {process.pid}")

    def begin(self, message: Message, on_progress: OnProgress | None) -> tuple[int, asyncio.Future[Outcome]]:
        """Send a call; its number, and what will be its outcome. Raises AgentError if the worker has gone."""
        if not self._open:
            raise AgentError(failure_of(GONE, "the agent's worker has ended"))
        number = next(self._numbers)
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._calls[number] = (future, on_progress)
        self._write({**message, "id": number})
        return number, future

    def tell(self, message: Message) -> None:
        """Send what has no answer; nothing happens if the worker has gone."""
        if self._open:
            self._write(message)

    async def close(self) -> None:
        """Close the worker's input and wait for its end; kill it if that takes too long."""
        self._open = False
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(END_WAIT):
                await process.wait()
        except TimeoutError:
            await self.kill()
        if self._reader is not None:
            await asyncio.wait([self._reader])
            self._reader = None
        with contextlib.suppress(ConnectionError):
            await process.stdin.wait_closed()

    async def kill(self) -> None:
        """End the worker at once, with all that it does."""
        self._open = False
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def _write(self, message: Message) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        with contextlib.suppress(ConnectionError, RuntimeError):  # the reader sees the end too, and tells the calls
            self._process.stdin.write(line.encode("utf-8", "replace") + b"\n")

    async def _read(self, stream: asyncio.StreamReader) -> None:
        assert self._process is not None
        try:
            while (message := await _next(stream)) is not None:
                self._take(message)
        except ValueError as error:
            log.error("The worker sent what is no message: %s", error)
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        self._open = False
        code = await self._process.wait()
        calls, self._calls = self._calls, {}
        for future, _ in calls.values():
            if not future.done():
                future.set_result(
                    Outcome(error=failure_of(GONE, f"the agent's worker ended during the call ({_ending(code)})"))
                )

    def _take(self, message: Message) -> None:
        number = message["id"]
        if message["type"] == "progress":
            call = self._calls.get(number)
            if call is not None and call[1] is not None:
                call[1](message)
            return
        call = self._calls.pop(number, None)
        if call is not None and not call[0].done():
            parts = [part_from_wire(part) for part in message["parts"]]
            call[0].set_result(Outcome(parts, message.get("error"), message.get("state")))


async def _next(stream: asyncio.StreamReader) -> Message | None:
    try:
        line = await stream.readuntil(b"\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except asyncio.LimitOverrunError as error:
        raise ValueError(f"a line of more than {MAX_LINE} bytes") from error
    message: Message = json.loads(line)
    return message


def failure_of(code: str, message: str) -> Message:
    """An ERROR of the contract about which nothing more is known."""
    return {"code": code, "message": message, "kind": "", "traceback": "", "file": "", "line": 0}


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
