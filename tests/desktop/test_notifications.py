"""Questions as desktop notifications, over a real session bus."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from callboard.system import notifications
from tests.support.engine import EngineProcess, fixture_entry
from tests.support.gateway import in_background
from tests.support.notification_host import NotificationHost

CHOICES = {"yes": "Yes", "no": "No"}


async def test_a_button_is_the_answer() -> None:
    async with NotificationHost() as host, in_background(notifications.ask("Who?", "a <b> & c", CHOICES)) as answer:
        shown = await host.wait_for()
        assert (shown.summary, shown.body, shown.buttons) == ("Who?", "a &lt;b&gt; &amp; c", CHOICES)
        await host.press(shown, "no")
        assert await answer == "no"


async def test_cancelling_takes_it_away() -> None:
    async with NotificationHost() as host:
        async with in_background(notifications.ask("Who?", "", CHOICES)):
            shown = await host.wait_for()
        await host.wait_for_close(shown.number)


async def test_without_buttons_or_without_a_server_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await notifications.ask("Who?", "", CHOICES) is None
    async with NotificationHost("body"):
        assert await notifications.ask("Who?", "", CHOICES) is None
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus")
    assert await notifications.ask("Who?", "", CHOICES) is None
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS")
    assert await notifications.ask("Who?", "", CHOICES) is None


async def test_an_engine_without_a_window_asks_by_notification(callboard_home: Path) -> None:
    entry = fixture_entry("one")
    entry["args"] = [*entry["args"], "--hints"]  # type: ignore[misc]
    async with NotificationHost() as host, EngineProcess(callboard_home, {"one": entry}) as engine:
        await engine.wait_for("one", "ready")
        async with in_background(_call(engine)) as call:
            shown = await host.wait_for()
            assert shown.summary == "May script use one.raw?"
            assert '{"secret-free":1}' in shown.body
            assert list(shown.buttons) == ["once", "always", "deny"]
            await host.press(shown, "always")
            assert (await call)["success"] is True
        assert (await _call(engine))["success"] is True
        assert len(host.shown) == 1


async def _call(engine: EngineProcess) -> dict[str, object]:
    url = (await engine.client.engine()).url
    headers = {"authorization": f"Bearer {await engine.token()}"}
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        answer = await http.post(f"{url}/mcp/tools/one.raw", json={"secret-free": 1}, headers=headers)
    await asyncio.sleep(0)
    found: dict[str, object] = answer.json()
    return found
