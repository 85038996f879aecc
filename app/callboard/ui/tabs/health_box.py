"""What the last look at a server found, how old that is, and the buttons that look anew."""

from time import time

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout

from callboard.api.schema import HealthView, ServerView
from callboard.core.health import Severity
from callboard.ui import formats
from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.severity import StatusPill
from callboard.ui.theme import Theme

_SEVERITY = {"ok": Severity.FINE, "warn": Severity.ATTENTION, "fail": Severity.FAILED, "off": Severity.OFF}


class HealthBox(QFrame):
    """Nobody looks by itself: the age tells how far what is shown may be trusted."""

    def __init__(self, link: EngineLink, actions: ServerActions, theme: Theme) -> None:
        super().__init__()
        self._link = link
        self._actions = actions
        self._view: ServerView | None = None
        self._pill = StatusPill(theme)
        self._pill.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._age = QLabel()
        self._message = QLabel()
        self._message.setWordWrap(True)
        self._check = QPushButton(self.tr("Check health"))
        self._check.setToolTip(self.tr("Ask the server for a sign of life"))
        self._refresh = QPushButton(self.tr("Refresh"))
        self._refresh.setToolTip(self.tr("Read anew what the server offers, and ask it for a sign of life"))
        self._lay_out()
        self._check.clicked.connect(self._run_check)
        self._refresh.clicked.connect(self._run_refresh)
        for signal in (actions.lookingChanged, link.connected, link.disconnected):
            signal.connect(self._show_buttons)

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(8)
        title = QLabel(self.tr("Health"))
        for widget in (title, self._pill, self._age):
            top.addWidget(widget)
        top.addStretch(1)
        for button in (self._check, self._refresh):
            top.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 10, 12, 12)
        layout.addLayout(top)
        layout.addWidget(self._message)
        self.setFrameStyle(QFrame.Shape.Box | QFrame.Shadow.Plain)
        self.setForegroundRole(QPalette.ColorRole.Mid)

    def show_server(self, view: ServerView) -> None:
        """Show a server, or its new state."""
        self._view = view
        found = view.health
        self._pill.setVisible(found is not None)
        if found is not None:
            self._pill.set_state(health_word(found), _SEVERITY[found.status])
        known = found is None or bool(view.reason and view.reason.rstrip(".") in found.message)
        self._message.setText(_said(found) if found is not None else "")
        self._message.setVisible(not known)  # the bar above the tabs says it already
        self._message.setToolTip(found.stderr if found is not None else "")
        self.tick(time())
        self._show_buttons()

    def tick(self, now: float) -> None:
        """Time has passed."""
        found = self._view.health if self._view is not None else None
        if found is None:
            self._age.setText(self.tr("not looked at yet"))
            return
        self._age.setText(formats.relative_time(found.at, now))
        self._age.setToolTip(formats.exact_time(found.at))

    def _show_buttons(self, *_said: object) -> None:
        view = self._view
        if view is None:
            return
        looks = view.name in self._actions.looking
        usable = self._link.is_connected and view.enabled and not looks
        self._check.setText(self.tr("Looking …") if looks else self.tr("Check health"))
        self._check.setEnabled(usable)
        self._refresh.setEnabled(usable)

    def _run_check(self) -> None:
        if self._view is not None:
            self._actions.check_health(self._view.name)

    def _run_refresh(self) -> None:
        if self._view is not None:
            self._actions.refresh(self._view.name)


def health_word(found: HealthView) -> str:
    """What a look found, in a word or two."""
    tr = QCoreApplication.translate
    match found.status:
        case "ok":
            return tr("HealthBox", "Answers")
        case "warn":
            return tr("HealthBox", "Wants attention")
        case "fail":
            return tr("HealthBox", "Does not answer")
        case _:
            return tr("HealthBox", "Does not run")


def _said(found: HealthView) -> str:
    return f"{found.message} {found.fix}" if found.fix and found.status in ("warn", "fail") else found.message
