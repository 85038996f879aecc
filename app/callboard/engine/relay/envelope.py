"""JSON-RPC messages as raw bytes: only the envelope is decoded, what it carries is passed on untouched.

``id``, ``params``, ``result`` and ``error`` stay the bytes that the sender wrote, so that integers of any size,
unknown members and the order of keys survive. A :class:`msgspec.Raw` keeps the buffer it was cut from alive; copy
what is kept for long.
"""

import codecs
import re
from typing import Any, Final

import msgspec
from pydantic_core import SchemaValidator, ValidationError, core_schema

from callboard.engine.upstream.base import Answer, Params

Raw = msgspec.Raw
NULL = Raw(b"null")


class Envelope(msgspec.Struct):
    """One JSON-RPC message. Raw members that it does not have are empty, hence false."""

    id: Raw = Raw(b"")
    method: str = ""
    params: Raw = Raw(b"")
    result: Raw = Raw(b"")
    error: Raw = Raw(b"")


_envelope = msgspec.json.Decoder(Envelope)
_params = msgspec.json.Decoder(Params | None)
# an escape: a proper pair of surrogates, one alone, or any other
_ESCAPE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
_LARGE: Final = 16 * 1024  # bytes from which on it pays to check a text before it is made
_no_text: Final = SchemaValidator(core_schema.str_schema(max_length=0))
_TOO_LONG: Final = "string_too_long"
_encoder = msgspec.json.Encoder()
encode = _encoder.encode


def decode_envelope(message: bytes | bytearray | memoryview) -> Envelope:
    """Decode one message; raises msgspec.DecodeError for what is not a JSON object with proper members.

    A member that is JSON ``null`` counts as raw ``null``, not as absent. What programs get wrong by cutting a text in
    the middle of a character, an escaped surrogate without its other half, becomes U+FFFD.
    """
    try:
        return _envelope.decode(message)
    except RecursionError:
        raise _too_deep() from None
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        mended = _ESCAPE.sub(_without_half, message)
        if mended == message:
            raise
        return _envelope.decode(mended)


def _without_half(escape: "re.Match[bytes]") -> bytes:
    return b"\\ufffd" if escape[1] is not None else escape[0]


def check_utf8(message: bytes) -> None:
    """Raise UnicodeDecodeError for what is not UTF-8, which :func:`decode_envelope` does not look at everywhere.

    Python has no check without making the text, which for large ones costs thrice as much as the check of pydantic's
    core. That finds a text too long, after it has found it to be one.
    """
    if message.isascii():
        return
    if len(message) >= _LARGE:
        try:
            _no_text.validate_python(message)
        except ValidationError as found:
            if found.errors(include_url=False, include_context=False, include_input=False)[0]["type"] == _TOO_LONG:
                return
    codecs.utf_8_decode(message, "strict", True)


def decode_params(raw: Raw | bytes) -> Params:
    """The members of ``params``; empty when there are none. Raises msgspec.DecodeError when it is no object."""
    try:
        return (_params.decode(raw) or {}) if raw else {}
    except RecursionError:
        raise _too_deep() from None


def decode_json(raw: Raw | bytes, kind: Any = Any) -> Any:
    """A raw value as a plain one of a type; raises msgspec.DecodeError."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> msgspec.DecodeError:
    return msgspec.DecodeError("nested too deeply")


def raw_json(value: Any) -> Raw:
    """A plain value as raw JSON."""
    return Raw(_encoder.encode(value))


def request_bytes(request_id: int | bytes, method: str, params: Params | bytes | None) -> bytes:
    """A request as one message without newline."""
    body = params if isinstance(params, bytes) else _encoder.encode(params or {})
    number = request_id if isinstance(request_id, bytes) else b"%d" % request_id
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (number, _encoder.encode(method), body)


def notification_bytes(method: str, params: Params | bytes) -> bytes:
    """A notification as one message without newline."""
    body = params if isinstance(params, bytes) else _encoder.encode(params)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_encoder.encode(method), body)


def answer_of(envelope: Envelope) -> Answer | None:
    """The answer that a message holds, None if it holds none. An ``error`` that is null counts as absent."""
    if envelope.error and not (envelope.result and bytes(envelope.error) == b"null"):
        return Answer(error=envelope.error)
    return Answer(result=envelope.result) if envelope.result else None


def answer_bytes(request_id: bytes, answer: Answer) -> bytes:
    """An answer to the request whose id is the raw JSON ``request_id``."""
    return b"".join(answer_pieces(request_id, answer))


def answer_pieces(request_id: bytes, answer: Answer) -> tuple[bytes | memoryview, ...]:
    """The same, not yet put together."""
    if answer.error is not None:
        return b'{"jsonrpc":"2.0","id":', request_id, b',"error":', memoryview(answer.error), b"}"
    return b'{"jsonrpc":"2.0","id":', request_id, b',"result":', memoryview(answer.result or b"{}"), b"}"


def error_answer(code: int, message: str, data: Any = None) -> Answer:
    """An answer that carries an error of our own."""
    body: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return Answer(error=_encoder.encode(body))


def result_answer(result: Any) -> Answer:
    """An answer that carries a result of our own."""
    return Answer(result=_encoder.encode(result))


def sse_event(message: bytes) -> bytes:
    """A message as one server-sent event. JSON text has no raw newlines outside of insignificant white space."""
    if b"\n" in message or b"\r" in message:
        message = message.replace(b"\r", b" ").replace(b"\n", b" ")
    return b"event: message\ndata: %b\n\n" % message
