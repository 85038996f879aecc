"""Server-sent events out of a stream of bytes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SseEvent:
    """An event with data. ``id`` is the last one that the stream has named."""

    data: bytes
    id: str = ""


class SseParser:
    """Takes bytes as they come and gives whole events; lines end with LF, CR LF or CR. An event of any size is
    looked at once."""

    def __init__(self) -> None:
        self._line: list[bytes] = []  # the unfinished line, in pieces
        self._data: list[bytes] = []
        self._id = ""
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Events that ``chunk`` completes."""
        events: list[SseEvent] = []
        start = 0
        if self._after_cr and chunk[:1] == b"\n":
            start = 1
        if chunk:
            self._after_cr = False
        while start < len(chunk):
            end = _line_end(chunk, start)
            if end < 0:
                self._line.append(chunk[start:])
                break
            self._line.append(chunk[start:end])
            line = b"".join(self._line)
            self._line.clear()
            start = end + 1
            if chunk[end] == 0x0D:
                if start == len(chunk):
                    self._after_cr = True
                elif chunk[start] == 0x0A:
                    start += 1
            event = self._take(line)
            if event is not None:
                events.append(event)
        return events

    def _take(self, line: bytes) -> SseEvent | None:
        if not line:
            data, self._data = self._data, []
            return SseEvent(b"\n".join(data), self._id) if data else None
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        return None


def _line_end(chunk: bytes, start: int) -> int:
    feed = chunk.find(b"\n", start)
    # a CR can only be nearer: looking beyond the LF would make long streams slow
    carriage = chunk.find(b"\r", start, feed if feed >= 0 else len(chunk))
    return carriage if carriage >= 0 else feed
