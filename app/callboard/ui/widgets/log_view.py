"""The tail of a server's output."""

from collections import deque
from collections.abc import Iterable
from itertools import groupby

from PySide6.QtCore import QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFont,
    QFontDatabase,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QTextEdit, QWidget

from callboard.api.schema import LogLine
from callboard.ui import formats
from callboard.ui.theme import Theme, Token

_LONGEST = 4000  # characters of a line that are shown
_RULE = "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * 2
_MARKED = 500  # matches that are marked at a time


class LogView(QPlainTextEdit):
    """The newest :data:`KEPT` lines, the time of each in the margin; follows only while the end can be seen.

    Lines are taken in batches, ``CHUNK`` every ``FLUSH_MS`` milliseconds, so that no burst stops the window. Lines
    of stream "mark" separate runs, those of "stdout" are what should have been protocol.
    """

    KEPT = 5000
    FLUSH_MS = 50
    CHUNK = 400

    atEndChanged = Signal(bool)
    linesChanged = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._lines: deque[LogLine] = deque(maxlen=self.KEPT)  # one for each block
        self._waiting: deque[LogLine] = deque(maxlen=self.KEPT)
        self._following = True
        self._needle = ""
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setMaximumBlockCount(self.KEPT)
        self.setUndoRedoEnabled(False)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setAccessibleName(self.tr("Log"))
        self._margin = _Margin(self)
        self._timer = QTimer(self, interval=self.FLUSH_MS, singleShot=True)
        self._timer.timeout.connect(self._flush)
        self.updateRequest.connect(self._scroll_margin)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self._margin_width = self._measure()
        self.setViewportMargins(self._margin_width, 0, 0, 0)
        theme.changed.connect(self._restyle)

    # lines

    @property
    def lines(self) -> list[LogLine]:
        """All lines held, those that wait to be shown included."""
        return [*self._lines, *self._waiting]

    @property
    def is_at_end(self) -> bool:
        """Whether the newest line can be seen, and new ones are followed."""
        return self._following

    def append_lines(self, lines: Iterable[LogLine]) -> None:
        """Show more lines, soon."""
        self._waiting.extend(lines)
        if self._waiting and not self._timer.isActive():
            self._timer.start(0 if not self._lines else self.FLUSH_MS)

    def clear_lines(self) -> None:
        """Forget all lines, and follow the ones to come."""
        self._timer.stop()
        self._waiting.clear()
        self._lines.clear()
        self.clear()
        self._set_following(True)
        self.linesChanged.emit()

    def jump_to_end(self) -> None:
        """Show the newest line and follow from now on."""
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
        self._set_following(True)

    def _flush(self) -> None:
        chunk = [self._waiting.popleft() for _ in range(min(self.CHUNK, len(self._waiting)))]
        if not chunk:
            return
        following, top = self._following, self.verticalScrollBar().value()
        gone = max(0, len(self._lines) + len(chunk) - self.KEPT)
        self._insert(chunk)
        bar = self.verticalScrollBar()
        if following:
            bar.setValue(bar.maximum())
            self._set_following(True)
        elif gone:
            bar.setValue(max(0, top - gone))  # what is being read stays where it is
        if self._waiting:
            self._timer.start(self.FLUSH_MS)
        self.linesChanged.emit()
        self._mark_matches()

    def _insert(self, chunk: list[LogLine]) -> None:
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.beginEditBlock()
        empty = not self._lines
        for stream, group in groupby(chunk, lambda line: line.stream):
            texts = [_shown(line) for line in group]
            if not empty:
                cursor.insertBlock(self._block_format(stream), self._char_format(stream))
            else:
                cursor.setBlockFormat(self._block_format(stream))
            empty = False
            cursor.insertText("\n".join(texts), self._char_format(stream))
        cursor.endEditBlock()
        self._lines.extend(chunk)

    def _block_format(self, stream: str) -> QTextBlockFormat:
        block = QTextBlockFormat()
        if stream == "mark":
            block.setBackground(self._theme.color(Token.OFF_SOFT))
        elif stream == "stdout":
            block.setBackground(self._theme.color(Token.ATTENTION_SOFT))
        return block

    def _char_format(self, stream: str) -> QTextCharFormat:
        text = QTextCharFormat()
        if stream == "mark":
            text.setFontWeight(QFont.Weight.Bold)
            text.setForeground(self._theme.color(Token.OFF))
        elif stream == "stdout":
            text.setFontItalic(True)
            text.setForeground(self._theme.color(Token.ATTENTION))
        return text

    def _restyle(self) -> None:
        """Colours of a new theme for the lines that have colours of their own."""
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        for number, line in enumerate(self._lines):
            if line.stream != "stderr":
                cursor.setPosition(self.document().findBlockByNumber(number).position())
                cursor.setBlockFormat(self._block_format(line.stream))
                cursor.select(QTextCursor.SelectionType.BlockUnderCursor)
                cursor.setCharFormat(self._char_format(line.stream))
        cursor.endEditBlock()
        self._mark_matches()
        self._margin.update()

    # following

    def _scrolled(self, value: int) -> None:
        self._set_following(value >= self.verticalScrollBar().maximum())
        self._mark_matches()

    def _set_following(self, following: bool) -> None:
        if following != self._following:
            self._following = following
            self.atEndChanged.emit(following)

    # searching

    def search(self, needle: str) -> int:
        """Mark every place of ``needle`` (upper and lower case alike); returns how many lines have it."""
        self._needle = needle
        self._mark_matches()
        return self.count_matches()

    def count_matches(self) -> int:
        """How many lines shown have what is searched for."""
        needle = self._needle.casefold()
        return sum(needle in line.text.casefold() for line in self._lines) if needle else 0

    def find_next(self, *, backward: bool = False) -> bool:
        """Select the next place, beginning anew at the other end; false if there is none."""
        if not self._needle:
            return False
        flags = QTextDocument.FindFlag.FindBackward if backward else QTextDocument.FindFlag(0)
        if self.find(self._needle, flags):
            return True
        cursor = self.textCursor()
        end = QTextCursor.MoveOperation.End if backward else QTextCursor.MoveOperation.Start
        cursor.movePosition(end)
        self.setTextCursor(cursor)
        return self.find(self._needle, flags)

    def _mark_matches(self) -> None:
        """Mark the matches that can be seen; the others are marked when they are scrolled to."""
        marks: list[QTextEdit.ExtraSelection] = []
        needle = self._needle.casefold()
        block = self.firstVisibleBlock()
        bottom = self.viewport().height()
        while needle and block.isValid() and len(marks) < _MARKED:
            if self.blockBoundingGeometry(block).translated(self.contentOffset()).top() > bottom:
                break
            text = block.text().casefold()
            at = text.find(needle)
            while at >= 0 and len(marks) < _MARKED:
                marks.append(self._mark(block.position() + at, len(needle)))
                at = text.find(needle, at + len(needle))
            block = block.next()
        self.setExtraSelections(marks)

    def _mark(self, position: int, length: int) -> QTextEdit.ExtraSelection:
        mark = QTextEdit.ExtraSelection()
        cursor = QTextCursor(self.document())
        cursor.setPosition(position)
        cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
        mark.cursor = cursor
        colors = QTextCharFormat()
        colors.setBackground(self._theme.color(Token.ACCENT_SOFT))
        colors.setForeground(self._theme.color(Token.TEXT))
        colors.setFontUnderline(True)
        mark.format = colors
        return mark

    # the margin

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        inside = self.contentsRect()
        self._margin.setGeometry(QRect(inside.left(), inside.top(), self._margin_width, inside.height()))
        if self._following:
            self.jump_to_end()
        self._mark_matches()

    def _measure(self) -> int:
        return self.fontMetrics().horizontalAdvance("00:00:00 out ") + 8

    def _scroll_margin(self, rect: QRect, dy: int) -> None:
        if dy:
            self._margin.scroll(0, dy)
        else:
            self._margin.update(0, rect.y(), self._margin.width(), rect.height())

    def paint_margin(self, event: QPaintEvent) -> None:
        """Paint times, and "out" beside lines from stdout; called by the margin."""
        painter = QPainter(self._margin)
        painter.fillRect(event.rect(), self._theme.color(Token.ALTERNATE))
        painter.setFont(self.font())
        painter.setPen(self._theme.color(Token.MUTED))
        block = self.firstVisibleBlock()
        height = self.fontMetrics().height()
        while block.isValid() and block.blockNumber() < len(self._lines):
            top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
            if top > event.rect().bottom():
                break
            line = self._lines[block.blockNumber()]
            text = formats.clock_time(line.at) + (" out" if line.stream == "stdout" else "")
            painter.drawText(QRect(8, int(top), self._margin_width, height), Qt.AlignmentFlag.AlignLeft, text)
            block = block.next()
        painter.end()


class _Margin(QWidget):
    """Where the times stand; not part of what is selected and copied."""

    def __init__(self, view: LogView) -> None:
        super().__init__(view)
        self._view = view

    def sizeHint(self) -> QSize:
        return QSize(self._view.viewportMargins().left(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._view.paint_margin(event)


def _shown(line: LogLine) -> str:
    """A line's text without what would break it into several blocks, and not longer than can be laid out."""
    text = line.text.replace("\n", " ").replace("\r", " ").replace("\u2028", " ").replace("\u2029", " ")
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + f" … (+{len(text) - _LONGEST})"
    return f"{_RULE} {text} {_RULE}" if line.stream == "mark" else text
