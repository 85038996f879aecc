"""Whether servers that are trouble are trouble for the others, for the engine and for the window."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from tests.bench.engine import Engine, running_engine, upstream_entry
from tests.bench.figures import Figure
from tests.bench.load import Connection, Measured, Session, drive
from tests.bench.processes import MIB, cpu, usage
from tests.bench.windows import Gaps, watched_window

GOOD, DYING, SILENT = 35, 10, 5
READY_SECONDS = 10.0
CALM_SECONDS, FLOOD_SECONDS = 20.0, 60.0
MEGABYTES = 50
CALLS_A_SECOND = 100
ODD = Path(__file__).resolve().parents[1] / "support" / "servers" / "odd.py"


def crowd() -> list[Figure]:
    """Fifty servers at once, of which ten crash and five never answer: the others, lists, and an open window."""
    good = [f"good-{number}" for number in range(GOOD)]
    began = time.monotonic()
    with running_engine(_crowd()) as engine:
        listed = _list_seconds(engine)
        ready = engine.wait_until_ready(*good) - began
    with running_engine({}) as engine, watched_window(engine, "servers") as window:
        written = time.monotonic()
        engine.home.write_roster(_crowd())
        slowest = 0.0
        while not _all_ready(engine, good):
            slowest = max(slowest, _list_seconds(engine))
        together = time.monotonic() - written
        time.sleep(1.0)
        gaps = window.gaps(written, time.monotonic())
    return [
        Figure("from the engine's start to a first list of tools", listed, "s"),
        Figure("from the engine's start to the 35 good ones ready", ready, "s", limit=READY_SECONDS),
        Figure("added beside a window: 35 good ones ready", together, "s", limit=READY_SECONDS),
        Figure("meanwhile, the slowest list of tools", slowest * 1e3, "ms"),
        *_stalls(gaps),
    ]


def _crowd() -> dict[str, Any]:
    def odd(option: str, *more: str) -> dict[str, Any]:
        return {"command": sys.executable, "args": ["-S", "-E", str(ODD), option, *more]}

    dying = {f"dying-{number}": odd("--crash-before", "1") for number in range(DYING)}
    silent = {f"silent-{number}": odd("--silent") for number in range(SILENT)}
    good = {f"good-{number}": upstream_entry(f"good-{number}", 5) for number in range(GOOD)}
    return silent | dying | good  # in the order that is worst for the good ones


def _all_ready(engine: Engine, names: list[str]) -> bool:
    states = engine.api.states()
    return all(states.get(name) == "ready" for name in names)


def _list_seconds(engine: Engine) -> float:
    """How long a client waits for its list of tools, its handshake included."""
    began = time.perf_counter()
    session = Session(f"{engine.url}/mcp", engine.token())
    connection = Connection(session.url)
    try:
        connection.exchange(session.request("tools/list"))
    finally:
        connection.close()
    return time.perf_counter() - began


def flood() -> list[Figure]:
    """A server that writes 50 MB a second on stderr for a minute, its log open in a window; calls to another one."""
    noisy = upstream_entry("noisy", start="manual")
    noisy["args"] += ["--stderr", f"{MEGABYTES}"]
    with running_engine({"up": upstream_entry("up"), "noisy": noisy}) as engine:
        engine.wait_until_ready("up")
        with watched_window(engine, "servers", log="noisy") as window:
            session = Session(f"{engine.url}/servers/up/mcp", engine.token())
            request = session.call("tool_0", 200)
            calm = drive(session.url, request, connections=1, seconds=CALM_SECONDS, rate=CALLS_A_SECOND)
            engine.api.post("/servers/noisy/start")
            engine.wait_until_ready("noisy")
            drive(session.url, request, connections=1, seconds=5.0, rate=CALLS_A_SECOND)
            before, spent, began = usage(engine.pid), cpu(engine.pid), time.monotonic()
            loud = drive(session.url, request, connections=1, seconds=FLOOD_SECONDS, rate=CALLS_A_SECOND)
            seconds = time.monotonic() - began
            after, spent = usage(engine.pid), cpu(engine.pid) - spent
            gaps = window.gaps(began, time.monotonic())
            dropped = _dropped(engine)  # the window takes the engine along
    return [
        *_latencies(loud, calm),
        Figure("engine: resident, growth in the minute", (after.rss - before.rss) / MIB, "MiB", limit=5.0),
        Figure("engine: resident", after.rss / MIB, "MiB"),
        Figure("engine: CPU", spent / seconds * 100, "% of a core"),
        Figure("lines dropped and counted", dropped, ""),
        *_stalls(gaps),
    ]


def _latencies(loud: Measured, calm: Measured) -> list[Figure]:
    return [
        Figure(
            f"calls to another server: p{share * 100:g}",
            loud.percentile(share) * 1e3,
            "ms",
            calm.percentile(share) * 1e3,
        )
        for share in (0.5, 0.99)
    ]


def _dropped(engine: Engine) -> int:
    """What the last separator of the log says."""
    page = engine.api.get("/servers/noisy/log?after=-1&limit=5000")
    marks = [line["text"] for line in page["lines"] if line["stream"] == "mark" and "dropped" in line["text"]]
    return int(marks[-1].split("; ")[1].split()[0].replace(",", "")) if marks else 0


def _stalls(gaps: Gaps) -> list[Figure]:
    return [
        Figure("window: longest gap", gaps.longest * 1e3, "ms", limit=50.0),
        Figure("window: most work in a gap", gaps.worked * 1e3, "ms"),
        Figure("window: gaps over 50 ms", gaps.over, ""),
    ]
