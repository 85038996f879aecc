"""The exporter's queue: calls wait for a batch, the oldest are lost if it is full, and the end waits for nobody."""

import asyncio
import time

import pytest

from callboard.core.telemetry import ExportPlan
from callboard.core.trace_context import TraceContext
from callboard.engine.calls.record import CallRecord
from callboard.engine.telemetry.otlp.export import OtlpExport
from callboard.engine.telemetry.tracing import CallTrace
from tests.support.collector import Collector


def ended(number: int) -> CallTrace:
    """The trace of a call that has ended."""
    record = CallRecord(number, "c", "s", "tools/call", f"tool-{number}")
    record.started, record.status, record.duration_ms = time.time(), "completed", 1.0
    return CallTrace(record, None, TraceContext(number + 1, number + 1, 1), "")


def made(collector: Collector, **bounds: float) -> OtlpExport:
    """An exporter of spans alone."""
    plan = ExportPlan(f"{collector.url}/v1/traces", "", **bounds)  # type: ignore[arg-type]
    return OtlpExport(plan, lambda: None, lambda address, why: None)


async def test_a_whole_batch_does_not_wait() -> None:
    async with Collector() as collector:
        export = made(collector, delay=600.0, batch=4)
        for number in range(4):
            export.ended(ended(number))
        await collector.wait(lambda: len(collector.spans) == 4)
        export.ended(ended(4))
        await asyncio.to_thread(export.shutdown, 30.0)
    assert [span.name for span in collector.spans] == [f"mcp:s.tool-{number}" for number in range(5)]


async def test_the_oldest_are_lost_first_and_that_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with Collector() as collector:
        export = made(collector, delay=600.0, batch=100, queue=3)
        for number in range(10):
            export.ended(ended(number))
        await asyncio.to_thread(export.shutdown, 30.0)
    assert [span.name for span in collector.spans] == ["mcp:s.tool-7", "mcp:s.tool-8", "mcp:s.tool-9"]
    assert "7 calls came faster than they were exported" in caplog.text


async def test_a_collector_that_hangs_is_not_waited_for() -> None:
    async with Collector() as collector:
        collector.hangs = asyncio.Event()
        export = made(collector, delay=0.01)
        export.ended(ended(1))
        await collector.wait(lambda: collector.refused > 0)
        await asyncio.to_thread(export.shutdown, 0.1)  # returns, though nobody has answered
        assert not collector.spans
        collector.hangs.set()
        await collector.wait(lambda: len(collector.spans) == 1)
        await asyncio.to_thread(export._thread.join)
