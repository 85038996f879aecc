"""The tools of one server as a list model."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from callboard.api.schema import ToolView
from callboard.ui.models.roles import Role

_Index = QModelIndex | QPersistentModelIndex


class ToolListModel(QAbstractListModel):
    """One row a tool, in the server's own order. GUI thread only."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tools: list[ToolView] = []

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._tools)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._tools):
            return None
        tool = self._tools[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return tool.name
            case Qt.ItemDataRole.ToolTipRole:
                return tool.problem or tool.title or None
            case Qt.ItemDataRole.AccessibleTextRole:
                return ", ".join(part for part in (tool.name, tool.problem, tool.title, tool.description) if part)
            case Role.VIEW:
                return tool
            case Role.SEARCH:
                return " ".join((tool.name, tool.wire_name, tool.title, tool.description))
        return None

    def reset(self, tools: Sequence[ToolView]) -> None:
        """Show these tools; nothing happens if they are the ones already shown."""
        if list(tools) == self._tools:
            return
        self.beginResetModel()
        self._tools = list(tools)
        self.endResetModel()
