"""Numbers and times as a person reads them, in the system's language."""

import re
import time

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale


def first_clause(text: str) -> str:
    """The start of a sentence up to its first dash, semicolon, full stop or line break."""
    clause = re.split("\\s[\N{EN DASH}\N{EM DASH}-]\\s|;\\s|\\.(?:\\s|$)|\n", text.strip(), maxsplit=1)[0]
    return clause.rstrip(" ,")


def relative_time(at: float, now: float | None = None) -> str:
    """How long ago ``at`` (seconds since the epoch) was."""
    tr = QCoreApplication.translate
    seconds = max(0.0, (time.time() if now is None else now) - at)
    if seconds < 5:
        return tr("Formats", "just now")
    if seconds < 60:
        return tr("Formats", "{n} s ago").format(n=int(seconds))
    if seconds < 3600:
        return tr("Formats", "{n} min ago").format(n=int(seconds // 60))
    if seconds < 86400:
        return tr("Formats", "{n} h ago").format(n=int(seconds // 3600))
    return tr("Formats", "{n} d ago").format(n=int(seconds // 86400))


def exact_time(at: float) -> str:
    """Date and time to the second."""
    return QLocale().toString(QDateTime.fromMSecsSinceEpoch(int(at * 1000)), "yyyy-MM-dd HH:mm:ss")


def clock_time(at: float) -> str:
    """Time of day to the second, for rows of one day."""
    return QLocale().toString(QDateTime.fromMSecsSinceEpoch(int(at * 1000)), "HH:mm:ss")


def uptime(seconds: float) -> str:
    """A span in its two largest units: "3 h 12 min"."""
    tr = QCoreApplication.translate
    whole = int(max(0.0, seconds))
    if whole < 60:
        return tr("Formats", "{s} s").format(s=whole)
    if whole < 3600:
        return tr("Formats", "{m} min {s} s").format(m=whole // 60, s=whole % 60)
    if whole < 86400:
        return tr("Formats", "{h} h {m} min").format(h=whole // 3600, m=whole % 3600 // 60)
    return tr("Formats", "{d} d {h} h").format(d=whole // 86400, h=whole % 86400 // 3600)


def duration(ms: float | None) -> str:
    """A call's duration; a dash while it runs."""
    tr = QCoreApplication.translate
    if ms is None:
        return "\N{EN DASH}"
    if ms < 10:
        return tr("Formats", "{n} ms").format(n=QLocale().toString(ms, "f", 1))
    if ms < 1000:
        return tr("Formats", "{n} ms").format(n=round(ms))
    if ms < 60_000:
        return tr("Formats", "{n} s").format(n=QLocale().toString(ms / 1000, "f", 2))
    return uptime(ms / 1000)


def size(count: int) -> str:
    """A number of bytes, in binary units."""
    return QLocale().formattedDataSize(count, 1, QLocale.DataSizeFormat.DataSizeTraditionalFormat)
