"""A worker process of an agent, spoken to message by message."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import callboard.agents

WORKER = Path(callboard.agents.__file__).with_name("worker.py")
END_SECONDS = 15.0


class Worker:
    """One worker in a folder. Use as a context manager: it must end by itself when its input is closed."""

    def __init__(self, folder: Path, *options: str, python: str = sys.executable) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the worker
        self._process = subprocess.Popen(
            [python, *options, str(WORKER)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._number = 0
        self.progress: list[dict[str, Any]] = []
        self.errors = ""
        assert self.read()["type"] == "hello"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._process.stdout.close()
            self._errors.seek(0)
            self.errors = self._errors.read().decode()
            self._errors.close()

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next message."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the worker ended"
        message: dict[str, Any] = json.loads(line)
        return message

    def load(self, agent: str, **more: Any) -> dict[str, Any]:
        """Load an agent; its schema, or why it was refused."""
        self.send({"type": "load", "version": 1, "agent": agent, "params": {}, "persist": True, **more})
        return self.read()

    def begin(self, kind: str, agent: str, **more: Any) -> int:
        """Begin a call; its number."""
        self._number += 1
        self.send({"type": kind, "id": self._number, "agent": agent, **more})
        return self._number

    def answer(self) -> dict[str, Any]:
        """The next answer; what comes before it is kept in ``progress``."""
        while (message := self.read())["type"] == "progress":
            self.progress.append(message)
        return message

    def call(self, agent: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and wait for the answer."""
        self.begin("call", agent, tool=tool, arguments=arguments)
        return self.answer()

    def run(self, agent: str, request: str, conversation: str = "") -> dict[str, Any]:
        """Ask the agent and wait for the answer."""
        self.begin("run", agent, request=request, conversation=conversation)
        return self.answer()
