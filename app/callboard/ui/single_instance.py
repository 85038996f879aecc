"""One window per person: the first holds a lock and listens for second starts."""

import json
import logging

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from callboard.system.paths import Paths
from callboard.ui.hand_over import REPLY, socket_address

log = logging.getLogger(__name__)

MESSAGE_LIMIT = 32 * 1024  # bytes; a longer message is nobody's that we know


class SingleInstance(QObject):
    """The place of the one window. Belongs to Qt's thread; kept until the process ends.

    What a killed window left behind (lock, socket) is taken over by the next.
    """

    showRequested = Signal(str)  # the activation token of a second start, or ""
    bundleGiven = Signal(str)  # the path of a bundle's file that a second start was given

    def __init__(self, paths: Paths, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._address = socket_address(paths)
        self._lock = QLockFile(str(paths.runtime / "window.lock"))
        self._lock.setStaleLockTime(0)  # stale is the lock of a process that is gone, not an old one
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._accept)

    def acquire(self) -> bool:
        """Take the place and listen; False if another process has it."""
        if not self._lock.tryLock(0):
            return False
        QLocalServer.removeServer(self._address)
        if not self._server.listen(self._address):
            log.warning("Second starts cannot reach this window: %s", self._server.errorString())
        return True

    def stop_listening(self) -> None:
        """Keep the place, but answer no second start any more: it waits for our end and becomes the first."""
        self._server.close()

    def release(self) -> None:
        """Give the place up; the next start becomes the first."""
        self._server.close()
        self._lock.unlock()

    def _accept(self) -> None:
        while (connection := self._server.nextPendingConnection()) is not None:
            connection.disconnected.connect(connection.deleteLater)
            connection.readyRead.connect(lambda connection=connection: self._read(connection))
            if connection.bytesAvailable():
                self._read(connection)

    def _read(self, connection: QLocalSocket) -> None:
        if not connection.canReadLine():
            if connection.bytesAvailable() > MESSAGE_LIMIT:
                connection.abort()
            return
        line = bytes(connection.readLine(MESSAGE_LIMIT).data())
        try:
            message = json.loads(line)
            activation = str(message["activation"]) if message["show"] is True else None
            bundle = str(message.get("bundle", ""))
        except (ValueError, KeyError, TypeError):
            activation = None
        if activation is None:
            connection.abort()
            return
        connection.write(REPLY)
        connection.flush()
        connection.disconnectFromServer()
        self.showRequested.emit(activation)
        if bundle:
            self.bundleGiven.emit(bundle)
