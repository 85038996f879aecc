"""W3C Trace Context and Baggage as MCP carries them: members of a request's ``_meta`` (SEP-414), or HTTP headers."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
BAGGAGE: Final = "baggage"
SAMPLED: Final = 1

# Trace Context, section 3.2: version 00 is this long and no longer, later ones may say more
_TRACEPARENT: Final = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
# characters of a header that are passed on
_HEADERS: Final = ((b"traceparent", TRACEPARENT, 256), (b"tracestate", TRACESTATE, 4096), (b"baggage", BAGGAGE, 8192))


class TraceContext(NamedTuple):
    """One span as others refer to it: numbers that are not 0, and the eight flags."""

    trace_id: int
    span_id: int
    flags: int

    @property
    def sampled(self) -> bool:
        """Whether whoever made the span records it."""
        return bool(self.flags & SAMPLED)

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags:02x}"


def parse_traceparent(text: str) -> TraceContext | None:
    """The span that a ``traceparent`` names, None if it is malformed: then a new trace begins (section 3.2.2)."""
    found = _TRACEPARENT.fullmatch(text)
    if found is None or (found[1] == "00" and found[5] is not None):
        return None
    context = TraceContext(int(found[2], 16), int(found[3], 16), int(found[4], 16))
    return context if context.trace_id and context.span_id else None


def from_headers(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """What an HTTP request's headers (lower-case names) say of its trace; members that ``_meta`` can have.

    ``tracestate`` counts only beside a proper ``traceparent`` (section 3.3); what is too long or not plain ASCII is
    left out.
    """
    found: dict[str, str] = {}
    for header, name, longest in _HEADERS:
        value = headers.get(header)
        if value and len(value) <= longest and value.isascii() and value.decode().isprintable():
            found[name] = value.decode()
    if found and parse_traceparent(found.get(TRACEPARENT, "")) is None:
        found.pop(TRACEPARENT, None)
        found.pop(TRACESTATE, None)
    return found
