"""Tab order that follows what is seen."""

from itertools import pairwise

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QLayout, QScrollArea, QStackedWidget, QWidget


def focus_stops(root: QWidget | None) -> list[QWidget]:
    """Widgets from ``root`` down that Tab can reach, in the order of the layouts they stand in."""
    if root is None:
        return []
    stops = [root] if root.focusPolicy() & Qt.FocusPolicy.TabFocus else []
    if isinstance(root, QScrollArea):
        return [*stops, *focus_stops(root.widget())]
    if isinstance(root, QStackedWidget):
        return [*stops, *(stop for index in range(root.count()) for stop in focus_stops(root.widget(index)))]
    return [*stops, *_in_layout(root.layout())]


def _in_layout(layout: QLayout | None) -> list[QWidget]:
    stops: list[QWidget] = []
    if layout is None:
        return stops
    for index in range(layout.count()):
        item = layout.itemAt(index)
        if item is None:
            continue
        if (inner := item.layout()) is not None:
            stops += _in_layout(inner)
        elif (widget := item.widget()) is not None:
            stops += focus_stops(widget)
    return stops


class OrderedTabs(QWidget):
    """A widget whose Tab order follows its layouts, also where rows come, go and move."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ordered: list[QWidget] = []

    def event(self, event: QEvent) -> bool:
        """Order anew when the layouts have changed."""
        done = super().event(event)
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Show):
            self.order_tabs()
        return done

    def order_tabs(self) -> None:
        """Chain what Tab can reach."""
        stops = focus_stops(self)
        if stops == self._ordered:
            return
        self._ordered = stops
        for first, second in pairwise(stops):
            QWidget.setTabOrder(first, second)
