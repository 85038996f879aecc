"""What the system says of the network, told to the engine: it has no such source of its own."""

import logging
from typing import Any

from PySide6.QtCore import QObject, QTimer

from callboard.core.errors import CallboardError
from callboard.ui.engine_link import EngineLink

log = logging.getLogger(__name__)

SETTLE_MS = 1000  # in which several changes are one


class NetworkWatch(QObject):
    """Tells the engine when this computer loses its network, gets it back, or gets another one.

    Belongs to the window's loop. Where the system does not tell, nothing is told.
    """

    def __init__(self, link: EngineLink, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._source: Any = None  # QNetworkInformation
        self._settle = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._settle.timeout.connect(self._tell)
        link.connected.connect(self._tell_if_offline)

    def start(self, source: Any = None) -> None:
        """Begin to listen, to the system unless another ``source`` is given."""
        self._source = source if source is not None else _system()
        if self._source is None:
            log.info("The system does not tell of its network")
            return
        for change in ("reachabilityChanged", "transportMediumChanged", "isBehindCaptivePortalChanged"):
            getattr(self._source, change).connect(self._changed)
        self._tell_if_offline()

    @property
    def offline(self) -> bool:
        """Whether the system says that there is no network at all."""
        return self._source is not None and self._source.reachability().name == "Disconnected"

    def _changed(self, _now: object) -> None:
        self._settle.start()

    def _tell_if_offline(self) -> None:
        if self.offline:
            self._tell()

    def _tell(self) -> None:
        if self._link.client is None:
            return
        online = not self.offline
        self._link.request(
            lambda client: client.tell_network(online=online), on_error=_ignore, owner=self, name="tell of the network"
        )


def _system() -> Any:
    from PySide6.QtNetwork import QNetworkInformation

    return QNetworkInformation.instance() if QNetworkInformation.loadDefaultBackend() else None


def _ignore(error: CallboardError) -> None:
    """The link tells of a lost engine; the next one is told on its connection."""
