"""All figures of one moment, as both ways out (Prometheus, OTLP) tell them."""

from collections.abc import Mapping
from dataclasses import dataclass

from callboard.engine.telemetry.meter import Key, Series


@dataclass(frozen=True)
class Snapshot:
    """``started`` and ``at``: seconds since the epoch. ``servers``: how many are in each state. ``memory`` in bytes."""

    started: float
    at: float
    series: Mapping[Key, Series]
    in_flight: Mapping[str, int]
    servers: Mapping[str, int]
    memory: int
