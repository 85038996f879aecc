"""One call on its way into the log, and how much of its payloads is kept."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from callboard.api.schema import CallStatus, CallView

if TYPE_CHECKING:
    from callboard.engine.telemetry.tracing import CallTrace

MIB: Final = 1024 * 1024
NAME: Final = 500  # characters kept of a client's, server's or tool's name (a resource's URI can be long)
OVERHANG: Final = 4096
"""Bytes kept beyond the bound until redaction is done: a secret of up to this size that lies across the bound
is seen whole, and masked, before the payload is cut."""


@dataclass(frozen=True)
class Limits:
    """Bounds of the call log. Sizes are bytes, times seconds."""

    payload: int = 64 * 1024  # kept of arguments and of results, each
    error: int = 2000  # characters
    age: float = 30 * 86400.0
    size: int = 200 * MIB  # of the file; the oldest calls go first
    interval: float = 0.05  # between two batches
    batch: int = 4 * MIB  # payload that is written at once without waiting for the interval
    backlog: int = 32 * MIB  # payload that waits for a slow disk; beyond it calls are logged without payloads
    backlog_calls: int = 20_000  # calls that wait for a slow disk; beyond it calls are not logged at all
    views: int = 500  # changed calls told in one batch
    memory_calls: int = 2000  # kept while the file cannot be written
    busy: float = 2.0  # to wait while another program has the file locked
    retry: float = 30.0  # between two attempts to use the file again


class CallRecord:
    """A call as the relay sees it. Made by ``CallLog.begin``, finished by ``CallLog.end``; the loop changes it,
    the log's thread reads it. ``id`` 0 means that the call is not logged (the disk does not keep up).
    """

    __slots__ = (
        "arguments",
        "begun",
        "client",
        "cut",
        "duration_ms",
        "error",
        "error_type",
        "finished",
        "id",
        "kept",
        "method",
        "queued",
        "request_bytes",
        "response_bytes",
        "result",
        "server",
        "started",
        "status",
        "tool",
        "trace",
    )

    def __init__(self, call_id: int, client: str, server: str, method: str, tool: str) -> None:
        self.id = call_id
        self.client = client
        self.server = server
        self.method = method
        self.tool = tool
        self.started = 0.0  # seconds since the epoch
        self.begun = 0.0  # the same on the monotonic clock
        self.status: CallStatus = "running"
        self.duration_ms: float | None = None
        self.error = ""
        self.error_type = ""  # what kind of failure: an error code of ours, JSON-RPC's code, "tool_error"
        self.trace: CallTrace | None = None  # where calls are traced
        self.request_bytes = 0
        self.response_bytes = 0
        self.arguments: bytes | None = None  # None: already written
        self.result: bytes | None = None
        self.cut = False  # a payload was left out because the disk did not keep up
        self.kept: asyncio.Event | None = None  # set once its end stands in the log, where answers wait for that
        self.finished = False  # the thread has made a row of it with its end
        self.queued = 0  # number of the batch that it is in


class CallWatcher(Protocol):
    """Hears of every call, logged or not, on the loop."""

    def began(self, record: CallRecord) -> None:
        """A call began."""

    def ended(self, record: CallRecord) -> None:
        """The call ended; ``status``, ``duration_ms`` and ``error_type`` of the record are set."""


class Row(NamedTuple):
    """A call as stored, in the order of the table's columns."""

    id: int
    started: float
    client: str
    server: str
    method: str
    tool: str
    status: CallStatus
    duration_ms: float | None
    request_bytes: int
    response_bytes: int
    error: str
    arguments: bytes | None  # UTF-8; None: leave what is stored
    result: bytes | None
    arguments_cut: bool
    result_cut: bool

    def view(self, engine: str) -> CallView:
        """The row without its payloads, as a call of this engine ("" where there is only one)."""
        return CallView(
            id=self.id,
            started=self.started,
            client=self.client,
            server=self.server,
            method=self.method,
            tool=self.tool,
            status=self.status,
            duration_ms=self.duration_ms,
            request_bytes=self.request_bytes,
            response_bytes=self.response_bytes,
            error=self.error,
            engine=engine,
        )


class _Outcome(msgspec.Struct):
    is_error: bool = msgspec.field(name="isError", default=False)


_outcome = msgspec.json.Decoder(_Outcome)
# The last member of the object, as servers in JavaScript and in Python write it. What stands before the quote tells
# that the name is whole and outside of a string.
_SAYS_NO = (b',"isError":false}', b' "isError": false}')


def says_error(result: bytes | memoryview) -> bool:
    """Whether the result of a tools/call says of itself that it is a failure (``isError``).

    Costs nothing much for results that end by saying no, as most do; false for what is not a JSON object.
    """
    if bytes(result[-18:]).endswith(_SAYS_NO):
        return False
    try:
        return _outcome.decode(result).is_error
    except msgspec.DecodeError:
        return False


class _Block(msgspec.Struct):
    text: str = ""


class _Failure(msgspec.Struct):
    content: list[_Block] = []


_failure = msgspec.json.Decoder(_Failure)


def error_said(result: bytes | memoryview) -> str:
    """What the result of a failed tools/call says went wrong: its first text, on one line; "" if it has none."""
    try:
        texts = [" ".join(block.text.split()) for block in _failure.decode(result).content]
    except msgspec.DecodeError:
        return ""
    return next(filter(None, texts), "")


def cut_utf8(data: bytes, limit: int) -> bytes:
    """The first ``limit`` bytes of UTF-8 text, less a character that would be torn apart."""
    if len(data) <= limit:
        return data
    end = limit
    while end > 0 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]
