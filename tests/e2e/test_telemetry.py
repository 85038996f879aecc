"""Events, traces and figures of a real engine, with a collector that reads what it is sent; and one that is trouble."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from callboard.api.schema import CallEvent, Notice
from callboard.core.trace_context import TraceContext
from callboard.engine.telemetry.meter import MAX_TOOLS, OTHER
from callboard.engine_main import STOP_SECONDS
from tests.support.collector import CLIENT, SERVER, Collector
from tests.support.engine import EngineProcess, fixture_entry
from tests.support.gateway import http_fixture
from tests.support.mcp_client import LEGACY, MODERN, mcp_client, text_of

PARENT = TraceContext(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, 1)
ARGUMENT, RESULT, IN_URI = "argument-7d1f", "result-7d1f", "uri-7d1f"
QUIET = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    """A collector that is well."""
    async with Collector() as collector:
        yield collector


@contextlib.asynccontextmanager
async def running(home: Path, environment: dict[str, str], **settings: object) -> AsyncIterator[EngineProcess]:
    """An engine with one server of each era."""
    engine = EngineProcess(home, environment=environment)
    engine.write_roster({"old": fixture_entry("old"), "new": fixture_entry("new", "modern")}, **settings)
    async with engine:
        await engine.wait_for("old", "ready")
        await engine.wait_for("new", "ready")
        yield engine


async def call(engine: EngineProcess, server: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a manual call."""
    result: dict[str, Any] = await engine.client.call_tool(server, tool, arguments)
    return result


async def notice(engine: EngineProcess, code: str, present: bool = True) -> Notice | None:
    """The engine's notice of this code, once it is there, or gone."""
    async with asyncio.timeout(60):
        while True:
            found = [one for one in (await engine.client.engine()).notices if one.code == code]
            if bool(found) == present:
                return found[0] if found else None
            await asyncio.sleep(0.05)


