"""Sends spans and figures to a collector, in a thread of its own: no call waits for it.

The SDK's exporters encode and send, try again, and give up.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider, sampling
from opentelemetry.trace import NonRecordingSpan, SpanKind, set_span_in_context

from callboard import __version__
from callboard.core.telemetry import ExportPlan
from callboard.core.trace_context import TraceContext
from callboard.engine.calls.record import CallRecord
from callboard.engine.telemetry.otlp.metrics import as_metrics
from callboard.engine.telemetry.otlp.spans import span_context, spans_of
from callboard.engine.telemetry.snapshot import Snapshot
from callboard.engine.telemetry.tracing import CallTrace, span_name

log = logging.getLogger(__name__)

NEVER: Final = threading.TIMEOUT_MAX
OnHealth = Callable[[str, str], None]


class OtlpExport:
    """One exporter. Made and ended in any thread; :meth:`sample` and :meth:`ended` are called on the loop."""

    def __init__(self, plan: ExportPlan, snapshot: Callable[[], Snapshot | None], on_health: OnHealth) -> None:
        """``snapshot`` and ``on_health`` are called in the exporter's thread; the latter hears an address, and why it
        takes nothing: a clause, "" once it does.
        """
        # what the SDK says of a failed export is in its own words, with addresses and headers: on_health tells it
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        defaults = {"service.name": "callboard", "service.version": __version__, "service.instance.id": str(uuid4())}
        self._resource = Resource.create(defaults).merge(OTELResourceDetector().detect())
        self._sampler = TracerProvider(resource=self._resource, shutdown_on_exit=False).sampler
        self._plan = plan
        self._snapshot = snapshot
        self._calls: deque[CallTrace] = deque(maxlen=plan.queue)
        self._lost = 0
        self._news = threading.Event()  # a call, or a whole batch of them, or the end
        self._closing = False
        headers = dict(plan.headers)
        self._spans: OTLPSpanExporter | None = None
        self._figures: OTLPMetricExporter | None = None
        if plan.traces:
            session = _Session(plan.traces, on_health)
            self._spans = OTLPSpanExporter(endpoint=plan.traces, headers=headers, session=session)
        if plan.metrics:
            session = _Session(plan.metrics, on_health)
            self._figures = OTLPMetricExporter(endpoint=plan.metrics, headers=headers, session=session)
        self._thread = threading.Thread(target=self._run, name="callboard-telemetry", daemon=True)
        self._thread.start()

    @property
    def traces(self) -> bool:
        """Whether calls are to be traced."""
        return self._spans is not None

    def sample(self, parent: TraceContext | None, trace_id: int, record: CallRecord) -> bool:
        """Whether a call is recorded, as ``OTEL_TRACES_SAMPLER`` says; what the parent decided, if it says nothing."""
        if self._sampler is sampling.DEFAULT_ON:
            return parent is None or parent.sampled
        context = set_span_in_context(NonRecordingSpan(span_context(parent, "", remote=True))) if parent else None
        decision = self._sampler.should_sample(context, trace_id, span_name(record), SpanKind.SERVER).decision
        return decision is sampling.Decision.RECORD_AND_SAMPLE

    def ended(self, trace: CallTrace) -> None:
        """A call has ended; if the collector does not keep up, the oldest is lost."""
        calls = self._calls
        if len(calls) == self._plan.queue:
            self._lost += 1
        calls.append(trace)
        waiting = len(calls)
        if waiting == 1 or waiting == self._plan.batch:
            self._news.set()

    def shutdown(self, seconds: float) -> None:
        """Send what is left, and end. A collector that takes longer than that is not waited for."""
        self._closing = True
        self._news.set()
        self._thread.join(seconds)
        for exporter in (self._spans, self._figures):
            if exporter is not None:
                exporter.shutdown()

    # in the thread

    def _run(self) -> None:
        due = self._next_figures()
        while not self._closing:
            self._news.wait(min(max(0.0, due - time.monotonic()), NEVER))
            self._news.clear()
            if self._calls and len(self._calls) < self._plan.batch and not self._closing:
                self._news.wait(self._plan.delay)  # for more calls, up to a whole batch
            if not self._closing:
                self._send_calls()
            if time.monotonic() >= due and not self._closing:
                self._send_figures()
                due = self._next_figures()
        self._send_calls()
        self._send_figures()

    def _next_figures(self) -> float:
        return time.monotonic() + self._plan.interval if self._figures is not None else NEVER

    def _send_calls(self) -> None:
        for _ in range(0, len(self._calls), self._plan.batch):
            batch = [self._calls.popleft() for _ in range(min(len(self._calls), self._plan.batch))]
            try:
                if self._spans is not None:
                    self._spans.export([span for trace in batch for span in spans_of(trace, self._resource)])
            except Exception:
                log.exception("the spans of %d calls could not be exported", len(batch))
        if self._calls:
            self._news.set()  # for those that came meanwhile
        lost, self._lost = self._lost, 0
        if lost:
            log.warning("%d calls came faster than they were exported: their spans are lost", lost)

    def _send_figures(self) -> None:
        snapshot = self._snapshot() if self._figures is not None else None
        if snapshot is None or self._figures is None:
            return
        try:
            self._figures.export(as_metrics(snapshot, self._resource))
        except Exception:
            log.exception("the figures could not be exported")


class _Session(requests.Session):
    """Tells how the collector takes what is sent to it."""

    def __init__(self, address: str, on_health: OnHealth) -> None:
        super().__init__()
        self._address = address
        self._on_health = on_health

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """See requests."""
        try:
            answer = super().request(*args, **kwargs)
        except requests.RequestException as error:
            self._on_health(self._address, _why(error))
            raise
        self._on_health(self._address, "" if answer.ok else f"it answers with HTTP {answer.status_code}")
        return answer


def _why(error: requests.RequestException) -> str:
    if isinstance(error, requests.Timeout):
        return "it does not answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "the secure connection to it failed"
    if isinstance(error, requests.ConnectionError):
        return "it cannot be reached"
    return "the request could not be made"
