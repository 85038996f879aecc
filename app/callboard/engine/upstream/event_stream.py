"""Server-sent events as they come in chunks (WHATWG HTML, "Parsing an event stream")."""

from dataclasses import dataclass


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
        self._rest = b""
        self._data: list[bytes] = []
        self._name = ""
        self._id = ""
        self._after_cr = False

    @property
    def last_id(self) -> str:
        """The newest id that the stream has named, empty if none."""
        return self._id

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that a chunk completes."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._rest += chunk
            return []
        lines = (self._rest + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: bytes) -> ServerEvent | None:
        if not line:
            data, name = self._data, self._name
            self._data, self._name = [], ""
            return ServerEvent(name or "message", b"\n".join(data), self._id) if data else None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit():
            self.retry_ms = int(value)
        return None
