"""The figures as Prometheus' text format 0.0.4. Imported when somebody asks for them the first time."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from callboard.engine.telemetry.meter import BOUNDS, STATUSES, Series
from callboard.engine.telemetry.snapshot import Snapshot


def as_text(snapshot: Snapshot) -> str:
    """The whole page. Takes some milliseconds for many tools: not on the loop."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(snapshot))
    return generate_latest(registry).decode()


class _Figures(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def describe(self) -> list[Metric]:
        """Nothing: the figures are made once, in :meth:`collect`."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        snapshot = self._snapshot
        calls = CounterMetricFamily(
            "callboard_calls", "Calls that have ended.", labels=("server", "method", "tool", "client", "status")
        )
        durations = HistogramMetricFamily(
            "callboard_call_duration_seconds", "How long calls took.", labels=("server", "method", "tool")
        )
        by_tool: dict[tuple[str, str, str], Series] = {}
        for (server, method, tool, client), series in snapshot.series.items():
            for status in STATUSES:
                if series.counts[status]:
                    calls.add_metric((server, method, tool, client, status), series.counts[status])
            by_tool.setdefault((server, method, tool), Series()).merge(series)
        for labels, series in by_tool.items():
            durations.add_metric(labels, _buckets(series.buckets), sum_value=series.seconds)
        yield calls
        yield durations
        running = GaugeMetricFamily("callboard_calls_in_flight", "Calls that have not ended.", labels=("server",))
        for server, number in snapshot.in_flight.items():
            running.add_metric((server,), number)
        yield running
        servers = GaugeMetricFamily("callboard_servers", "Servers in each state.", labels=("state",))
        for state, number in snapshot.servers.items():
            servers.add_metric((state,), number)
        yield servers
        yield GaugeMetricFamily("callboard_engine_memory_bytes", "Resident memory of the engine.", snapshot.memory)
        yield GaugeMetricFamily(
            "callboard_engine_start_time_seconds", "When the engine started.", value=snapshot.started
        )


def _buckets(counts: list[int]) -> list[tuple[str, float]]:
    total, buckets = 0, []
    for bound, count in zip((*map(repr, BOUNDS), "+Inf"), counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets
