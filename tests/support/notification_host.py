"""A notification server for tests: owns org.freedesktop.Notifications on the session bus and presses buttons."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from jeepney import DBusAddress, HeaderFields, Message, MessageType, message_bus, new_method_return, new_signal
from jeepney.io.asyncio import DBusConnection, open_dbus_connection

from callboard.system.notifications import NAME, PATH

DO_NOT_QUEUE, PRIMARY_OWNER = 4, 1


@dataclass(frozen=True)
class Shown:
    """A notification as it was asked for."""

    number: int
    summary: str
    body: str
    buttons: dict[str, str]


class NotificationHost:
    """Use as an async context manager, in the test's own process: what is under test must not block its loop."""

    def __init__(self, *capabilities: str) -> None:
        self.capabilities = list(capabilities) or ["body", "actions", "body-markup"]
        self.shown: list[Shown] = []
        self.closed: list[int] = []
        self._bus: DBusConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._bus = await open_dbus_connection()
        await self._bus.send(message_bus.RequestName(NAME, DO_NOT_QUEUE))
        while (answer := await self._bus.receive()).header.message_type is not MessageType.method_return:
            pass
        assert answer.body == (PRIMARY_OWNER,), "another program shows notifications"
        self._task = asyncio.create_task(self._serve())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        assert self._bus is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._bus.close()

    async def wait_for(self, count: int = 1) -> Shown:
        """The notification of this number, once it is shown."""
        async with asyncio.timeout(60):
            while len(self.shown) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.shown[count - 1]

    async def wait_for_close(self, number: int) -> None:
        """Return once a notification was taken away."""
        async with asyncio.timeout(60):
            while number not in self.closed:
                self._changed.clear()
                await self._changed.wait()

    async def press(self, shown: Shown, key: str) -> None:
        """Press a button."""
        assert self._bus is not None
        emitter = DBusAddress(PATH, interface=NAME)
        await self._bus.send(new_signal(emitter, "ActionInvoked", "us", (shown.number, key)))

    async def _serve(self) -> None:
        assert self._bus is not None
        while True:
            message = await self._bus.receive()
            if message.header.message_type is MessageType.method_call:
                signature, body = self._answer(message.header.fields.get(HeaderFields.member), message)
                await self._bus.send(new_method_return(message, signature, body))
                self._changed.set()

    def _answer(self, member: Any, message: Message) -> tuple[str | None, tuple[Any, ...]]:
        if member == "GetCapabilities":
            return "as", (self.capabilities,)
        if member == "Notify":
            _, _, _, summary, body, buttons, _, _ = message.body
            number = len(self.shown) + 1
            self.shown.append(Shown(number, summary, body, dict(zip(buttons[::2], buttons[1::2], strict=True))))
            return "u", (number,)
        if member == "CloseNotification":
            self.closed.append(message.body[0])
        return None, ()
