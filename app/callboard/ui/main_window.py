"""The window's frame: pages, menus, notices and the line that says how everything is doing."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QByteArray, QSettings, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QMenu, QStackedWidget, QVBoxLayout, QWidget

from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.ui.actions import ServerActions
from callboard.ui.bundle_drop import bundle_in
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.navigation import NavigationRail
from callboard.ui.notice_bar import Notice, NoticeBar, Toast
from callboard.ui.status_line import StatusLine
from callboard.ui.summary import summarize
from callboard.ui.theme import Theme, ThemeChoice

_Keys = QKeySequence.StandardKey | QKeySequence | str


@dataclass(frozen=True)
class Page:
    """A page of the window, made when it is first opened. One without an icon has no button in the rail."""

    key: str
    title: str
    make: Callable[[], QWidget]
    icon: str = ""


class MainWindow(QMainWindow):
    """Holds the pages that the composition root made, and everything around them.

    It decides nothing about its own end: closing emits :attr:`closeRequested`, quitting :attr:`quitRequested`.
    """

    closeRequested = Signal()
    quitRequested = Signal()
    aboutRequested = Signal()
    folderRequested = Signal(str)  # "config" or "logs"
    bundleDropped = Signal(str)  # path of a bundle's file

    def __init__(
        self,
        link: EngineLink,
        actions: ServerActions,
        theme: Theme,
        icons: Icons,
        settings: QSettings,
        pages: list[Page],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._link = link
        self._actions = actions
        self._theme = theme
        self._icons = icons
        self._settings = settings
        self._pages = {page.key: page for page in pages}
        self._made: dict[str, QWidget] = {}
        self._stack = QStackedWidget()
        self._rail = NavigationRail(theme, icons)
        self.notices = NoticeBar(theme, icons)
        self.setWindowTitle(self.tr("Callboard"))
        self.setMinimumHeight(480)  # the width follows from the pages
        self.setAcceptDrops(True)
        self.toast = Toast(theme, self._build_body(pages))
        self.status_line = StatusLine(link, actions, theme, icons)
        self.statusBar().setSizeGripEnabled(False)
        self.statusBar().addWidget(self.status_line, 1)
        self._build_menus()
        self._connect()
        self._restore_geometry()

    # pages

    @property
    def page(self) -> str:
        """The open page's key."""
        return next(key for key, widget in self._made.items() if widget is self._stack.currentWidget())

    def prepare_page(self, key: str) -> QWidget:
        """Make a page, if it has not been made yet, so that it opens without delay."""
        if key not in self._made:
            self._made[key] = self._pages[key].make()
            self._stack.addWidget(self._made[key])
        return self._made[key]

    def open_page(self, key: str) -> None:
        """Show a page."""
        widget = self.prepare_page(key)
        self._stack.setCurrentWidget(widget)
        widget.setFocus(Qt.FocusReason.OtherFocusReason)
        self._rail.mark(key)
        if self._pages[key].icon:
            self._settings.setValue("page", key)

    def bring_to_front(self) -> None:
        """Show the window wherever it was: hidden, minimised or behind others."""
        if self.isMinimized():
            self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def save_state(self) -> None:
        """Store geometry for the next start."""
        self._settings.setValue("geometry", self.saveGeometry())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """A bundle may be dropped anywhere."""
        if bundle_in(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Begin a server with the bundle."""
        if path := bundle_in(event.mimeData()):
            event.acceptProposedAction()
            self.bundleDropped.emit(path)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Leave it to the owner whether closing hides, minimises or ends."""
        event.ignore()
        self.save_state()
        self.closeRequested.emit()

    def add_edit_actions(self, *actions: QAction) -> None:
        """Put actions (undo, redo) into the Edit menu, which is there only if it has any."""
        self._edit_menu.addActions(list(actions))
        self._edit_menu.menuAction().setVisible(True)

    def show_error(self, error: CallboardError) -> None:
        """Tell that something a person asked for did not work."""
        self.notices.put(Notice(f"error:{error.code}", Severity.FAILED, error.message, error.fix))

    # building

    def _build_body(self, pages: list[Page]) -> QWidget:
        for place, page in enumerate(page for page in pages if page.icon):
            self._rail.add(page.key, page.title, page.icon, _page_keys(place))
        column = QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.notices)
        column.addWidget(self._stack, 1)
        body = QWidget()
        row = QHBoxLayout(body)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self._rail)
        row.addLayout(column, 1)
        self.setCentralWidget(body)
        return body

    def _build_menus(self) -> None:
        keys = QKeySequence.StandardKey
        file = self.menuBar().addMenu(self.tr("&Callboard"))
        self._add(file, self.tr("&Add server…"), self._actions.add, keys.New)
        file.addSeparator()
        self._add(file, self.tr("Copy &VS Code config"), self._actions.copy_vscode_config, "Ctrl+Shift+C")
        self._add(file, self.tr("Copy &gateway URL"), self._actions.copy_gateway_url, "Ctrl+Shift+U")
        file.addSeparator()
        self._add(file, self.tr("&Close window"), self.close, keys.Close)
        quit_action = self._add(file, self.tr("&Quit"), self.quitRequested.emit, "Ctrl+Q")
        quit_action.setMenuRole(QAction.MenuRole.QuitRole)

        self._edit_menu = self.menuBar().addMenu(self.tr("&Edit"))
        self._edit_menu.menuAction().setVisible(False)

        view = self.menuBar().addMenu(self.tr("&View"))
        for place, page in enumerate(page for page in self._pages.values() if page.icon):
            self._add(view, page.title, partial(self.open_page, page.key), _page_keys(place))
        view.addSeparator()
        self._build_theme_menu(view.addMenu(self.tr("&Theme")))

        help_menu = self.menuBar().addMenu(self.tr("&Help"))
        if "welcome" in self._pages:
            self._add(help_menu, self.tr("&Welcome"), lambda: self.open_page("welcome"))
        self._add(help_menu, self.tr("Open folder of the &roster"), lambda: self.folderRequested.emit("config"))
        self._add(help_menu, self.tr("Open folder of &logs"), lambda: self.folderRequested.emit("logs"))
        help_menu.addSeparator()
        about = self._add(help_menu, self.tr("&About Callboard"), self.aboutRequested.emit)
        about.setMenuRole(QAction.MenuRole.AboutRole)

    def _build_theme_menu(self, menu: QMenu) -> None:
        group = QActionGroup(self)
        for choice, title in (
            (ThemeChoice.SYSTEM, self.tr("As the &system")),
            (ThemeChoice.LIGHT, self.tr("&Light")),
            (ThemeChoice.DARK, self.tr("&Dark")),
        ):
            action = self._add(menu, title, partial(self._theme.set_choice, choice))
            action.setCheckable(True)
            action.setChecked(self._theme.choice is choice)
            group.addAction(action)

    def _add(self, menu: QMenu, title: str, run: Callable[[], object], keys: _Keys = "") -> QAction:
        action = QAction(title, self)
        if keys:
            action.setShortcut(QKeySequence(keys))
        action.triggered.connect(lambda _checked=False: run())
        menu.addAction(action)
        return action

    def _connect(self) -> None:
        self._rail.chosen.connect(self.open_page)
        self._actions.failed.connect(self.show_error)
        self._actions.said.connect(self.toast.say)
        for signal in (self._link.serversReset, self._link.serverChanged, self._link.serverRemoved):
            signal.connect(self._count)
        self._theme.changed.connect(self.update)

    def _count(self, *_change: object) -> None:
        summary = summarize(self._link.servers.values())
        count = summary.attention + summary.failed
        if "servers" in self._pages:
            self._rail.set_badge("servers", count, summary.line())

    def open_last_page(self) -> None:
        """Show the page that was open when the window was last used."""
        page = str(self._settings.value("page", ""))
        known = [key for key, each in self._pages.items() if each.icon]
        self.open_page(page if page in known else known[0])

    def _restore_geometry(self) -> None:
        geometry = self._settings.value("geometry")
        if not (isinstance(geometry, QByteArray) and self.restoreGeometry(geometry)):
            self.resize(1120, 720)


def _page_keys(place: int) -> QKeySequence:
    return QKeySequence(f"Ctrl+{place + 1}")
