"""A tray without a panel: owns org.kde.StatusNotifierWatcher on the session bus until its standard input ends.

Run as a process of its own (tests/support/tray_host.py does): Qt makes blocking calls to the watcher, which a thread
of the same process could not answer in time. Prints `ready` when items may register. Needs only jeepney.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from jeepney import (
    DBusAddress,
    HeaderFields,
    MatchRule,
    Message,
    MessageFlag,
    MessageType,
    message_bus,
    new_error,
    new_method_return,
    new_signal,
)
from jeepney.io.blocking import DBusConnection, open_dbus_connection

NAME = "org.kde.StatusNotifierWatcher"
PATH = "/StatusNotifierWatcher"
EMITTER = DBusAddress(PATH, interface=NAME)
DO_NOT_QUEUE, PRIMARY_OWNER = 4, 1
INTROSPECTION = f"""<!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
<node><interface name="{NAME}">
<method name="RegisterStatusNotifierItem"><arg type="s" direction="in"/></method>
<method name="RegisterStatusNotifierHost"><arg type="s" direction="in"/></method>
<property name="RegisteredStatusNotifierItems" type="as" access="read"/>
<property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
<property name="ProtocolVersion" type="i" access="read"/>
<signal name="StatusNotifierItemRegistered"><arg type="s"/></signal>
<signal name="StatusNotifierItemUnregistered"><arg type="s"/></signal>
<signal name="StatusNotifierHostRegistered"/>
</interface></node>"""


class Watcher:
    """Answers everything that a tray icon asks of the desktop. One thread; `serve` returns when the bus goes away."""

    def __init__(self, connection: DBusConnection) -> None:
        self._bus = connection
        self._items: list[tuple[str, str]] = []  # bus name and object path

    def acquire(self) -> None:
        """Takes the well-known name. Raises RuntimeError if another tray has it."""
        vanished = MatchRule(type="signal", sender="org.freedesktop.DBus", member="NameOwnerChanged")
        self._bus.send_and_get_reply(message_bus.AddMatch(vanished))
        (answer,) = self._bus.send_and_get_reply(message_bus.RequestName(NAME, DO_NOT_QUEUE)).body
        if answer != PRIMARY_OWNER:
            raise RuntimeError(f"another program owns {NAME}")
        self._emit("StatusNotifierHostRegistered")

    def serve(self) -> None:
        while True:
            try:
                message = self._bus.receive()
            except ConnectionError:
                return
            fields = message.header.fields
            if message.header.message_type is MessageType.method_call:
                answer = self._answer(message)
                if not message.header.flags & MessageFlag.no_reply_expected:
                    self._bus.send(answer)
            elif fields.get(HeaderFields.member) == "NameOwnerChanged":
                name, _before, owner = message.body
                if not owner:
                    self._forget(name)

    def _answer(self, call: Message) -> Message:
        fields = call.header.fields
        member, interface = fields[HeaderFields.member], fields.get(HeaderFields.interface)
        match interface, member:
            case _, "RegisterStatusNotifierItem":
                # Either a bus name, or an object path of the caller's.
                (given,) = call.body
                item = (fields[HeaderFields.sender], given) if given[0] == "/" else (given, "/StatusNotifierItem")
                if item not in self._items:
                    self._items.append(item)
                    self._emit("StatusNotifierItemRegistered", "".join(item))
                return new_method_return(call)
            case _, "RegisterStatusNotifierHost":
                return new_method_return(call)
            case "org.freedesktop.DBus.Properties", "Get" if call.body[1] in self._properties():
                return new_method_return(call, "v", (self._properties()[call.body[1]],))
            case "org.freedesktop.DBus.Properties", "GetAll":
                return new_method_return(call, "a{sv}", (self._properties(),))
            case "org.freedesktop.DBus.Introspectable", "Introspect":
                return new_method_return(call, "s", (INTROSPECTION,))
            case "org.freedesktop.DBus.Peer", "Ping":
                return new_method_return(call)
        return new_error(call, "org.freedesktop.DBus.Error.UnknownMethod", "s", (f"{interface}.{member}",))

    def _properties(self) -> dict[str, tuple[str, Any]]:
        return {
            "RegisteredStatusNotifierItems": ("as", ["".join(item) for item in self._items]),
            "IsStatusNotifierHostRegistered": ("b", True),
            "ProtocolVersion": ("i", 0),
        }

    def _forget(self, bus_name: str) -> None:
        for item in [item for item in self._items if item[0] == bus_name]:
            self._items.remove(item)
            self._emit("StatusNotifierItemUnregistered", "".join(item))

    def _emit(self, signal: str, *text: str) -> None:
        self._bus.send(new_signal(EMITTER, signal, "s" if text else None, text))


def main() -> None:
    watcher = Watcher(open_dbus_connection("SESSION"))
    watcher.acquire()
    serving = threading.Thread(target=watcher.serve, daemon=True)
    serving.start()
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)  # the name is free as soon as the connection is closed


if __name__ == "__main__":
    main()
