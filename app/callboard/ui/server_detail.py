"""The right side of the servers page: everything about the chosen server."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from callboard.api.schema import ServerView
from callboard.core.health import Action, State
from callboard.ui import words
from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.server_menu import build_menu
from callboard.ui.severity import StatusPill
from callboard.ui.tabs.log import LogTab
from callboard.ui.tabs.offer_tab import OfferTab
from callboard.ui.tabs.overview import OverviewTab
from callboard.ui.tabs.prompts import prompts_tab
from callboard.ui.tabs.resources import resources_tab
from callboard.ui.tabs.tools import tools_tab
from callboard.ui.theme import Theme
from callboard.ui.widgets.elided_label import ElidedLabel
from callboard.ui.widgets.reason_bar import ReasonBar

MakeForm = Callable[[str], QWidget]


class ServerDetail(QWidget):
    """Name, state and actions of a server, and its tabs.

    ``make_form`` makes the configuration form of a server; forms are made when first looked at and kept while the
    server is in the roster, so that what was entered survives a look at another server.
    """

    OVERVIEW, TOOLS, RESOURCES, PROMPTS, LOG, CONFIGURATION = range(6)

    def __init__(
        self,
        link: EngineLink,
        actions: ServerActions,
        theme: Theme,
        icons: Icons,
        make_form: MakeForm,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._link = link
        self._actions = actions
        self._make_form = make_form
        self._forms: dict[str, QWidget] = {}
        self._view: ServerView | None = None
        self._name = ElidedLabel()
        self._pill = StatusPill(theme)
        self._primary = QPushButton()
        self._second = QPushButton()
        self._more = QToolButton()
        self._reason = ReasonBar(theme)
        self.overview = OverviewTab(link, actions, theme, icons)
        self.tools = tools_tab(link, theme, icons)
        self.resources = resources_tab(link, theme, icons)
        self.prompts = prompts_tab(link, theme, icons)
        self.log = LogTab(link, theme, icons)
        self.configuration = QStackedWidget()
        self.tabs = QTabWidget()
        icons.set_on(self._more, "more")
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        font = QFont(self._name.font())
        font.setPointSizeF(font.pointSizeF() * 1.25)
        font.setWeight(QFont.Weight.DemiBold)
        self._name.setFont(font)
        self._pill.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)  # the name gives way
        self._more.setAutoRaise(True)
        self._more.setToolTip(self.tr("More actions"))
        self._more.setAccessibleName(self.tr("More actions"))
        head = QHBoxLayout()
        head.setContentsMargins(16, 10, 12, 10)
        head.setSpacing(8)
        head.addWidget(self._name)
        head.addWidget(self._pill)
        head.addStretch(1)
        for button in (self._primary, self._second, self._more):
            head.addWidget(button)
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.overview, self.tr("Overview"))
        self.tabs.addTab(self.tools, self.tr("Tools"))
        self.tabs.addTab(self.resources, self.tr("Resources"))
        self.tabs.addTab(self.prompts, self.tr("Prompts"))
        self.tabs.addTab(self.log, self.tr("Log"))
        self.tabs.addTab(self.configuration, self.tr("Configuration"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self._reason)
        layout.addWidget(self.tabs, 1)

    def _connect(self) -> None:
        self._primary.clicked.connect(self._run_primary)
        self._second.clicked.connect(self._run_second)
        self._more.clicked.connect(self._open_menu)
        self.tabs.currentChanged.connect(self._tab_changed)
        self._link.serverChanged.connect(self._server_changed)
        self._link.serversReset.connect(self._servers_reset)
        self._link.serverRemoved.connect(self._forget_form)
        self._link.connected.connect(self._show_actions)
        self._link.disconnected.connect(self._show_actions)

    # for the page

    @property
    def server(self) -> str:
        """The name of the server shown, "" for none."""
        return self._view.name if self._view else ""

    def show_server(self, view: ServerView) -> None:
        """Show another server, or another state of the one shown."""
        other = self.server != view.name
        self._view = view
        self._name.setText(view.display_name)
        self._pill.set_state(words.state_word(view.state), view.severity)
        self._reason.show_reason(view.reason, view.fix, view.severity)
        self._show_actions()
        self.overview.show_server(view)
        self._show_offers(view)
        self.log.show_server(view.name)
        if other and self.tabs.currentIndex() == self.CONFIGURATION:
            self._show_form()

    def _show_offers(self, view: ServerView) -> None:
        """The tabs of what the server offers; of resources and prompts only where there are any."""
        for tab in (self.tools, self.resources, self.prompts):
            tab.show_server(view)
        for place, name, numbered, count in (
            (self.TOOLS, self.tr("Tools"), self.tr("Tools ({n})"), view.tools),
            (self.RESOURCES, self.tr("Resources"), self.tr("Resources ({n})"), view.resources),
            (self.PROMPTS, self.tr("Prompts"), self.tr("Prompts ({n})"), view.prompts),
        ):
            self.tabs.setTabText(place, numbered.format(n=count) if count else name)
            if place != self.TOOLS:
                self.tabs.setTabVisible(place, count > 0)

    def show_tab(self, tab: int) -> None:
        """Bring one of the tabs to the front."""
        self.tabs.setCurrentIndex(tab)

    def focus_search(self) -> bool:
        """Put the cursor into the search field of the tab in front; false if it has none."""
        tab = self.tabs.currentWidget()
        if isinstance(tab, LogTab | OfferTab):
            tab.focus_search()
            return True
        return False

    # following

    def _server_changed(self, view: ServerView) -> None:
        if view.name == self.server:
            self.show_server(view)

    def _servers_reset(self, views: list[ServerView]) -> None:
        names = {view.name for view in views}
        for name in [name for name in self._forms if name not in names]:
            self._forget_form(name)
        for view in views:
            self._server_changed(view)

    def _show_actions(self) -> None:
        view = self._view
        if view is None:
            return
        verb = words.action_verb(view.action)
        self._primary.setText(verb)
        self._primary.setVisible(bool(verb))
        here = self._link.is_connected
        self._primary.setEnabled(here)
        waits = view.state is State.RESTARTING
        anew = self.tr("Reconnect") if view.kind == "remote" else self.tr("Restart")
        self._second.setText(words.action_verb(Action.STOP) if waits else anew)
        self._second.setVisible(waits or view.state in (State.READY, State.DEGRADED))
        self._second.setEnabled(here)

    def _run_primary(self) -> None:
        if self._view is not None:
            self._actions.run_primary(self._view)

    def _run_second(self) -> None:
        """The other thing that one may want: to restart what runs, to stop what is to be started again."""
        if self._view is None:
            return
        if self._view.state is State.RESTARTING:
            self._actions.stop(self._view.name)
        else:
            self._actions.restart(self._view.name)

    def _open_menu(self) -> None:
        if self._view is None:
            return
        menu = build_menu(self._view, self._actions, self._link.is_connected, self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self._more.mapToGlobal(self._more.rect().bottomLeft()))

    # the form

    def _tab_changed(self, tab: int) -> None:
        if tab == self.CONFIGURATION:
            self._show_form()

    def _show_form(self) -> None:
        name = self.server
        if not name:
            return
        if name not in self._forms:
            self._forms[name] = self._make_form(name)
            self.configuration.addWidget(self._forms[name])
        self.configuration.setCurrentWidget(self._forms[name])

    def _forget_form(self, name: str) -> None:
        form = self._forms.pop(name, None)
        if form is not None:
            self.configuration.removeWidget(form)
            form.deleteLater()
