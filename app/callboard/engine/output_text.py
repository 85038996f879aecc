"""What a server prints, as lines that are safe to store and to show.

Bytes come in as the process wrote them; out come short lines without control characters, and the number of lines that
were left out because they came too fast to be read by anybody.
"""

import re
from collections.abc import Callable

MAX_LINE = 8 * 1024  # characters; a longer line is cut into pieces
_FLOOD = 64 * 1024  # bytes between two looks; more than that is shown as its beginning and its end
_FLOOD_END = 16 * 1024
_FLOOD_LINES = 2_000
_MAX_OPEN = 64 * 1024  # bytes of a line whose end has not come
_KEPT_OPEN = 4 * 1024  # of those, held back when the rest is given out, so that a secret is not cut in two

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|[\]P^_X][^\x07\x1b\r\n]*(?:\x07|\x1b\\)?"  # titles, links and other strings; one left open hides no more lines
    r"|[ -/]*[0-~])?"
)
# What is left of C0 and C1, line separators that are none to us, and marks that turn the direction of text around.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def neutralise(text: str) -> str:
    """``text`` without escape sequences; other control characters become visible signs. Tabs, LF and CR stay."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


class LineReader:
    """Collects the output of one stream and gives it out as lines whenever it is asked.

    Adding costs next to nothing however much comes, so that a server which floods its log slows down nobody else.
    """

    def __init__(self) -> None:
        self.redact: Callable[[str], str] = _unchanged
        self._head: list[bytes] = []
        self._head_size = 0
        self._tail = b""
        self._skipped = 0  # line ends between head and tail
        self._flooded = False
        self._open = b""  # the line whose end has not come
        self._after_cr = False

    @property
    def waiting(self) -> bool:
        """Whether anything came since the last look."""
        return bool(self._head)

    def add(self, data: bytes) -> None:
        """Take what the process wrote."""
        if self._head_size + len(data) <= _FLOOD and not self._flooded:
            self._head.append(data)
            self._head_size += len(data)
            return
        if not self._flooded:
            self._flooded = True
            data = b"".join([*self._head, data])
            self._head = [data[:_FLOOD_END]]
            data = data[_FLOOD_END:]
        rest = self._tail + data
        self._tail = rest[-_FLOOD_END:]
        self._skipped += rest.count(b"\n", 0, max(0, len(rest) - _FLOOD_END))

    def take(self, *, ended: bool = False) -> tuple[list[str], int, list[str]]:
        """Lines at the beginning, number of lines left out after them, lines at the end, since the last look.

        ``ended``: nothing more will come, the open line is given out as well.
        """
        head, tail, skipped, flooded = b"".join(self._head), self._tail, self._skipped, self._flooded
        self._head, self._head_size, self._tail, self._skipped, self._flooded = [], 0, b"", 0, False
        if not flooded:
            lines = self._lines(head, ended=ended)
            if len(lines) <= _FLOOD_LINES:
                return lines, 0, []
            part = _FLOOD_LINES // 2
            return lines[:part], len(lines) - 2 * part, lines[-part:]
        first = self._lines(head)
        # The gap swallows the line that was open before it and the one that is cut at its end.
        self._open, self._after_cr = b"", False
        _, cut, tail = tail.partition(b"\n")
        last = self._lines(tail, ended=ended)
        part = _FLOOD_LINES // 2
        skipped += len(cut) + len(first[part:]) + len(last[:-part])
        return first[:part], skipped, last[-part:]

    @property
    def open_line(self) -> str:
        """The line whose end has not come."""
        return "".join(self._clean(self._open))

    def _lines(self, data: bytes, *, ended: bool = False) -> list[str]:
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        if data:
            self._after_cr = data.endswith(b"\r")
        data = self._open + data
        end = len(data) if ended else max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not ended and len(data) - end > _MAX_OPEN:
            end = _character_border(data, len(data) - _KEPT_OPEN)
        self._open = data[end:]
        return self._clean(data[:end]) if end else []

    def _clean(self, data: bytes) -> list[str]:
        text = self.redact(neutralise(data.decode("utf-8", "replace")))
        lines: list[str] = []
        *whole, rest = text.split("\n")
        for line in [*whole, rest] if rest.strip("\r") else whole:
            if "\r" not in line and len(line) <= MAX_LINE:
                lines.append(line)
                continue
            # A progress display writes over its line: each of its states is a line, the empty ones between are not.
            for part in [part for part in line.split("\r") if part] or [""]:
                lines += [part[start : start + MAX_LINE] for start in range(0, len(part), MAX_LINE)] or [""]
        return lines


def _character_border(data: bytes, position: int) -> int:
    while position > 0 and data[position] & 0xC0 == 0x80:
        position -= 1
    return position


def _unchanged(text: str) -> str:
    return text
