"""The steps of a sign-in with their requests."""

from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QSplitter, QTreeWidget, QTreeWidgetItem, QWidget

from callboard.api.sign_in_schema import SignInRequest, SignInStep, StepName, StepState
from callboard.core.health import Severity
from callboard.ui import formats
from callboard.ui.severity import paint_mark
from callboard.ui.theme import Theme
from callboard.ui.widgets.json_view import JsonView

translate = QCoreApplication.translate

MARK = 14
_REQUEST = Qt.ItemDataRole.UserRole
_SEVERITY: dict[StepState, Severity] = {
    "pending": Severity.OFF,
    "running": Severity.BUSY,
    "done": Severity.FINE,
    "failed": Severity.FAILED,
}


class StepsView(QSplitter):
    """Above the steps and below each its requests; below what the chosen one sent and got."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self._theme = theme
        self._steps: list[SignInStep] = []
        self.tree = QTreeWidget()
        self.tree.setColumnCount(2)
        self.tree.setHeaderLabels([self.tr("Step"), self.tr("Result")])
        self.tree.setAccessibleName(self.tr("Steps of the sign-in"))
        self.tree.setUniformRowHeights(True)
        self.tree.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.tree.header().setStretchLastSection(False)
        self.tree.currentItemChanged.connect(self._show_request)
        self.details = JsonView(theme, self.tr("Request and answer"))
        self.addWidget(self.tree)
        self.addWidget(self.details)
        self.setStretchFactor(0, 3)
        self.setStretchFactor(1, 2)
        self.setChildrenCollapsible(False)
        self.details.hide()
        theme.changed.connect(self._repaint)

    def show_steps(self, steps: list[SignInStep]) -> None:
        """Show the steps of an attempt; what is chosen stays chosen."""
        if steps == self._steps:
            return
        self._steps = steps
        chosen = self._place(self.tree.currentItem())
        self.tree.clear()
        for step in steps:
            self.tree.addTopLevelItem(self._item(step))
        self.tree.expandAll()
        for row, step in enumerate(steps):
            if step.note:
                self._add_note(self.tree.topLevelItem(row), step.note)
        self._choose(chosen)

    def _item(self, step: SignInStep) -> QTreeWidgetItem:
        item = QTreeWidgetItem([step_word(step.name), state_word(step.state)])
        item.setIcon(0, self._mark(step.state))
        for request in step.requests:
            child = QTreeWidgetItem([f"{request.method} {request.url}", result_text(request)])
            child.setToolTip(0, request.url)
            child.setData(0, _REQUEST, request)
            item.addChild(child)
        return item

    def _add_note(self, item: QTreeWidgetItem | None, note: str) -> None:
        if item is None:
            return
        line = QTreeWidgetItem([note])
        line.setFlags(Qt.ItemFlag.ItemIsEnabled)
        line.setToolTip(0, note)
        item.insertChild(0, line)
        line.setFirstColumnSpanned(True)

    def _place(self, item: QTreeWidgetItem | None) -> tuple[int, int] | None:
        parent = item.parent() if item is not None else None
        if item is None or parent is None:
            return None
        return self.tree.indexOfTopLevelItem(parent), parent.indexOfChild(item)

    def _choose(self, place: tuple[int, int] | None) -> None:
        top = self.tree.topLevelItem(place[0]) if place is not None else None
        child = top.child(place[1]) if top is not None and place is not None else None
        if child is not None:
            self.tree.setCurrentItem(child)
        else:
            self._show_request(None)

    def _show_request(self, item: QTreeWidgetItem | None, _before: QTreeWidgetItem | None = None) -> None:
        request = item.data(0, _REQUEST) if item is not None else None
        self.details.setVisible(isinstance(request, SignInRequest))
        if isinstance(request, SignInRequest):
            self.details.show_text(request_text(request))

    def _mark(self, state: StepState) -> QIcon:
        ratio = self.devicePixelRatioF()
        pixmap = QPixmap(int(MARK * ratio), int(MARK * ratio))
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        severity = _SEVERITY[state]
        painter = QPainter(pixmap)
        paint_mark(painter, QRectF(0, 0, MARK, MARK), severity, self._theme.severity(severity)[0])
        painter.end()
        return QIcon(pixmap)

    def _repaint(self) -> None:
        for row, step in enumerate(self._steps):
            item = self.tree.topLevelItem(row)
            if item is not None:
                item.setIcon(0, self._mark(step.state))


def step_word(name: StepName) -> str:
    """What a step is called."""
    match name:
        case "discovery":
            return translate("SignInSteps", "Find the sign-in server")
        case "registration":
            return translate("SignInSteps", "Say who we are")
        case "authorisation":
            return translate("SignInSteps", "Ask you in the browser")
        case "token":
            return translate("SignInSteps", "Get the token")


def state_word(state: StepState) -> str:
    """How far a step is."""
    match state:
        case "pending":
            return translate("SignInSteps", "not yet")
        case "running":
            return translate("SignInSteps", "at work")
        case "done":
            return translate("SignInSteps", "done")
        case "failed":
            return translate("SignInSteps", "failed")


def result_text(request: SignInRequest) -> str:
    """What came of a request: "200, 12 ms"."""
    if not request.status:
        return translate("SignInSteps", "no answer")
    return f"{request.status}, {formats.duration(request.duration_ms)}"


def request_text(request: SignInRequest) -> str:
    """A request and its answer for reading."""
    parts = [f"{request.method} {request.url}"]
    if request.sent:
        parts += [translate("SignInSteps", "Sent:"), request.sent]
    if request.error:
        parts += [request.error]
    elif request.received:
        parts += [translate("SignInSteps", "Received ({status}):").format(status=request.status), request.received]
    return "\n\n".join(parts)
