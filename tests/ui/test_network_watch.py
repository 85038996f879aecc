"""The network as the system tells it, handed on to the engine."""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any
from weakref import WeakMethod

import msgspec
import pytest
from PySide6.QtWidgets import QApplication

from callboard.ui import network_watch
from callboard.ui.network_watch import NetworkWatch
from tests.ui.conftest import HandLink, server_view, until


class Reachability(Enum):
    """The words of QNetworkInformation that matter."""

    Unknown = 0
    Disconnected = 1
    Online = 4


class Change:
    """A signal of QNetworkInformation; as Qt's own, it keeps nobody alive."""

    def __init__(self) -> None:
        self._slots: list[WeakMethod[Callable[[object], None]]] = []

    def connect(self, slot: Callable[[object], None]) -> None:
        self._slots.append(WeakMethod(slot))

    def emit(self, now: object) -> None:
        for reference in self._slots:
            if (slot := reference()) is not None:
                slot(now)


class System:
    """Stands for QNetworkInformation, whose states cannot be brought about at will."""

    def __init__(self) -> None:
        self.reachabilityChanged = Change()
        self.transportMediumChanged = Change()
        self.isBehindCaptivePortalChanged = Change()
        self.now = Reachability.Online

    def reachability(self) -> Reachability:
        return self.now

    def become(self, now: Reachability) -> None:
        self.now = now
        self.reachabilityChanged.emit(now)


@pytest.fixture
def told(link: HandLink, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What the engine was told."""
    told: list[bool] = []

    async def exchange(method: str, path: str, body: Any, limit: float | None = -1.0) -> bytes:
        assert (method, path) == ("POST", "/engine/network")
        told.append(msgspec.structs.asdict(body)["online"])
        return b""

    monkeypatch.setattr(link.hand, "_exchange", exchange)
    monkeypatch.setattr(network_watch, "SETTLE_MS", 20)
    return told


@pytest.fixture
def watch(link: HandLink, told: list[bool]) -> NetworkWatch:
    """One that tells ``told`` soon."""
    return NetworkWatch(link)


async def test_changes_are_told_once_they_have_settled(link: HandLink, watch: NetworkWatch, told: list[bool]) -> None:
    system = System()
    link.connect_by_hand(server_view("a"))
    watch.start(system)
    await asyncio.sleep(0.05)
    assert told == []
    system.become(Reachability.Disconnected)
    await until(lambda: told == [False])
    system.become(Reachability.Unknown)
    system.transportMediumChanged.emit("Wifi")
    system.become(Reachability.Online)
    await until(lambda: told == [False, True])
    system.transportMediumChanged.emit("Cellular")
    await until(lambda: told == [False, True, True])
    await link.close()


async def test_another_engine_is_told_when_there_is_no_network(
    link: HandLink, watch: NetworkWatch, told: list[bool]
) -> None:
    system = System()
    system.now = Reachability.Disconnected
    watch.start(system)
    assert told == []
    link.connect_by_hand(server_view("a"))
    await until(lambda: told == [False])
    link.disconnect_by_hand()
    system.now = Reachability.Online
    link.connect_by_hand(server_view("a"))
    await asyncio.sleep(0.05)
    assert told == [False]
    await link.close()


def test_the_system_itself_speaks_these_words(qapp: QApplication) -> None:
    from PySide6.QtNetwork import QNetworkInformation

    for name in ("reachability", "reachabilityChanged", "transportMediumChanged", "isBehindCaptivePortalChanged"):
        assert hasattr(QNetworkInformation, name)
    assert {word.name for word in Reachability} <= {word.name for word in QNetworkInformation.Reachability}
