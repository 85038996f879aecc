"""The call log: every call as it begins and ends, kept on disk, told in batches, and asked for later."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from callboard.api.schema import CallDetail, CallPage, CallStatus, CallView, Notice
from callboard.core.errors import FIXES, CallboardError
from callboard.engine.calls.backing import CallReader, CallStore, Filter, QuestionInterruptedError
from callboard.engine.calls.reader import Reader
from callboard.engine.calls.record import OVERHANG, CallRecord, CallWatcher, Limits
from callboard.engine.calls.redacting import Redact, stored
from callboard.engine.calls.store import Store

T = TypeVar("T")

log = logging.getLogger(__name__)

_FLUSH_WAIT: Final = 2.0
_CLOSE_WAIT: Final = 5.0
_KEPT_WAIT: Final = 1.0  # for which an answer waits at most, where answers wait for the log


@dataclass(slots=True)
class _Batch:
    """What the loop hands to the thread. ``done`` is called on the loop once the batch is written."""

    records: list[CallRecord]
    payload: int = 0  # bytes
    done: Callable[[], None] | None = None
    last: bool = False
    kept: asyncio.Event | None = None  # answers wait for it
    overdue: asyncio.TimerHandle | None = None


class CallLog:
    """Keeps calls in a file, or where :meth:`open` is told.

    Belongs to the engine's loop: every method is called there, and ``on_calls`` and ``on_notices`` are called there.
    Writing and redaction happen in one thread, reading in another one.

    ``begin`` and ``end`` cost a few microseconds and never wait for the disk. ``on_calls`` gets the newest state of
    the calls that changed, one batch at a time, at most every ``limits.interval`` seconds, already redacted; nothing
    is prepared while ``wanted`` is false.

    Where calls are kept for several engines, an answer waits until its call stands there (``record.kept``): a batch is
    written as soon as the one before is. It waits a second at most, and not at all from then on until the place is
    well again.
    """

    def __init__(
        self,
        path: Path,
        redact: Redact,
        limits: Limits | None = None,
        on_calls: Callable[[list[CallView]], None] | None = None,
        on_notices: Callable[[], None] | None = None,
        watchers: Sequence[CallWatcher] = (),
    ) -> None:
        self.wanted = on_calls is not None
        self._redact = redact
        self._limits = limits or Limits()
        self._on_calls = on_calls
        self._on_notices = on_notices
        self._watchers = watchers
        self._loop: asyncio.AbstractEventLoop | None = None
        file = Store(path, self._limits, self.notices_changed)
        self._store: CallStore = file
        self._reader: CallReader = Reader(file)
        self._readers: ThreadPoolExecutor | None = None
        self._thread: threading.Thread | None = None
        self._queue: SimpleQueue[_Batch] = SimpleQueue()
        self._timer: asyncio.TimerHandle | None = None
        self._pending: list[CallRecord] = []
        self._pending_payload = 0
        self._batch = 1
        self._last_id = 0
        self._waiting_calls = 0  # handed over and not yet written; counted on the loop
        self._waiting_payload = 0
        self._missed = 0
        self._behind: Notice | None = None
        self._last_call: dict[str, float] = {}
        self._kept: asyncio.Event | None = None  # of the batch that is being filled
        self._overdue: asyncio.TimerHandle | None = None
        self._hasty = False  # an answer waited too long
        self._news: list[CallView] = []  # not told yet
        self._news_timer: asyncio.TimerHandle | None = None

    # life

    def keep(self, *, payload: int, age: float, size: int) -> None:
        """How much is kept from now on: bytes of each side of a call, seconds, bytes of the file. Any time."""
        self._limits = replace(self._limits, payload=payload, age=age, size=size)
        self._store.limits = self._limits

    async def open(self, place: tuple[CallStore, CallReader] | None = None) -> None:
        """Open the file (or fall back to memory: this never fails), or ``place``, and start the writing thread."""
        if place is not None:
            self._store, self._reader = place
            self._store.limits = self._limits
        self._loop = asyncio.get_running_loop()
        opened = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, args=(opened,), name="callboard-calls", daemon=True)
        self._thread.start()
        self._last_id = await opened
        self._readers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="callboard-calls-reader")

    async def close(self) -> None:
        """Write what is left and end the threads, within seconds even where the disk hangs. Safe to call twice."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        written = asyncio.Event()
        self._hand_over(written.set, last=True)
        if self._readers is not None:
            self._reader.interrupt()
            self._readers.shutdown(wait=True, cancel_futures=True)
            self._readers = None
            self._reader.close()
        try:
            async with asyncio.timeout(_CLOSE_WAIT):
                await written.wait()
        except TimeoutError:
            log.warning("The call log could not be closed within %g seconds", _CLOSE_WAIT)
        else:
            thread.join(_CLOSE_WAIT)
        if self._news_timer is not None:
            self._tell_news()

    @property
    def notices(self) -> list[Notice]:
        """What a person should know of the log: that it cannot be written, that it was damaged."""
        notices = list(self._store.notices.values())
        return [*notices, self._behind] if self._behind else notices

    # calls as they happen

    def begin(self, client: str, server: str, method: str, tool: str, arguments: bytes | memoryview) -> CallRecord:
        """Note that a call began. ``arguments`` is its raw JSON; only the part that is kept is copied.

        The record's ``id`` is 0 if the call is not logged: the disk does not keep up, or the log is closed.
        """
        record = CallRecord(0, client, server, method, tool)
        record.started = self._last_call[server] = time.time()
        record.begun = time.perf_counter()
        if self._thread is None or self._waiting_calls + len(self._pending) > self._limits.backlog_calls:
            self._miss()
        else:
            self._last_id += 1
            record.id = self._last_id
            record.request_bytes = len(arguments)
            record.arguments = self._take(record, arguments)
            self._queue_up(record)
        for watcher in self._watchers:
            watcher.began(record)
        return record

    def end(
        self,
        record: CallRecord,
        status: CallStatus,
        result: bytes | memoryview | None = None,
        error: str = "",
        error_type: str = "",
    ) -> None:
        """Note how a call ended. ``result`` is its raw JSON, ``error`` one sentence for a call that failed.

        Only the first end counts.
        """
        if record.status != "running":
            return
        record.duration_ms = (time.perf_counter() - record.begun) * 1e3
        record.error = error
        record.error_type = error_type
        if result is not None and record.id:
            record.response_bytes = len(result)
            record.result = self._take(record, result)
        record.status = status  # last: the thread may look at this record any time
        if record.id and record.queued != self._batch:
            self._queue_up(record)
        if record.id and self._store.is_awaited and not self._hasty and self._thread is not None:
            record.kept = self._await_batch()
        for watcher in self._watchers:
            watcher.ended(record)

    def last_call(self, server: str) -> float | None:
        """When the newest call of a server began (seconds since the epoch), in this engine's life."""
        return self._last_call.get(server)

    # questions

    async def page(
        self,
        offset: int = -1,
        limit: int = 256,
        server: str = "",
        tool: str = "",
        client: str = "",
        status: str = "",
        text: str = "",
        engine: str = "",
    ) -> CallPage:
        """Calls that match, oldest first, at most 1,000; a negative ``offset`` means the last ``limit`` ones."""
        wanted = Filter(server, tool, client, status, text, engine)
        return await self._ask(lambda: self._reader.page(wanted, offset, limit))

    async def recent(self, count: int) -> list[CallView]:
        """The newest calls, oldest first."""
        return (await self.page(limit=count)).calls

    async def detail(self, call_id: int) -> CallDetail:
        """One call with its payloads; raises ``not-found``."""
        return await self._ask(lambda: self._reader.detail(call_id))

    async def count_since(self, moment: float) -> int:
        """How many calls began at ``moment`` (seconds since the epoch) or later."""
        return await self._ask(lambda: self._reader.count_since(moment))

    async def flush(self) -> None:
        """Wait until all that was noted so far is written; a hanging disk is not waited for."""
        if self._thread is None or (not self._pending and not self._waiting_calls):
            return
        written = asyncio.Event()
        self._hand_over(written.set)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_WAIT):
                await written.wait()

    async def _ask(self, question: Callable[[], T]) -> T:
        """Answer a question in the reading thread; cancelling stops it there too."""
        await self.flush()
        if self._loop is None or self._readers is None:
            raise CallboardError("internal", "The call log is closed.")
        given_up = threading.Event()
        try:
            return await self._loop.run_in_executor(self._readers, self._answer, question, given_up)
        except asyncio.CancelledError:
            given_up.set()
            self._reader.interrupt()
            raise

    def _answer(self, question: Callable[[], T], given_up: threading.Event) -> T:
        while not given_up.is_set():
            try:
                return question()
            except QuestionInterruptedError:  # perhaps the question before was meant
                continue
        raise CallboardError("internal", "The question was given up.")

    # on the loop

    def _take(self, record: CallRecord, data: bytes | memoryview) -> bytes:
        if self._waiting_payload > self._limits.backlog:
            record.cut = True
            return b""
        kept = self._limits.payload + OVERHANG
        if len(data) > kept:
            data = memoryview(data)[:kept]
        taken = data if isinstance(data, bytes) else bytes(data)
        self._pending_payload += len(taken)
        return taken

    def _miss(self) -> None:
        if self._thread is None:
            return
        self._missed += 1
        if self._behind is None:
            log.warning("The disk does not keep up: calls are not logged")
        if self._missed == 1 or self._missed % 1000 == 0:
            message = f"The disk does not keep up: {self._missed} calls were not logged."
            self._behind = Notice(code="call-log-behind", message=message, fix=FIXES["call-log-behind"])
            if self._on_notices is not None:
                self._on_notices()

    def _queue_up(self, record: CallRecord) -> None:
        record.queued = self._batch
        self._pending.append(record)
        if self._pending_payload > self._limits.batch:
            self._hand_over()
        elif self._timer is None and self._loop is not None:
            self._timer = self._loop.call_later(self._limits.interval, self._hand_over)

    def _await_batch(self) -> asyncio.Event:
        """What is set once the batch that is being filled is written, which is seen to at once."""
        if self._kept is None:
            loop = asyncio.get_running_loop()
            self._kept = asyncio.Event()
            self._overdue = loop.call_later(_KEPT_WAIT, self._wait_no_longer, self._kept)
            if not self._waiting_calls:  # else it follows the one that is being written
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = loop.call_later(0, self._hand_over)  # with what else ends in this turn of the loop
        return self._kept

    def _wait_no_longer(self, kept: asyncio.Event) -> None:
        self._hasty = True
        kept.set()

    def _hand_over(self, done: Callable[[], None] | None = None, last: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch = _Batch(self._pending, self._pending_payload, done, last, self._kept, self._overdue)
        self._kept = self._overdue = None
        self._pending = []
        self._pending_payload = 0
        self._batch += 1
        self._waiting_calls += len(batch.records)
        self._waiting_payload += batch.payload
        self._queue.put(batch)

    def _written(self, batch: _Batch, views: list[CallView]) -> None:
        self._waiting_calls -= len(batch.records)
        self._waiting_payload -= batch.payload
        if batch.kept is not None and batch.overdue is not None:
            batch.kept.set()
            batch.overdue.cancel()
        self._hasty = False
        if self._kept is not None:
            self._hand_over()
        if views:
            self._news = [*self._news, *views][-self._limits.views :]
            if batch.kept is None:
                self._tell_news()
            elif self._news_timer is None and self._loop is not None:  # such batches come thick and fast
                self._news_timer = self._loop.call_later(self._limits.interval, self._tell_news)
        if batch.done is not None:
            batch.done()

    def _tell_news(self) -> None:
        if self._news_timer is not None:
            self._news_timer.cancel()
            self._news_timer = None
        news, self._news = self._news, []
        if self._on_calls is not None:
            self._on_calls(news)

    def notices_changed(self) -> None:
        """The place where calls are kept has other :attr:`notices`. Any thread."""
        if self._on_notices is not None:
            self._tell(self._on_notices)

    def _tell(self, hear: Callable[..., None], *args: object) -> None:
        """Call back on the loop from a thread; nobody hears it once the loop is closed."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(hear, *args)

    # in the writing thread

    def _run(self, opened: "asyncio.Future[int]") -> None:
        try:
            self._store.open()
        except BaseException as error:
            self._tell(opened.set_exception, error)
            raise
        self._tell(opened.set_result, self._store.last_id)
        more = True
        while True:
            while more and self._queue.empty():
                more = self._store.trim()
            try:
                batch = self._queue.get(timeout=self._store.idle())
            except Empty:
                more = True
                continue
            views = self._write(batch) if batch.records else []
            more = bool(batch.records)
            if more and not batch.last:
                more = self._store.trim()
            if batch.last:
                self._store.close()
            self._tell(self._written, batch, views)
            if batch.last:
                return

    def _write(self, batch: _Batch) -> list[CallView]:
        # the batch in which a call began may have come late enough to hold its end as well
        records = [record for record in batch.records if not record.finished]
        try:
            rows = self._store.write([stored(record, self._redact, self._limits) for record in records])
        except Exception:
            # the engine serves calls with or without their log
            log.exception("A batch of %d calls was not logged", len(records))
            return []
        if not self.wanted or self._on_calls is None:
            return []
        return [row.view(self._store.engine) for row in rows[-self._limits.views :]]
