"""Python agents: what host and worker add to a call, how soon they are ready, and what conversations cost."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.bench.figures import Figure

CALLS = 500
WARM_UP = 50
CONVERSATIONS = 2000
AGENT = """\
def agent(request, context):
    context.state["n"] = context.state.get("n", 0) + 1
    context.state["said"] = request
    return request
"""
BARE = """\
from callboard.servers import importing_fastmcp
with importing_fastmcp():
    from fastmcp import FastMCP
server = FastMCP("bare")
@server.tool
def agent(request: str) -> str:
    return request
server.run(transport="stdio", show_banner=False)
"""


def agents() -> list[Figure]:
    """a trivial agent behind host and worker, beside a plain FastMCP tool: ready, each call, and 2,000 conversations"""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agent.py").write_text(AGENT, encoding="utf-8")
        (folder / "bare.py").write_text(BARE, encoding="utf-8")
        bare = [sys.executable, str(folder / "bare.py")]
        figures = []
        ready, bare_ready = (min(_ready(command, folder) for _ in range(3)) for command in (_HOST, bare))
        figures.append(Figure("ready: first list of tools", ready, "s", bare_ready, limit=1.5))
        with _client(_HOST, folder) as client, _client(bare, folder) as plain:
            times, reference = client.times(), plain.times()
            figures.append(Figure("a call, p50", statistics.median(times), "ms", statistics.median(reference), limit=4))
            figures.append(Figure("a call, p95", _p95(times), "ms", _p95(reference)))
            figures.append(Figure("host and worker at rest", client.megabytes(), "MB", plain.megabytes()))
        with _client(_HOST, folder, gateway=True) as client:
            client.conversations(600)  # beyond the number that is kept at once
            before = client.megabytes()
            client.conversations(CONVERSATIONS)
            figures.append(
                Figure(f"growth over {CONVERSATIONS} conversations", client.megabytes() - before, "MB", limit=4)
            )
        return figures


_HOST = [sys.executable, "-m", "callboard.agents.host"]


class _Client:
    """The protocol's messages, one at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.request("initialize", hello)
        self._write({"method": "notifications/initialized"})

    def request(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})
        while True:
            message = json.loads(self._process.stdout.readline())
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]

    def call(self, **meta: Any) -> None:
        params = {"name": "agent", "arguments": {"request": "hello"}} | ({"_meta": meta} if meta else {})
        result = self.request("tools/call", params)
        assert result["content"][0]["text"] == "hello", result

    def times(self) -> list[float]:
        """Milliseconds of each call."""
        for _ in range(WARM_UP):
            self.call()
        found = []
        for _ in range(CALLS):
            begun = time.perf_counter()
            self.call()
            found.append(1000 * (time.perf_counter() - begun))
        return found

    def conversations(self, count: int) -> None:
        """As many conversations of one call each."""
        for _ in range(count):
            self.call(**{"callboard/client": "bench"})

    def megabytes(self) -> float:
        """Memory of the server and its children."""
        process = psutil.Process(self._process.pid)
        return sum(each.memory_info().rss for each in [process, *process.children(recursive=True)]) / 1e6

    def _write(self, message: dict[str, Any]) -> None:
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


@contextmanager
def _client(command: list[str], folder: Path, **more: Any) -> Iterator[_Client]:
    settings = {"agent": f"{folder}/agent.py:agent", **more}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "CALLBOARD_AGENT": json.dumps(settings), "PYTHONPATH": str(_APP)},
        cwd=folder,
    )
    try:
        yield _Client(process)
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


def _ready(command: list[str], folder: Path) -> float:
    begun = time.perf_counter()
    with _client(command, folder) as client:
        client.request("tools/list", {})
        return time.perf_counter() - begun


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


_APP = Path(__file__).resolve().parents[2] / "app"
