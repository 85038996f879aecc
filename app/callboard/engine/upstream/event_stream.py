"""Server-sent events as they come in chunks (WHATWG HTML, "Parsing an event stream")."""

from dataclasses import dataclass
from typing import Final

MAX_EVENT: Final = 64 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"


class TooLargeError(Exception):
    """An event is larger than :data:`MAX_EVENT`."""


@dataclass(frozen=True)
class ServerEvent:
    """One event. ``id`` is the newest id that the stream has named."""

    name: str
    data: bytes
    id: str


class EventParser:
    """Cuts chunks into events. One per stream."""

    def __init__(self) -> None:
        self.retry_ms: int | None = None  # how long the server wants its clients to wait before they come back
        self._parts: list[bytes] = []  # of a line that has not ended
        self._size = 0  # of those
        self._data: list[bytes] = []
        self._data_size = 0
        self._name = ""
        self._id = ""
        self._after_cr = False
        self._begun = False

    @property
    def last_id(self) -> str:
        """The newest id that the stream has named, empty if none."""
        return self._id

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that a chunk completes; raises TooLargeError."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        self._size += len(chunk)
        if self._size + self._data_size > MAX_EVENT:
            raise TooLargeError
        self._parts.append(chunk)
        if b"\n" not in chunk and b"\r" not in chunk:
            return []
        lines = b"".join(self._parts).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if not self._begun:
            self._begun = True
            lines[0] = lines[0].removeprefix(_BOM)
        rest = lines.pop()
        self._parts = [rest] if rest else []
        events = [event for line in lines if (event := self._line(line)) is not None]
        self._size = len(rest)
        return events

    def _line(self, line: bytes) -> ServerEvent | None:
        if not line:
            data, name = self._data, self._name
            self._data, self._data_size, self._name = [], 0, ""
            return ServerEvent(name or "message", b"\n".join(data), self._id) if data else None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_size += len(value) + 1
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit():
            self.retry_ms = int(value)
        return None
