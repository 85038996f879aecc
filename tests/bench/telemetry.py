"""What tracing costs in a whole engine; the exporter sleeps meanwhile and is not counted. See also cost.py."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from tests.bench.engine import Engine, running_engine, upstream_entry
from tests.bench.figures import Figure
from tests.bench.load import Session, drive
from tests.bench.processes import cpu

ROUNDS, SECONDS, WARM_UP = 5, 2.0, 0.5
TRACED = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",  # nobody is asked before the engine's end
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_BSP_SCHEDULE_DELAY": "600000",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "100000000",
}


def telemetry() -> list[Figure]:
    """CPU per call of an engine that traces each call, beside one that traces none; the exporter is not counted."""
    entries = {"up": upstream_entry("up")}
    with running_engine(entries) as plain, running_engine(entries, TRACED) as tracing:
        runs = [_driven(plain), _driven(tracing)]
        return [_figure(runs, connections) for connections in (1, 16)]


def _figure(runs: list[Callable[[int], float]], connections: int) -> Figure:
    rounds = [[run(connections) for run in runs] for _ in range(ROUNDS)]
    off, on = (statistics.median(found) * 1e3 for found in zip(*rounds, strict=True))
    plural = "s" if connections > 1 else ""
    return Figure(f"{connections} connection{plural}: CPU a call, traced", on, "ms", off)


def _driven(engine: Engine) -> Callable[[int], float]:
    engine.wait_until_ready("up")
    session = Session(f"{engine.url}/servers/up/mcp", engine.token())
    request = session.call("tool_0", 100)
    drive(session.url, request, connections=16, seconds=WARM_UP)

    def run(connections: int) -> float:
        """Seconds of CPU a call."""
        before = cpu(engine.pid)
        measured = drive(session.url, request, connections=connections, seconds=SECONDS)
        return (cpu(engine.pid) - before) / len(measured.latencies)

    return run
