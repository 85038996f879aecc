"""One server looked at closely: what it needs to start, the way to it, whether it answers, and what it offers."""

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Literal

import msgspec

from callboard.api.schema import Check
from callboard.core.errors import CallboardError, fix_for
from callboard.core.health import State
from callboard.core.launch import Launch, LocalLaunch, RemoteLaunch
from callboard.core.supervision import CONNECTED, ServerStatus
from callboard.engine.command import find_program
from callboard.engine.network_checks import timed, way_checks
from callboard.engine.relay.catalogue import PROMPTS, RESOURCES, TEMPLATES, TOOLS, Offer
from callboard.engine.supervisor import Supervisor
from callboard.engine.upstream.base import Upstream

_SPARE: Final = 5.0  # seconds that a start gets beyond its own limit
_CHANGING: Final = frozenset({State.STARTING, State.STOPPING})
# The server was reached, and said no: its network is all right.
_REFUSALS: Final = frozenset({"remote-sign-in", "remote-scope", "remote-forbidden"})
_STATUSES: Final = frozenset({"remote-status", "remote-failed", "remote-not-found"})


class ServerChecks:
    """Checks of one server. A server that does not run is started for it, and stopped again if it was stopped.

    Engine loop only.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        variables: Callable[[], dict[str, str]],
        read_offer: Callable[[str], Awaitable[Offer]],
    ) -> None:
        """``variables``: the environment that children get; ``read_offer``: what a server offers, once it is read."""
        self._supervisor = supervisor
        self._variables = variables
        self._read_offer = read_offer

    async def run(self, name: str, *, start_limit: float) -> list[Check]:
        """All checks, in the order in which a start needs what they look at. ``start_limit``: its seconds to start."""
        began = time.perf_counter()
        try:
            launch = await self._supervisor.prepare(name)
        except CallboardError as error:
            missing = [Check(name="settings", status="fail", **each) for each in error.data.get("missing", [])]
            return [_with_fix(timed(each, began), name) for each in missing or [_failed("settings", error)]]
        settled = Check(name="settings", status="ok", message="All that the entry refers to has a value.")
        checks = [timed(settled, began)]
        if isinstance(launch, LocalLaunch):
            checks += self._program(launch)
        else:
            checks += await way_checks(launch)
        if any(check.status == "fail" for check in checks):
            return [_with_fix(check, name) for check in checks]
        checks += await self._answers(name, launch, start_limit)
        return [_with_fix(check, name) for check in checks]

    def _program(self, launch: LocalLaunch) -> list[Check]:
        variables = {**self._variables(), **launch.env}
        cwd = launch.cwd or Path.home()
        if not cwd.is_dir():
            message = f"The working folder {cwd} does not exist."
            return [Check(name="folder", status="fail", message=message, code="cwd-missing")]
        command = launch.argv[0]
        began = time.perf_counter()
        try:
            program = find_program(command, path=variables.get("PATH", os.defpath), cwd=cwd)
        except CallboardError as error:
            return [timed(_failed("command", error), began)]
        found = (
            f"{command} is there."
            if command == program
            else f"{command} is {program}, found in {Path(program).parent}."
        )
        return [timed(Check(name="command", status="ok", message=found), began)]

    async def _answers(self, name: str, launch: Launch, start_limit: float) -> list[Check]:
        before = self._supervisor.status(name)
        if before.state is State.DISABLED:
            return [Check(name="handshake", status="warn", message="It is disabled, so it was not started.")]
        started = before.state not in CONNECTED
        began = time.perf_counter()
        if started:
            if before.state not in _CHANGING:
                self._supervisor.start(name)
            await self._supervisor.settle(name, seconds=start_limit + _SPARE)
        status = self._supervisor.status(name)
        upstream = self._supervisor.ready_upstream(name)
        if upstream is None:
            return [timed(check, began) for check in _refused(status, isinstance(launch, RemoteLaunch))]
        checks = _reached(launch)
        shaken = Check(name="handshake", status="ok", message=_who(upstream))
        if started:
            message = (
                f"{shaken.message} Started for this check, it was ready after {time.perf_counter() - began:.1f} s."
            )
            shaken = timed(msgspec.structs.replace(shaken, message=message), began)
        checks += [shaken, await self._lists(name), await ping_check(upstream)]
        if started and before.state is State.STOPPED:
            self._supervisor.rest(name, "was started for a check")
        return checks

    async def _lists(self, name: str) -> Check:
        """What the server offers, once its lists are read."""
        began = time.perf_counter()
        offer = await self._read_offer(name)
        kinds = ((TOOLS, "tool"), (RESOURCES, "resource"), (TEMPLATES, "template"), (PROMPTS, "prompt"))
        counts = [(len(offer.items(kind)), word) for kind, word in kinds]
        told = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
        message = f"It offers {', '.join(told)}." if told else "It offers nothing."
        broken = [problem.reason for problem in offer.problems]
        if broken:
            message += f" Left out: {len(broken)}, the first because {broken[0]}."
        status: Literal["ok", "warn"] = "warn" if broken or not told else "ok"
        return timed(Check(name="lists", status=status, message=message), began)


async def ping_check(upstream: Upstream) -> Check:
    """Ask for a sign of life, 10 s at most; an answer of any kind is one."""
    began = time.perf_counter()
    try:
        await upstream.ping(seconds=10.0)
    except CallboardError as error:
        if "status" not in error.data:
            how = "It does not answer a ping"
            hint = "; calls are in flight in it" if upstream.busy else ""
            silent = Check(name="answers", status="warn", message=f"{how}{hint}.", code="not-responding")
            return timed(silent, began)
    check = timed(Check(name="answers", status="ok", message=""), began)
    return msgspec.structs.replace(check, message=f"It answers within {max(1.0, check.duration_ms or 0.0):.0f} ms.")


def _who(upstream: Upstream) -> str:
    info = upstream.info
    who = " ".join(part for part in (info.name, info.version) if part)
    return f"It speaks revision {info.protocol} of the protocol{' and is ' + who if who else ''}."


def _reached(launch: Launch) -> list[Check]:
    if isinstance(launch, LocalLaunch):
        return []
    names = {header.casefold() for header in launch.headers}
    how = "with the given token" if "authorization" in names or launch.oauth is not None else "without a token"
    return [
        Check(name="http", status="ok", message="The server answers MCP at this address."),
        Check(name="auth", status="ok", message=f"It lets us in {how}."),
    ]


def _refused(status: ServerStatus, remote: bool) -> list[Check]:
    """What a start that did not succeed says, at the step that it concerns."""
    sentence = status.reason or f"it is {status.state.value}"
    if status.state is State.STARTING:
        sentence = f"it is still starting: {sentence}"
    sentence = f"{sentence[:1].upper()}{sentence[1:].rstrip('.')}."
    code = status.error_code
    checks = []
    if remote and code in _REFUSALS:
        checks.append(Check(name="http", status="ok", message="The server answers at this address."))
    name = "auth" if code in _REFUSALS else "http" if code in _STATUSES else "handshake"
    grade: Literal["warn", "fail"] = "warn" if status.state in _CHANGING or status.state is State.STOPPED else "fail"
    checks.append(Check(name=name, status=grade, message=sentence, code=code, fix=status.fix))
    if status.last_exit is not None and status.last_exit.stderr and code:
        lines = "\n".join(status.last_exit.stderr[-5:])
        checks.append(Check(name="last words", status="warn", message=lines))
    return checks


def _failed(name: str, error: CallboardError) -> Check:
    return Check(name=name, status="fail", message=error.message, code=error.code, fix=error.fix)


def _with_fix(check: Check, server: str) -> Check:
    return msgspec.structs.replace(check, fix=fix_for(check.code, server, check.fix))
