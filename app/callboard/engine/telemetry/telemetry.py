"""Telemetry of the engine: counts every call, and exports traces and figures where roster or environment ask for it.

Nothing of OpenTelemetry is imported before that, and no call waits for an exporter or fails because of one.
"""

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import psutil

from callboard.api.schema import Check, Notice
from callboard.core.errors import FIXES, CallboardError
from callboard.core.resolve import Values
from callboard.core.roster import Telemetry as Settings
from callboard.core.telemetry import ExportPlan, plan_export, secret_headers, secrets_of
from callboard.engine import tasks
from callboard.engine.calls.record import CallRecord
from callboard.engine.masking import Masking
from callboard.engine.relay.catalogue import PROMPTS, TOOLS
from callboard.engine.telemetry.meter import CallMeter
from callboard.engine.telemetry.snapshot import Snapshot
from callboard.engine.telemetry.tracing import Tracing

if TYPE_CHECKING:
    from callboard.engine.relay.relay import Relay
    from callboard.engine.telemetry.otlp.export import OtlpExport

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 1.0  # for the collector to take what is left when the engine stops
SETTLE_SECONDS: Final = 1.5
SNAPSHOT_SECONDS: Final = 5.0
# the usual fixes speak of a server's entry
_FIX: Final = {
    "secret-missing": "Set it with `callboard secrets set`, or change the roster's section telemetry.",
    "env-unset": FIXES["telemetry-invalid"],
    "entry-invalid": FIXES["telemetry-invalid"],
}
SecretsLookup = Callable[[Iterable[str]], Awaitable[Mapping[str, str]]]


