"""One call of the log with what it sent and got."""

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication, Qt, QTimer, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QSplitter, QToolButton, QVBoxLayout, QWidget

from callboard.api.schema import CallDetail, CallView
from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.ui import formats, words
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.severity import StatusPill
from callboard.ui.theme import Theme
from callboard.ui.widgets.elided_label import ElidedLabel
from callboard.ui.widgets.payload_view import PayloadView
from callboard.ui.widgets.reason_bar import ReasonBar


class CallDrawer(QWidget):
    """Head, error, arguments and result of a call. The payloads are read when the call is shown, and when it ends."""

    closed = Signal()

    def __init__(self, link: EngineLink, theme: Theme, icons: Icons, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._call: CallView | None = None
        self._question = 0
        self._title = ElidedLabel()
        self._pill = StatusPill(theme)
        self._facts = QLabel(wordWrap=True)
        self._error = ReasonBar(theme)
        self.arguments = PayloadView(theme, icons, self.tr("Arguments"))
        self.result = PayloadView(theme, icons, self.tr("Result"))
        self._payloads = QSplitter(Qt.Orientation.Vertical)
        self._close = QToolButton()
        icons.set_on(self._close, "close")
        self._slow = QTimer(self, interval=150, singleShot=True)
        self._slow.timeout.connect(self._say_reading)
        self._lay_out()
        link.resynced.connect(self._read_again)
        link.connected.connect(self._read_again)

    def _lay_out(self) -> None:
        font = QFont(self._title.font())
        font.setWeight(QFont.Weight.DemiBold)
        self._title.setFont(font)
        self._pill.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)  # the title gives way
        self._facts.setTextFormat(Qt.TextFormat.PlainText)
        self._facts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._facts.setContentsMargins(12, 0, 12, 8)
        self._close.setAutoRaise(True)
        self._close.setToolTip(self.tr("Close (Esc)"))
        self._close.setAccessibleName(self.tr("Close"))
        self._close.clicked.connect(self.closed)
        head = QHBoxLayout()
        head.setContentsMargins(12, 8, 8, 4)
        head.setSpacing(8)
        head.addWidget(self._title)
        head.addWidget(self._pill)
        head.addStretch(1)
        head.addWidget(self._close)
        self._payloads.addWidget(self.arguments)
        self._payloads.addWidget(self.result)
        self._payloads.setStretchFactor(0, 2)
        self._payloads.setStretchFactor(1, 3)
        self._payloads.setChildrenCollapsible(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self._facts)
        layout.addWidget(self._error)
        layout.addWidget(self._payloads, 1)
        self.setMinimumWidth(300)

    @property
    def call_id(self) -> int:
        """The call shown, 0 for none."""
        return self._call.id if self._call else 0

    def set_beside(self, beside: bool) -> None:
        """Whether the drawer stands beside the table (payloads one above the other) or below it."""
        self._payloads.setOrientation(Qt.Orientation.Vertical if beside else Qt.Orientation.Horizontal)

    def show_call(self, call: CallView) -> None:
        """Show a call of the table."""
        self._call = call
        self._show_head(call)
        self._read(call.id)

    def show_id(self, call_id: int) -> None:
        """Show a call of which only the number is known."""
        self._call = None
        self._title.setText(self.tr("Call {id}").format(id=call_id))
        self._pill.setVisible(False)
        self._facts.clear()
        self._error.show_reason("", "", Severity.OFF)
        self._read(call_id)

    def update_calls(self, calls: Iterable[CallView]) -> None:
        """Calls have changed; one that ended is read again if it is the one shown."""
        for call in calls:
            if self._call is not None and call.id == self._call.id and call.status != self._call.status:
                self._call = call
                self._show_head(call)
                self._read(call.id)

    # reading

    def _read_again(self) -> None:
        if self._call is not None and self.isVisible():
            self._read(self._call.id)

    def _read(self, call_id: int) -> None:
        self._question += 1
        question = self._question
        self._slow.start()

        def done(detail: CallDetail) -> None:
            if question == self._question:
                self._take(detail)

        def fail(error: CallboardError) -> None:
            if question == self._question:
                self._slow.stop()
                self._error.show_reason(error.message, error.fix, Severity.ATTENTION)
                self.arguments.show_payload("")
                self.result.show_payload("")

        self._link.request(lambda client: client.call(call_id), done, fail, owner=self, name="read call")

    def _say_reading(self) -> None:
        self.arguments.show_payload("", self.tr("reading…"))
        self.result.show_payload("", self.tr("reading…"))

    def _take(self, detail: CallDetail) -> None:
        self._slow.stop()
        known = self._call
        if known is None or known.id != detail.id or detail.status != "running":
            self._call = detail
            self._show_head(detail)
        self.arguments.show_payload(
            detail.arguments, _note(detail.request_bytes, detail.arguments, detail.arguments_cut)
        )
        if detail.status == "running":
            self.result.show_payload("", self.tr("the call still runs"))
        else:
            self.result.show_payload(detail.result, _note(detail.response_bytes, detail.result, detail.result_cut))

    def _show_head(self, call: CallView) -> None:
        self._title.setText(words.call_title(call))
        self._pill.setVisible(True)
        self._pill.set_state(words.call_status_word(call.status), words.call_severity(call.status))
        parts = [call.client, formats.exact_time(call.started)]
        if call.duration_ms is not None:
            parts.append(self.tr("took {duration}").format(duration=formats.duration(call.duration_ms)))
        if call.method != "tools/call":
            parts.append(call.method)
        if call.engine:
            parts.append(self.tr("engine {name}").format(name=call.engine))
        self._facts.setText(" · ".join(part for part in parts if part))
        severity = words.call_severity(call.status)
        self._error.show_reason(call.error, "", severity)


def _note(size: int, text: str, cut: bool) -> str:
    """A payload's size, and how much of it is here."""
    tr = QCoreApplication.translate
    if cut:
        kept = formats.size(len(text.encode()))
        return tr("CallDrawer", "cut: the first {kept} of {size}").format(kept=kept, size=formats.size(size))
    return formats.size(size) if text else tr("CallDrawer", "none")
