"""What is on this machine of what servers need: programs, Python packages, browsers, secrets."""

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from callboard.core.errors import CallboardError
from callboard.core.launch import LocalLaunch
from callboard.core.shipped import Browser, BrowserNeed, Here, Need, PackageNeed, Program, ProgramNeed
from callboard.engine.command import find_program
from callboard.engine.environment import Environment
from callboard.engine.process import ChildProcess
from callboard.engine.secrets.store import SecretStore

_ANSWER_SECONDS: Final = 5.0  # for a program that is asked about itself
_MAX_ANSWER: Final = 64 * 1024


class Machine:
    """Looks, and runs programs only to ask for their version. Engine loop only."""

    def __init__(self, environment: Environment, secrets: SecretStore) -> None:
        self._environment = environment
        self._secrets = secrets

    async def look(self, needs: Iterable[Need]) -> Here:
        """What there is of what is needed; nothing is looked for that is not."""
        programs: dict[str, Program] = {}
        modules: set[str] = set()
        browsers: dict[str, Browser] = {}
        for need in needs:
            if isinstance(need, ProgramNeed):
                programs |= await self._programs(need)
            elif isinstance(need, PackageNeed):
                modules |= {name for name in need.modules if importlib.util.find_spec(name) is not None}
            elif isinstance(need, BrowserNeed) and (found := await self._browser(need.browser)) is not None:
                browsers[need.browser] = found
        variables = self._environment.variables
        return Here(
            system=sys.platform,
            programs=programs,
            modules=frozenset(modules),
            browsers=browsers,
            has_display=sys.platform != "linux" or any(variables.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY")),
            secrets=self._secrets.names,
        )

    async def _programs(self, need: ProgramNeed) -> dict[str, Program]:
        found = {}
        await self._environment.prepare(LocalLaunch((need.program,)))
        for name in filter(None, (need.program, need.version_of)):
            with contextlib.suppress(CallboardError):
                path = find_program(name, path=self._environment.variables["PATH"], cwd=self._environment.home)
                version = (await self._output(path, "--version")).strip() if name == need.version_of else ""
                found[name] = Program(path, version)
        return found

    async def _browser(self, name: str) -> Browser | None:
        for path in browser_places(name, sys.platform, self._environment.variables):
            if await asyncio.to_thread(path.is_file):
                return Browser(str(path), await self.missing_libraries(path))
        return None

    async def missing_libraries(self, program: Path) -> tuple[str, ...]:
        """The libraries that a program links to and that are not here (Linux; elsewhere they come with it)."""
        if sys.platform != "linux":
            return ()
        lines = (await self._output("ldd", str(program))).splitlines()
        return tuple(line.split()[0] for line in lines if line.rstrip().endswith("=> not found"))

    async def _output(self, *argv: str) -> str:
        """What a program prints; "" if it cannot be run or does not end in time."""
        output = bytearray()

        def keep(data: bytes) -> None:
            output.extend(data[: _MAX_ANSWER - len(output)])

        try:
            child = await ChildProcess.spawn(
                LocalLaunch(argv), environment=self._environment.variables, on_stdout=keep, on_stderr=_ignore
            )
        except CallboardError:
            return ""
        child.close_stdin()
        try:
            await asyncio.wait([child.exited], timeout=_ANSWER_SECONDS)
        finally:
            ended = await child.stop(grace=0.2)
        return output.decode("utf-8", "replace") if ended.code == 0 else ""


def browser_places(name: str, system: str, variables: Mapping[str, str]) -> list[Path]:
    """Where a browser's own installer puts it, which is where it is looked for when it is to be driven."""
    assert name == "chrome"
    if system == "darwin":
        return [Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")]
    if system == "win32":
        folders = [variables.get(each) for each in ("LOCALAPPDATA", "PROGRAMFILES", "PROGRAMFILES(X86)")]
        return [Path(folder, "Google", "Chrome", "Application", "chrome.exe") for folder in folders if folder]
    return [Path("/opt/google/chrome/chrome")]


def _ignore(data: bytes) -> None:
    """What a program says on stderr when it is asked about itself is of no use."""
