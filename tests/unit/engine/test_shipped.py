"""The look at this machine for what shipped servers need."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from callboard.api.schema import ShippedView
from callboard.engine.environment import Environment
from callboard.engine.machine import Machine, browser_places
from callboard.engine.secrets.store import SecretStore
from callboard.engine.shipped import ShippedServers
from callboard.system.resources import resource

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs as POSIX has them")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


@pytest.fixture
async def secrets(tmp_path: Path) -> AsyncIterator[SecretStore]:
    store = SecretStore(tmp_path / "state")
    yield store
    store.close()


def machine(programs: Path, secrets: SecretStore, **variables: str) -> Machine:
    own = {"PATH": str(programs), "HOME": str(programs.parent), **variables}
    environment = Environment(own, programs.parent)
    environment.variables = {**environment.variables, "PATH": str(programs)}  # without the usual folders
    return Machine(environment, secrets)


def servers(programs: Path, secrets: SecretStore, **variables: str) -> ShippedServers:
    return ShippedServers(resource("shipped.yaml"), machine(programs, secrets, **variables))


def script(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


async def view(shipped: ShippedServers, name: str, written: dict[str, dict[str, object]] | None = None) -> ShippedView:
    return next(each for each in await shipped.views(written or {}) if each.name == name)


def states(shipped: ShippedView) -> dict[str, str]:
    return {need.kind: need.state for need in shipped.needs}


async def test_programs_are_looked_for_on_the_path_of_servers(programs: Path, secrets: SecretStore) -> None:
    shipped = servers(programs, secrets)

    assert states(await view(shipped, "playwright"))["program"] == "missing"
    script(programs, "npx", "exit 1")
    assert (await view(shipped, "playwright")).needs[0].message == "Node.js is here."
    script(programs, "node", "echo v16.1.0")
    assert "16.1.0 is too old" in (await view(shipped, "playwright")).needs[0].message
    script(programs, "node", "echo v22.3.1")
    assert (await view(shipped, "playwright")).needs[0].message == "Node.js 22.3.1 is here."


async def test_a_program_that_never_answers_is_ended(
    programs: Path, secrets: SecretStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.engine.machine._ANSWER_SECONDS", 0.2)
    script(programs, "npx", "exit 0")
    script(programs, "node", "/bin/sleep 600")

    assert (await view(servers(programs, secrets), "playwright")).needs[0].message == "Node.js is here."


async def test_packages_beside_our_own_are_found_without_an_import(programs: Path, secrets: SecretStore) -> None:
    assert states(await view(servers(programs, secrets), "postgres")) == {"packages": "met", "secret": "asked"}


async def test_a_screen_is_one_that_servers_would_have(programs: Path, secrets: SecretStore) -> None:
    if sys.platform != "linux":
        pytest.skip("elsewhere there is always one")
    assert states(await view(servers(programs, secrets), "playwright"))["display"] == "missing"
    assert states(await view(servers(programs, secrets, DISPLAY=":1"), "playwright"))["display"] == "met"
    assert states(await view(servers(programs, secrets, WAYLAND_DISPLAY="w"), "playwright"))["display"] == "met"


async def test_secrets_that_have_a_value_are_met(programs: Path, secrets: SecretStore) -> None:
    shipped = servers(programs, secrets)

    assert (states(await view(shipped, "github")), states(await view(shipped, "exa"))) == (
        {"secret": "asked"},
        {"secret": "optional"},
    )
    await secrets.set("github-token", "x")
    await secrets.set("exa-api-key", "x")
    assert (states(await view(shipped, "github")), states(await view(shipped, "exa"))) == (
        {"secret": "met"},
        {"secret": "met"},
    )


async def test_what_is_in_the_roster_is_told(programs: Path, secrets: SecretStore) -> None:
    written: dict[str, dict[str, object]] = {
        "mine": {"command": "x", "args": ["-m", "callboard.servers.filesystem", "/a"]},
        "other": {"command": "x"},
        "gh": {"url": "https://api.githubcopilot.com/mcp/"},
    }
    shipped = servers(programs, secrets)

    assert (await view(shipped, "filesystem", written)).added == ["mine"]
    assert (await view(shipped, "github", written)).added == ["gh"]
    assert (await view(shipped, "exa", written)).added == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere libraries come with the program")
async def test_libraries_that_a_program_links_to_and_that_are_not_here_are_named(
    tmp_path: Path, programs: Path, secrets: SecretStore
) -> None:
    if shutil.which("ldd") is None:
        pytest.skip("there is no ldd")
    here = machine(programs, secrets)
    for name in ("ldd", "sh", "cat", "bash"):
        (programs / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    whole = Path("/bin/ls").resolve()
    broken = tmp_path / "broken"
    broken.write_bytes(whole.read_bytes().replace(b"libc.so.6\0", b"libq.so.6\0"))
    broken.chmod(0o755)

    assert await here.missing_libraries(whole) == ()
    assert await here.missing_libraries(broken) == ("libq.so.6",)
    assert await here.missing_libraries(tmp_path / "gone") == ()


def test_a_browser_is_where_its_installer_puts_it() -> None:
    assert browser_places("chrome", "linux", os.environ) == [Path("/opt/google/chrome/chrome")]
    assert browser_places("chrome", "darwin", {}) == [
        Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
    ]
    (place,) = browser_places("chrome", "win32", {"PROGRAMFILES": "C:\\Programs"})
    assert place.name == "chrome.exe"


async def test_doctor_is_told_what_a_server_of_the_roster_lacks(programs: Path, secrets: SecretStore) -> None:
    shipped = servers(programs, secrets)
    entry = {"command": "npx", "args": ["-y", "@playwright/mcp@latest", "--headless"]}

    checks = await shipped.checks("browser", entry)

    assert [(check.name, check.status, check.code) for check in checks[:1]] == [("browser", "warn", "needs-missing")]
    assert checks[0].message == "Node.js is not here: the program npx was not found."
    assert "nodejs" in checks[0].fix.lower()
    assert not any("screen" in check.message for check in checks)
    assert await shipped.checks("x", {"command": "x"}) == []
