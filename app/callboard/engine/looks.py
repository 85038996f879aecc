"""Looks at servers that somebody asked for: health checks, lists read anew, and the steps of a start tried out.

What a look found is kept, with its time, until the next one: nothing here happens by itself (what watches over ready
servers is :mod:`callboard.engine.health`).
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final, Literal

import msgspec

from callboard.api.schema import Check, HealthView
from callboard.core.errors import CallboardError
from callboard.core.health import SEVERITY, Severity, State
from callboard.core.roster import AnyEntry
from callboard.core.supervision import CONNECTED
from callboard.engine.output import OutputLog
from callboard.engine.relay.catalogue import Catalogue, Offer
from callboard.engine.server_checks import ServerChecks, ping_check
from callboard.engine.supervisor import Supervisor

_SPARE: Final = 5.0  # seconds that a start gets beyond its own limit
_STATUS: Final[dict[Severity, Literal["ok", "warn", "fail", "off"]]] = {
    Severity.OFF: "off",
    Severity.BUSY: "warn",
    Severity.FINE: "ok",
    Severity.ATTENTION: "warn",
    Severity.FAILED: "fail",
}


class Looks:
    """Owned by the table of servers. Engine loop only; every method raises ``server-unknown``."""

    def __init__(
        self,
        supervisor: Supervisor,
        output: OutputLog,
        *,
        catalogue: Callable[[], Catalogue],
        entry_of: Callable[[str], AnyEntry],
        variables: Callable[[], dict[str, str]],
        on_change: Callable[[str], None],
    ) -> None:
        """``variables``: the environment that children get; ``on_change`` hears of which server there is news."""
        self._supervisor = supervisor
        self._output = output
        self._catalogue = catalogue
        self._entry_of = entry_of
        self._checks = ServerChecks(supervisor, variables, self._read_offer)
        self._on_change = on_change
        self._found: dict[str, HealthView] = {}

    def shown(self, name: str) -> HealthView | None:
        """What the last look found; None if nobody has looked yet."""
        return self._found.get(name)

    def forget(self, name: str) -> None:
        """The server is gone from the roster."""
        self._found.pop(name, None)

    async def check(self, name: str) -> HealthView:
        """Ask a server that runs for a sign of life; one that does not is left alone, and told as it is."""
        self._entry_of(name)
        upstream = self._supervisor.ready_upstream(name)
        if upstream is None:
            return self._keep(self._as_it_is(name))
        check = await ping_check(upstream)
        if self._supervisor.ready_upstream(name) is not upstream:
            return self._keep(self._as_it_is(name))  # it ended meanwhile
        return self._keep(self._view(name, "ok" if check.status == "ok" else "fail", check))

    async def check_all(self, names: Iterable[str]) -> list[HealthView]:
        """All of them at once."""
        return list(await asyncio.gather(*(self.check(name) for name in names)))

    async def refresh(self, name: str) -> HealthView:
        """Read a server's lists anew, then ask it for a sign of life.

        One that starts on demand is started for it, and rests again; another one that does not run is left alone.
        """
        entry = self._entry_of(name)
        asleep = entry.enabled and entry.start == "on-demand" and self._supervisor.status(name).state is State.STOPPED
        if asleep:
            self._supervisor.start(name)
        if self._supervisor.status(name).state is State.STARTING:
            await self._supervisor.settle(name, seconds=entry.timeouts.start + _SPARE)
        upstream = self._supervisor.ready_upstream(name)
        if upstream is not None:
            self._catalogue().read(name, upstream)
            await self._catalogue().settled(name)
        view = await self.check(name)
        if asleep:
            self._supervisor.rest(name, "its lists were read; a call starts it")
        return view

    async def refresh_all(self, names: Iterable[str]) -> list[HealthView]:
        """All of them at once."""
        return list(await asyncio.gather(*(self.refresh(name) for name in names)))

    async def test(self, name: str) -> list[Check]:
        """Every step from the settings to an answer. A server that does not run is started for it."""
        checks = await self._checks.run(name, start_limit=self._entry_of(name).timeouts.start)
        wrong = [check for check in checks if check.status != "ok"]
        failed = next((check for check in wrong if check.status == "fail"), None)
        last = failed or (wrong[-1] if wrong else checks[-1])
        self._keep(self._view(name, last.status, last))
        return checks

    async def _read_offer(self, name: str) -> Offer:
        await self._catalogue().settled(name)
        return self._catalogue().offer(name)

    def _as_it_is(self, name: str) -> HealthView:
        """The health of a server that does not run."""
        status = self._supervisor.status(name)
        reason = f": {status.reason.rstrip('.')}" if status.reason else ""
        grade = _STATUS[SEVERITY[status.state]] if status.state not in CONNECTED else "warn"
        message = f"{status.state.value.capitalize()}{reason}."
        check = Check(name="", status="ok", message=message, code=status.error_code)
        return self._view(name, grade, msgspec.structs.replace(check, fix=status.fix))

    def _view(self, name: str, status: Literal["ok", "warn", "fail", "off"], check: Check) -> HealthView:
        return HealthView(
            server=name,
            at=time.time(),
            status=status,
            message=check.message,
            duration_ms=check.duration_ms if check.name == "answers" else None,
            code=check.code,
            fix=check.fix,
            stderr=self._output.tail(name) if status == "fail" else "",
        )

    def _keep(self, view: HealthView) -> HealthView:
        try:
            self._entry_of(view.server)
        except CallboardError:
            return view  # it was taken out of the roster meanwhile
        self._found[view.server] = view
        self._on_change(view.server)
        return view
