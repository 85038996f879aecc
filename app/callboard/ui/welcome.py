"""The first page that a person sees: what this is, that it works, and the one thing to do."""

from pathlib import Path

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtSvgWidgets import QSvgWidget
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from callboard.api.schema import ClientView, ServerView
from callboard.core.health import Action, Severity, State
from callboard.ui import words
from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.primary_button import PrimaryButton
from callboard.ui.severity import StatusPill
from callboard.ui.theme import Theme, Token

CARD_WIDTH = 620
FIRST_SERVER = "local-tools"


class WelcomePage(QScrollArea):
    """Shown while the roster is the one that the first start made; reachable from the Help menu afterwards."""

    dismissed = Signal()  # the person wants to see the servers

    def __init__(
        self,
        link: EngineLink,
        actions: ServerActions,
        theme: Theme,
        icons: Icons,
        app_icon: Path,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._link = link
        self._actions = actions
        self._theme = theme
        self._icons = icons
        self._server_card = ServerCard(actions, theme)
        self._clients = QMenu(self)
        self._copy = PrimaryButton(self.tr("Copy VS Code config"), "copy", theme, icons)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setAccessibleName(self.tr("Welcome"))
        self.setWidget(self._build(app_icon))
        link.serversReset.connect(self._refresh_server)
        link.serverChanged.connect(self._refresh_server)
        link.serverRemoved.connect(self._refresh_server)
        link.resynced.connect(self._ask_for_clients)
        link.connected.connect(self._refresh_server)
        link.disconnected.connect(self._refresh_server)
        self._refresh_server()

    # building

    def _build(self, app_icon: Path) -> QWidget:
        body = QWidget()
        column = QVBoxLayout()
        column.setSpacing(0)
        column.addLayout(self._build_head(app_icon))
        column.addSpacing(22)
        column.addLayout(self._build_lines())
        column.addSpacing(22)
        column.addWidget(self._server_card)
        column.addSpacing(22)
        column.addLayout(self._build_buttons())
        column.addSpacing(8)
        column.addWidget(self._build_hint())
        column.addSpacing(26)
        column.addLayout(self._build_links())
        card = QWidget()
        card.setMaximumWidth(CARD_WIDTH)
        card.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        card.setLayout(column)
        outer = QGridLayout(body)
        outer.setContentsMargins(32, 28, 32, 28)
        outer.addWidget(card, 1, 1)
        outer.setRowStretch(0, 2)
        outer.setRowStretch(2, 3)
        outer.setColumnStretch(0, 1)
        outer.setColumnStretch(1, 8)
        outer.setColumnStretch(2, 1)
        return body

    def _build_head(self, app_icon: Path) -> QHBoxLayout:
        picture = QSvgWidget(str(app_icon))
        picture.setFixedSize(64, 64)
        title = QLabel(self.tr("Welcome to Callboard"))
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * 1.9)
        font.setWeight(font.Weight.DemiBold)
        title.setFont(font)
        row = QHBoxLayout()
        row.setSpacing(18)
        row.addWidget(picture)
        row.addWidget(title, 1)
        return row

    def _build_lines(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(14)
        grid.setVerticalSpacing(10)
        grid.setColumnStretch(1, 1)
        for row, (icon, text) in enumerate(
            (
                ("servers", self.tr("Callboard runs your MCP servers and starts them again when they fail.")),
                ("connect", self.tr("It serves their tools to every AI client on this machine through one address.")),
                ("calls", self.tr("It shows every tool call as it happens, and what came of it.")),
            )
        ):
            picture = QLabel()
            picture.setFixedSize(24, 24)
            line = QLabel(text)
            line.setWordWrap(True)
            grid.addWidget(picture, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(line, row, 1)
            self._keep_picture(picture, icon)
        return grid

    def _keep_picture(self, label: QLabel, icon: str) -> None:
        def draw() -> None:
            label.setPixmap(self._icons.pixmap(icon, 24, Token.LINK, self.devicePixelRatioF()))

        draw()
        self._theme.changed.connect(draw)

    def _build_buttons(self) -> QHBoxLayout:
        self._copy.clicked.connect(lambda: self._actions.copy_vscode_config())
        self.setFocusProxy(self._copy)
        others = QPushButton(self.tr("Another client"))
        others.setFixedHeight(self._copy.sizeHint().height())
        others.setMenu(self._clients)
        others.setAccessibleName(self.tr("Copy the configuration for another client"))
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addWidget(self._copy, 1)
        row.addWidget(others)
        return row

    def _build_hint(self) -> QLabel:
        hint = QLabel(
            self.tr("Paste it into .vscode/mcp.json. VS Code asks for the token once, and says where it is found.")
        )
        hint.setWordWrap(True)
        self._mute(hint)
        self._theme.changed.connect(lambda: self._mute(hint))
        return hint

    def _mute(self, label: QLabel) -> None:
        palette = label.palette()
        palette.setColor(palette.ColorRole.WindowText, self._theme.color(Token.MUTED))
        label.setPalette(palette)

    def _build_links(self) -> QHBoxLayout:
        add = QPushButton(self.tr("Add a server…"))
        self._icons.set_on(add, "add")
        add.clicked.connect(self._actions.add)
        show = QPushButton(self.tr("Show my servers"))
        self._icons.set_on(show, "servers")
        show.clicked.connect(self.dismissed)
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addWidget(add)
        row.addWidget(show)
        row.addStretch(1)
        return row

    # state

    def _refresh_server(self, *_change: object) -> None:
        servers = self._link.servers
        view = servers.get(FIRST_SERVER) or next(iter(servers.values()), None)
        self._server_card.show_server(view, connected=self._link.is_connected)
        self._copy.setEnabled(self._link.is_connected)

    def _ask_for_clients(self) -> None:
        self._link.request(
            lambda client: client.clients(), self._fill_clients, lambda _error: None, owner=self, name="clients"
        )

    def _fill_clients(self, clients: list[ClientView]) -> None:
        self._clients.clear()
        for client in clients:
            if client.id != "vscode":
                action = self._clients.addAction(client.name)
                action.triggered.connect(lambda _checked=False, name=client.id: self._actions.copy_snippet(name))


class ServerCard(QWidget):
    """One server as proof that everything works."""

    def __init__(self, actions: ServerActions, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._actions = actions
        self._theme = theme
        self._view: ServerView | None = None
        self._pill = StatusPill(theme)
        self._name = QLabel()
        self._note = QLabel()
        self._note.setWordWrap(True)
        self._button = QPushButton()
        self._button.clicked.connect(self._act)
        bold = self._name.font()
        bold.setWeight(bold.Weight.DemiBold)
        self._name.setFont(bold)
        first = QHBoxLayout()
        first.setSpacing(10)
        first.addWidget(self._name)
        first.addWidget(self._pill)
        first.addStretch(1)
        texts = QVBoxLayout()
        texts.setSpacing(5)
        texts.addLayout(first)
        texts.addWidget(self._note)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 14, 14, 14)
        self._pill.set_state(words.state_word(State.STOPPED), Severity.OFF)
        self.setMinimumHeight(self._pill.sizeHint().height() + self._note.sizeHint().height() + 36)
        row.addLayout(texts, 1)
        row.addWidget(self._button)
        theme.changed.connect(self._recolor)
        self._recolor()

    def show_server(self, view: ServerView | None, *, connected: bool) -> None:
        """Show a server's state; None while there is none."""
        self._view = view if connected else None
        self.setVisible(view is not None or not connected)
        self._pill.setVisible(connected)
        if not connected or view is None:
            self._name.setText(self.tr("Starting the engine…"))
            self._note.setText(self.tr("The first server comes up with it."))
            self._button.hide()
            return
        self._name.setText(view.display_name or view.name)
        self._pill.set_state(words.state_word(view.state), view.severity)
        if view.state is State.READY:
            self._note.setText(self.tr("It comes with Callboard. Tools ready to be called: %n.", "", view.tools))
        else:
            self._note.setText(view.reason or self.tr("It comes with Callboard."))
        verb = words.action_verb(view.action)
        self._button.setText(verb)
        self._button.setVisible(bool(verb) and view.action is not Action.STOP)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the card."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.color(Token.BORDER), 1))
        painter.setBrush(self._theme.color(Token.BASE))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 10, 10)
        painter.end()

    def _recolor(self) -> None:
        palette = self._note.palette()
        palette.setColor(palette.ColorRole.WindowText, self._theme.color(Token.MUTED))
        self._note.setPalette(palette)
        self.update()

    def _act(self) -> None:
        if self._view is not None:
            self._actions.run_primary(self._view)