class Telemetry:
    """See the module. It is a CallWatcher. Engine loop only, where nothing else is said."""

    def __init__(
        self,
        env: Mapping[str, str],
        home: Path,
        secrets: SecretsLookup,
        masking: Masking,
        *,
        states: Callable[[], Mapping[str, int]],
        on_change: Callable[[], None],
    ) -> None:
        """``states`` counts the servers by state; ``on_change`` hears that the notices changed."""
        self._env = env
        self._home = home
        self._secrets = secrets
        self._masking = masking
        self._states = states
        self._relay: Relay | None = None
        self._on_change = on_change
        self._meter = CallMeter(self._is_listed)
        self._started = time.time()
        self._process = psutil.Process()
        self._settings: Settings | None = None
        self._plan: ExportPlan | None = None
        self._export: OtlpExport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._applying: asyncio.Task[None] | None = None
        self._stale = False
        self._problem: Notice | None = None
        self._failing: dict[str, str] = {}  # address: why it takes nothing

    def attach(self, relay: "Relay") -> None:
        """The relay whose calls are traced."""
        self._relay = relay

    @property
    def relay(self) -> "Relay":
        """The attached relay."""
        assert self._relay is not None
        return self._relay

    def _is_listed(self, server: str, method: str, name: str) -> bool:
        kind = TOOLS if method == "tools/call" else PROMPTS
        return any(item.key == name for item in self.relay.catalogue.offer(server).items(kind))

    # calls

    def began(self, record: CallRecord) -> None:
        """See CallWatcher."""
        self._meter.began(record)

    def ended(self, record: CallRecord) -> None:
        """See CallWatcher."""
        self._meter.ended(record)
        if record.trace is not None and record.trace.span.sampled and self._export is not None:
            self._export.ended(record.trace)

    # figures

    def snapshot(self) -> Snapshot:
        """All figures now."""
        memory = self._process.memory_info().rss
        series, in_flight = self._meter.series(), self._meter.in_flight()
        return Snapshot(self._started, time.time(), series, in_flight, self._states(), memory)

    async def prometheus(self) -> str:
        """All figures now as Prometheus' text format."""
        return await asyncio.to_thread(_prometheus_text, self.snapshot())

    # export

    def configure(self, settings: Settings) -> None:
        """Take the roster's section into force; the exporter starts, ends or changes in the background."""
        if settings != self._settings:
            self._settings = settings
            self._apply_soon()

    async def settled(self) -> None:
        """Return once what was configured is in force, or after a second or so: a secret may have to be waited for."""
        if self._applying is not None:
            await asyncio.wait([self._applying], timeout=SETTLE_SECONDS)

    def secrets_changed(self, names: Iterable[str]) -> None:
        """Secrets got a value."""
        if self._settings is not None and not secrets_of(self._settings).isdisjoint(names):
            self._apply_soon()

    def secret_users(self) -> dict[str, list[str]]:
        """The secrets that the roster's section refers to."""
        names = secrets_of(self._settings) if self._settings is not None else ()
        return {name: ["telemetry"] for name in names}

    @property
    def notices(self) -> list[Notice]:
        """What a person should know: that the exporter cannot start, that a collector takes nothing."""
        notices = [self._problem] if self._problem is not None else []
        if self._failing:
            places = " and ".join(map(_shown, self._failing))
            message = (
                f"The collector at {places} takes no telemetry: {', '.join(dict.fromkeys(self._failing.values()))}."
            )
            notices.append(Notice(code="telemetry-failing", message=message, fix=FIXES["telemetry-failing"]))
        return notices

    def checks(self) -> list[Check]:
        """The lines of doctor."""
        problems = [
            Check(name="telemetry", status="warn", message=notice.message, code=notice.code, fix=notice.fix)
            for notice in self.notices
        ]
        if problems:
            return problems
        if self._plan is None:
            message = "Traces and figures are not exported."
        else:
            targets = {"traces": self._plan.traces, "figures": self._plan.metrics}
            said = [f"{what} to {_shown(address)}" for what, address in targets.items() if address]
            message = f"Callboard sends {' and '.join(said)}."
        return [Check(name="telemetry", status="ok", message=message)]

    async def close(self) -> None:
        """Send what is left, within a second."""
        self._settings, self._stale = None, False
        if self._applying is not None:
            await tasks.cancel_and_wait(self._applying)
        await self._end_export()

    def _apply_soon(self) -> None:
        self._stale = True
        if self._applying is None or self._applying.done():
            self._loop = asyncio.get_running_loop()
            self._applying = tasks.spawn(self._apply(), name="set telemetry up")

    async def _apply(self) -> None:
        while self._stale and self._settings is not None:
            self._stale = False
            await self._apply_once(self._settings)

    async def _apply_once(self, settings: Settings) -> None:
        problem: Notice | None = None
        plan: ExportPlan | None = None
        try:
            plan = await self._find_plan(settings)
        except CallboardError as error:
            message = f"Telemetry is not exported: {error.message}"
            problem = Notice(code=error.code, message=message, fix=_FIX.get(error.code, error.fix))
        if plan != self._plan:
            await self._end_export()
            if plan is not None:
                problem = await self._begin_export(plan)
        if problem != self._problem:
            self._problem = problem
            if problem is not None:
                log.warning("%s %s", problem.message, problem.fix)
            self._on_change()

    async def _find_plan(self, settings: Settings) -> ExportPlan | None:
        names = secrets_of(settings)
        secrets = await self._secrets(names) if names and settings.enabled is not False else {}
        plan = plan_export(settings, self._env, Values(self._env, secrets, sys.executable, self._home).fill)
        if plan is not None:
            self._masking.learn([value for _, value in plan.headers] + secret_headers(self._env))
        return plan

    async def _begin_export(self, plan: ExportPlan) -> Notice | None:
        try:
            export = await asyncio.to_thread(self._make_export, plan)
        except ImportError as error:
            message = f"Telemetry is not exported: a package is missing ({error.name or error})."
            return Notice(code="telemetry-missing", message=message, fix=FIXES["telemetry-missing"])
        except Exception as error:
            log.info("telemetry could not be set up", exc_info=error)
            message = f"Telemetry is not exported: its settings are refused ({type(error).__name__})."
            return Notice(code="telemetry-invalid", message=message, fix=FIXES["telemetry-invalid"])
        self._plan, self._export = plan, export
        if export.traces:
            self.relay.tracing = Tracing(export.sample)
        log.info("telemetry is exported to %s", ", ".join(map(_shown, filter(None, (plan.traces, plan.metrics)))))
        return None

    def _make_export(self, plan: ExportPlan) -> "OtlpExport":
        from callboard.engine.telemetry.otlp.export import OtlpExport  # tens of milliseconds, and megabytes

        return OtlpExport(plan, self._snapshot_for_thread, self._on_health)

    async def _end_export(self) -> None:
        export, self._export, self._plan = self._export, None, None
        self._failing = {}
        if export is None:
            return
        self.relay.tracing = None
        await asyncio.to_thread(export.shutdown, FLUSH_SECONDS)

    # called in the exporter's threads

    def _on_health(self, address: str, why: str) -> None:
        self._tell(self._heard, address, why)

    def _snapshot_for_thread(self) -> Snapshot | None:
        taken: Future[Snapshot] = Future()
        self._tell(lambda: taken.set_result(self.snapshot()))
        try:
            return taken.result(SNAPSHOT_SECONDS)
        except TimeoutError:
            return None

    def _tell(self, hear: Callable[..., None], *args: object) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(hear, *args)

    def _heard(self, address: str, why: str) -> None:
        if self._export is None or self._failing.get(address, "") == why:
            return
        if why:
            self._failing[address] = why
            log.warning("the collector at %s takes no telemetry: %s", _shown(address), why)
        else:
            del self._failing[address]
            log.info("the collector at %s takes telemetry again", _shown(address))
        self._on_change()


def _prometheus_text(snapshot: Snapshot) -> str:
    from callboard.engine.telemetry.prometheus import as_text  # tens of milliseconds, and megabytes

    return as_text(snapshot)


def _shown(address: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
