"""How quick the window is: from its start, and while much happens."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.engine import Api, Engine, Home, running_engine, temporary_home, upstream_entry
from tests.bench.figures import Figure, Unavailable
from tests.bench.load import Session, drive
from tests.bench.processes import child, wait_for
from tests.bench.screen import Session as Desktop
from tests.bench.screen import session as desktop_session
from tests.bench.screen import tray
from tests.bench.x11 import ScreenWatch

RUNS = 5
WAIT_SECONDS = 30.0
SETTLE_SECONDS = 3.0
LOCAL_TOOLS = {"command": sys.executable, "args": ["-m", "callboard.servers.local_tools"]}
LOAD_SECONDS = 10.0
LOG_SECONDS = 30.0
LINES_A_CALL = 5
CALLS_A_SECOND = 100
PAGES = ("calls", "servers")
FIRST_SERVER = "local-tools"


@dataclass(frozen=True)
class _Start:
    """Seconds from the start of the window's process."""

    mapped: float
    painted: float
    tray: float
    engine: float
    server: float


def start() -> list[Figure]:
    """From the start of the window's process to window, tray, engine and first server; medians of five."""
    with desktop_session() as desktop, tray(desktop), _watch(desktop) as screen:
        firsts, agains = [], []
        for _ in range(RUNS):
            with temporary_home() as home:
                firsts.append(_one_start(desktop, screen, home))
                agains.append(_one_start(desktop, screen, home))
    return [*_medians("first start", firsts), *_medians("later start", agains)]


def _medians(when: str, starts: list[_Start]) -> list[Figure]:
    moments = (
        ("window on the screen", [start.mapped for start in starts], 0.5),
        ("window painted", [start.painted for start in starts], 0.5),
        ("icon in the tray", [start.tray for start in starts], 1.5),
        ("engine answers", [start.engine for start in starts], 1.5),
        ("first server ready", [start.server for start in starts], 2.0),
    )
    return [Figure(f"{when}: {what}", statistics.median(values), "s", limit=limit) for what, values, limit in moments]


def _one_start(desktop: Desktop, screen: ScreenWatch, home: Home) -> _Start:
    command = [sys.executable, "-m", "callboard", "run"]
    began = time.monotonic()
    with (
        child(command, {**desktop.environment, **home.environment}, home.folder / "output.txt"),
        ThreadPoolExecutor(2) as pool,
    ):
        window = pool.submit(screen.wait_for_window, WAIT_SECONDS)
        icon = pool.submit(wait_for, desktop.has_tray_icon, "the icon in the tray", WAIT_SECONDS)
        engine = wait_for(lambda: home.address, "the engine")
        address = home.address
        assert address is not None
        api = Api(address)
        server = wait_for(lambda: api.states().get(FIRST_SERVER) == "ready", "the first server", pause=0.02)
        api.close()
        moments = (*window.result(), icon.result(), engine, server)
    return _Start(*(moment - began for moment in moments))


def _watch(desktop: Desktop) -> ScreenWatch:
    try:
        return ScreenWatch(desktop.display)
    except OSError as error:
        raise Unavailable(f"the screen cannot be watched: {error}") from error


def stall() -> list[Figure]:
    """The longest stall of the window while it starts, and while three servers start and 100 calls a second arrive."""
    figures = []
    for page in PAGES:
        starting, busy = _stalls(page)
        figures += [
            Figure(f"{page} page, after the first paint: longest gap", starting.longest * 1e3, "ms", limit=50.0),
            Figure(f"{page} page, after the first paint: most work in a gap", starting.worked * 1e3, "ms"),
            Figure(f"{page} page, busy: longest gap", busy.longest * 1e3, "ms", limit=50.0),
            Figure(f"{page} page, busy: most work in a gap", busy.worked * 1e3, "ms"),
            Figure(f"{page} page, busy: gaps over 50 ms", busy.over, ""),
        ]
    return figures


