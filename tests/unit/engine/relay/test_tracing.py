"""The trace context of calls: from the client's request, through the gateway, into what the server gets."""

import json
from types import SimpleNamespace
from typing import Any

import httpx2
import msgspec
import pytest

from callboard.core.protocol import MODERN
from callboard.core.trace_context import TraceContext, parse_traceparent
from callboard.engine.calls.record import CallRecord
from callboard.engine.relay.envelope import Envelope, Raw, decode_params
from callboard.engine.telemetry.tracing import CallTrace, Tracing, with_trace_headers
from tests.support.gateway import TOKENS, LegacyClient, ModernClient, TestGateway, text_of

Client = LegacyClient | ModernClient
PARENT = TraceContext(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, 1)
QUIET = PARENT._replace(flags=0)
TEXT = str(PARENT)


class Watcher:
    """Keeps the traces of the calls that ended."""

    def __init__(self) -> None:
        self.ends: list[CallTrace] = []

    def began(self, record: CallRecord) -> None:
        """Nothing is wanted of it yet."""

    def ended(self, record: CallRecord) -> None:
        assert record.trace is not None
        self.ends.append(record.trace)


@pytest.fixture
def watcher(front: TestGateway) -> Watcher:
    """Calls through the gateway are traced, all that nobody decided against."""
    watcher = Watcher()
    front.call_log._watchers = (watcher,)
    front.relay.tracing = Tracing(lambda parent, trace_id, record: parent is None or parent.sampled)
    return watcher


async def raw(client: Client, headers: dict[str, str] | None = None, **meta: Any) -> dict[str, Any]:
    """What the server gets of a call with this metadata and these HTTP headers."""
    params = {"name": "raw", "arguments": {"n": 1}}
    if isinstance(client, LegacyClient):
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {**params, "_meta": meta}}
        answer = await client.exchange(message, headers)
    else:
        message = client.message("tools/call", params, number=7, **meta)
        answer = await client.exchange(message, {**client.headers_for(message), **(headers or {})})
    found: dict[str, Any] = json.loads(text_of(answer))
    assert (found["name"], found["arguments"]) == ("raw", {"n": 1})
    return found["_meta"]


async def test_the_servers_span_hangs_on_ours_and_ours_on_the_clients(
    front: TestGateway, client: Client, watcher: Watcher
) -> None:
    meta = await raw(client, traceparent=TEXT, tracestate="rojo=1", baggage="user=alice", **{"own/key": [2**70]})
    (trace,) = watcher.ends
    got = parse_traceparent(meta["traceparent"])
    assert got is not None
    assert got == trace.outgoing
    assert (trace.parent, trace.span.trace_id, got.trace_id) == (PARENT, PARENT.trace_id, PARENT.trace_id)
    assert len({PARENT.span_id, trace.span.span_id, got.span_id}) == 3
    assert got.sampled
    assert (meta["tracestate"], meta["baggage"], meta["own/key"]) == ("rojo=1", "user=alice", [2**70])
    assert (trace.state, trace.request_id) == ("rojo=1", "7")
    assert trace.client_protocol == (MODERN if isinstance(client, ModernClient) else "")
    upstream = front.servers.ready["one"]
    assert (trace.server_protocol, trace.pipe) == (upstream.info.protocol, upstream.pid is not None)
    assert trace.record.begun <= trace.sent <= trace.record.begun + (trace.record.duration_ms or 0) / 1e3


async def test_headers_count_where_the_metadata_says_nothing(client: Client, watcher: Watcher) -> None:
    headers = {"traceparent": TEXT, "tracestate": "rojo=1", "baggage": "user=alice"}
    meta = await raw(client, headers)
    assert watcher.ends[0].parent == PARENT
    assert (meta["tracestate"], meta["baggage"]) == ("rojo=1", "user=alice")
    other = PARENT._replace(span_id=5)
    meta = await raw(client, headers, traceparent=str(other))
    assert watcher.ends[1].parent == other
    assert "tracestate" not in meta  # of the header's trace, not of this one
    assert meta["baggage"] == "user=alice"


async def test_a_call_that_hangs_on_nothing_begins_a_trace(client: Client, watcher: Watcher) -> None:
    for number, wrong in enumerate(({}, {"traceparent": "00-1", "tracestate": "a=1"}, {"traceparent": 7})):
        meta = await raw(client, {"traceparent": "00-2"}, **wrong)
        trace = watcher.ends[number]
        assert trace.parent is None
        assert parse_traceparent(meta["traceparent"]) == trace.outgoing
        assert "tracestate" not in meta


