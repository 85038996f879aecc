"""The window's icons: one-colour drawings, in the colour of the text they stand beside."""

from pathlib import Path
from weakref import ref

import shiboken6
from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from callboard.ui.theme import Theme, Token

SIZES = (16, 20, 24)


class Icons(QObject):
    """Draws `NAME.svg` of a folder in the theme's colours.

    One per application. The drawings use ``currentColor`` and nothing else; each is rendered once per colour, size
    and device pixel ratio. :meth:`set_on` keeps an icon right when the theme changes.
    """

    def __init__(self, theme: Theme, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._folder = folder
        self._sources: dict[str, str] = {}
        self._pixmaps: dict[tuple[str, str, int, float], QPixmap] = {}
        self._bound: list[tuple[ref[QObject], str, Token]] = []
        theme.changed.connect(self._refresh)

    def icon(self, name: str, token: Token = Token.TEXT) -> QIcon:
        """The icon in the present theme; raises FileNotFoundError for a name without a drawing."""
        icon = QIcon()
        ratios = {1.0, *(screen.devicePixelRatio() for screen in QApplication.screens())}
        for size in SIZES:
            for ratio in ratios:
                icon.addPixmap(self.pixmap(name, size, token, ratio))
                icon.addPixmap(self.pixmap(name, size, Token.DISABLED, ratio), QIcon.Mode.Disabled)
        return icon

    def pixmap(self, name: str, size: int, token: Token = Token.TEXT, ratio: float = 1.0) -> QPixmap:
        """The drawing ``size`` logical pixels wide and high."""
        color = self._theme.color(token).name()
        key = (name, color, size, ratio)
        if key not in self._pixmaps:
            self._pixmaps[key] = render(self._source(name), QColor(color), size, ratio)
        return self._pixmaps[key]

    def set_on(self, target: QObject, name: str, token: Token = Token.TEXT) -> None:
        """Give ``target`` (anything with ``setIcon``) the icon, now and after each change of the theme."""
        self._bound = [entry for entry in self._bound if _alive(entry[0]) not in (None, target)]
        self._bound.append((ref(target), name, token))
        target.setIcon(self.icon(name, token))  # type: ignore[attr-defined]

    def _source(self, name: str) -> str:
        if name not in self._sources:
            self._sources[name] = (self._folder / f"{name}.svg").read_text(encoding="utf-8")
        return self._sources[name]

    def _refresh(self) -> None:
        self._bound = [entry for entry in self._bound if _alive(entry[0]) is not None]
        for target, name, token in self._bound:
            if (alive := _alive(target)) is not None:
                alive.setIcon(self.icon(name, token))  # type: ignore[attr-defined]


def render(source: str, color: QColor, size: int, ratio: float = 1.0) -> QPixmap:
    """Draw an SVG text in one colour, ``size`` logical pixels wide and high."""
    renderer = QSvgRenderer(QByteArray(source.replace("currentColor", color.name()).encode()))
    pixmap = QPixmap(QSize(round(size * ratio), round(size * ratio)))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, pixmap.width(), pixmap.height()))
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


def _alive(target: "ref[QObject]") -> QObject | None:
    found = target()
    return found if found is not None and shiboken6.isValid(found) else None