def log() -> list[Figure]:
    """100 calls a second, evenly, while the window scrolls the log of their server: five lines for each call."""
    up = upstream_entry("up")
    up["args"] += ["--lines", f"{LINES_A_CALL}"]
    with running_engine({"up": up}) as engine, watched_window(engine, "servers", log="up") as window:
        session = Session(f"{engine.url}/servers/up/mcp", engine.token())
        request = session.call("tool_0", 200)
        drive(session.url, request, connections=1, seconds=2.0, rate=CALLS_A_SECOND)
        began = time.monotonic()
        measured = drive(session.url, request, connections=1, seconds=LOG_SECONDS, rate=CALLS_A_SECOND)
        gaps = window.gaps(began, time.monotonic())
    return [
        Figure("a call, p50", measured.median * 1e3, "ms"),
        Figure("a call, p99", measured.percentile(0.99) * 1e3, "ms", limit=15.0),
        Figure("window: longest gap", gaps.longest * 1e3, "ms", limit=50.0),
        Figure("window: most work in a gap", gaps.worked * 1e3, "ms"),
        Figure("window: gaps over 50 ms", gaps.over, ""),
    ]


@dataclass(frozen=True)
class Gaps:
    """Gaps of the loop in a span of time: the longest, the most work in one (seconds), and how many are over 50 ms."""

    longest: float
    worked: float
    over: int


def _stalls(page: str) -> tuple[Gaps, Gaps]:
    """Gaps of the window from the first paint on, while it connects, and gaps under load."""
    late = {f"late-{number}": {**LOCAL_TOOLS, "start": "manual"} for number in range(3)}
    with running_engine({"up": upstream_entry("up"), **late}) as engine, watched_window(engine, page) as window:
        session = Session(f"{engine.url}/servers/up/mcp", engine.token())
        loaded = time.monotonic()
        for name in late:
            engine.api.post(f"/servers/{name}/start")
        drive(session.url, session.call("tool_0", 200), connections=1, seconds=LOAD_SECONDS, rate=CALLS_A_SECOND)
        engine.wait_until_ready(*late)
        return window.gaps(window.painted, loaded), window.gaps(loaded, time.monotonic())


class WatchedWindow:
    """A window whose loop is watched. ``painted``: when it was first painted, on the monotonic clock."""

    def __init__(self, output: Path, painted: float) -> None:
        self._output = output
        self.painted = painted

    def gaps(self, begin: float, end: float) -> Gaps:
        """The gaps between two moments of the monotonic clock."""
        texts = self._output.read_text().splitlines(keepends=True)
        lines = [tuple(map(float, line.split())) for line in texts if line[:1].isdigit() and line.endswith("\n")]
        found = [line for line in lines if begin <= line[0] <= end]
        return Gaps(
            max((gap for _, gap, _ in found), default=0.0),
            max((worked for _, _, worked in found), default=0.0),
            sum(gap > 0.05 for _, gap, _ in found),
        )


@contextlib.contextmanager
def watched_window(engine: Engine, page: str, log: str = "") -> Iterator[WatchedWindow]:
    """A window on a screen of its own, beside an engine, at rest; ``log`` names the server whose log it shows."""
    probe = [sys.executable, str(Path(__file__).with_name("window_probe.py")), page, log]
    output = engine.home.folder / "gaps.txt"
    with (
        desktop_session() as desktop,
        tray(desktop),
        _watch(desktop) as screen,
        child(probe, {**desktop.environment, **engine.home.environment}, output),
    ):
        _, painted = screen.wait_for_window(WAIT_SECONDS)
        wait_for(desktop.has_tray_icon, "the icon in the tray")
        time.sleep(SETTLE_SECONDS)
        yield WatchedWindow(output, painted)


@contextlib.contextmanager
def hidden_window(servers: dict[str, Any]) -> Iterator[int]:
    """A window that is hidden in the tray, beside an engine with these servers; its pid."""
    command = [sys.executable, "-m", "callboard", "run", "--background"]
    with desktop_session() as desktop, tray(desktop), running_engine(servers) as engine:
        environment = {**desktop.environment, **engine.home.environment}
        with child(command, environment, engine.home.folder / "window.txt") as process:
            wait_for(desktop.has_tray_icon, "the icon in the tray")
            yield process.pid
