"""A question on the real screen: the window is hidden in the tray, a client calls, a dialog comes up."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import httpx2

from callboard.api.client import EngineClient
from tests.support.gateway import in_background
from tests.support.processes import until
from tests.support.tray_host import TrayHost
from tests.support.window import FIXTURE, WindowProcess

SERVERS: dict[str, dict[str, object]] = {"fixture": {"command": FIXTURE[0], "args": [*FIXTURE[1:], "--hints"]}}
SHOT = os.environ.get("CALLBOARD_QUESTION_SHOT", "")  # where to put a picture of it


async def test_a_call_of_a_hidden_window_is_asked_for_on_the_screen(callboard_home: Path) -> None:
    async with TrayHost() as tray, WindowProcess(callboard_home, SERVERS, "--background") as window:
        await window.wait_for_state("fixture", "ready")
        icon = await tray.wait_for_item()
        assert not await window.is_shown()
        async with EngineClient.from_file(window.paths.engine_file) as client, in_background(_call(client)) as call:
            await until(lambda: call.done() or _dialogs(window.pid), seconds=60)
            assert not call.done(), await call
            (question,) = await client.policy.questions()
            assert question.name == "raw"
            await icon.wait_for_state(lambda state: "permission" in f"{state.tooltip_title} {state.tooltip_text}")
            if SHOT:
                subprocess.run(["import", "-window", _dialogs(window.pid)[0], SHOT], check=True)
            async with asyncio.timeout(60):
                # it takes a moment until Allow once may be pressed, and the dialog is gone before the call has ended
                while not call.done():
                    for dialog in _dialogs(window.pid):
                        _press("windowfocus", dialog)
                        _press("key", "--window", dialog, "alt+o")
                    await asyncio.sleep(0.2)
            assert (await call)["success"] is True
        await until(lambda: not _dialogs(window.pid), seconds=60)


def _press(*command: str) -> None:
    subprocess.run(["xdotool", *command], capture_output=True, check=False)


def _dialogs(pid: int) -> list[str]:
    found = subprocess.run(
        ["xdotool", "search", "--all", "--onlyvisible", "--pid", str(pid), "--name", "Callboard asks"],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.split()


async def _call(client: EngineClient) -> dict[str, object]:
    engine = await client.engine()
    headers = {"authorization": f"Bearer {await client.token('script')}"}
    async with httpx2.AsyncClient(trust_env=False, timeout=120) as http:
        answer = await http.post(f"{engine.url}/mcp/tools/fixture.raw", json={"path": "/tmp/x"}, headers=headers)
    found: dict[str, object] = answer.json()
    return found
