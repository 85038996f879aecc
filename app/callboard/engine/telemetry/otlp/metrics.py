"""The figures of one moment in the SDK's form. Counters are cumulative."""

from collections.abc import Mapping

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource

from callboard.engine.telemetry.meter import BOUNDS, STATUSES, Key, Series
from callboard.engine.telemetry.otlp.spans import SCOPE, TARGET
from callboard.engine.telemetry.snapshot import Snapshot


def as_metrics(snapshot: Snapshot, resource: Resource) -> MetricsData:
    """Everything that there is to send."""
    start, now = int(snapshot.started * 1e9), int(snapshot.at * 1e9)

    def number(value: int, attributes: Mapping[str, str]) -> NumberDataPoint:
        return NumberDataPoint(attributes, start, now, value)

    calls, errors, durations = [], [], []
    for key, series in snapshot.series.items():
        attributes = _labels(key)
        for status in STATUSES:
            if series.counts[status]:
                calls.append(number(series.counts[status], {**attributes, "callboard.status": status}))
        if series.counts["failed"]:
            errors.append(number(series.counts["failed"], attributes))
        durations.append(_duration(series, attributes, start, now))
    running = [number(count, {"callboard.server": server}) for server, count in snapshot.in_flight.items()]
    states = [number(count, {"callboard.state": state}) for state, count in snapshot.servers.items()]
    memory = [number(snapshot.memory, {})]
    metrics = [
        _sum("callboard.calls", "Calls that have ended.", "{call}", calls),
        _sum("callboard.call.errors", "Calls that have failed.", "{call}", errors),
        Metric(
            "mcp.server.operation.duration",
            "How long calls took.",
            "s",
            Histogram(durations, AggregationTemporality.CUMULATIVE),
        ),
        _sum("callboard.calls.in_flight", "Calls that have not ended.", "{call}", running, grows=False),
        _sum("callboard.servers", "Servers in each state.", "{server}", states, grows=False),
        Metric("callboard.engine.memory", "Resident memory of the engine.", "By", Gauge(memory)),
    ]
    metrics = [metric for metric in metrics if metric.data.data_points]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(SCOPE, metrics, "")], "")])


def _labels(key: Key) -> dict[str, str]:
    server, method, tool, client = key
    labels = {"callboard.server": server, "mcp.method.name": method, "callboard.client": client}
    return labels | {TARGET[method]: tool} if method in TARGET else labels


def _sum(name: str, text: str, unit: str, points: list[NumberDataPoint], *, grows: bool = True) -> Metric:
    return Metric(name, text, unit, Sum(points, AggregationTemporality.CUMULATIVE, grows))


def _duration(series: Series, attributes: Mapping[str, str], start: int, now: int) -> HistogramDataPoint:
    return HistogramDataPoint(
        attributes,
        start,
        now,
        count=sum(series.buckets),
        sum=series.seconds,
        bucket_counts=series.buckets,
        explicit_bounds=BOUNDS,
        min=series.shortest,
        max=series.longest,
    )
