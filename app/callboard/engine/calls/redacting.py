"""From a call as the loop noted it to a row as it is stored: cut, and with secrets masked. Runs in the log's thread."""

from collections.abc import Callable

from callboard.engine.calls.record import NAME, OVERHANG, CallRecord, Limits, Row, cut_utf8

Redact = Callable[[bytes], bytes]


def stored(record: CallRecord, redact: Redact, limits: Limits) -> Row:
    """The row of a record as it is now; its payloads are let go of."""
    status = record.status  # first: see CallLog.end
    arguments, arguments_cut = _payload(record, record.arguments, record.request_bytes, redact, limits.payload)
    ended = status != "running"
    result, result_cut = (
        _payload(record, record.result, record.response_bytes, redact, limits.payload) if ended else (None, False)
    )
    record.arguments = None
    if ended:
        record.result = None
        record.finished = True
    tool = record.tool[:NAME]
    if record.method == "resources/read":  # a URI may bear a credential
        tool = _masked(tool, redact)
    return Row(
        record.id,
        record.started,
        record.client[:NAME],
        record.server[:NAME],
        record.method,
        tool,
        status,
        record.duration_ms if ended else None,
        record.request_bytes,
        record.response_bytes if ended else 0,
        _masked(record.error, redact)[: limits.error] if ended and record.error else "",
        arguments,
        result,
        arguments_cut,
        result_cut,
    )


def _payload(
    record: CallRecord, payload: bytes | None, size: int, redact: Redact, bound: int
) -> tuple[bytes | None, bool]:
    """A payload as stored, and whether something is missing of its ``size`` bytes."""
    if payload is None:
        return None, False
    if not payload:
        return b"", record.cut
    masked = redact(payload)
    torn = len(payload) < size  # when it came: the bound may be another one by now
    if torn:
        # a secret torn by the copy's end would stand here unmasked, in its last bytes
        masked = masked[: max(0, len(masked) - OVERHANG)]
    kept = cut_utf8(masked, bound)
    return kept, torn or len(kept) < len(masked)


def _masked(text: str, redact: Redact) -> str:
    return redact(text.encode("utf-8", "replace")).decode("utf-8", "replace")
