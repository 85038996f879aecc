"""What the engine costs when it idles, after many calls, and with many servers."""

from __future__ import annotations

import time

from tests.bench.engine import listener, running_engine, upstream_entry
from tests.bench.figures import Figure
from tests.bench.load import Connection, Session, drive
from tests.bench.processes import MIB, Usage, usage, wait_for
from tests.bench.windows import hidden_window

IDLE_SECONDS = 20.0
SETTLE_SECONDS = 3.0
CALLS = (1_000, 20_000, 100_000)
SERVERS, TOOLS = 50, 20


def idle() -> list[Figure]:
    """Engine and hidden window with ten stopped servers: memory, CPU and wake-ups."""
    stopped = {f"server-{number}": upstream_entry("x", start="manual") for number in range(10)}
    with running_engine(stopped) as engine:
        time.sleep(SETTLE_SECONDS)
        figures = _at_rest("engine", *_over(engine.pid), limit=60.0)
    with hidden_window(stopped) as pid:
        time.sleep(SETTLE_SECONDS)
        return figures + _at_rest("window in the tray", *_over(pid), limit=None)


def _over(pid: int) -> tuple[Usage, Usage]:
    before = usage(pid)
    time.sleep(IDLE_SECONDS)
    return before, usage(pid)


def _at_rest(who: str, before: Usage, after: Usage, *, limit: float | None) -> list[Figure]:
    cpu = (after.cpu - before.cpu) / IDLE_SECONDS * 100
    return [
        Figure(f"{who}: resident", after.rss / MIB, "MiB", limit=limit),
        Figure(f"{who}: proportional share", after.pss / MIB, "MiB"),
        Figure(f"{who}: CPU", cpu, "% of a core", limit=0.1),
        Figure(f"{who}: wake-ups", (after.switches - before.switches) / IDLE_SECONDS, "per second"),
    ]


def memory() -> list[Figure]:
    """The engine's memory while the calls mount up, with a reader of the event stream."""
    figures = []
    with running_engine({"up": upstream_entry("up")}) as engine:
        engine.wait_until_ready("up")
        figures.append(Figure("resident before the first call", usage(engine.pid).rss / MIB, "MiB"))
        session = Session(f"{engine.url}/servers/up/mcp", engine.token())
        request = session.call("tool_0", 200)
        done = 0
        with listener(engine.api.address):
            for goal in CALLS:
                while done < goal:
                    done += len(drive(session.url, request, connections=8, seconds=0.3).latencies)
                figures.append(Figure(f"resident after {done:,} calls", usage(engine.pid).rss / MIB, "MiB"))
        wait_for(lambda: engine.api.get("/calls?limit=1")["total"] == done, f"{done} calls in the log", 60.0, 0.1)
        size = sum(file.stat().st_size for file in engine.home.paths.state.glob("calls.sqlite3*"))
        figures.append(Figure("call log on disk, per call", size / done, "bytes"))
    return figures


def many() -> list[Figure]:
    """Fifty servers with twenty tools each: how long until all are listed, and what a list costs."""
    servers = {f"server-{number}": upstream_entry(f"server-{number}", TOOLS) for number in range(SERVERS)}
    began = time.monotonic()
    with running_engine(servers) as engine:
        up = time.monotonic()
        ready = engine.wait_until_ready(*servers)
        session = Session(f"{engine.url}/mcp", engine.token())
        listed = wait_for(lambda: _tools(session) == SERVERS * TOOLS, "all tools in the list", 60.0, 0.02)
        request = session.request("tools/list")
        lists = drive(session.url, request, connections=1, seconds=2.0)
        calls = drive(session.url, session.call("server-7__tool_3"), connections=1, seconds=2.0)
        used = usage(engine.pid)
    return [
        Figure("start to answering", up - began, "s"),
        Figure("start to all servers ready", ready - began, "s"),
        Figure("start to all tools listed", listed - began, "s"),
        Figure("tools/list of 1,000 tools: p50", lists.median * 1e3, "ms"),
        Figure("tools/list of 1,000 tools: p99", lists.percentile(0.99) * 1e3, "ms"),
        Figure("tools/call among 50 servers: p50", calls.median * 1e3, "ms"),
        Figure("engine: resident", used.rss / MIB, "MiB"),
        Figure("engine: CPU from start to here", used.cpu, "s"),
    ]


def _tools(session: Session) -> int:
    connection = Connection(session.url)
    try:
        _, body = connection.exchange(session.request("tools/list"))
    finally:
        connection.close()
    return body.count(b'"inputSchema"')
