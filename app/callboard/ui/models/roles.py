"""Item roles beyond Qt's own, shared by models, delegates and pages."""

from enum import IntEnum

from PySide6.QtCore import Qt


class Role(IntEnum):
    """What a model answers besides text.

    VIEW is the API's own struct of the row (ServerView, ToolView, CallView), OFFER how it is shown in a list, SEARCH
    the text a search field looks in, RANK the place in the list (lower is higher up).
    """

    VIEW = Qt.ItemDataRole.UserRole + 1
    SEARCH = Qt.ItemDataRole.UserRole + 2
    RANK = Qt.ItemDataRole.UserRole + 3
    OFFER = Qt.ItemDataRole.UserRole + 4
