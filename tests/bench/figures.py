"""What a benchmark returns, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HEADERS = ("FIGURE", "VALUE", "REFERENCE", "RATIO", "LIMIT")


class Unavailable(Exception):
    """Why a benchmark cannot be run here."""


@dataclass(frozen=True)
class Figure:
    """One measured value. ``reference``: the same at something simpler; ``limit``: what it must not exceed."""

    what: str
    value: float
    unit: str
    reference: float | None = None
    limit: float | None = None

    @property
    def over(self) -> bool:
        """Whether it exceeds its limit."""
        return self.limit is not None and self.value > self.limit

    def row(self) -> tuple[str, ...]:
        """The figure as a line of the table."""
        ratio = f"{self.value / self.reference:.2f}" if self.reference else ""
        reference = "" if self.reference is None else _number(self.reference)
        limit = "" if self.limit is None else f"{_number(self.limit)}{'  OVER' if self.over else ''}"
        return self.what, f"{_number(self.value)} {self.unit}", reference, ratio, limit


def table(figures: Iterable[Figure]) -> str:
    """An aligned table."""
    rows = [HEADERS, *(figure.row() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
    lines = []
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:4], widths[1:4], strict=True)),
        ]
        lines.append("  ".join([*cells, row[4]]).rstrip())
    return "\n".join(lines)


def _number(value: float) -> str:
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
