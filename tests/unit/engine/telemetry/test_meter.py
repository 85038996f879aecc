"""Counting calls: what is told apart, and that no name makes the figures grow without end."""

import time
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from callboard.api.schema import CallStatus
from callboard.core.health import State
from callboard.engine.calls.record import CallRecord
from callboard.engine.telemetry.meter import BOUNDS, MAX_CLIENTS, MAX_SERIES, MAX_TOOLS, OTHER, CallMeter
from callboard.engine.telemetry.prometheus import as_text
from callboard.engine.telemetry.snapshot import Snapshot

HOSTILE = 'x"} 1\n# HELP \\ {le="\u2028\x00'


def run(
    meter: CallMeter,
    tool: str = "echo",
    *,
    server: str = "s",
    client: str = "c",
    status: CallStatus = "completed",
    method: str = "tools/call",
    ms: float = 3.0,
) -> None:
    record = CallRecord(1, client, server, method, tool)
    meter.began(record)
    record.status, record.duration_ms = status, ms
    meter.ended(record)


@pytest.fixture
def meter() -> CallMeter:
    return CallMeter(lambda server, method, tool: not tool.startswith("invented"))


def test_calls_are_told_apart(meter: CallMeter) -> None:
    run(meter)
    run(meter, status="failed", ms=4.0)
    run(meter, client="other")
    run(meter, "greet", method="prompts/get")
    run(meter, "doc://a?token=s3cret", method="resources/read", status="cancelled")
    series = meter.series()
    echo = series["s", "tools/call", "echo", "c"]
    assert echo.counts == {"completed": 1, "failed": 1, "cancelled": 0}
    assert (sum(echo.buckets), echo.buckets[2]) == (2, 2)  # above 2 ms, up to 5 ms
    assert (round(echo.seconds, 6), echo.shortest, echo.longest) == (0.007, 0.003, 0.004)
    assert series["s", "tools/call", "echo", "other"].counts["completed"] == 1
    assert series["s", "prompts/get", "greet", "c"].counts["completed"] == 1
    assert series["s", "resources/read", "", "c"].counts["cancelled"] == 1
    assert "s3cret" not in repr(series)


def test_calls_in_flight(meter: CallMeter) -> None:
    record = CallRecord(1, "c", "s", "tools/call", "echo")
    meter.began(record)
    assert meter.in_flight() == {"s": 1}
    record.status = "cancelled"
    meter.ended(record)
    assert meter.in_flight() == {"s": 0}


def test_names_that_clients_invent_are_counted_together(meter: CallMeter) -> None:
    for number in range(1000):
        run(meter, f"invented-{number}", status="failed")
    assert list(meter.series()) == [("s", "tools/call", OTHER, "c")]
    run(meter, "invented-but-there")
    assert ("s", "tools/call", "invented-but-there", "c") in meter.series()


def test_tools_of_a_server_are_bounded(meter: CallMeter) -> None:
    for number in range(3 * MAX_TOOLS):
        run(meter, f"tool-{number}")
    run(meter, server="honest")
    tools = {tool for server, _, tool, _ in meter.series() if server == "s"}
    assert len(tools) == MAX_TOOLS + 1
    assert meter.series()["s", "tools/call", OTHER, "c"].counts["completed"] == 2 * MAX_TOOLS
    assert ("honest", "tools/call", "echo", "c") in meter.series()


def test_clients_are_bounded(meter: CallMeter) -> None:
    for number in range(3 * MAX_CLIENTS):
        run(meter, client=f"client-{number}")
    assert len({client for *_, client in meter.series()}) == MAX_CLIENTS + 1


def test_everything_is_bounded_and_nothing_is_lost(meter: CallMeter) -> None:
    calls = 0
    for server in range(30):
        for tool in range(40):
            for client in range(4):
                run(meter, f"{HOSTILE}{tool}" + "y" * 5000, server=f"s{server}", client=f"{client}" + "z" * 5000)
                calls += 1
    series = meter.series()
    assert len(series) <= MAX_SERIES + 1 + 30
    assert sum(sum(one.buckets) for one in series.values()) == calls
    assert max(len(name) for key in series for name in key) <= 100


def test_the_text_can_be_read_by_prometheus(meter: CallMeter) -> None:
    run(meter)
    run(meter, status="failed", ms=1e7)
    run(meter, client="other", ms=0.0)
    run(meter, HOSTILE, client=HOSTILE)
    states = Counter({state.value: 0 for state in State}) + Counter()
    states.update({"ready": 2, "failed": 1})
    text = as_text(Snapshot(1.5e9, time.time(), meter.series(), {"s": 3}, states, 12345))
    families = {family.name: family for family in text_string_to_metric_families(text)}
    calls = {
        tuple(sample.labels[name] for name in ("server", "method", "tool", "client", "status")): sample.value
        for sample in families["callboard_calls"].samples
    }
    assert calls == {
        ("s", "tools/call", "echo", "c", "completed"): 1,
        ("s", "tools/call", "echo", "c", "failed"): 1,
        ("s", "tools/call", "echo", "other", "completed"): 1,
        ("s", "tools/call", HOSTILE, HOSTILE, "completed"): 1,
    }
    duration = families["callboard_call_duration_seconds"]
    assert duration.type == "histogram"
    echo = [sample for sample in duration.samples if sample.labels["tool"] == "echo"]
    buckets = {sample.labels["le"]: sample.value for sample in echo if sample.name.endswith("_bucket")}
    assert len(buckets) == len(BOUNDS) + 1
    assert (buckets["0.001"], buckets["0.005"], buckets["300.0"], buckets["+Inf"]) == (1, 2, 2, 3)
    assert [sample.value for sample in echo if sample.name.endswith("_count")] == [3]
    assert [sample.value for sample in echo if sample.name.endswith("_sum")] == [pytest.approx(10000.003)]
    found = {sample.labels["state"]: sample.value for sample in families["callboard_servers"].samples}
    assert (found["ready"], found["failed"]) == (2, 1)
    assert families["callboard_calls_in_flight"].samples[0].value == 3
    assert families["callboard_engine_memory_bytes"].samples[0].value == 12345
    assert families["callboard_engine_start_time_seconds"].samples[0].value == 1.5e9
