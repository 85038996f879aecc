"""Writing for people and for programs: aligned tables, JSON, and errors with their fix."""

import os
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Iterable, Sequence
from typing import IO, Any, Final

from callboard.core.errors import CallboardError

_GAP: Final = "  "
# Escape sequences (colours, cursor, window title) and control characters: a server's text must not steer the terminal.
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLOURS: Final = {"fine": "32", "busy": "36", "attention": "33", "failed": "31", "off": "2"}


class Cell(str):
    """A table's cell with a meaning that colour may underline; the words stand without it."""

    __slots__ = ("meaning",)
    meaning: str

    def __new__(cls, text: str, meaning: str = "") -> "Cell":
        """``meaning`` is a severity: "fine", "busy", "attention", "failed" or "off"."""
        cell = super().__new__(cls, text)
        cell.meaning = meaning
        return cell


class Terminal:
    """Standard output and standard error. Colour and cutting to the screen's width only where a person looks on."""

    def __init__(self, out: IO[str], err: IO[str]) -> None:
        self._out = out
        self._err = err
        self.is_screen = out.isatty()
        self.colour = self.is_screen and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        for stream in (out, err):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")

    @classmethod
    def standard(cls) -> "Terminal":
        """The process's own streams."""
        return cls(sys.stdout, sys.stderr)

    def line(self, text: str = "") -> None:
        """One line of output, without what could steer the terminal."""
        self._out.write(clean(text) + "\n")

    def lines(self, texts: Iterable[str]) -> None:
        """Several lines, visible at once also in a pipe."""
        self._out.write("".join(clean(text) + "\n" for text in texts))
        self._out.flush()

    def raw(self, text: str) -> None:
        """A tool's own text: byte for byte into a pipe, cleaned on a screen; ends with a newline."""
        self._out.write((clean_block(text) if self.is_screen else text) + ("" if text.endswith("\n") else "\n"))

    def json(self, value: Any, *, indent: int = 2) -> None:
        """A value as JSON; ``indent`` 0 puts it on one line and shows it at once, for streams."""
        import msgspec

        data = msgspec.json.encode(value)
        if indent:
            self._out.write(msgspec.json.format(data, indent=indent).decode() + "\n")
        else:
            self._out.write(data.decode() + "\n")
            self._out.flush()

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns as wide as their widest cell; the last one is cut on a screen that is too narrow."""
        cells = [[one_line(cell) for cell in row] for row in rows]
        widths = [max(width(row[n]) for row in [list(headers), *cells]) for n in range(len(headers))]
        self._row([Cell(header, "off") for header in headers], headers, widths)
        for row, texts in zip(rows, cells, strict=True):
            self._row(row, texts, widths)

    def columns(self, cells: Sequence[str], widths: Sequence[int]) -> None:
        """One row of a growing table, visible at once; a cell that is too wide pushes the others."""
        self._row(cells, [one_line(cell) for cell in cells], widths)
        self._out.flush()

    def pairs(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Names and values below each other; a value of several lines is indented."""
        shown = [(name, value) for name, value in pairs if value]
        left = max((width(name) for name, _ in shown), default=0) + 2
        for name, value in shown:
            first, *rest = value.splitlines() or [""]
            self.line(f"{pad(name + ':', left)}{first}")
            for text in rest:
                self.line(" " * left + text)

    def note(self, text: str) -> None:
        """A remark for a person, beside the output proper."""
        self._err.write(clean(text) + "\n")

    def error(self, message: str, fix: str = "") -> None:
        """What went wrong in one sentence, and below it what mends it."""
        self.flush()
        self._err.write(f"callboard: {clean_block(message)}\n")
        if fix:
            self._err.write(f"  {clean(fix)}\n")
        self._err.flush()

    def failure(self, error: CallboardError) -> None:
        """An error with its fix."""
        self.error(error.message, error.fix)

    def flush(self) -> None:
        """Hand everything over; raises BrokenPipeError if the reader has gone."""
        self._out.flush()

    def _row(self, cells: Sequence[str], texts: Sequence[str], widths: Sequence[int]) -> None:
        parts = []
        room = shutil.get_terminal_size().columns if self.is_screen else 0
        for n, (cell, text) in enumerate(zip(cells, texts, strict=True)):
            last = n == len(texts) - 1
            shown = cut(text, room) if last and self.is_screen else text
            room = max(room - max(widths[n], width(text)) - len(_GAP), 8)
            padding = "" if last else " " * (widths[n] - width(text))
            parts.append(self._painted(shown, cell) + padding)
        self._out.write(_GAP.join(parts).rstrip() + "\n")

    def _painted(self, text: str, cell: str) -> str:
        code = _COLOURS.get(getattr(cell, "meaning", ""))
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code and text else text


def clean(text: str) -> str:
    """Text without escape sequences and control characters (tabs stay)."""
    return _CONTROLS.sub("\ufffd", _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", " ").replace("\n", " "))


def clean_block(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(clean(line) for line in text.split("\n"))


def one_line(text: str) -> str:
    """Text for a cell: cleaned, white space joined."""
    return " ".join(clean(text).split())


def width(text: str) -> int:
    """Columns that a text takes: wide characters count twice, combining ones not at all."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def pad(text: str, columns: int) -> str:
    """Text filled up with spaces to a number of columns."""
    return text + " " * (columns - width(text))


def cut(text: str, columns: int) -> str:
    """Text cut to a number of columns, with an ellipsis if something is missing."""
    if width(text) <= columns:
        return text
    taken = 0
    for n, char in enumerate(text):
        taken += _width(char)
        if taken > columns - 1:
            return text[:n] + "…"
    return text


def _width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def clock(moment: float) -> str:
    """A time of day, with the date if it was not today (local time)."""
    then, now = time.localtime(moment), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == now[:3] else "%Y-%m-%d %H:%M:%S", then)


def span(seconds: float) -> str:
    """A length of time in its two largest units: "3 m 20 s"."""
    whole = max(0, int(seconds))
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {smaller}"
    return f"{whole} s"


def duration(milliseconds: float | None) -> str:
    """How long a call took; empty while it runs."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.{1 if milliseconds < 10 else 0}f} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 60_000 else span(milliseconds / 1000)


def size(count: int) -> str:
    """A number of bytes for people."""
    if count < 1000:
        return f"{count} B"
    scaled = float(count)
    for unit in ("kB", "MB"):
        scaled /= 1000
        if scaled < 1000:
            return f"{scaled:.{1 if scaled < 10 else 0}f} {unit}"
    return f"{scaled / 1000:.1f} GB"
