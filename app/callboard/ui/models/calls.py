"""The call log as a table model that holds a few pages of it and asks the engine for the rest."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, QTimer, Signal

from callboard.api.schema import CallPage, CallView
from callboard.core.errors import CallboardError
from callboard.ui import formats, words
from callboard.ui.engine_link import EngineLink
from callboard.ui.models.call_rows import CallRows
from callboard.ui.models.roles import Role

_Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class CallFilter:
    """What the log is narrowed to; an empty field lets everything pass."""

    server: str = ""
    tool: str = ""
    client: str = ""
    status: str = ""
    text: str = ""
    engine: str = ""

    def __bool__(self) -> bool:
        return any(asdict(self).values())


class CallsModel(QAbstractTableModel):
    """The calls that match a filter, oldest first; rows are fetched in pages when they are looked at.

    At most ``KEPT_PAGES`` pages of ``PAGE`` rows are held; a row that is not here yet answers None for Role.VIEW.
    New rows are not taken from the event stream but read from the end of the log, at most every ``TAIL_MS``
    milliseconds: the engine alone knows what matches the filter. GUI thread only.
    """

    TIME, CLIENT, SERVER, TOOL, STATUS, ERROR, DURATION, SIZE = range(COLUMNS := 8)

    PAGE = 256
    KEPT_PAGES = 32
    BATCH_MS = 100
    TAIL_MS = 250
    _AT_ONCE = 4  # pages asked for at a time; while scrolling fast, older wishes are dropped

    totalChanged = Signal(int)
    unseenChanged = Signal(int)  # rows that came while paused
    callsSeen = Signal(object)  # list[CallView]: the newest state of calls, in the filter or not
    loaded = Signal()  # the first answer for the filter in force is shown
    failed = Signal(object)  # CallboardError

    def __init__(self, link: EngineLink, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._filter = CallFilter()
        self._generation = 0  # answers to questions of an older one are not for us any more
        self._loaded = False
        self._stale = True  # rows that are held may not be true any more
        self._paused = False
        self._unseen = 0
        self._total = 0
        self._rows = CallRows(self.PAGE, self.KEPT_PAGES)
        self._clients: set[str] = set()
        self._engines: set[str] = set()
        self._tools: set[tuple[str, str]] = set()
        self._pending: dict[int, CallView] = {}
        self._wanted: OrderedDict[int, None] = OrderedDict()
        self._asked: set[int] = set()
        self._tail_asked = False
        self._tail_again = False
        self._batch = self._timer(self.BATCH_MS, self._apply_pending)
        self._page_timer = self._timer(20, self._ask_pages)
        self._tail_timer = self._timer(self.TAIL_MS, self._ask_tail)
        link.callsChanged.connect(self.update_calls)
        link.resynced.connect(self.reload)
        link.connected.connect(self._ask_tail)  # to ask again what failed, where nothing was missed
        self.reload()

    def _timer(self, interval: int, slot: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(interval)
        timer.timeout.connect(slot)
        return timer

    # what the table shows

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else self._total

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else self.COLUMNS

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        if role == Qt.ItemDataRole.ToolTipRole and section == self.SIZE:
            return self.tr("Arguments and result together")
        if role != Qt.ItemDataRole.DisplayRole or not 0 <= section < self.COLUMNS:
            return None
        return (
            self.tr("Time"),
            self.tr("Client"),
            self.tr("Server"),
            self.tr("Tool"),
            self.tr("Status"),
            self.tr("Error"),
            self.tr("Duration"),
            self.tr("Size"),
        )[section]

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= self._total:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        if role not in (Role.VIEW, Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return None
        call = self.call_at(index.row())
        if role == Role.VIEW:
            return call
        if call is None:
            return "…" if index.column() == self.TIME and role == Qt.ItemDataRole.DisplayRole else None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(call, index.column())
        return self._tip(call, index.column())

    def _text(self, call: CallView, column: int) -> str:
        match column:
            case self.TIME:
                return formats.relative_time(call.started)
            case self.CLIENT:
                return call.client
            case self.SERVER:
                return call.server
            case self.TOOL:
                return call.tool
            case self.STATUS:
                return words.call_status_word(call.status)
            case self.DURATION:
                return formats.duration(call.duration_ms)
            case self.ERROR:
                return call.error.partition("\n")[0]
            case _:
                return (
                    formats.size(call.request_bytes + call.response_bytes)
                    if call.status != "running"
                    else "\N{EN DASH}"
                )

    def _tip(self, call: CallView, column: int) -> str | None:
        match column:
            case self.TIME:
                return formats.exact_time(call.started)
            case self.TOOL:
                return f"{call.method}\n{call.tool}"
            case self.STATUS | self.ERROR:
                return call.error or None
            case self.SIZE:
                return self.tr("Arguments {sent}, result {received}").format(
                    sent=formats.size(call.request_bytes), received=formats.size(call.response_bytes)
                )
            case self.DURATION:
                return None
            case _:
                return self._text(call, column)

    def call_at(self, row: int) -> CallView | None:
        """The call in a row, or None while it is being fetched (asking is what fetches it)."""
        if (call := self._rows.get(row)) is not None:
            self._rows.use(row)
            return call
        number = row // self.PAGE
        self._wanted[number] = None
        self._wanted.move_to_end(number)
        while len(self._wanted) > self._AT_ONCE:
            self._wanted.popitem(last=False)
        if not self._page_timer.isActive():
            self._page_timer.start()
        return None

    def row_of(self, call_id: int) -> int | None:
        """The row of a call, if it is among those held."""
        return self._rows.row_of(call_id)

    @property
    def total(self) -> int:
        """Rows that match the filter, fetched or not."""
        return self._total

    @property
    def is_loaded(self) -> bool:
        """Whether the rows shown are those of the filter in force."""
        return self._loaded

    @property
    def filter(self) -> CallFilter:
        """The filter in force."""
        return self._filter

    @property
    def is_paused(self) -> bool:
        """Whether new rows are held back."""
        return self._paused

    @property
    def clients(self) -> list[str]:
        """Clients that were seen so far, in alphabetical order."""
        return sorted(self._clients)

    @property
    def engines(self) -> list[str]:
        """Engines that were seen so far, in alphabetical order; none where only one keeps this log."""
        return sorted(self._engines - {""})

    def tools(self, server: str) -> list[str]:
        """Tools that were seen so far, of one server or of all (""), in alphabetical order."""
        return sorted({tool for owner, tool in self._tools if server in ("", owner)})

    # what a page asks for

    def reload(self) -> None:
        """Read everything anew; the rows shown stay until the answer is there."""
        self._generation += 1
        self._stale = True
        self._asked.clear()
        self._tail_asked = self._tail_again = False
        self._ask_tail()

    def set_filter(self, narrowed: CallFilter) -> None:
        """Show only what matches."""
        if narrowed != self._filter:
            self._filter = narrowed
            self._loaded = False
            self.reload()

    def set_paused(self, paused: bool) -> None:
        """While paused no row comes or goes; rows that are shown still get their new state."""
        self._paused = paused
        if not paused:
            self._set_unseen(0)
            self._ask_tail()

    def update_calls(self, calls: Iterable[CallView]) -> None:
        """Calls started or ended; shown together a tenth of a second later."""
        for call in calls:
            self._pending[call.id] = self._rows.note(call)
        if self._pending and not self._batch.isActive():
            self._batch.start()

    # live changes

    def _apply_pending(self) -> None:
        pending, self._pending = self._pending, {}
        changed: list[int] = []
        news = False
        for call in pending.values():
            row = self._rows.row_of(call.id)
            if row is None:
                news = True
            elif self._rows.put(row, call):
                changed.append(row)
        if changed:
            self._announce(min(changed), max(changed))
        # a call that ended may have left or entered what the filter lets pass
        if (news or self._filter) and not self._tail_timer.isActive():
            self._tail_timer.start()
        self.callsSeen.emit(list(pending.values()))

    def _announce(self, first: int, last: int) -> None:
        self.dataChanged.emit(self.index(first, 0), self.index(last, self.COLUMNS - 1))

    # the end of the log

    def _ask_tail(self) -> None:
        if not self._link.is_connected:
            return
        if self._tail_asked:
            self._tail_again = True
            return
        self._tail_asked = True
        generation, started = self._generation, monotonic()

        def done(page: CallPage) -> None:
            if generation == self._generation:
                self._tail_asked = False
                self._take_tail(page)
                # a filter that takes the engine long is asked for less often
                self._tail_timer.setInterval(max(self.TAIL_MS, int(4000 * (monotonic() - started))))
                if self._tail_again:
                    self._tail_again = False
                    self._tail_timer.start()

        def fail(error: CallboardError) -> None:
            if generation == self._generation:
                self._tail_asked = self._tail_again = False
                self.failed.emit(error)

        self._ask(-1, done, fail)

    def _ask(self, offset: int, done: Callable[[CallPage], None], fail: Callable[[CallboardError], None]) -> None:
        narrowed = asdict(self._filter)
        self._link.request(
            lambda client: client.calls(offset=offset, limit=self.PAGE, **narrowed),
            done,
            fail,
            owner=self,
            name="read the call log",
        )

    def _take_tail(self, page: CallPage) -> None:
        if self._paused and self._loaded:
            self._set_unseen(max(0, page.total - self._total))
            return
        first_time, self._loaded = not self._loaded, True
        stale, self._stale = self._stale, False
        if first_time or not self._continues(page):
            self._replace(page)
        elif stale:
            self._rows.clear()
            self._extend(page)
            self._announce(0, self._total - 1)
        else:
            self._extend(page)
        if first_time:
            self.loaded.emit()

    def _continues(self, page: CallPage) -> bool:
        """Whether the page and the rows held are of one piece: nothing before its end came or went."""
        if page.total < self._total:
            return False
        if self._total == 0:
            return True
        overlap = range(page.offset, min(self._total, page.offset + len(page.calls)))
        return len(overlap) > 0 and all(
            (held := self._rows.get(row)) is None or held.id == page.calls[row - page.offset].id for row in overlap
        )

    def _replace(self, page: CallPage) -> None:
        self.beginResetModel()
        self._rows.clear()
        self._total = page.total
        self._store(page)
        self.endResetModel()
        self.totalChanged.emit(self._total)

    def _extend(self, page: CallPage) -> None:
        if changed := self._store(page):
            self._announce(changed[0], changed[-1])
        if page.total > self._total:
            self.beginInsertRows(QModelIndex(), self._total, page.total - 1)
            self._total = page.total
            self._store(page)
            self.endInsertRows()
            self.totalChanged.emit(self._total)

    def _store(self, page: CallPage) -> list[int]:
        self._clients.update(call.client for call in page.calls)
        self._engines.update(call.engine for call in page.calls)
        self._tools.update((call.server, call.tool) for call in page.calls)
        return self._rows.store(page, self._total)

    def _set_unseen(self, unseen: int) -> None:
        if unseen != self._unseen:
            self._unseen = unseen
            self.unseenChanged.emit(unseen)

    # pages in the middle

    def _ask_pages(self) -> None:
        wanted, self._wanted = self._wanted, OrderedDict()
        if not self._link.is_connected or not self._loaded:
            return
        for number in wanted:
            if number not in self._asked:
                self._asked.add(number)
                self._ask_page(number)

    def _ask_page(self, number: int) -> None:
        generation = self._generation

        def done(page: CallPage) -> None:
            if generation == self._generation:
                self._asked.discard(number)
                self._take_page(page)

        def fail(error: CallboardError) -> None:
            if generation == self._generation:
                self._asked.discard(number)
                self.failed.emit(error)

        self._ask(number * self.PAGE, done, fail)

    def _take_page(self, page: CallPage) -> None:
        if page.total < self._total:
            self._ask_tail()  # rows have gone, so rows have moved: the end tells how many are left
        elif changed := self._store(page):
            self._announce(changed[0], changed[-1])


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column >= CallsModel.DURATION else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
