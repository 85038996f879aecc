"""The page of clients: who connects, what each may use, and the profiles."""

from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from callboard.api.client import EngineClient
from callboard.api.policy_schema import ApprovalView, ClientPolicyView, PolicyView
from callboard.core.errors import CallboardError
from callboard.ui.actions import ServerActions
from callboard.ui.clients.client_form import ClientForm
from callboard.ui.clients.profile_form import ProfileForm
from callboard.ui.delegates.policy_row import KEY, LINE, PolicyRowDelegate
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme
from callboard.ui.widgets.column_area import ColumnArea
from callboard.ui.widgets.empty_state import EmptyState

CLIENT, PROFILE = "client", "profile"
_SPLIT = "clients/split"


class ClientsPage(QWidget):
    """The list on the left, the chosen client's or profile's form on the right."""

    def __init__(
        self,
        link: EngineLink,
        actions: ServerActions,
        theme: Theme,
        icons: Icons,
        settings: QSettings,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._link = link
        self._theme = theme
        self._settings = settings
        self._view: PolicyView | None = None
        self._approvals: list[ApprovalView] = []
        self._chosen: tuple[str, str] = (CLIENT, "")
        self.list = QListWidget()
        self.add = QPushButton(self.tr("Add profile…"))
        self.client = ClientForm(link, theme)
        self.profile = ProfileForm(link, theme, icons)
        self._empty = EmptyState(theme)
        self._stack = QStackedWidget()
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._lay_out()
        self.client.said.connect(actions.said)
        self.client.copyRequested.connect(actions.copy_text)
        self.profile.said.connect(actions.said)
        self._connect()
        self._wait()
        if link.is_connected:
            self._read()

    @property
    def chosen(self) -> tuple[str, str]:
        """ "client" or "profile", and its name; "" is the default, or a new profile."""
        return self._chosen

    def choose(self, kind: str, name: str) -> None:
        """Show a client or a profile."""
        self._chosen = (kind, name)
        self._mark()
        self._show_chosen()

    # what the engine says

    def _read(self) -> None:
        async def ask(engine: EngineClient) -> tuple[PolicyView, list[ApprovalView]]:
            return await engine.policy.view(), await engine.policy.approvals()

        self._link.request(ask, lambda answer: self._take(*answer), self._not_read, owner=self, name="read the policy")

    def _take(self, view: PolicyView, approvals: list[ApprovalView]) -> None:
        self._view, self._approvals = view, approvals
        kind, name = self._chosen
        names = [each.id for each in view.clients] if kind == CLIENT else [each.name for each in view.profiles]
        if name and name not in names:
            self._chosen = (CLIENT, "")
        self._fill_list()
        self._show_chosen()

    def _not_read(self, error: CallboardError) -> None:
        if self._view is None:
            self._empty.show_message(error.message, error.fix)

    def _wait(self) -> None:
        if self._view is None:
            text = self.tr("Clients and what each may use appear here as soon as it answers.")
            self._empty.show_message(self.tr("Waiting for the engine"), text)
            self._stack.setCurrentWidget(self._empty)

    # the list

    def _fill_list(self) -> None:
        view = self._view
        if view is None:
            return
        self.list.blockSignals(True)
        self.list.clear()
        self._add_head(self.tr("Clients"))
        self._add_row((CLIENT, ""), self.tr("Default rules"), self.tr("for clients without rules of their own"))
        for client in view.clients:
            self._add_row((CLIENT, client.id), client.name, _client_line(self, client))
        self._add_head(self.tr("Profiles"))
        for profile in view.profiles:
            selects = [*profile.entry.get("servers", []), *profile.entry.get("tools", [])]
            self._add_row((PROFILE, profile.name), profile.name, ", ".join(map(str, selects)))
        self._mark()
        self.list.blockSignals(False)

    def _add_head(self, text: str) -> None:
        item = QListWidgetItem(text)
        item.setFlags(Qt.ItemFlag.NoItemFlags)
        self.list.addItem(item)

    def _add_row(self, key: tuple[str, str], title: str, line: str) -> None:
        item = QListWidgetItem(title)
        item.setData(KEY, key)
        item.setData(LINE, line)
        item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, line)
        item.setToolTip(line)
        self.list.addItem(item)

    def _mark(self) -> None:
        self.list.blockSignals(True)
        self.list.setCurrentRow(-1)
        for row in range(self.list.count()):
            if self.list.item(row).data(KEY) == self._chosen:
                self.list.setCurrentRow(row)
        self.list.blockSignals(False)

    def _row_chosen(self, item: QListWidgetItem | None, _previous: QListWidgetItem | None) -> None:
        if item is not None and item.data(KEY) is not None:
            self._chosen = tuple(item.data(KEY))
            self._show_chosen()

    def _show_chosen(self) -> None:
        if self._view is None:
            return
        kind, name = self._chosen
        if kind == CLIENT:
            self.client.show_client(self._view, name, self._approvals)
        else:
            self.profile.show_profile(self._view, name)
        self._stack.setCurrentIndex(1 if kind == CLIENT else 2)

    def _revert(self) -> None:
        """Forget what was changed here, and show what holds."""
        self.client.forget()
        self.profile.forget()
        self._read()

    # building

    def _lay_out(self) -> None:
        self.list.setAccessibleName(self.tr("Clients and profiles"))
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setItemDelegate(PolicyRowDelegate(self._theme, self.list))
        self.list.setMouseTracking(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 8)
        column.addWidget(self.list, 1)
        row = QHBoxLayout()
        row.setContentsMargins(8, 0, 8, 0)
        row.addWidget(self.add)
        row.addStretch(1)
        column.addLayout(row)
        left.setMinimumWidth(240)
        self._stack.addWidget(self._empty)
        for form in (self.client, self.profile):
            self._stack.addWidget(ColumnArea(form))
        self._split.addWidget(left)
        self._split.addWidget(self._stack)
        self._split.setStretchFactor(1, 1)
        self._split.setHandleWidth(1)
        self._split.setChildrenCollapsible(False)
        state = self._settings.value(_SPLIT)
        if not (state is not None and self._split.restoreState(state)):
            self._split.setSizes([280, 600])
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._split)

    def _connect(self) -> None:
        self.list.currentItemChanged.connect(self._row_chosen)
        self.add.clicked.connect(lambda: self.choose(PROFILE, ""))
        self.client.foot.revert.clicked.connect(self._revert)
        self.profile.foot.revert.clicked.connect(self._revert)
        self.profile.saved.connect(lambda name: self._saved(name))
        self.profile.removed.connect(lambda: self.choose(CLIENT, ""))
        self._link.policyChanged.connect(self._read)
        self._link.resynced.connect(self._read)
        self._split.splitterMoved.connect(lambda: self._settings.setValue(_SPLIT, self._split.saveState()))

    def _saved(self, name: str) -> None:
        self._chosen = (PROFILE, name)
        self._read()


def _client_line(page: ClientsPage, client: ClientPolicyView) -> str:
    parts = []
    if client.has_policy:
        parts.append(page.tr("rules of its own"))
    if client.profile:
        parts.append(page.tr("profile {name}").format(name=client.profile))
    if client.approvals:
        parts.append(page.tr("{n} always allowed").format(n=client.approvals))
    return " · ".join(parts)