async def doctor_says(engine: EngineProcess, words: str) -> None:
    """Wait until a line of doctor has these words."""
    async with asyncio.timeout(60):
        while not any(words in check.message for check in await engine.client.doctor()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def figures(engine: EngineProcess) -> dict[str, Any]:
    """The families of `/api/v1/metrics`."""
    address = engine.client.address
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.get(
            f"{address.url}/api/v1/metrics", headers={"authorization": f"Bearer {address.admin_token}"}
        )
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def calls_counted(families: dict[str, Any]) -> dict[tuple[str, str, str], float]:
    """How many calls of which server and tool ended how."""
    return {
        (sample.labels["server"], sample.labels["tool"], sample.labels["status"]): sample.value
        for sample in families["callboard_calls"].samples
    }


async def call_events(engine: EngineProcess, enough: Callable[[list[CallEvent]], bool]) -> list[CallEvent]:
    """The call-events of the stream from its beginning on, until there are enough."""
    found: list[CallEvent] = []
    async with asyncio.timeout(60), contextlib.aclosing(engine.client.events(0)) as events:
        async for event in events:
            if event.kind == "call-events":
                found += [CallEvent(**one) for one in event.data["events"]]
                if enough(found):
                    return found
    raise AssertionError("the stream ended")


# traces


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
@pytest.mark.parametrize("server", ["old", "new", "far"])
async def test_one_call_is_two_spans(callboard_home: Path, collector: Collector, server: str, mode: str) -> None:
    with http_fixture("modern", "far") as url:
        engine = EngineProcess(callboard_home, environment=collector.environment)
        entry = (
            {"url": f"{url}/mcp"}
            if server == "far"
            else fixture_entry(server, "modern" if server == "new" else "legacy")
        )
        engine.write_roster({server: entry})
        async with engine:
            await engine.wait_for(server, "ready")
            async with mcp_client(engine, mode=mode) as client:
                meta = {"traceparent": str(PARENT), "tracestate": "rojo=1", "baggage": "user=alice"}
                result = await client.call_tool(f"{server}__raw", {"n": 1}, meta=meta)
            towards_client, towards_server = await collector.spans_of(f"mcp:{server}.raw", 2)
    sent = json.loads(text_of(result))["_meta"]
    assert (towards_client.kind, towards_server.kind) == (SERVER, CLIENT)
    trace, parent = f"{PARENT.trace_id:032x}", f"{PARENT.span_id:016x}"
    assert (towards_client.trace, towards_client.parent, towards_client.state) == (trace, parent, "rojo=1")
    assert (towards_server.trace, towards_server.parent, towards_server.state) == (trace, towards_client.id, "rojo=1")
    assert sent["traceparent"] == f"00-{trace}-{towards_server.id}-01"
    assert (sent["tracestate"], sent["baggage"]) == ("rojo=1", "user=alice")
    assert towards_client.start <= towards_server.start <= towards_server.end <= towards_client.end
    common = {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "raw",
        "gen_ai.operation.name": "execute_tool",
        "callboard.server": server,
        "callboard.client": "tests",
    }
    for span in (towards_client, towards_server):
        assert common.items() <= span.attributes.items()
        assert not span.failed
        assert "error.type" not in span.attributes
    assert towards_client.attributes["network.transport"] == "tcp"
    assert towards_client.attributes.get("mcp.protocol.version") == (MODERN if mode == MODERN else None)
    assert towards_server.attributes["network.transport"] == ("tcp" if server == "far" else "pipe")
    assert towards_server.attributes["mcp.protocol.version"] == ("2025-11-25" if server == "old" else MODERN)
    assert collector.resource["service.name"] == "callboard"


async def test_neither_arguments_nor_results_nor_secrets_leave_the_engine(
    callboard_home: Path, collector: Collector
) -> None:
    environment = collector.environment | {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20header-7d1f"}
    async with running(callboard_home, environment) as engine:
        await call(engine, "old", "echo", text=ARGUMENT)
        await call(engine, "old", "fail", text=RESULT)
        async with mcp_client(engine, "old") as client:
            await client.read_resource(f"doc://old/readme?token={IN_URI}")
            await client.get_prompt("greet", {"who": ARGUMENT})
            with pytest.raises(Exception, match="refused"):
                await client.call_tool("refuse", {"text": ARGUMENT})
        failed = (await collector.spans_of("mcp:old.fail", 2))[0]
        refused = await collector.spans_of("mcp:old.refuse", 2)
        read = await collector.spans_of("mcp:old.resources/read", 2)
        got = await collector.spans_of("mcp:old.greet", 2)
        await collector.wait(lambda: collector.value("callboard.calls", gen_ai__prompt__name="greet") == 1)
        events = await call_events(engine, lambda events: sum(event.event != "started" for event in events) == 5)
        counted = calls_counted(await figures(engine))
        log = (engine.paths.logs / "engine.log").read_text()
    assert (failed.failed, failed.attributes["error.type"]) == (True, "tool_error")
    for span in refused:
        assert span.failed
        assert (span.attributes["error.type"], span.attributes["rpc.response.status_code"]) == ("-32050", "-32050")
    assert read[0].attributes["mcp.method.name"] == "resources/read"
    assert (got[0].attributes["gen_ai.prompt.name"], "gen_ai.operation.name" in got[0].attributes) == ("greet", False)
    for where in (b"".join(seen.body for seen in collector.seen), repr(events).encode(), repr(counted).encode()):
        for marker in (ARGUMENT, RESULT, IN_URI, "header-7d1f"):
            assert marker.encode() not in where
    assert {seen.headers["authorization"] for seen in collector.seen} == {"Bearer header-7d1f"}
    assert "header-7d1f" not in log


async def test_a_sampler_of_the_variables_decides(callboard_home: Path, collector: Collector) -> None:
    environment = collector.environment | {"OTEL_TRACES_SAMPLER": "parentbased_always_off"}
    async with running(callboard_home, environment) as engine, mcp_client(engine, "old") as client:
        quiet = json.loads(text_of(await client.call_tool("raw", {})))["_meta"]
        await client.call_tool("raw", {}, meta={"traceparent": str(PARENT)})
        spans = await collector.spans_of("mcp:old.raw", 2)
    assert quiet["traceparent"].endswith("-00")
    assert {span.trace for span in spans} == {f"{PARENT.trace_id:032x}"}


async def test_a_denied_call_is_a_span_too(callboard_home: Path, collector: Collector) -> None:
    async with running(callboard_home, collector.environment, policy={"deny": ["old.echo"]}) as engine:
        async with mcp_client(engine, "old") as client:
            with pytest.raises(Exception, match="may not use"):
                await client.call_tool("echo", {"text": ARGUMENT}, meta={"traceparent": str(PARENT)})
        (span,) = await collector.spans_of("mcp:old.echo", 1)
        events = await call_events(engine, lambda events: len(events) == 2)
    assert (span.kind, span.failed, span.attributes["error.type"]) == (SERVER, True, "policy-denied")
    assert span.parent == f"{PARENT.span_id:016x}"
    assert [(event.event, event.error_type) for event in events] == [("started", ""), ("failed", "policy-denied")]


# figures


async def test_figures_are_exported(callboard_home: Path, collector: Collector) -> None:
    environment = collector.environment | {"OTEL_RESOURCE_ATTRIBUTES": "deployment=test", "OTEL_SERVICE_NAME": "mine"}
    async with running(callboard_home, environment) as engine:
        for _ in range(3):
            await call(engine, "old", "echo", text="x")
        await call(engine, "old", "fail")
        echo = {"callboard__server": "old", "gen_ai__tool__name": "echo", "callboard__client": "callboard"}
        await collector.wait(lambda: collector.value("callboard.calls", callboard__status="failed") == 1)
        assert collector.value("callboard.calls", callboard__status="completed", **echo) == 3
        assert collector.value("callboard.call.errors", gen_ai__tool__name="fail") == 1
        duration = collector.value("mcp.server.operation.duration", **echo)
        assert (duration.count, sum(duration.bucket_counts)) == (3, 3)
        assert 0 < duration.min <= duration.sum / 3 <= duration.max
        await collector.wait(lambda: collector.value("callboard.servers", callboard__state="ready") == 2)
        assert collector.value("callboard.calls.in_flight", callboard__server="old") == 0
        assert collector.value("callboard.engine.memory") > 10_000_000
    assert (collector.resource["service.name"], collector.resource["deployment"]) == ("mine", "test")


async def test_prometheus_reads_the_figures(callboard_home: Path) -> None:
    async with running(callboard_home, QUIET) as engine:
        await call(engine, "old", "echo", text="x")
        slow = asyncio.create_task(call(engine, "old", "slow", ms=60_000))
        await engine.wait_for_call("slow")
        families = await figures(engine)
        assert calls_counted(families) == {("old", "echo", "completed"): 1}
        running_now = {one.labels["server"]: one.value for one in families["callboard_calls_in_flight"].samples}
        assert running_now["old"] == 1
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        states = {one.labels["state"]: one.value for one in families["callboard_servers"].samples}
        assert states["ready"] == 2
        assert families["callboard_engine_memory_bytes"].samples[0].value > 10_000_000
        async with httpx2.AsyncClient(trust_env=False) as http:
            for headers in ({}, {"authorization": f"Bearer {await engine.token()}"}):
                answer = await http.get(f"{engine.client.address.url}/api/v1/metrics", headers=headers)
                assert answer.status_code == 401


async def test_names_that_a_client_invents_do_not_make_more_figures(callboard_home: Path) -> None:
    everything = {"allow": ["*"], "ask": []}
    async with (
        running(callboard_home, QUIET, policy=everything) as engine,
        mcp_client(engine, "old", mode=LEGACY) as client,
    ):
        for number in range(MAX_TOOLS // 5):
            with pytest.raises(Exception, match="Unknown tool"):
                await client.call_tool(f'invented-{number}"}}\n', {})
        assert calls_counted(await figures(engine)) == {("old", OTHER, "failed"): MAX_TOOLS // 5}


# events


async def test_every_call_is_told_as_it_begins_and_ends(callboard_home: Path) -> None:
    async with running(callboard_home, QUIET) as engine:
        for number in range(20):
            await call(engine, "old", "echo", text=f"{number}")
        await call(engine, "new", "fail")
        async with mcp_client(engine, "old") as client:
            slow = asyncio.create_task(client.call_tool("slow", {"ms": 600_000}))
            await engine.wait_for_call("slow")
            slow.cancel()
            await asyncio.gather(slow, return_exceptions=True)
        events = await call_events(engine, lambda events: sum(event.event != "started" for event in events) == 22)
        rows = (await engine.client.calls()).calls
    told: dict[int, list[CallEvent]] = {}
    for event in events:
        told.setdefault(event.call, []).append(event)
    assert sorted(told) == [row.id for row in rows]
    for row in rows:
        began, ended = told[row.id]
        identity = (row.server, row.method, row.tool, row.client)
        assert (began.server, began.method, began.tool, began.client) == identity
        assert (ended.server, ended.method, ended.tool, ended.client) == identity
        assert (began.event, began.duration_ms, ended.event, ended.duration_ms) == (
            "started",
            None,
            row.status,
            row.duration_ms,
        )
        assert (began.at, ended.error_type) == (row.started, "tool_error" if row.tool == "fail" else ended.error_type)
    assert [event.error_type for event in events if event.event == "cancelled"] == ["call-cancelled"]


# trouble


async def test_a_collector_that_refuses_is_told_of_and_costs_no_call(
    callboard_home: Path, collector: Collector
) -> None:
    collector.status = 401
    async with running(callboard_home, collector.environment) as engine:
        await call(engine, "old", "echo", text="x")
        found = await notice(engine, "telemetry-failing")
        assert found is not None
        assert "HTTP 401" in found.message
        told = [check for check in await engine.client.doctor() if check.code == "telemetry-failing"]
        assert [(check.name, check.status) for check in told] == [("telemetry", "warn")]
        collector.status = 200
        await call(engine, "old", "echo", text="x")
        await notice(engine, "telemetry-failing", present=False)


async def test_a_collector_that_hangs_holds_up_neither_calls_nor_the_end(
    callboard_home: Path, collector: Collector
) -> None:
    collector.hangs = asyncio.Event()
    async with running(callboard_home, collector.environment) as engine:
        await call(engine, "old", "echo", text="x")
        await collector.wait(lambda: collector.refused > 0)
        for _ in range(50):
            assert (await call(engine, "old", "echo", text="x"))["content"][0]["text"] == "x"
        began = time.monotonic()
        await engine.stop()
        assert time.monotonic() - began < 3 * STOP_SECONDS  # a loaded machine; the engine's own bound is in its log
        assert "stopping took longer" not in (engine.paths.logs / "engine.log").read_text()
    collector.hangs.set()


async def test_a_collector_that_is_not_there(callboard_home: Path) -> None:
    environment = QUIET | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:s3cret@127.0.0.1:1",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    async with running(callboard_home, environment) as engine:
        await call(engine, "old", "echo", text="x")
        found = await notice(engine, "telemetry-failing")
        assert found is not None
        assert (
            found.message == "The collector at http://127.0.0.1:1/v1/traces takes no telemetry: it cannot be reached."
        )
        await engine.stop()
        assert "s3cret" not in (engine.paths.logs / "engine.log").read_text()


async def test_the_last_calls_are_sent_before_the_end(callboard_home: Path, collector: Collector) -> None:
    environment = collector.environment | {"OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_METRIC_EXPORT_INTERVAL": "600000"}
    async with running(callboard_home, environment) as engine:
        await call(engine, "old", "echo", text="x")
        await engine.stop()
    await collector.spans_of("mcp:old.echo", 2)
    assert collector.value("callboard.calls", gen_ai__tool__name="echo") == 1


async def test_the_roster_says_where_to(callboard_home: Path, collector: Collector) -> None:
    environment = {name: text for name, text in collector.environment.items() if "ENDPOINT" not in name}
    telemetry = {"endpoint": collector.url, "headers": {"X-Token": "${secret:collector}"}, "metrics": False}
    async with running(callboard_home, environment, telemetry=telemetry) as engine:
        missing = await notice(engine, "secret-missing")
        assert missing is not None
        assert "collector" in missing.message
        assert "callboard secrets set" in missing.fix
        await engine.client.set_secret("collector", "s3cret-7d1f")
        await notice(engine, "secret-missing", present=False)
        secrets = {one.name: one.used_by for one in (await engine.client.secrets()).secrets}
        assert secrets == {"collector": ["telemetry"]}
        await doctor_says(engine, "Callboard sends")
        await call(engine, "old", "echo", text="x")
        await collector.spans_of("mcp:old.echo", 2)
        assert {seen.headers["x-token"] for seen in collector.seen} == {"s3cret-7d1f"}
        assert {seen.path for seen in collector.seen} == {"/v1/traces"}
        servers = {"old": fixture_entry("old"), "new": fixture_entry("new", "modern")}
        engine.write_roster(servers, telemetry={"enabled": False})
        await doctor_says(engine, "not exported")
        async with mcp_client(engine, "old") as client:
            meta = json.loads(text_of(await client.call_tool("raw", {})))["_meta"]
        assert "traceparent" not in meta
        assert "s3cret-7d1f" not in (engine.paths.logs / "engine.log").read_text()
    assert [span.name for span in collector.spans] == ["mcp:old.echo"] * 2


async def test_another_protocol_is_told_of(callboard_home: Path, collector: Collector) -> None:
    environment = collector.environment | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    async with running(callboard_home, environment) as engine:
        found = await notice(engine, "telemetry-protocol")
        assert found is not None
        assert "grpc" in found.message
        await call(engine, "old", "echo", text="x")


WITHOUT_EXTRA = """
import sys
sys.modules["opentelemetry.sdk"] = None
"""


async def test_a_missing_extra_is_told_of(callboard_home: Path, tmp_path: Path, collector: Collector) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_EXTRA)
    environment = collector.environment | {"PYTHONPATH": str(tmp_path)}
    async with running(callboard_home, environment) as engine:
        found = await notice(engine, "telemetry-missing")
        assert found is not None
        assert "opentelemetry" in found.message
        assert "extra telemetry" in found.fix
        assert "telemetry-missing" in [check.code for check in await engine.client.doctor()]
        await call(engine, "old", "echo", text="x")
        assert "telemetry" in (engine.paths.logs / "engine.log").read_text()
        assert calls_counted(await figures(engine)) == {("old", "echo", "completed"): 1}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_nothing_of_it_is_loaded_unless_it_is_wanted(callboard_home: Path, collector: Collector) -> None:
    async with running(callboard_home, QUIET) as engine:
        await call(engine, "old", "echo", text="x")
        assert "google/_upb" not in Path(f"/proc/{engine.pid}/maps").read_text()
        await engine.stop()
    async with running(callboard_home, collector.environment) as engine:
        assert "google/_upb" in Path(f"/proc/{engine.pid}/maps").read_text()
