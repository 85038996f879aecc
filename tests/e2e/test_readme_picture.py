"""The README's picture: the real window, as it looks with a few servers and some calls."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from callboard.api.client import EngineClient
from tests.support.engine import Entry, entry
from tests.support.window import WindowProcess, shown_windows

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "resources" / "screenshots" / "window.png"

WRITE = "CALLBOARD_WRITE_SCREENSHOTS"  # set it to have the picture made anew
SERVERS: dict[str, Entry] = {
    "local-tools": entry("${python}", "-m", "callboard.servers.local_tools", display_name="Local tools"),
    "time": entry(sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC", display_name="Time zones"),
    "github": {"url": "https://api.githubcopilot.com/mcp/", "auth": {"type": "bearer", "secret": "github-token"}},
    "files": entry("uvx-not-installed", "mcp-server-files", "~/Documents"),
    "notes": entry("${python}", "-m", "callboard.servers.local_tools", start="manual"),
}
LOCAL_TOOLS, TOOLS_TAB = (200, 190), (562, 76)  # where to click, in pixels of the window
GRAB = """
import sys
from PySide6.QtGui import QGuiApplication
app = QGuiApplication(["grab"])
shot = app.primaryScreen().grabWindow(int(sys.argv[1]))
sys.exit(0 if shot.save(sys.argv[2], "png") else 1)
"""


class WindowWithKeyring(WindowProcess):
    """The window as a person has it, with the keyring of the session."""

    def start(self) -> None:
        """Start it."""
        environment = {**os.environ, "CALLBOARD_HOME": str(self.home)}
        self.process = subprocess.Popen([sys.executable, "-m", "callboard", "run"], env=environment)


def test_the_readme_shows_a_picture_that_exists() -> None:
    assert "![" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(resources/screenshots/window.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
    head = PICTURE.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = int.from_bytes(head[16:20]), int.from_bytes(head[20:24])
    assert width >= 800
    assert height >= 500


@pytest.mark.skipif(
    not os.environ.get(WRITE) or os.environ.get("CALLBOARD_TEST_SESSION") != "ready",
    reason=f"writes the README's picture: {WRITE}=1 sh packaging/dev.sh test tests/e2e/test_readme_picture.py",
)
async def test_write_the_picture(callboard_home: Path) -> None:
    async with WindowWithKeyring(callboard_home, SERVERS) as window:
        await window.wait_until_shown()
        await window.wait_for_state("local-tools", "ready")
        await window.wait_for_state("time", "ready")
        async with EngineClient.from_file(window.paths.engine_file) as client:
            for number in range(6):
                await client.call_tool("local-tools", "word_count", {"text": "to be or not to be " * number})
            await client.call_tool("time", "get_current_time", {"timezone": "Europe/Lisbon"})
        (shown,) = await shown_windows(window.pid)
        for x, y in (LOCAL_TOOLS, TOOLS_TAB):
            await run("xdotool", "mousemove", "--window", shown, str(x), str(y), "click", "1")
        await run("xdotool", "mousemove", "1279", "799")
        await asyncio.sleep(3)  # for the picture alone: everything has been told and painted by then
        await run(sys.executable, "-c", GRAB, shown, str(PICTURE))


async def run(*command: str) -> None:
    """Run a program to its end."""
    process = await asyncio.create_subprocess_exec(*command)
    assert await process.wait() == 0