async def test_a_call_that_is_not_recorded_passes_untouched(client: Client, watcher: Watcher) -> None:
    meta = await raw(client, traceparent=str(QUIET), tracestate="a=1")
    assert (meta["traceparent"], meta["tracestate"]) == (str(QUIET), "a=1")
    assert not watcher.ends[0].span.sampled


async def test_one_that_we_decide_against_says_so(front: TestGateway, client: Client, watcher: Watcher) -> None:
    front.relay.tracing = Tracing(lambda parent, trace_id, record: False)
    got = parse_traceparent((await raw(client))["traceparent"])
    assert got is not None
    assert not got.sampled


async def test_nothing_is_added_while_nothing_is_traced(front: TestGateway, client: Client) -> None:
    meta = await raw(client, {"traceparent": TEXT, "baggage": "a=1"}, tracestate="kept")
    assert "traceparent" not in meta
    assert "baggage" not in meta
    assert meta["tracestate"] == "kept"


async def test_failures_have_their_kind(front: TestGateway, client: Client, watcher: Watcher) -> None:
    await client.call("fail", {"text": "s3cret"})
    await client.call("refuse")
    await client.call("echo")
    assert [trace.record.error_type for trace in watcher.ends] == ["tool_error", "-32050", ""]


async def test_plain_calls_are_traced_too(front: TestGateway, watcher: Watcher) -> None:
    token = next(iter(TOKENS))
    async with httpx2.AsyncClient(trust_env=False) as http:
        headers = {"authorization": f"Bearer {token}", "traceparent": TEXT, "baggage": "a=1"}
        answer = await http.post(f"{front.url}/servers/one/mcp/tools/raw", json={}, headers=headers)
    meta = answer.json()["result"]["_meta"]
    got = parse_traceparent(meta["traceparent"])
    assert got is not None
    assert got.trace_id == PARENT.trace_id
    assert watcher.ends[0].parent == PARENT
    assert meta["baggage"] == "a=1"


# pieces

ODD = b'{"z" : 1.10e+2, "traceparent":"00-x", "a":{ "n":123456789012345678901234567890 , "n":2}, "\\u00e9":"\\u2028"}'


def test_other_members_keep_every_byte() -> None:
    trace = CallTrace(CallRecord(1, "c", "s", "tools/call", "t"), None, PARENT, "")
    upstream: Any = SimpleNamespace(pid=1, info=SimpleNamespace(protocol="2025-11-25"))
    params = {"name": Raw(b'"x"'), "arguments": Raw(b'{ "a" : 1.0 }'), "_meta": Raw(ODD)}
    sent = trace.carry(params, upstream)
    assert {key: bytes(value) for key, value in sent.items() if key != "_meta"} == {
        "name": b'"x"',
        "arguments": b'{ "a" : 1.0 }',
    }
    before, after = decode_params(ODD), decode_params(bytes(sent["_meta"]))
    assert list(before) == list(after)
    for name in ("z", "a", "\u00e9"):
        assert bytes(before[name]) == bytes(after[name])
    assert msgspec.json.decode(after["traceparent"]) == str(trace.outgoing)
    assert params["_meta"] == Raw(ODD)  # the client's own request is what it was


@pytest.mark.parametrize(
    ("params", "headers"),
    [
        (b"", {}),
        (b"[1]", {b"traceparent": TEXT.encode()}),
        (b'{"_meta":[]}', {b"traceparent": TEXT.encode()}),
        (b'{"_meta":{}}', {b"traceparent": b"\xff", b"tracestate": b"a=1"}),
        (b'{"_meta":{"baggage":"b=2"}}', {b"baggage": b"a=1"}),
    ],
)
def test_requests_that_headers_add_nothing_to(params: bytes, headers: dict[bytes, bytes]) -> None:
    envelope = Envelope(id=Raw(b"1"), method="tools/call", params=Raw(params))
    assert with_trace_headers(envelope, headers) is envelope


def test_headers_are_put_beside_what_is_there() -> None:
    envelope = Envelope(id=Raw(b"1"), method="tools/call", params=Raw(b'{"name": "x" ,"_meta":{"k":1.0}}'))
    got = with_trace_headers(envelope, {b"traceparent": TEXT.encode()})
    assert bytes(got.params) == b'{"name":"x","_meta":{"k":1.0,"traceparent":"' + TEXT.encode() + b'"}}'
