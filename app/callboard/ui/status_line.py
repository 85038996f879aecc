"""The line at the window's lower edge: engine, servers, the gateway's address."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QWidget

from callboard.core.health import Severity
from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.severity import SeverityMark
from callboard.ui.summary import summarize
from callboard.ui.theme import Theme, Token


class StatusLine(QWidget):
    """How the engine and all servers are doing, in one line that is always true."""

    def __init__(
        self, link: EngineLink, actions: ServerActions, theme: Theme, icons: Icons, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._link = link
        self._mark = SeverityMark(theme, 12)
        self._text = QLabel()
        self._calls = QLabel()
        self._url = QToolButton()
        self._url.setAutoRaise(True)
        self._url.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._url.setToolTip(self.tr("Copy the gateway URL"))
        self._url.clicked.connect(actions.copy_gateway_url)
        icons.set_on(self._url, "copy", Token.MUTED)
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 2, 6, 2)
        row.setSpacing(8)
        row.addWidget(self._mark)
        row.addWidget(self._text)
        row.addStretch(1)
        row.addWidget(self._calls)
        row.addWidget(self._url)
        self.setMinimumHeight(self._url.sizeHint().height() + 4)
        self._waiting = self.tr("Starting the engine…")
        for signal in (link.connected, link.engineChanged, link.serversReset, link.serverChanged, link.serverRemoved):
            signal.connect(self.refresh)
        link.disconnected.connect(self.refresh)
        self.refresh()

    @property
    def text(self) -> str:
        """What the line says."""
        return self._text.text()

    def say_waiting(self, text: str) -> None:
        """What to say while no engine answers ("Starting the engine…")."""
        self._waiting = text
        self.refresh()

    def refresh(self, *_change: object) -> None:
        """Show what the link knows now."""
        engine = self._link.engine
        connected = self._link.is_connected
        self._url.setVisible(connected and engine is not None)
        self._calls.setVisible(connected and engine is not None)
        if not connected:
            self._mark.set_severity(Severity.BUSY)
            self._text.setText(self._waiting)
            return
        summary = summarize(self._link.servers.values())
        self._mark.set_severity(summary.severity)
        self._text.setText(summary.line())
        if engine is not None:
            self._url.setText(engine.mcp_url)
            self._url.setAccessibleName(self.tr("Copy the gateway URL {url}").format(url=engine.mcp_url))
            self._calls.setText(self._count_calls(engine.calls_last_hour))

    def _count_calls(self, count: int) -> str:
        if count == 1:
            return self.tr("1 call in the last hour")
        return self.tr("%n calls in the last hour", "", count) if count else self.tr("no calls in the last hour")
