"""The rows of the call log that are held in memory."""

from collections import OrderedDict

from callboard.api.schema import CallPage, CallView

_RECENT = 2048  # calls whose newest state is remembered, held or not


class CallRows:
    """At most ``kept`` pages of ``size`` rows, the ones used last, by row number and by the call's id.

    Never lets a call that has ended run again: an answer of the engine may be older than the news about a call.
    """

    def __init__(self, size: int, kept: int) -> None:
        self.size = size
        self.kept = kept
        self._pages: OrderedDict[int, list[CallView | None]] = OrderedDict()
        self._rows: dict[int, int] = {}
        self._recent: OrderedDict[int, CallView] = OrderedDict()

    def get(self, row: int) -> CallView | None:
        """The call in a row, None if it is not held."""
        number, place = divmod(row, self.size)
        page = self._pages.get(number)
        return None if page is None else page[place]

    def use(self, row: int) -> None:
        """The row's page was looked at: it is the last to go."""
        self._pages.move_to_end(row // self.size)

    def row_of(self, call_id: int) -> int | None:
        """The row of a call, None if it is not held."""
        return self._rows.get(call_id)

    def clear(self) -> None:
        """Forget all rows."""
        self._pages.clear()
        self._rows.clear()

    def note(self, call: CallView) -> CallView:
        """Remember the state of a call from the event stream; returns the newest state known."""
        newest = _newer(self._recent.get(call.id), call)
        self._recent[call.id] = newest
        self._recent.move_to_end(call.id)
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return newest

    def put(self, row: int, call: CallView) -> bool:
        """Hold a call in a row; tells whether that changed anything."""
        number, place = divmod(row, self.size)
        page = self._pages.setdefault(number, [None] * self.size)
        old, newest = page[place], _newer(self._recent.get(call.id), call)
        if old == newest:
            return False
        if old is not None and old.id != call.id:
            self._rows.pop(old.id, None)
        page[place] = newest
        self._rows[call.id] = row
        return True

    def store(self, page: CallPage, total: int) -> list[int]:
        """Hold the rows of a page below ``total``; returns those that changed, in order."""
        changed: list[int] = []
        for row, call in enumerate(page.calls, start=max(page.offset, 0)):
            if row >= total:
                break
            if self.put(row, call):
                changed.append(row)
            self.use(row)
        while len(self._pages) > self.kept:
            _, old = self._pages.popitem(last=False)
            for gone in old:
                if gone is not None:
                    self._rows.pop(gone.id, None)
        return changed


def _newer(one: CallView | None, other: CallView) -> CallView:
    """Of two states of a call the later one."""
    if one is not None and other.status == "running" and one.status != "running":
        return one
    return other
