"""What tests of the pages share: an engine's client that answers from memory."""

import asyncio
from typing import Any

import msgspec

from callboard.api.agent_schema import ConversationsView
from callboard.api.schema import CallDetail, CallPage, CallView, LogLine, LogPage, ToolView
from callboard.core.errors import CallboardError
from tests.ui.conftest import NOW, HandClient, call_view


def log_lines(first: int, last: int, **fields: Any) -> list[LogLine]:
    """Lines of a log with these numbers, both included."""
    lines: list[LogLine] = []
    for n in range(first, last + 1):
        known: dict[str, Any] = {"n": n, "at": NOW + n, "stream": "stderr", "text": f"line {n}"}
        lines.append(LogLine(**(known | fields)))
    return lines


class FakeEngine(HandClient):
    """The questions that pages ask, answered from lists that a test fills.

    Set :attr:`hold` to an event to let answers wait for it; what an answer says is decided before the wait, as with
    an engine that is slow to send. Set :attr:`error` to let every question fail.
    """

    def __init__(self, calls: int = 0) -> None:
        super().__init__()
        self.rows: list[CallView] = [call_view(number, started=NOW + number) for number in range(1, calls + 1)]
        self.payloads: dict[int, dict[str, Any]] = {}
        self.tool_lists: dict[str, list[ToolView]] = {}
        self.log_pages: dict[str, list[LogLine]] = {}
        self.conversation_views: dict[str, ConversationsView] = {}
        self.dropped = 0
        self.hold: asyncio.Event | None = None
        self.error: CallboardError | None = None
        self.questions: list[tuple[Any, ...]] = []

    async def _answer(self, answer: Any, *question: Any) -> Any:
        self.questions.append(question)
        if self.error is not None:
            raise self.error
        if self.hold is not None:
            await self.hold.wait()
        return answer

    def matching(self, **narrowed: str) -> list[CallView]:
        """The rows that a filter lets pass."""
        text = narrowed.pop("text", "")
        return [
            row
            for row in self.rows
            if all(not value or getattr(row, field) == value for field, value in narrowed.items())
            and (not text or text in row.tool or text in row.error)
        ]

    async def calls(self, *, offset: int = -1, limit: int = 256, **narrowed: str) -> CallPage:
        found = self.matching(**narrowed)
        start = max(0, len(found) - limit) if offset < 0 else offset
        page = CallPage(calls=found[start : start + limit], offset=start, total=len(found))
        answer: CallPage = await self._answer(page, "calls", offset, narrowed)
        return answer

    async def call(self, call_id: int) -> CallDetail:
        row = next((row for row in self.rows if row.id == call_id), None)
        if row is None:
            raise CallboardError("not-found", f"No call {call_id} is in the log.")
        detail = CallDetail(**msgspec.structs.asdict(row), **self.payloads.get(call_id, {}))
        answer: CallDetail = await self._answer(detail, "call", call_id)
        return answer

    async def tools(self, name: str) -> list[ToolView]:
        answer: list[ToolView] = await self._answer(list(self.tool_lists.get(name, [])), "tools", name)
        return answer

    async def conversations(self, name: str) -> ConversationsView:
        known = self.conversation_views.get(name, ConversationsView(running=False))
        answer: ConversationsView = await self._answer(known, "conversations", name)
        return answer

    async def reload(self, name: str) -> None:
        await self._answer(None, "reload", name)

    async def log(self, name: str, *, after: int = 0, limit: int = 5000) -> LogPage:
        kept = self.log_pages.get(name, [])
        lines = [line for line in kept if line.n > after][:limit]
        page = LogPage(
            lines=lines,
            first=kept[0].n if kept else 1,
            next=lines[-1].n if lines else (kept[-1].n if kept else 0),
            dropped=self.dropped,
        )
        answer: LogPage = await self._answer(page, "log", name, after)
        return answer

    @property
    def tails(self) -> int:
        """How often the end of the log was asked for."""
        return sum(question[:2] == ("calls", -1) for question in self.questions)

    # what happens meanwhile

    def add(self, count: int = 1, **fields: Any) -> list[CallView]:
        """More calls at the end of the log; returns them."""
        first = self.rows[-1].id + 1 if self.rows else 1
        new = [call_view(number, **{"started": NOW + number} | fields) for number in range(first, first + count)]
        self.rows += new
        return new

    def change(self, call: CallView, **fields: Any) -> CallView:
        """Another state of a call that is in the log; returns it."""
        new = msgspec.structs.replace(call, **fields)
        self.rows[next(place for place, row in enumerate(self.rows) if row.id == call.id)] = new
        return new
