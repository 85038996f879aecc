"""What keeping, telling, counting and tracing a call costs; the exporter sleeps meanwhile and is not counted."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from callboard.engine.bus import Bus
from callboard.engine.calls.events import CallEvents
from callboard.engine.calls.log import CallLog
from callboard.engine.calls.record import CallRecord, CallWatcher
from callboard.engine.masking import Masking
from callboard.engine.relay.envelope import Raw
from callboard.engine.telemetry.meter import CallMeter
from callboard.engine.telemetry.tracing import CallTrace, Tracing
from tests.bench.engine import Engine, running_engine, upstream_entry
from tests.bench.figures import Figure
from tests.bench.load import Session, drive
from tests.bench.processes import cpu

ROUNDS, CALLS, PAUSE = 9, 2_000, 50
SECONDS, WARM_UP = 2.0, 0.5
LIMIT = 0.03  # ms, the policy included
ARGUMENTS = b'{"text":"hello"}'
RESULT = b'{"content":[{"type":"text","text":"hello"}]}'
META = Raw(b'{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}')
TRACED = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",  # nobody is asked before the engine's end
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_BSP_SCHEDULE_DELAY": "600000",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "100000000",
}


def telemetry() -> list[Figure]:
    """CPU a call of the call log, events, figures and traces, exporter aside."""
    log = asyncio.run(_pieces(traced=False, watched=False))
    told = asyncio.run(_pieces(traced=False, watched=True))
    traced = asyncio.run(_pieces(traced=True, watched=True))
    figures = [
        Figure("call log: CPU a call", log, "ms"),
        Figure("call log, events, figures: CPU a call", told, "ms", log),
        Figure("call log, events, figures, traces: CPU a call", traced, "ms", log, LIMIT),
    ]
    for connections in (1, 16):
        off, on = _engines(connections)
        name = f"engine, {connections} connection{'s' if connections > 1 else ''}"
        figures.append(Figure(f"{name}: CPU a call, traced", on, "ms", off))
    return figures


def _engines(connections: int) -> tuple[float, float]:
    """Milliseconds of CPU a call of an engine that traces nothing, and of one that traces each call."""
    entries = {"up": upstream_entry("up")}
    with running_engine(entries) as plain, running_engine(entries, TRACED) as tracing:
        runs = [_driven(plain), _driven(tracing)]
        measured: list[list[float]] = [[], []]
        for _ in range(5):
            for run, found in zip(runs, measured, strict=True):
                found.append(run(connections))
    off, on = (statistics.median(found) * 1e3 for found in measured)
    return off, on


def _driven(engine: Engine) -> Any:
    engine.wait_until_ready("up")
    session = Session(f"{engine.url}/servers/up/mcp", engine.token())
    request = session.call("tool_0", 100)
    drive(session.url, request, connections=16, seconds=WARM_UP)

    def run(connections: int) -> float:
        before = cpu(engine.pid)
        measured = drive(session.url, request, connections=connections, seconds=SECONDS)
        return (cpu(engine.pid) - before) / len(measured.latencies)

    return run


class _Told:
    def __init__(self) -> None:
        self.meter = CallMeter(lambda server, method, name: True)
        self.ends: list[CallTrace] = []

    def began(self, record: CallRecord) -> None:
        """See CallWatcher."""
        self.meter.began(record)

    def ended(self, record: CallRecord) -> None:
        """See CallWatcher."""
        self.meter.ended(record)
        if record.trace is not None:
            self.ends.append(record.trace)


@contextlib.contextmanager
def _events(bus: Bus, masking: Masking) -> Iterator[CallEvents]:
    def publish(events: list[Any]) -> None:
        bus.publish("call-events", {"events": events}, weight=1 + len(events) // 4)

    events = CallEvents(publish, masking.mask_text)
    try:
        yield events
    finally:
        events.close()


async def _pieces(*, traced: bool, watched: bool) -> float:
    """Milliseconds of CPU a call, in all threads, of what the relay does for each call beside passing it on."""
    bus, masking, told = Bus(), Masking(), _Told()
    tracing = Tracing(lambda parent, trace_id, record: True) if traced else None
    upstream: Any = SimpleNamespace(pid=1, info=SimpleNamespace(protocol="2025-11-25"))
    exchange: Any = SimpleNamespace(modern=False, request_id=b"12")
    runs = []
    with tempfile.TemporaryDirectory() as folder, _events(bus, masking) as events:
        watchers: tuple[CallWatcher, ...] = (events, told) if watched else ()
        log = CallLog(
            Path(folder) / "calls.sqlite3",
            masking.mask_payload,
            None,
            lambda calls: bus.publish("calls", {"calls": calls}, weight=len(calls)),
            watchers=watchers,
        )
        await log.open()
        for _ in range(ROUNDS):
            before = time.process_time()
            for number in range(CALLS):
                record = log.begin("client", "server", "tools/call", "tool", memoryview(ARGUMENTS))
                if tracing is not None:
                    tracing.begin(exchange, record, {"arguments": Raw(ARGUMENTS), "_meta": META})
                    assert record.trace is not None
                    record.trace.carry({"arguments": Raw(ARGUMENTS), "_meta": META}, upstream)
                log.end(record, "completed", memoryview(RESULT))
                if number % PAUSE == 0:
                    await asyncio.sleep(0)
            await log.flush()
            runs.append((time.process_time() - before) / CALLS * 1e3)
            told.ends.clear()
        await log.close()
    return statistics.median(runs)
