"""The conversations of an agent's server as a table."""

import time
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from callboard.api.agent_schema import ConversationView
from callboard.ui import formats

_Index = QModelIndex | QPersistentModelIndex
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class ConversationsModel(QAbstractTableModel):
    """One row a conversation, the one used last first. GUI thread only."""

    CLIENT, AGENT, TURNS, USED, ID = range(5)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[ConversationView] = []
        self._titles = (
            self.tr("Client"),
            self.tr("Agent"),
            self.tr("Turns"),
            self.tr("Last used"),
            self.tr("Conversation"),
        )

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._titles)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._titles[section]
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(row, index.column())
            case Qt.ItemDataRole.ToolTipRole:
                return formats.exact_time(row.used) if index.column() == self.USED else row.id
            case Qt.ItemDataRole.TextAlignmentRole:
                return _LEFT
        return None

    def show(self, rows: Sequence[ConversationView]) -> None:
        """Show these conversations. As long as they are as many, a selection stays."""
        rows = list(rows)
        if len(rows) == len(self._rows):
            self._rows = rows
            self.tick()
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def tick(self) -> None:
        """Time has passed."""
        if self._rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._rows) - 1, self.columnCount() - 1))

    def _text(self, row: ConversationView, column: int) -> str:
        match column:
            case self.CLIENT:
                return row.client or "\N{EN DASH}"
            case self.AGENT:
                return row.agent
            case self.TURNS:
                return str(row.turns)
            case self.USED:
                return self.tr("now") if row.busy else formats.relative_time(row.used, time.time())
        return row.id
