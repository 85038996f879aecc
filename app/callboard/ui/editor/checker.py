"""Asks the engine what it thinks of an entry while it is being edited."""

import asyncio

from PySide6.QtCore import QObject, QTimer, Signal

from callboard.api.schema import Validation
from callboard.core.errors import CallboardError
from callboard.ui.editor.entry_model import Entry
from callboard.ui.engine_link import EngineLink

DELAY_MS = 250


class EntryChecker(QObject):
    """Validates the newest entry it was given, once nothing has come for :data:`DELAY_MS`.

    An answer to an older entry is never told. Lives on the window's loop, as long as its form.
    """

    checked = Signal(object)  # Validation

    def __init__(self, link: EngineLink, parent: QObject) -> None:
        super().__init__(parent)
        self._link = link
        self._wanted: tuple[str, Entry, str] | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(DELAY_MS)
        self._timer.timeout.connect(self.check_now)
        link.connected.connect(self._connected)

    @property
    def is_busy(self) -> bool:
        """Whether an entry waits for its answer."""
        return self._wanted is not None

    def check(self, name: str, entry: Entry, editing: str) -> None:
        """Check this entry soon. ``editing`` is its name in the roster, "" for a new one."""
        self.forget()
        self._wanted = (name, entry, editing)
        self._timer.start()

    def check_now(self) -> None:
        """Ask without waiting any longer."""
        self._timer.stop()
        if self._wanted is None or not self._link.is_connected or not _loop_runs():
            return
        name, entry, editing = self._wanted
        self._stop()
        self._task = self._link.request(
            lambda client: client.validate(name, entry, editing=editing),
            self._answered,
            self._failed,
            owner=self,
            name=f"validate {name}",
        )

    def forget(self) -> None:
        """Nothing is to be checked any more."""
        self._wanted = None
        self._timer.stop()
        self._stop()

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _answered(self, validation: Validation) -> None:
        self._task = None
        self._wanted = None
        self.checked.emit(validation)

    def _failed(self, _error: CallboardError) -> None:
        """The window tells that the engine is gone; the entry is checked when it is back, and again on saving."""
        self._task = None

    def _connected(self) -> None:
        if self._wanted is not None:
            self._timer.start()


def _loop_runs() -> bool:
    """False while the window ends: Qt's timers still come then, but nothing can be asked any more."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
