"""What looking after a call costs: policy, call log, events, figures and traces, in CPU time of this process."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from callboard.core.policy_shapes import ClientEntry, DefaultPolicy, Rules
from callboard.engine.calls.events import CallEvents
from callboard.engine.calls.log import CallLog
from callboard.engine.gateway.app import find_target
from callboard.engine.policy.approvals import Approvals
from callboard.engine.policy.callers import Policies
from callboard.engine.relay.envelope import Raw
from callboard.engine.relay.exchange import Exchange
from callboard.engine.relay.gate import Gate
from callboard.engine.telemetry.meter import CallMeter
from callboard.engine.telemetry.tracing import Tracing
from tests.bench.figures import Figure

CALLS = 20_000
ROUNDS = 5
LIMIT_US = 30.0
PARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ARGUMENTS, RESULT = b'{"text":"hello"}', b'{"content":[{"type":"text","text":"hello"}],"isError":false}'


def cost() -> list[Figure]:
    """CPU per call of policy, call log, events, figures and traces, in this process; the exporter is not counted."""
    policy = min(_policy() for _ in range(ROUNDS))
    logged = min(asyncio.run(_log(traced=False)) for _ in range(ROUNDS))
    traced = min(asyncio.run(_log(traced=True)) for _ in range(ROUNDS))
    return [
        Figure("policy of 50 patterns", policy, "µs"),
        Figure("call log, events and figures", logged, "µs"),
        Figure("the same with traces", traced, "µs", reference=logged),
        Figure("all together", policy + traced, "µs", limit=LIMIT_US),
    ]


def _policy() -> float:
    """All that a call to a tool costs before it is let through, by a client with rules of its own."""
    policies = Policies(Approvals(None))
    policies.definition = lambda server, tool: b'{"annotations":{"readOnlyHint":true}}'
    rules = Rules(allow=[*(f"server-{number}.*" for number in range(48)), "one.*"], deny=["*.delete_*"])
    policies.configure(DefaultPolicy(), {"a": ClientEntry(policy=rules)}, {})
    gate = Gate(None)  # type: ignore[arg-type]  # only tasks need the relay

    def call(number: int) -> None:
        find_target("/servers/one/mcp")
        caller = policies.caller("a")
        assert caller.may_use("one")
        assert gate.verdict(caller, "tools/call", "one", {}, f"tool_{number % 20}").effect == "allow"

    return _cpu(call)


async def _log(*, traced: bool) -> float:
    """Begin and end in the log, which another thread writes to the disk; its time counts too."""
    meter = CallMeter(lambda server, method, name: True)
    tracing = Tracing(lambda parent, trace, record: True)
    params = {"name": Raw(b'"echo"'), "arguments": Raw(ARGUMENTS), "_meta": Raw(b'{"traceparent":"%b"}' % PARENT)}
    exchange = Exchange(
        client="a",
        caller=Policies(Approvals(None)).caller("a"),
        owner="",
        request_id=b"1",
        method="tools/call",
        params=params,
        modern=True,
    )
    events = CallEvents(lambda found: None, lambda text: text)
    with tempfile.TemporaryDirectory() as folder:
        log = CallLog(Path(folder) / "calls.sqlite3", lambda data: data, watchers=(events, meter))
        await log.open()
        began = time.process_time()
        for number in range(CALLS):
            record = log.begin("a", "one", "tools/call", f"tool_{number % 20}", ARGUMENTS)
            if traced:
                tracing.begin(exchange, record, params)
            log.end(record, "completed", RESULT)
            if number % 200 == 0:
                await log.flush()
        await log.flush()
        used = time.process_time() - began
        await log.close()
    return used / CALLS * 1e6


def _cpu(call: Callable[[int], Any]) -> float:
    """Microseconds of CPU for one call."""
    began = time.process_time()
    for number in range(CALLS):
        call(number)
    return (time.process_time() - began) / CALLS * 1e6
