"""One prompt or resource of a server: what it is, and trying it by hand."""

from collections.abc import Callable
from typing import Any, NamedTuple

from PySide6.QtWidgets import QVBoxLayout, QWidget

from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.tabs.offer_head import OfferHead
from callboard.ui.tabs.try_box import Try, TryBox
from callboard.ui.theme import Theme


class Presented(NamedTuple):
    """What the page shows: the name that can be copied, what it is as HTML, and how it is tried."""

    name: str
    html: str
    attempt: Try


class OfferPage(QWidget):
    """Qt's thread. ``present`` turns a server's name and the view of what is shown into :class:`Presented`."""

    def __init__(
        self,
        link: EngineLink,
        theme: Theme,
        icons: Icons,
        *,
        copy: str,
        go: str,
        present: Callable[[str, Any], Presented],
    ) -> None:
        """``copy`` and ``go`` are what the two buttons say."""
        super().__init__()
        self._present = present
        self._head = OfferHead(theme, icons, copy)
        self._try = TryBox(link, theme, icons, go, raw=False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._head)
        layout.addWidget(self._try, 1)

    def show_offer(self, server: str, view: Any | None) -> None:
        """Show what a server offers, or nothing."""
        if view is None:
            self._head.show_head("", "")
            self._try.show_try(None)
            return
        name, html, attempt = self._present(server, view)
        self._head.show_head(name, html)
        self._try.show_try(attempt)
