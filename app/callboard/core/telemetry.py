"""Where telemetry goes, as the roster's ``telemetry`` section and the usual ``OTEL_`` variables say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from callboard.core.errors import CallboardError
from callboard.core.references import Reference, split_references
from callboard.core.resolve import header_value
from callboard.core.roster import Telemetry

DEFAULT_ENDPOINT: Final = "http://localhost:4318"
PROTOCOL: Final = "http/protobuf"
Signal = Literal["traces", "metrics"]


@dataclass(frozen=True)
class ExportPlan:
    """Addresses that take OTLP over HTTP, "" for a signal that is not wanted.

    ``headers`` are sent beside those of the variables. ``interval``: seconds between two exports of metrics. Ended
    calls wait up to ``delay`` seconds for a ``batch`` to be whole; at most ``queue`` of them wait for the collector.
    """

    traces: str
    metrics: str
    headers: tuple[tuple[str, str], ...] = ()
    interval: float = 60.0
    delay: float = 5.0
    batch: int = 512
    queue: int = 2048


def plan_export(settings: Telemetry, env: Mapping[str, str], fill: Callable[[str], str]) -> ExportPlan | None:
    """What is to be exported, None for nothing. The roster counts more than the variables.

    ``fill`` replaces references. Raises what it raises; ``telemetry-protocol`` where the variables ask for a protocol
    that is not spoken here; ``entry-invalid`` for a value that no header can carry.
    """
    if settings.enabled is False:
        return None
    asked = settings.enabled is True or bool(settings.endpoint)
    if not asked and _is_true(env.get("OTEL_SDK_DISABLED", "")):
        return None
    endpoint = fill(settings.endpoint).rstrip("/")
    addresses: dict[Signal, str] = {"traces": "", "metrics": ""}
    wanted: dict[Signal, bool] = {"traces": settings.traces, "metrics": settings.metrics}
    for signal in addresses:
        if wanted[signal] and (asked or _asked_by_environment(signal, env)) and not _is_other_exporter(signal, env):
            addresses[signal] = f"{endpoint}/v1/{signal}" if endpoint else _address(signal, env)
    if not any(addresses.values()):
        return None
    headers = tuple((name, header_value(name, fill(value))) for name, value in settings.headers.items())
    return ExportPlan(
        **addresses,
        headers=headers,
        interval=settings.interval or _number(env, "OTEL_METRIC_EXPORT_INTERVAL", 60_000) / 1e3,
        delay=_number(env, "OTEL_BSP_SCHEDULE_DELAY", 5_000) / 1e3,
        batch=_number(env, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
        queue=_number(env, "OTEL_BSP_MAX_QUEUE_SIZE", 2048),
    )


def secrets_of(settings: Telemetry) -> frozenset[str]:
    """The secrets that the section refers to."""
    texts = (settings.endpoint, *settings.headers.values())
    parts = [part for text in texts for part in split_references(text)]
    return frozenset(part.name for part in parts if isinstance(part, Reference) and part.kind == "secret")


def secret_headers(env: Mapping[str, str]) -> list[str]:
    """The values that the variables put into headers: most are credentials."""
    names = [f"OTEL_EXPORTER_OTLP_{part}HEADERS" for part in ("", "TRACES_", "METRICS_")]
    pairs = [pair for name in names for pair in env.get(name, "").split(",")]
    return [value for pair in pairs if (value := pair.partition("=")[2].strip())]


def _asked_by_environment(signal: Signal, env: Mapping[str, str]) -> bool:
    own = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"
    exporter = env.get(f"OTEL_{signal.upper()}_EXPORTER", "")
    return bool(env.get("OTEL_EXPORTER_OTLP_ENDPOINT") or env.get(own)) or "otlp" in _words(exporter)


def _is_other_exporter(signal: Signal, env: Mapping[str, str]) -> bool:
    exporters = _words(env.get(f"OTEL_{signal.upper()}_EXPORTER", ""))
    return bool(exporters) and "otlp" not in exporters


def _address(signal: Signal, env: Mapping[str, str]) -> str:
    for part in (f"{signal.upper()}_", ""):
        protocol = env.get(f"OTEL_EXPORTER_OTLP_{part}PROTOCOL", "")
        if protocol:
            if protocol != PROTOCOL:
                raise CallboardError(
                    "telemetry-protocol",
                    f"The environment asks for OTLP over {protocol[:40]}, which is not spoken here.",
                )
            break
    if own := env.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"):
        return own
    return f"{env.get('OTEL_EXPORTER_OTLP_ENDPOINT', DEFAULT_ENDPOINT).rstrip('/')}/v1/{signal}"


def _number(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name, "").strip()
    number = int(text) if text.isdecimal() and len(text) < 10 else 0
    return number or default


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.lower().split(",") if word.strip()]


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"
