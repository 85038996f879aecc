"""The rows of servers, with their painted buttons."""

from PySide6.QtCore import QEvent, QModelIndex, QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QContextMenuEvent, QFocusEvent, QHideEvent, QKeyEvent, QMouseEvent, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView, QWidget

from callboard.api.schema import ServerView
from callboard.ui.actions import ServerActions
from callboard.ui.delegates.server_row import ServerRowDelegate
from callboard.ui.models.roles import Role
from callboard.ui.models.servers import ServerOrder
from callboard.ui.server_menu import build_menu, press_key
from callboard.ui.theme import Theme

_HOLD_MS = 1500  # rows stay where they are so long after the pointer has moved over them


class ServerListView(QListView):
    """The rows, with the mouse and the keys of their buttons."""

    def __init__(self, actions: ServerActions, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._actions = actions
        self._delegate = ServerRowDelegate(theme, self)
        self._enabled = True
        self.setItemDelegate(self._delegate)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAccessibleName(self.tr("Servers"))
        theme.changed.connect(self.viewport().update)
        self._countdown = QTimer(self, interval=1000)
        self._countdown.timeout.connect(self._tick)
        self._hold = QTimer(self, interval=_HOLD_MS, singleShot=True)
        self._hold.timeout.connect(self._release)

    def set_actions_enabled(self, enabled: bool) -> None:
        """Whether buttons and keys do anything."""
        self._enabled = self._delegate.enabled = enabled
        self.viewport().update()

    # time

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._countdown.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._countdown.stop()
        self._hold.stop()
        self._release()

    def _tick(self) -> None:
        """Repaint rows that count down."""
        for row in range(self.model().rowCount()):
            index = self.model().index(row, 0)
            view = index.data(Role.VIEW)
            if isinstance(view, ServerView) and view.next_retry is not None:
                self.update(index)

    def _release(self) -> None:
        order = self.model()
        if isinstance(order, ServerOrder):
            order.hold(False)

    # the mouse

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        order = self.model()
        if isinstance(order, ServerOrder):
            order.hold(True)
            self._hold.start()
        self._hover(event.position().toPoint())
        if self._delegate.pressed < 0:
            super().mouseMoveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self._button_at(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and index.isValid():
            self._delegate.pressed = index.row()
            self.update(index)
            return
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self._delegate.pressed = self._delegate.pressed, -1
        if pressed < 0:
            super().mouseReleaseEvent(event)
            return
        index = self._button_at(event.position().toPoint())
        self.viewport().update()
        if index.isValid() and index.row() == pressed:
            self._run(index)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """A fast second click on a button is a click."""
        if self._button_at(event.position().toPoint()).isValid():
            self.mousePressEvent(event)
        else:
            super().mouseDoubleClickEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(QPoint(-1, -1))

    def _hover(self, at: QPoint) -> None:
        index = self._button_at(at)
        row = index.row() if index.isValid() else -1
        if row != self._delegate.hovered:
            self._delegate.hovered = row
            self.viewport().update()

    def _button_at(self, at: QPoint) -> QModelIndex:
        index = self.indexAt(at) if self._enabled else QModelIndex()
        return index if index.isValid() and self.button_rect(index).contains(at) else QModelIndex()

    def button_rect(self, index: QModelIndex) -> QRect:
        """Where the button of a row is, in the viewport's coordinates."""
        return self._delegate.button_rect(self.visualRect(index), index.data(Role.VIEW), self.font())

    def _run(self, index: QModelIndex) -> None:
        view = index.data(Role.VIEW)
        if isinstance(view, ServerView) and self._enabled:
            self._actions.run_primary(view)

    # keys and menu

    def keyPressEvent(self, event: QKeyEvent) -> None:
        index = self.currentIndex()
        if index.isValid() and self._enabled and event.modifiers() == Qt.KeyboardModifier.NoModifier:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
                if not event.isAutoRepeat():
                    self._run(index)
                return
            if press_key(event, index.data(Role.VIEW), self._actions):
                return
        super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if not self.currentIndex().isValid() and self.model().rowCount():
            self.setCurrentIndex(self.model().index(0, 0))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_mouse = event.reason() == QContextMenuEvent.Reason.Mouse
        index = self.indexAt(event.pos()) if by_mouse else self.currentIndex()
        view = index.data(Role.VIEW)
        if not isinstance(view, ServerView):
            return
        at = event.globalPos() if by_mouse else self.viewport().mapToGlobal(self.visualRect(index).center())
        menu = build_menu(view, self._actions, self._enabled, self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(at)
