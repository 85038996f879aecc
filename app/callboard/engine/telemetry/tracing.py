"""Traces of calls: each is one span of a server towards the client, and one of a client towards the server behind.

That is what the semantic conventions for MCP say of a program in the middle; the trace context comes and goes in the
request's ``_meta`` (SEP-414). What costs little is done here, in the call's path; the rest is the exporter's.
"""

from collections.abc import Callable
from random import getrandbits
from time import perf_counter
from typing import Final

import msgspec

from callboard.core.protocol import MODERN
from callboard.core.trace_context import (
    SAMPLED,
    TRACEPARENT,
    TRACESTATE,
    TraceContext,
    from_headers,
    parse_traceparent,
)
from callboard.engine.calls.record import CallRecord
from callboard.engine.relay.envelope import Envelope, Raw, decode_params, raw_json
from callboard.engine.relay.exchange import Exchange
from callboard.engine.upstream.base import Params, Upstream

NAME: Final = 100  # characters of a name that go into spans
_NO_META: Final = Raw(b"{}")


class CallTrace:
    """The trace of one call: where it hangs, and its two spans. Engine loop only until the call has ended."""

    __slots__ = (
        "client_protocol",
        "outgoing",
        "parent",
        "pipe",
        "record",
        "request_id",
        "sent",
        "server_protocol",
        "span",
        "state",
    )

    def __init__(self, record: CallRecord, parent: TraceContext | None, span: TraceContext, state: str) -> None:
        self.record = record
        self.parent = parent  # the client's span, as it named it
        self.span = span  # ours towards the client
        self.state = state  # the client's tracestate, "" for none
        self.outgoing: TraceContext | None = None  # ours towards the server, once the request was sent
        self.sent = 0.0  # when, on the monotonic clock
        self.pipe = False  # the server is a child process
        self.request_id = ""
        self.client_protocol = ""  # the revision that the client speaks, where it is known
        self.server_protocol = ""

    def carry(self, params: Params, upstream: Upstream) -> Params:
        """``params`` of the request to the server, which is about to be sent, with our span in ``_meta``.

        Of ``_meta`` nothing else is touched; a call that is not recorded goes on as it came.
        """
        if self.parent is not None and not self.span.sampled:
            return params
        self.outgoing = TraceContext(self.span.trace_id, getrandbits(64) or 1, self.span.flags)
        self.sent = perf_counter()
        self.pipe = upstream.pid is not None
        self.server_protocol = upstream.info.protocol
        meta = decode_params(params.get("_meta", _NO_META))
        meta[TRACEPARENT] = Raw(b'"%b"' % str(self.outgoing).encode())
        if self.parent is None:
            meta.pop(TRACESTATE, None)  # of no trace, or of one that cannot be read
        return params | {"_meta": raw_json(meta)}


class Tracing:
    """Begins the traces of calls. Engine loop only."""

    def __init__(self, sample: Callable[[TraceContext | None, int, CallRecord], bool]) -> None:
        """``sample`` decides whether a call is recorded: its parent, the trace's id, the call."""
        self._sample = sample

    def begin(self, exchange: Exchange, record: CallRecord, params: Params) -> None:
        """A call with these parameters begins: give its record a trace."""
        parent, state = _trace_of(params)
        trace_id = parent.trace_id if parent is not None else getrandbits(128) or 1
        flags = parent.flags & ~SAMPLED if parent is not None else 0
        if self._sample(parent, trace_id, record):
            flags |= SAMPLED
        trace = CallTrace(record, parent, TraceContext(trace_id, getrandbits(64) or 1, flags), state)
        trace.client_protocol = MODERN if exchange.modern else ""
        trace.request_id = exchange.request_id[:64].decode("utf-8", "replace").strip('"')
        record.trace = trace


def span_name(record: CallRecord) -> str:
    """``mcp:server.tool``; a resource's URI may be anything, and so stands in no name."""
    return f"mcp:{record.server}.{record.method if record.method == 'resources/read' else record.tool[:NAME]}"


def with_trace_headers(envelope: Envelope, headers: dict[bytes, bytes]) -> Envelope:
    """A request with the trace context of its HTTP headers in ``_meta``, which counts more where it has its own."""
    found = from_headers(headers)
    if not found:
        return envelope
    try:
        params = decode_params(envelope.params)
        meta = decode_params(params.get("_meta", _NO_META))
    except msgspec.DecodeError:
        return envelope  # refused where it is looked at
    if TRACEPARENT in meta:
        found = {name: value for name, value in found.items() if name not in (TRACEPARENT, TRACESTATE)}
    added = {name: raw_json(value) for name, value in found.items() if name not in meta}
    if not added:
        return envelope
    return msgspec.structs.replace(envelope, params=raw_json(params | {"_meta": raw_json(meta | added)}))


class _Trace(msgspec.Struct):
    """What ``_meta`` says of the trace."""

    traceparent: str = ""
    tracestate: str = ""


_trace = msgspec.json.Decoder(_Trace)


def _trace_of(params: Params) -> tuple[TraceContext | None, str]:
    meta = params.get("_meta")
    if meta is None:
        return None, ""
    try:
        found = _trace.decode(meta)
    except msgspec.DecodeError:
        return None, ""
    parent = parse_traceparent(found.traceparent) if found.traceparent else None
    return parent, found.tracestate if parent is not None else ""
