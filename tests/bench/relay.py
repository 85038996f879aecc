"""A tools/call through the engine, beside the same through a bare relay on the same front end."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.engine import ROOT, listener, running_engine, upstream_entry
from tests.bench.figures import Figure
from tests.bench.load import Measured, Session, drive
from tests.bench.processes import child, cpu, wait_for

SIZES = {"100 B": 100, "100 KB": 100_000, "1 MB": 1_000_000}
CONNECTIONS = (1, 16, 64)
SECONDS = 2.0
WARM_UP = 0.5


def relay() -> list[Figure]:
    """Latency, throughput and CPU; tokens, call log and a reader of the event stream are on."""
    figures = []
    with running_engine({"up": upstream_entry("up")}) as engine, bare_relay() as (bare_url, bare_pid):
        engine.wait_until_ready("up")
        ours = Session(f"{engine.url}/servers/up/mcp", engine.token())
        bare = Session(bare_url)
        with listener(engine.api.address):
            for label, size in SIZES.items():
                for connections in CONNECTIONS:
                    mine, my_cpu = _measure(ours, engine.pid, size, connections)
                    other, other_cpu = _measure(bare, bare_pid, size, connections)
                    name = f"{label}, {connections} connection{'s' if connections > 1 else ''}"
                    figures += [
                        Figure(f"{name}: p50", mine.median * 1e3, "ms", other.median * 1e3),
                        Figure(f"{name}: p99", mine.percentile(0.99) * 1e3, "ms", other.percentile(0.99) * 1e3),
                        Figure(f"{name}: rate", mine.rate, "calls/s", other.rate),
                        Figure(f"{name}: CPU a call", my_cpu * 1e3, "ms", other_cpu * 1e3),
                    ]
    return figures


def _measure(session: Session, pid: int, size: int, connections: int) -> tuple[Measured, float]:
    """Latencies, and the relay's seconds of CPU a call."""
    request = session.call("tool_0", size)
    drive(session.url, request, connections=connections, seconds=WARM_UP)
    before = cpu(pid)
    measured = drive(session.url, request, connections=connections, seconds=SECONDS)
    return measured, (cpu(pid) - before) / len(measured.latencies)


@contextlib.contextmanager
def bare_relay() -> Iterator[tuple[str, int]]:
    """The reference, with a server of its own; its address and its pid."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    entry = upstream_entry("bare")
    command = [sys.executable, str(Path(__file__).with_name("bare.py")), str(port), entry["command"], *entry["args"]]
    with child(command, {"PYTHONPATH": str(ROOT)}) as process:
        wait_for(lambda: _answers(port), "the bare relay")
        yield f"http://127.0.0.1:{port}/mcp", process.pid


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
