"""The dialog in which a person signs in to a remote server, and sees step by step how that went."""

from collections.abc import Awaitable, Callable

from PySide6.QtCore import QCoreApplication, Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from callboard.api.client import EngineClient
from callboard.api.schema import ServerView
from callboard.api.sign_in_schema import SignInState, SignInView
from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.ui import formats
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.severity import StatusPill
from callboard.ui.sign_in_steps import StepsView
from callboard.ui.theme import Theme
from callboard.ui.widgets.copy_button import CopyButton
from callboard.ui.widgets.facts import Facts
from callboard.ui.widgets.reason_bar import ReasonBar

translate = QCoreApplication.translate

LOOK_MS = 100  # after the engine said that something changed: steps come in quick succession
_UNDER_WAY = ("running", "waiting")


class SignInDialog(QDialog):
    """One server's sign-in. Show it with ``open()``; it deletes itself when it is closed, the sign-in goes on.

    Nothing but :meth:`sign_in`, which is what the person pressed, opens a browser.
    """

    def __init__(
        self,
        link: EngineLink,
        theme: Theme,
        icons: Icons,
        server: str,
        open_url: Callable[[QUrl], bool] = QDesktopServices.openUrl,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Sign in to {name}").format(name=server))
        self.setMinimumSize(460, 400)
        self.resize(640, 620)
        self.server = server
        self.view = SignInView(server=server, state="none")
        self._link = link
        self._open_url = open_url
        self._theme = theme
        self.pill = StatusPill(theme)
        self.reason = ReasonBar(theme)
        self.facts = Facts(theme, icons)
        self.steps = StepsView(theme)
        self.primary = QPushButton()
        self.again = QPushButton(self.tr("Open the browser again"))
        self.out = QPushButton(self.tr("Sign out"))
        self.copy = CopyButton(icons, self.tr("Copy the address"), lambda: self.view.url)
        self.pasted = QLineEdit()
        self.use = QPushButton(self.tr("Use"))
        self._elsewhere = QWidget()
        self._look = QTimer(self)
        self._look.setSingleShot(True)
        self._look.setInterval(LOOK_MS)
        self._lay_out()
        self._connect()
        self._show()
        self._read()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(16, 14, 16, 10)
        head.setSpacing(8)
        self.pill.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        head.addWidget(self.pill)
        head.addStretch(1)
        for button in (self.copy, self.again, self.out, self.primary):
            head.addWidget(button)
        self.primary.setDefault(True)
        self.again.setAutoDefault(False)
        self.out.setAutoDefault(False)
        self.use.setAutoDefault(False)
        for key, name, copy in (
            ("resource", self.tr("Server"), ""),
            ("issuer", self.tr("Sign-in server"), ""),
            ("client", self.tr("Client ID"), ""),
            ("redirect", self.tr("Redirect address"), self.tr("Copy the redirect address")),
            ("scopes", self.tr("Scopes"), ""),
            ("expires", self.tr("Token"), ""),
            ("shared", self.tr("Also for"), ""),
        ):
            self.facts.add(key, name, copy=copy)
        body = QVBoxLayout()
        body.setContentsMargins(16, 10, 16, 16)
        body.setSpacing(12)
        body.addWidget(self._elsewhere)
        body.addWidget(self.facts)
        body.addWidget(self.steps, 1)
        self._lay_out_elsewhere()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(self.reason)
        column.addLayout(body, 1)

    def _lay_out_elsewhere(self) -> None:
        """For a browser on another computer, which cannot come back to this one."""
        label = QLabel(
            self.tr("Is the browser on another computer? Paste the address here that it ends at and cannot show:")
        )
        label.setWordWrap(True)
        label.setBuddy(self.pasted)
        self.pasted.setAccessibleName(self.tr("Address that the browser ended at"))
        self.pasted.setClearButtonEnabled(True)
        row = QHBoxLayout()
        row.addWidget(self.pasted, 1)
        row.addWidget(self.use)
        column = QVBoxLayout(self._elsewhere)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(label)
        column.addLayout(row)

    def _connect(self) -> None:
        self.primary.clicked.connect(self._run_primary)
        self.again.clicked.connect(self._open_browser)
        self.out.clicked.connect(lambda: self._ask(lambda client: client.sign_out(self.server)))
        self.use.clicked.connect(self._hand_over)
        self.pasted.returnPressed.connect(self._hand_over)
        self.pasted.textChanged.connect(lambda text: self.use.setEnabled(bool(text.strip())))
        self.use.setEnabled(False)
        self._look.timeout.connect(self._read)
        self._link.serverChanged.connect(self._server_changed)
        self._link.resynced.connect(self._read)
        self._link.connected.connect(self._show)
        self._link.disconnected.connect(self._show)

    # what the person does

    def sign_in(self) -> None:
        """Begin to sign in, and open the browser as soon as it is known where."""
        self._ask(lambda client: client.sign_in(self.server), self._open_browser)

    def _run_primary(self) -> None:
        if self.view.state in _UNDER_WAY:
            self._ask(lambda client: client.cancel_sign_in(self.server))
        else:
            self.sign_in()

    def _open_browser(self) -> None:
        url = QUrl(self.view.url)
        if url.scheme() not in ("https", "http") or not self._open_url(url):
            text = self.tr("The browser could not be opened.")
            self.reason.show_reason(text, self.tr("Copy the address, and open it yourself."), Severity.ATTENTION)

    def _hand_over(self) -> None:
        text = self.pasted.text().strip()
        if text:
            self.pasted.clear()
            self._ask(lambda client: client.answer_sign_in(self.server, text))

    # what the engine says

    def _server_changed(self, view: ServerView) -> None:
        if view.name == self.server and not self._look.isActive():
            self._look.start()

    def _read(self) -> None:
        self._ask(lambda client: client.sign_in_view(self.server))

    def _ask(
        self, ask: Callable[[EngineClient], Awaitable[SignInView]], then: Callable[[], None] | None = None
    ) -> None:
        def done(view: SignInView) -> None:
            self.view = view
            self._show()
            if then is not None and view.state == "waiting":
                then()

        self._link.request(ask, done, self._fail, owner=self, name=f"sign-in {self.server}")

    def _fail(self, error: CallboardError) -> None:
        self.reason.show_reason(error.message, error.fix, Severity.FAILED)

    def _show(self) -> None:
        view = self.view
        self.pill.set_state(sign_in_word(view.state), _SEVERITY[view.state])
        if view.state == "waiting":
            self.reason.show_reason(self.tr("Agree in the browser; the rest goes by itself."), "", Severity.BUSY)
        else:
            self.reason.show_reason(view.message, view.fix, Severity.ATTENTION)
        self.primary.setText(primary_text(view.state))
        self.primary.setEnabled(self._link.is_connected)
        waiting = view.state == "waiting"
        for widget in (self.again, self.copy, self._elsewhere):
            widget.setVisible(waiting)
        self.out.setVisible(view.state == "signed-in")
        self.facts.set("resource", view.resource)
        self.facts.set("issuer", view.issuer)
        self.facts.set("client", view.client_id)
        self.facts.set("redirect", view.redirect_uri)
        self.facts.set("scopes", " ".join(view.scopes))
        self.facts.set("expires", token_text(view))
        self.facts.set("shared", ", ".join(view.shared_with))
        self.steps.setVisible(bool(view.steps))
        self.steps.show_steps(view.steps)


_SEVERITY: dict[SignInState, Severity] = {
    "none": Severity.OFF,
    "running": Severity.BUSY,
    "waiting": Severity.BUSY,
    "signed-in": Severity.FINE,
    "failed": Severity.FAILED,
}


def sign_in_word(state: SignInState) -> str:
    """How far a sign-in is, in a few words."""
    match state:
        case "none":
            return translate("SignIn", "Not signed in")
        case "running":
            return translate("SignIn", "Signing in")
        case "waiting":
            return translate("SignIn", "Waiting for you in the browser")
        case "signed-in":
            return translate("SignIn", "Signed in")
        case "failed":
            return translate("SignIn", "Failed")


def primary_text(state: SignInState) -> str:
    """What the main button says."""
    match state:
        case "running" | "waiting":
            return translate("SignIn", "Cancel sign-in")
        case "signed-in":
            return translate("SignIn", "Sign in again")
        case _:
            return translate("SignIn", "Sign in")


def token_text(view: SignInView) -> str:
    """How long the token lasts, and what then."""
    if view.state != "signed-in":
        return ""
    if view.expires_at is None:
        return translate("SignIn", "the server did not say how long it lasts")
    when = formats.exact_time(view.expires_at)
    if view.renewable:
        return translate("SignIn", "valid until {time}, renewed by itself").format(time=when)
    return translate("SignIn", "valid until {time}").format(time=when)
