"""How all servers together are doing: one line, one severity. For tray, window title and status bar."""

from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from callboard.api.schema import ServerView
from callboard.core.health import Severity, State

RUNNING = frozenset({State.READY, State.DEGRADED})


@dataclass(frozen=True)
class Summary:
    """Counts of servers by what a person wants to know."""

    running: int = 0
    starting: int = 0
    stopping: int = 0
    attention: int = 0
    failed: int = 0
    total: int = 0

    @property
    def severity(self) -> Severity:
        """The worst that there is."""
        if self.failed:
            return Severity.FAILED
        if self.attention:
            return Severity.ATTENTION
        if self.starting or self.stopping:
            return Severity.BUSY
        return Severity.FINE if self.running else Severity.OFF

    def line(self) -> str:
        """The counts in words: "6 running · 1 needs attention"."""
        tr = QCoreApplication.translate
        if not self.total:
            return tr("Summary", "No servers yet")
        parts = []
        if self.running:
            parts.append(tr("Summary", "%n running", None, self.running))
        if self.starting:
            parts.append(tr("Summary", "%n starting", None, self.starting))
        if self.stopping:
            parts.append(tr("Summary", "%n stopping", None, self.stopping))
        if self.attention == 1:
            parts.append(tr("Summary", "1 needs attention"))
        elif self.attention:
            parts.append(tr("Summary", "%n need attention", None, self.attention))
        if self.failed:
            parts.append(tr("Summary", "%n failed", None, self.failed))
        if not parts:
            return tr("Summary", "All stopped")
        return " · ".join(parts)


def summarize(servers: Iterable[ServerView]) -> Summary:
    """Count servers. One that runs but is degraded counts as running and as needing attention."""
    views = list(servers)
    by = [view.severity for view in views]
    return Summary(
        running=sum(view.state in RUNNING for view in views),
        starting=sum(view.state is State.STARTING for view in views),
        stopping=sum(view.state is State.STOPPING for view in views),
        attention=by.count(Severity.ATTENTION),
        failed=by.count(Severity.FAILED),
        total=len(views),
    )


def needing_attention(servers: Iterable[ServerView]) -> list[ServerView]:
    """The servers for which a person should do something, failed ones first."""
    views = [view for view in servers if view.severity in (Severity.ATTENTION, Severity.FAILED)]
    return sorted(views, key=lambda view: view.severity is not Severity.FAILED)
