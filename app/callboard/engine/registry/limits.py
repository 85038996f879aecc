"""Bounds of what is fetched from the network."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """``total`` seconds for all of it, redirects included, and the most ``size`` bytes of the answer."""

    total: float
    size: int
