"""Desktop notifications with buttons, over D-Bus (org.freedesktop.Notifications 1.2). Linux; elsewhere there are none.

A notification server may lack buttons or be absent; then the caller asks in another way.
"""

import asyncio
import contextlib
import importlib.util
import os
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jeepney import DBusAddress
    from jeepney.io.asyncio import DBusRouter

NAME: Final = "org.freedesktop.Notifications"
PATH: Final = "/org/freedesktop/Notifications"
SECONDS: Final = 5.0  # for one answer of the notification server
_CRITICAL: Final = 2  # urgency: it stays until it is answered


async def ask(summary: str, body: str, choices: Mapping[str, str], *, app_name: str = "Callboard") -> str | None:
    """Show a notification with a button for each of ``choices`` (key: label); the key of the one that was pressed.

    None if it cannot be shown with buttons. One that the person closes unanswered is waited for on and on: cancel it.
    Cancelling takes the notification away. ``body`` is plain text.
    """
    if not os.environ.get("DBUS_SESSION_BUS_ADDRESS") or importlib.util.find_spec("jeepney") is None:
        return None
    from jeepney.io.asyncio import open_dbus_router

    try:
        async with open_dbus_router() as router:
            return await _ask(router, summary, body, choices, app_name)
    except (OSError, TimeoutError, ValueError):
        return None


async def _ask(router: "DBusRouter", summary: str, body: str, choices: Mapping[str, str], app_name: str) -> str | None:
    from jeepney import DBusAddress, DBusErrorResponse, MatchRule, message_bus
    from jeepney.io.asyncio import Proxy

    server = DBusAddress(PATH, bus_name=NAME, interface=NAME)
    rule = MatchRule(type="signal", interface=NAME, member="ActionInvoked", path=PATH)
    try:
        (capabilities,) = await _call(router, server, "GetCapabilities")
        if "actions" not in capabilities:
            return None
        await Proxy(message_bus, router).AddMatch(rule)
        with router.filter(rule, bufsize=100) as pressed:
            text = escape(body, quote=False) if "body-markup" in capabilities else body
            buttons = [part for choice in choices.items() for part in choice]
            hints = {"urgency": ("y", _CRITICAL)}
            arguments = (app_name, 0, "dialog-question", summary, text, buttons, hints, 0)
            showing = asyncio.ensure_future(_call(router, server, "Notify", "susssasa{sv}i", arguments))
            try:
                (number,) = await asyncio.shield(showing)
                while True:
                    shown, key = (await pressed.get()).body
                    if shown == number and key in choices:
                        return str(key)
            finally:
                with contextlib.suppress(OSError, TimeoutError, DBusErrorResponse):
                    (number,) = await showing  # it may still be on its way when the caller gives up
                    await _call(router, server, "CloseNotification", "u", (number,))
    except DBusErrorResponse:
        return None


async def _call(
    router: "DBusRouter", server: "DBusAddress", method: str, signature: str = "", arguments: tuple[Any, ...] = ()
) -> tuple[Any, ...]:
    from jeepney import new_method_call
    from jeepney.wrappers import unwrap_msg

    async with asyncio.timeout(SECONDS):
        reply = await router.send_and_get_reply(new_method_call(server, method, signature or None, arguments))
    answer: tuple[Any, ...] = unwrap_msg(reply)
    return answer
