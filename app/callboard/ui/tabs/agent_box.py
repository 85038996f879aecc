"""What is particular to the server of a Python agent: its conversations, and loading the agent anew."""

import asyncio
from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtGui import QHideEvent, QPalette, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableView,
    QVBoxLayout,
)

from callboard.api.agent_schema import ConversationsView
from callboard.api.schema import CallView, ServerView
from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.models.conversations import ConversationsModel
from callboard.ui.widgets.elided_label import ElidedLabel

_AGAIN_MS = 10_000  # conversations end by themselves too
_SOON_MS = 400  # calls come in bursts
_ROWS = 6  # shown without scrolling


class AgentBox(QFrame):
    """Shown for servers of agents while they run; asks the engine only while it can be seen."""

    def __init__(self, link: EngineLink, actions: ServerActions) -> None:
        super().__init__()
        self._link = link
        self._actions = actions
        self._view: ServerView | None = None
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self._title = ElidedLabel()
        self._reload = QPushButton(self.tr("Reload"))
        self._model = ConversationsModel(self)
        self._table = QTableView()
        self._timer = QTimer(self, interval=_AGAIN_MS)
        self._soon = QTimer(self, interval=_SOON_MS, singleShot=True)
        self._lay_out()
        self._timer.timeout.connect(self._read)
        self._soon.timeout.connect(self._read)
        self._reload.clicked.connect(self._load_anew)
        link.callsChanged.connect(self._calls_changed)
        for signal in (actions.reloadingChanged, link.connected, link.disconnected):
            signal.connect(self._changed)
        self.hide()

    def _lay_out(self) -> None:
        self._reload.setToolTip(self.tr("Load the agent's code anew. Its conversations go on."))
        table = self._table
        table.setModel(self._model)
        table.setAccessibleName(self.tr("Conversations"))
        table.setFrameShape(QFrame.Shape.NoFrame)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setTabKeyNavigation(False)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        rows = table.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(table.fontMetrics().height() + 10)
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setStretchLastSection(True)
        for column, sample in (
            (ConversationsModel.CLIENT, "Claude Code, at work"),
            (ConversationsModel.AGENT, "an agent's name"),
            (ConversationsModel.TURNS, "Turns xxx"),
            (ConversationsModel.USED, "59 min ago xxx"),
        ):
            header.resizeSection(column, table.fontMetrics().horizontalAdvance(sample) + 16)
        top = QHBoxLayout()
        top.addWidget(self._title, 1)
        top.addWidget(self._reload)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 10, 12, 12)
        layout.addLayout(top)
        layout.addWidget(table)
        self.setFrameStyle(QFrame.Shape.Box | QFrame.Shadow.Plain)
        self.setForegroundRole(QPalette.ColorRole.Mid)

    def show_server(self, view: ServerView) -> None:
        """Show a server, or its new state."""
        old, self._view = self._view, view
        if old is None or old.name != view.name or old.pid != view.pid:
            self._show(None)
        self.setVisible(view.kind == "agent" and view.state in (State.READY, State.DEGRADED))
        self._changed()

    def tick(self) -> None:
        """Time has passed."""
        self._model.tick()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()
        self._read()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()
        self._soon.stop()

    # reading

    def _changed(self, *_said: object) -> None:
        self._show_reloading()
        self._read()

    def _read(self) -> None:
        """Ask for the conversations; what changes during a question is asked for once it is answered."""
        view = self._view
        if view is None or not self.isVisible() or not self._link.is_connected:
            return
        if self._task is not None:
            self._again = True
            return
        name = view.name
        self._task = self._link.request(
            lambda client: client.conversations(name),
            lambda told: self._read_done(name, told),
            lambda error: self._read_done(name, error),
            owner=self,
            name=f"conversations of {name}",
        )

    def _read_done(self, name: str, told: ConversationsView | CallboardError) -> None:
        self._task = None
        if self._view is not None and self._view.name == name:
            self._show(told if isinstance(told, ConversationsView) else None)
        else:
            self._again = True
        if self._again:
            self._again = False
            self._read()

    def _calls_changed(self, calls: Iterable[CallView]) -> None:
        name = self._view.name if self._view is not None else ""
        if self.isVisible() and not self._soon.isActive() and any(call.server == name for call in calls):
            self._soon.start()

    # showing

    def _show(self, told: ConversationsView | None) -> None:
        self._title.setText(conversations_text(told) if told is not None else self.tr("Conversations"))
        rows = told.conversations if told is not None else []
        self._model.show(rows)
        self._table.setColumnHidden(ConversationsModel.AGENT, len({each.agent for each in rows}) < 2)
        self._table.setVisible(bool(rows))
        shown = min(max(len(rows), 1), _ROWS)
        height = self._table.verticalHeader().defaultSectionSize() * shown
        self._table.setFixedHeight(height + self._table.horizontalHeader().sizeHint().height() + 4)

    def _show_reloading(self) -> None:
        name = self._view.name if self._view is not None else ""
        reloads = name in self._actions.reloading
        self._reload.setText(self.tr("Reloading …") if reloads else self.tr("Reload"))
        self._reload.setEnabled(self._link.is_connected and not reloads)

    def _load_anew(self) -> None:
        if self._view is not None:
            self._actions.reload(self._view.name)


def conversations_text(told: ConversationsView) -> str:
    """How many there are: "3 conversations of at most 500, 12 stored"."""
    tr = QCoreApplication.translate
    if not told.held:
        text = tr("AgentBox", "No conversations")
    elif told.held == 1:
        text = tr("AgentBox", "1 conversation")
    else:
        text = tr("AgentBox", "{n} conversations").format(n=told.held)
    if told.held and told.limit:
        text = tr("AgentBox", "{count} of at most {limit}").format(count=text, limit=told.limit)
    if told.stored:
        text = tr("AgentBox", "{count}, {stored} stored").format(count=text, stored=told.stored)
    return text
