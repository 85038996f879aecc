"""Calls that have ended as the SDK's spans, with the attributes that the semantic conventions for MCP name."""

from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState
from opentelemetry.util.types import AttributeValue

from callboard import __version__
from callboard.core.trace_context import TraceContext
from callboard.engine.calls.record import CallRecord
from callboard.engine.telemetry.tracing import NAME, CallTrace, span_name

SCOPE: Final = InstrumentationScope("callboard", __version__)
TARGET: Final = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}  # none for a resource's URI
_OK: Final = Status(StatusCode.UNSET)
_ERROR: Final = Status(StatusCode.ERROR)  # without the message, which may say something of arguments or results


def spans_of(trace: CallTrace, resource: Resource) -> list[ReadableSpan]:
    """The span towards the client and, if the call was sent on, the one towards the server.

    They are made as a whole: the SDK's own way costs eight times as much for each call.
    """
    record = trace.record
    name, end = span_name(record), record.started + (record.duration_ms or 0.0) / 1e3
    own = span_context(trace.span, trace.state)
    parent = span_context(trace.parent, trace.state, remote=True) if trace.parent is not None else None
    shared = _attributes(record)
    status = _ERROR if record.error_type else _OK

    def span(
        kind: SpanKind, context: SpanContext, parent: SpanContext | None, start: float, more: dict[str, AttributeValue]
    ) -> ReadableSpan:
        return ReadableSpan(
            name,
            context,
            parent,
            resource,
            {**shared, **more},
            kind=kind,
            status=status,
            start_time=int(start * 1e9),
            end_time=int(end * 1e9),
            instrumentation_scope=SCOPE,
        )

    more = {"jsonrpc.request.id": trace.request_id, **_transport(trace.client_protocol, pipe=False)}
    spans = [span(SpanKind.SERVER, own, parent, record.started, more)]
    if trace.outgoing is not None:
        context = span_context(trace.outgoing, trace.state)
        sent = record.started + trace.sent - record.begun
        spans.append(span(SpanKind.CLIENT, context, own, sent, _transport(trace.server_protocol, pipe=trace.pipe)))
    return spans


def span_context(span: TraceContext, state: str, *, remote: bool = False) -> SpanContext:
    """A span's place in the SDK's form; ``state`` is the trace's tracestate."""
    states = TraceState.from_header([state]) if state else None
    return SpanContext(span.trace_id, span.span_id, remote, TraceFlags(span.flags), states)


def _attributes(record: CallRecord) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "mcp.method.name": record.method,
        "callboard.server": record.server,
        "callboard.client": record.client[:NAME],
    }
    if record.method in TARGET:
        attributes[TARGET[record.method]] = record.tool[:NAME]
    if record.method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    if record.error_type:
        attributes["error.type"] = record.error_type
        if record.error_type.lstrip("-").isdigit():
            attributes["rpc.response.status_code"] = record.error_type
    return attributes


def _transport(protocol: str, *, pipe: bool) -> dict[str, AttributeValue]:
    revision: dict[str, AttributeValue] = {"mcp.protocol.version": protocol} if protocol else {}
    if pipe:
        return revision | {"network.transport": "pipe"}
    return revision | {"network.transport": "tcp", "network.protocol.name": "http"}
