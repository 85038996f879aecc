"""One line of the client's, as far as the bridge must understand it; the line itself passes untouched."""

from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.mcp_headers import NAMED, encode_value
from callboard.core.protocol import META_VERSION, PARSE_ERROR, SERVER_ERROR

T = TypeVar("T")
_NONE: Final = msgspec.Raw(b"")


class _Envelope(msgspec.Struct):
    id: msgspec.Raw = _NONE
    method: msgspec.Raw = _NONE
    params: msgspec.Raw = _NONE


class _Params(msgspec.Struct):
    meta: msgspec.Raw = msgspec.field(name="_meta", default=_NONE)
    name: msgspec.Raw = _NONE
    uri: msgspec.Raw = _NONE
    task_id: msgspec.Raw = msgspec.field(name="taskId", default=_NONE)
    request_id: msgspec.Raw = msgspec.field(name="requestId", default=_NONE)


class _Meta(msgspec.Struct):
    version: msgspec.Raw = msgspec.field(name=META_VERSION, default=_NONE)


class _Answer(msgspec.Struct):
    id: msgspec.Raw = _NONE
    method: msgspec.Raw = _NONE
    result: msgspec.Raw = _NONE
    error: msgspec.Raw = _NONE


_envelope = msgspec.json.Decoder(_Envelope | list[_Envelope])
_params = msgspec.json.Decoder(_Params)
_meta = msgspec.json.Decoder(_Meta)
_answer = msgspec.json.Decoder(_Answer | list[_Answer])


@dataclass(frozen=True)
class Message:
    """A message of the client. Ids are raw JSON: ``7`` and ``"7"`` are two."""

    line: bytes
    method: str = ""  # empty for an answer and for a batch
    ids: tuple[bytes, ...] = ()  # of the requests in it
    version: str = ""  # of a modern message: the protocol revision in its _meta
    name: str | None = None  # what Mcp-Name must say
    target: bytes = b""  # of notifications/cancelled: the id of the request
    uri: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def modern(self) -> bool:
        """Whether the message belongs to revision 2026-07-28 or later: no session, headers instead."""
        return bool(self.version)


def parse(line: bytes) -> Message:
    """Look into a line. Raises ``msgspec.DecodeError`` for what is no JSON-RPC message."""
    found = _envelope.decode(line)
    if isinstance(found, list):
        return Message(line, ids=tuple(bytes(each.id) for each in found if each.id and each.method))
    method = _text(found.method) or ""
    ids = (bytes(found.id),) if found.id and found.method else ()
    params = _lenient(_params, found.params) or _Params()
    meta = _lenient(_meta, params.meta) or _Meta()
    version = _text(meta.version) or ""
    if method == "initialize":
        version = ""
    named = {"name": params.name, "uri": params.uri, "taskId": params.task_id}
    name = _text(named[NAMED[method]]) if method in NAMED else None
    return Message(
        line,
        method=method,
        ids=ids,
        version=version,
        name=name,
        target=bytes(params.request_id),
        uri=_text(params.uri) or "",
        headers=_headers(method, version, name) if version else {},
    )


def _headers(method: str, version: str, name: str | None) -> dict[str, str]:
    """Headers that mirror a modern message (2026-07-28, transports/streamable-http "Request Metadata")."""
    headers = {"mcp-protocol-version": encode_value(version), "mcp-method": encode_value(method)}
    if name is not None:
        headers["mcp-name"] = encode_value(name)
    return headers


def answered(message: bytes) -> tuple[bytes, ...]:
    """The ids of requests that a message from the gateway answers; none for a request, a notification, rubbish."""
    try:
        found = _answer.decode(message)
    except msgspec.DecodeError:
        return ()
    several = found if isinstance(found, list) else [found]
    return tuple(bytes(each.id) for each in several if each.id and not each.method and (each.result or each.error))


def error_of(message: bytes) -> bytes:
    """The error object of an answer as raw JSON, empty if it has none."""
    try:
        found = _answer.decode(message)
    except msgspec.DecodeError:
        return b""
    return b"" if isinstance(found, list) else bytes(found.error)


def error_code(message: bytes) -> int | None:
    """The code of an answer's error."""
    try:
        code: Any = msgspec.json.decode(error_of(message) or b"{}").get("code")
    except (msgspec.DecodeError, AttributeError):
        return None
    return code if isinstance(code, int) else None


def with_id(request_id: bytes, error: bytes) -> bytes:
    """An answer to a request out of an error object."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id or b"null", error)


def failure(error: CallboardError, code: int = SERVER_ERROR) -> bytes:
    """An error object out of an error of ours."""
    data = {"code": error.code, "fix": error.fix}
    return msgspec.json.encode({"code": code, "message": error.message, "data": data})


def parse_error(problem: str) -> bytes:
    """The answer to a line that is no message."""
    return with_id(b"", msgspec.json.encode({"code": PARSE_ERROR, "message": f"Parse error: {problem}"}))


def on_one_line(message: bytes) -> bytes:
    """A JSON text without line breaks (inside strings JSON has none)."""
    if b"\n" not in message and b"\r" not in message:
        return message
    return message.replace(b"\r", b" ").replace(b"\n", b" ")


def _text(raw: msgspec.Raw) -> str | None:
    try:
        return msgspec.json.decode(raw, type=str) if raw else None
    except msgspec.DecodeError:
        return None


def _lenient(decoder: msgspec.json.Decoder[T], raw: msgspec.Raw) -> T | None:
    try:
        return decoder.decode(raw) if raw else None
    except msgspec.DecodeError:
        return None
