"""The fields that narrow the call log."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QWidget

from callboard.ui import words
from callboard.ui.engine_link import EngineLink
from callboard.ui.models.calls import CallFilter, CallsModel

_DEBOUNCE_MS = 200


class CallFilters(QWidget):
    """Text, server, tool, status, client and, where several share the log, engine.

    :attr:`changed` tells a filter that a person has finished to set.
    """

    changed = Signal(object)  # CallFilter

    def __init__(self, link: EngineLink, model: CallsModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = QLineEdit(placeholderText=self.tr("Search calls"), clearButtonEnabled=True)
        self._text.setAccessibleName(self.tr("Search calls"))
        self._text.setToolTip(self.tr("Searches tools, errors, arguments and results"))
        self._server = ChoiceBox(self.tr("All servers"), self.tr("Server"), lambda: _same(list(link.servers)))
        self._tool = ChoiceBox(self.tr("All tools"), self.tr("Tool"), lambda: _same(model.tools(self._server.choice)))
        self._status = ChoiceBox(self.tr("Any status"), self.tr("Status"), _statuses)
        self._client = ChoiceBox(self.tr("All clients"), self.tr("Client"), lambda: _same(model.clients))
        self._engine = ChoiceBox(self.tr("All engines"), self.tr("Engine"), lambda: _same(model.engines))
        self._engine.hide()
        model.totalChanged.connect(self._offer_engines)
        self._model = model
        self._timer = QTimer(self, interval=_DEBOUNCE_MS, singleShot=True)
        self._timer.timeout.connect(self._tell)
        self._told = CallFilter()
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._text, 3)
        for box in (self._server, self._tool, self._status, self._client, self._engine):
            layout.addWidget(box, 2)
            box.currentIndexChanged.connect(self._wait)
        self._text.textChanged.connect(self._wait)
        self._text.returnPressed.connect(self._tell)

    @property
    def filter(self) -> CallFilter:
        """What the fields say now."""
        return CallFilter(
            server=self._server.choice,
            tool=self._tool.choice,
            client=self._client.choice,
            status=self._status.choice,
            text=self._text.text().strip(),
            engine=self._engine.choice,
        )

    def show_filter(self, narrowed: CallFilter) -> None:
        """Fill the fields, and tell it at once."""
        with QSignalBlocker(self._text):
            self._text.setText(narrowed.text)
        self._server.choose(narrowed.server)
        self._tool.choose(narrowed.tool)
        self._status.choose(narrowed.status)
        self._client.choose(narrowed.client)
        self._engine.choose(narrowed.engine)
        self._tell()

    def _offer_engines(self) -> None:
        """Where only one engine keeps this log there is nothing to choose."""
        self._engine.setVisible(bool(self._model.engines or self._engine.choice))

    def focus_search(self) -> None:
        """Put the cursor into the text field."""
        self._text.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._text.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape in the text field clears it."""
        if event.key() == Qt.Key.Key_Escape and self._text.hasFocus() and self._text.text():
            self._text.clear()
        else:
            super().keyPressEvent(event)

    def _wait(self, *_change: object) -> None:
        """Tell a little later: more is on its way while a person types."""
        self._timer.start()

    def _tell(self) -> None:
        self._timer.stop()
        narrowed = self.filter
        if narrowed != self._told:
            self._told = narrowed
            self.changed.emit(narrowed)


class ChoiceBox(QComboBox):
    """One of the values that there are when it is opened, or all (the first line)."""

    def __init__(self, everything: str, name: str, values: Callable[[], list[tuple[str, str]]]) -> None:
        super().__init__()
        self._values = values
        self.addItem(everything, "")
        self.setAccessibleName(name)
        self.setToolTip(name)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(8)
        self.view().setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.installEventFilter(self)

    @property
    def choice(self) -> str:
        """The value chosen, "" for all."""
        return str(self.currentData() or "")

    def choose(self, value: str) -> None:
        """Choose a value without telling it; one that is not offered is added."""
        with QSignalBlocker(self):
            self._fill(value)

    def showPopup(self) -> None:
        self._refresh()
        super().showPopup()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keys go through the values without opening the box: they must be there too."""
        if event.type() == QEvent.Type.FocusIn:
            self._refresh()
        return super().eventFilter(watched, event)

    def _refresh(self) -> None:
        with QSignalBlocker(self):
            self._fill(self.choice)

    def _fill(self, chosen: str) -> None:
        while self.count() > 1:
            self.removeItem(1)
        for value, title in self._values():
            self.addItem(title, value)
        if chosen and self.findData(chosen) < 0:
            self.addItem(chosen, chosen)
        self.setCurrentIndex(max(0, self.findData(chosen)))


def _same(values: list[str]) -> list[tuple[str, str]]:
    return [(value, value) for value in values if value]


def _statuses() -> list[tuple[str, str]]:
    return [(status, words.call_status_word(status)) for status in ("running", "completed", "failed", "cancelled")]
