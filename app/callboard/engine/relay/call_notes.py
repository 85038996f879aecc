"""What the call log hears of clients' requests: of those that are logged, their begin and their end."""

from typing import TYPE_CHECKING, Final

from callboard.core.policy import Verdict
from callboard.core.protocol import LOGGED
from callboard.engine.calls.record import error_said, says_error
from callboard.engine.relay.envelope import Raw
from callboard.engine.relay.exchange import Exchange
from callboard.engine.upstream.answers import error_text, error_type
from callboard.engine.upstream.base import Params

if TYPE_CHECKING:
    from callboard.engine.relay.relay import Relay

_NONE: Final = Raw(b"")


class CallNotes:
    """Owned by the relay; engine loop only."""

    def __init__(self, relay: "Relay") -> None:
        self._relay = relay

    def begin(self, exchange: Exchange, server: str, params: Params, shown: str) -> None:
        """A request is for this server, with what the server is told; noted once."""
        if exchange.method in LOGGED and exchange.record is None:
            arguments = params.get("arguments", _NONE)
            record = exchange.record = self._relay.call_log.begin(
                exchange.client, server, exchange.method, shown, memoryview(arguments)
            )
            if self._relay.tracing is not None:
                self._relay.tracing.begin(exchange, record, params)

    def end(self, exchange: Exchange) -> None:
        """A request has its last answer, which then waits for the log where the log says so."""
        record, exchange.record = exchange.record, None
        if record is None:
            return
        log, answer = self._relay.call_log, exchange.last_answer
        if exchange.cancelled or answer is None:
            log.end(record, "cancelled", error_type="call-cancelled")
        elif answer.error is not None:
            log.end(record, "failed", memoryview(answer.error), error_text(answer), error_type(answer))
        else:
            result = memoryview(answer.result or b"")
            if exchange.method == "tools/call" and says_error(result):
                log.end(record, "failed", result, error_said(result), "tool_error")
            else:
                log.end(record, "completed", result)
        exchange.kept = record.kept

    def denied(self, exchange: Exchange, server: str, own: str, verdict: Verdict) -> None:
        """A request was refused, for a reason that the client is not told."""
        self.begin(exchange, server, exchange.params, own)
        record, exchange.record = exchange.record, None
        if record is not None:
            self._relay.call_log.end(record, "failed", None, f"Denied: {own} {verdict.reason}", "policy-denied")
