"""What changes when a message crosses between the eras. Pure functions.

Client and server each speak one era. Within an era messages pass untouched; across, the members that only one era
knows are put in or taken out.
"""

from typing import Any

import msgspec

from callboard.core.protocol import (
    CACHEABLE,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    META_CAPABILITIES,
    META_CLIENT,
    META_LOG_LEVEL,
    PER_REQUEST_META,
    RESOURCE_NOT_FOUND,
)
from callboard.engine.relay.envelope import Raw, decode_json, decode_params, error_answer, raw_json
from callboard.engine.upstream.base import Answer, Params


def to_legacy_server(params: Params) -> Params:
    """A modern client's parameters without what a legacy server does not know."""
    if "_meta" not in params:
        return params
    meta = {key: value for key, value in decode_params(params["_meta"]).items() if key not in PER_REQUEST_META}
    rest = {key: value for key, value in params.items() if key not in ("_meta", "inputResponses", "requestState")}
    return rest | {"_meta": raw_json(meta)} if meta else rest


def to_modern_server(
    params: Params, client_info: dict[str, Any], capabilities: dict[str, Any], log_level: str | None
) -> Params:
    """A legacy client's parameters with what a modern server wants to know of it in every request."""
    meta = decode_params(params.get("_meta", Raw(b"")))
    if client_info:
        meta[META_CLIENT] = raw_json(client_info)
    meta[META_CAPABILITIES] = raw_json(capabilities)
    if log_level is not None:
        meta[META_LOG_LEVEL] = raw_json(log_level)
    return params | {"_meta": raw_json(meta)}


def to_modern_client(method: str, answer: Answer) -> Answer:
    """A legacy server's answer with the members that a modern client needs."""
    if answer.error is not None:
        return _modern_error(answer)
    result = bytes(answer.result or b"{}")
    if not result.startswith(b"{"):
        return error_answer(INTERNAL_ERROR, "The server's result is no object.")
    if b'"resultType"' in result and "resultType" in decode_params(result):
        return answer
    head = b'{"resultType":"complete"'
    if method in CACHEABLE:
        head += b',"ttlMs":0,"cacheScope":"private"'
    body = result[1:].lstrip()
    return Answer(result=head + (b"" if body.startswith(b"}") else b",") + body)


def _modern_error(answer: Answer) -> Answer:
    try:
        error = decode_json(answer.error or b"", dict[str, Raw])
    except msgspec.DecodeError:
        return answer
    if bytes(error.get("code", b"")) != b"%d" % RESOURCE_NOT_FOUND:
        return answer
    error["code"] = Raw(b"%d" % INVALID_PARAMS)
    return Answer(error=msgspec.json.encode(error))


class InputRequired(msgspec.Struct):
    """A result that asks for more (2026-07-28, basic/patterns/mrtr)."""

    result_type: str = msgspec.field(name="resultType", default="complete")
    requests: dict[str, "InputRequest"] = msgspec.field(name="inputRequests", default_factory=dict)
    state: Raw = msgspec.field(name="requestState", default=Raw(b"null"))


class InputRequest(msgspec.Struct):
    """One question in it."""

    method: str
    params: Raw = Raw(b"{}")


_input_required = msgspec.json.Decoder(InputRequired)


def input_required(answer: Answer) -> InputRequired | None:
    """The questions in an answer, None if it is a final one."""
    if answer.result is None or b'"input_required"' not in bytes(answer.result):
        return None
    try:
        found = _input_required.decode(answer.result)
    except msgspec.DecodeError:
        return None
    return found if found.result_type == "input_required" else None
