"""An OTLP collector for tests, on loopback: takes protobuf over HTTP and keeps the spans and figures in it."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.site import Said, Seen, Site

SECONDS = 60.0
SERVER, CLIENT = 2, 3  # kinds of spans
ERROR = 2


@dataclass(frozen=True)
class Span:
    """One span; ids in hexadecimal, ``parent`` empty for the first of a trace, times in nanoseconds."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    state: str
    start: int
    end: int
    failed: bool
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One number of a metric, or the distribution of many."""

    attributes: dict[str, Any]
    value: Any


class Collector(Site):
    """Use as an async context manager. ``status`` is what it answers; while ``hangs`` is set, it does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.status = 200
        self.hangs: asyncio.Event | None = None
        self.spans: list[Span] = []
        self.metrics: dict[str, list[Point]] = {}
        self.resource: dict[str, Any] = {}
        self.refused = 0
        self._news = asyncio.Event()

    @property
    def environment(self) -> dict[str, str]:
        """What makes a program send everything here, soon."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_METRIC_EXPORT_INTERVAL": "200",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        }

    async def answer(self, seen: Seen) -> Said:
        """Take what is sent."""
        if self.hangs is not None:
            self.refused += 1
            self._tell()
            await self.hangs.wait()
        if self.status != 200:
            self.refused += 1
            self._tell()
            return Said(self.status)
        body = gzip.decompress(seen.body) if seen.headers.get("content-encoding") == "gzip" else seen.body
        assert seen.headers["content-type"] == "application/x-protobuf"
        if seen.path == "/v1/traces":
            self._take_spans(ExportTraceServiceRequest.FromString(body))
        else:
            assert seen.path == "/v1/metrics"
            self._take_metrics(ExportMetricsServiceRequest.FromString(body))
        self._tell()
        return Said(200, b"", {"content-type": "application/x-protobuf"})

    async def wait(self, condition: Any) -> None:
        """Return once ``condition()`` is true."""
        async with asyncio.timeout(SECONDS):
            while not condition():
                news = self._news
                await news.wait()

    async def spans_of(self, name: str, count: int) -> list[Span]:
        """The spans of a name, once there are so many; those of servers first."""
        await self.wait(lambda: sum(span.name == name for span in self.spans) >= count)
        found = [span for span in self.spans if span.name == name]
        assert len(found) == count
        return sorted(found, key=lambda span: (span.kind, span.start))

    def value(self, metric: str, **attributes: str) -> Any:
        """The newest value of a metric whose attributes (dots written as two underscores) are these among others."""
        wanted = {name.replace("__", "."): text for name, text in attributes.items()}
        for point in self.metrics.get(metric, []):
            if wanted.items() <= point.attributes.items():
                return point.value
        return None

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _take_spans(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            self.resource = _attributes(resource.resource)
            for scope in resource.scope_spans:
                self.spans += [
                    Span(
                        span.name,
                        span.kind,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        span.trace_state,
                        span.start_time_unix_nano,
                        span.end_time_unix_nano,
                        span.status.code == ERROR,
                        _attributes(span),
                    )
                    for span in scope.spans
                ]

    def _take_metrics(self, request: ExportMetricsServiceRequest) -> None:
        for resource in request.resource_metrics:
            self.resource = _attributes(resource.resource)
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points = getattr(metric, metric.WhichOneof("data")).data_points
                    self.metrics[metric.name] = [Point(_attributes(point), _value(point)) for point in points]


def _value(point: Any) -> Any:
    return point if hasattr(point, "bucket_counts") else point.as_int


def _attributes(holder: Message) -> dict[str, Any]:
    found: Any = holder
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in found.attributes}
