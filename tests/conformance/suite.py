"""The protocol's conformance suite: installed from npm into a folder of its own, and run."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

PACKAGE = "@modelcontextprotocol/conformance"
VERSION = "0.2.0-alpha.12"
NODE_MAJOR = 22  # what the suite needs; npm brings it where an older Node is installed
OLDEST_NODE = 18  # what npm and the package that brings Node need
INSTALL_SECONDS = 240
RUN_SECONDS = 90
CLIENT_SECONDS = 60

Checks = dict[str, str]
"""The worst status of each check of a scenario, by the check's id."""

RANK = ("SUCCESS", "INFO", "SKIPPED", "WARNING", "FAILURE")
_RESULT = re.compile(r"(?:server-)?(?P<scenario>.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z")


class Unavailable(Exception):
    """The suite cannot be had here."""


@dataclass(frozen=True)
class Outcome:
    """One scenario's checks, and why they are as they are."""

    checks: Checks
    messages: dict[str, str]  # check → its error message

    @property
    def failed(self) -> bool:
        """True if the suite counts the scenario as failed."""
        return "FAILURE" in self.checks.values() or not self.checks


Results = dict[str, Outcome]
"""What a run found, by scenario."""


def say(text: str) -> None:
    """Tell whoever runs this, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def cache_folder() -> Path:
    """Where the suite is installed."""
    if named := os.environ.get("CALLBOARD_CONFORMANCE_DIR"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "callboard-conformance"


class Suite:
    """The installed suite. Every process that it starts has ended when a method returns."""

    def __init__(self, node: str, script: Path) -> None:
        self._node = node
        self._script = script

    @classmethod
    def install(cls) -> "Suite":
        """Find the suite in the cache folder, or install it there; raises Unavailable."""
        node, npm = shutil.which("node"), shutil.which("npm")
        if node is None or npm is None or _major(node) < OLDEST_NODE:
            raise Unavailable(f"Node {OLDEST_NODE} or later and npm are needed; install them (Debian: nodejs, npm)")
        folder = cache_folder()
        wanted = {PACKAGE: VERSION}
        if _major(node) < NODE_MAJOR:
            wanted["node"] = str(NODE_MAJOR)
            node = str(folder / "node_modules" / ".bin" / "node")
        script = folder / "node_modules" / PACKAGE / "dist" / "index.js"
        if _installed(folder) != VERSION or not Path(node).exists():
            _install(npm, folder, [f"{name}@{version}" for name, version in wanted.items()])
        if not script.exists() or _major(node) < NODE_MAJOR:
            raise Unavailable(f"the suite is not whole in {folder}; remove that folder and try again")
        return cls(node, script)

    async def server(self, url: str, revision: str, folder: Path) -> Results:
        """Run all that a revision requires of a server."""
        arguments = ("server", "--url", url, "--requirements", revision, "--output-dir", str(folder))
        await self._run(arguments, RUN_SECONDS, folder)
        return _results(folder)

    async def client(self, scenario: str, revision: str, folder: Path) -> Outcome:
        """Run one client scenario with our driver as the client."""
        driver = f'"{sys.executable}" -m tests.conformance.client'
        arguments = ("client", "--command", driver, "--scenario", scenario, "--spec-version", revision)
        # extensions belong to no revision: without force they would be skipped
        await self._run((*arguments, "--force", "--output-dir", str(folder)), CLIENT_SECONDS, folder)
        return _results(folder).get(scenario, Outcome({}, {}))

    def client_scenarios(self, revision: str) -> list[str]:
        """The scenarios that a revision has for clients."""
        path = self._script.parents[1] / "requirements" / f"{revision}.yaml"
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        more = [entry["scenario"] for entry in found["not_scored"] if entry["leg"] == "client"]
        return [*found["client"], *more]

    async def _run(self, arguments: Iterable[str], seconds: float, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "output.txt").open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                self._node,
                str(self._script),
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(seconds):
                    await process.wait()
            except TimeoutError:
                say(f"the suite was ended after {seconds:g} s; what it had not come to counts as lost")
            finally:
                # its clients are children of a shell of its own: the whole group goes
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    await process.wait()


def _major(node: str) -> int:
    try:
        found = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return 0
    number = found.stdout.strip().removeprefix("v").partition(".")[0]
    return int(number) if number.isdigit() else 0


def _installed(folder: Path) -> str:
    try:
        package = json.loads((folder / "node_modules" / PACKAGE / "package.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(package.get("version"))


def _install(npm: str, folder: Path, packages: list[str]) -> None:
    say(f"installing {' and '.join(packages)} into {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "package.json").exists():
        (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    command = [npm, "install", "--no-audit", "--no-fund", *packages]
    try:
        found = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm did not install the suite within {INSTALL_SECONDS} s") from None
    if found.returncode != 0:
        raise Unavailable(f"npm could not install the suite: {found.stderr.strip()[-500:]}")


def _results(folder: Path) -> Results:
    results: Results = {}
    for path in sorted(folder.rglob("checks.json")):
        named = _RESULT.fullmatch(path.parent.relative_to(folder).as_posix())
        if named is None:
            continue
        checks: Checks = {}
        messages: dict[str, str] = {}
        for check in json.loads(path.read_text(encoding="utf-8")):
            name, status = check["id"], check["status"]
            if name not in checks or RANK.index(status) > RANK.index(checks[name]):
                checks[name] = status
                messages[name] = str(check.get("errorMessage") or "")
        results[named["scenario"]] = Outcome(checks, messages)
    return results
