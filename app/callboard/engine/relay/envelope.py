"""JSON-RPC messages as raw bytes: only the envelope is decoded, what it carries is passed on untouched.

``id``, ``params``, ``result`` and ``error`` stay the bytes that the sender wrote, so that integers of any size,
unknown members and the order of keys survive. A :class:`msgspec.Raw` keeps the buffer it was cut from alive; copy
what is kept for long.
"""

from typing import Any

import msgspec

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
_params = msgspec.json.Decoder(Params)
_encoder = msgspec.json.Encoder()
encode = _encoder.encode


def decode_envelope(message: bytes | bytearray | memoryview) -> Envelope:
    """Decode one message; raises msgspec.DecodeError for what is not a JSON object with proper members.

    A member that is JSON ``null`` counts as raw ``null``, not as absent.
    """
    return _envelope.decode(message)


def decode_params(raw: Raw | bytes) -> Params:
    """The members of ``params``; empty when there are none. Raises msgspec.DecodeError when it is no object."""
    return _params.decode(raw) if raw else {}


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


def answer_bytes(request_id: bytes, answer: Answer) -> bytes:
    """An answer to the request whose id is the raw JSON ``request_id``."""
    if answer.error is not None:
        return b"".join((b'{"jsonrpc":"2.0","id":', request_id, b',"error":', answer.error, b"}"))
    return b"".join((b'{"jsonrpc":"2.0","id":', request_id, b',"result":', answer.result or b"{}", b"}"))


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
