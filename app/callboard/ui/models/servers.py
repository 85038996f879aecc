"""The servers as a list model, and the order in which the window shows them."""

from collections.abc import Iterable
from time import time
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QCoreApplication,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
    QTimer,
)

from callboard.api.schema import ServerView
from callboard.core.health import Severity, State
from callboard.ui import formats, words
from callboard.ui.models.roles import Role

_BELOW = 1_000_000  # rank of servers that need nobody, above the number of any row


def needs_attention(view: ServerView) -> bool:
    """Whether a server belongs to the top of the list.

    A server between two attempts of a restart counts, so that one in a crash loop stays where it is.
    """
    if view.severity in (Severity.ATTENTION, Severity.FAILED):
        return True
    return view.state is State.STARTING and view.attempt > 0


def tools_text(view: ServerView) -> str:
    """How many tools a server has: "12 tools", "12 tools (cached)"; empty while that is not known."""
    if not view.tools:
        return ""
    tr = QCoreApplication.translate
    text = tr("Servers", "1 tool") if view.tools == 1 else tr("Servers", "{n} tools").format(n=view.tools)
    return tr("Servers", "{tools} (cached)").format(tools=text) if view.cached else text


def trouble_text(view: ServerView, now: float) -> str:
    """What is wrong with a server in a few words, and when it is tried again; empty if nothing is."""
    reason = formats.first_clause(view.reason) if view.state is not State.READY else ""
    wait = words.wait_text(view, now)
    if wait:
        tr = QCoreApplication.translate
        restarting = view.state is State.RESTARTING
        text = tr("Servers", "in {time}") if restarting else tr("Servers", "next try in {time}")
        wait = text.format(time=wait)
    return " · ".join(part for part in (wait, reason) if part)


def _spoken(view: ServerView) -> str:
    parts = (view.display_name, words.state_line(view, time()), words.transport_word(view), tools_text(view))
    return ", ".join(part for part in parts if part)


class ServerListModel(QAbstractListModel):
    """One row a server, in roster order.

    Changes are shown at once when the list was quiet, else together at most every ``FLUSH_MS`` milliseconds.
    GUI thread only.
    """

    FLUSH_MS = 250

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._views: list[ServerView] = []
        self._rows: dict[str, int] = {}
        self._pending: dict[str, ServerView] = {}
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(self.FLUSH_MS)
        self._timer.timeout.connect(self._flush)

    # what the rows are

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._views)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._views):
            return None
        view = self._views[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return view.display_name
            case Qt.ItemDataRole.ToolTipRole:
                return "\n".join(part for part in (view.display_name, view.reason, view.fix) if part)
            case Qt.ItemDataRole.AccessibleTextRole:
                return _spoken(view)
            case Qt.ItemDataRole.AccessibleDescriptionRole:
                verb = words.action_verb(view.action)
                return self.tr("Press Enter to: {action}").format(action=verb) if verb else ""
            case Role.VIEW:
                return view
            case Role.SEARCH:
                return " ".join((view.display_name, view.name, view.description, view.url, *view.command))
            case Role.RANK:
                return index.row() + (0 if needs_attention(view) else _BELOW)
        return None

    def view(self, name: str) -> ServerView | None:
        """The newest known state of a server, shown already or not."""
        if name in self._pending:
            return self._pending[name]
        row = self._rows.get(name)
        return None if row is None else self._views[row]

    def index_of(self, name: str) -> QModelIndex:
        """The row of a server; invalid if there is none."""
        row = self._rows.get(name)
        return QModelIndex() if row is None else self.index(row)

    # changes

    def reset(self, views: Iterable[ServerView]) -> None:
        """Take over a whole list in its order; rows are changed in place where the names are the same."""
        new = list(views)
        self._pending.clear()
        if [view.name for view in new] == [view.name for view in self._views]:
            self._show({view.name: view for view in new})
            return
        self.beginResetModel()
        self._views = new
        self._number()
        self.endResetModel()

    def change(self, view: ServerView) -> None:
        """A server is new or in another state."""
        self._pending[view.name] = view
        if not self._timer.isActive():
            self._flush()
            self._timer.start()

    def remove(self, name: str) -> None:
        """A server is no longer in the roster."""
        self._pending.pop(name, None)
        row = self._rows.get(name)
        if row is None:
            return
        self.beginRemoveRows(QModelIndex(), row, row)
        del self._views[row]
        self._number()
        self.endRemoveRows()

    def _flush(self) -> None:
        if not self._pending:
            return
        pending, self._pending = self._pending, {}
        self._show({name: view for name, view in pending.items() if name in self._rows})
        added = [view for name, view in pending.items() if name not in self._rows]
        if added:
            first = len(self._views)
            self.beginInsertRows(QModelIndex(), first, first + len(added) - 1)
            self._views.extend(added)
            self._number()
            self.endInsertRows()
        self._timer.start()

    def _show(self, views: dict[str, ServerView]) -> None:
        for name, view in views.items():
            row = self._rows[name]
            if self._views[row] != view:
                self._views[row] = view
                self.dataChanged.emit(self.index(row), self.index(row))

    def _number(self) -> None:
        self._rows = {view.name: row for row, view in enumerate(self._views)}


class ServerOrder(QSortFilterProxyModel):
    """The servers that a search leaves, those that need attention first, then in roster order."""

    def __init__(self, servers: ServerListModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setSortRole(Role.RANK)
        self.setFilterRole(Role.SEARCH)
        self.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.setDynamicSortFilter(True)
        self.setSourceModel(servers)
        self.sort(0)

    def hold(self, held: bool) -> None:
        """Keep every row in its place while ``held``: a button must not move from under the pointer."""
        if self.dynamicSortFilter() == held:
            self.setDynamicSortFilter(not held)
            if not held:
                self.sort(0)
