"""One call of an agent while it runs: what it says meanwhile, and what its answer is made of."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from callboard.agents.contract import (
    Blob,
    Chunk,
    Context,
    Conversation,
    Data,
    Delta,
    Event,
    Failure,
    Link,
    Part,
    Progress,
    Text,
    Thought,
    ToolCall,
    ToolReturn,
)
from callboard.agents.parts import NotPlainError, plain

Message = dict[str, Any]
SHOWN = 200  # characters of a tool's arguments or answer in a remark on it


class Call(Context):
    """One call while it runs. Made on the loop; :meth:`emit` and :attr:`is_cancelled` are for any thread."""

    def __init__(
        self, number: int, conversation: Conversation, attachments: list[Part], send: Callable[[Message], None]
    ) -> None:
        self.number = number
        self.conversation = conversation
        self.attachments = attachments
        self.parts: list[Part] = []
        self.failure: Failure | None = None
        self.task: asyncio.Task[None] | None = None
        self.thread: int | None = None
        self._send = send
        self._cancelled = threading.Event()
        self._chunks: list[str] = []
        self.thoughts = False

    @property
    def is_cancelled(self) -> bool:
        """True once nobody waits for the answer any more."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Say so; the loop and the threads see to the rest."""
        self._cancelled.set()

    def emit(self, event: Event) -> None:
        """Take an event of the agent's."""
        if self.failure is not None or self.is_cancelled:
            return
        if isinstance(event, Chunk):
            self._chunks.append(event.text)
            self._progress("delta", event.text)
            return
        if isinstance(event, (Text, Blob, Link, Data)):
            self.flush()
            self.parts.append(event)
        elif isinstance(event, Failure):
            self.failure = event
        elif isinstance(event, Progress):
            self._progress("progress", event.text, event.current, event.total)
        elif isinstance(event, Delta):
            self._progress("delta", event.text)
        elif isinstance(event, Thought):
            if self.thoughts:
                self._progress("thought", event.text)
        elif isinstance(event, ToolCall):
            self._progress("tool_call", f"→ {event.name}({_arguments(event.arguments)})")
        elif isinstance(event, ToolReturn):
            self._progress("tool_result", f"← {_shortened(event.summary)}")

    def flush(self) -> None:
        """Make one text of the pieces so far."""
        if self._chunks:
            self.parts.append(Text("".join(self._chunks)))
            self._chunks.clear()

    def _progress(self, kind: str, text: str, current: float | None = None, total: float | None = None) -> None:
        message: Message = {"type": "progress", "id": self.number, "kind": kind, "text": text}
        if current is not None:
            message["current"] = current
        if total is not None:
            message["total"] = total
        self._send(message)


def _arguments(arguments: Any) -> str:
    if isinstance(arguments, Mapping):
        return ", ".join(f"{name}={_shortened(value)}" for name, value in arguments.items())
    return "" if arguments is None else _shortened(arguments)


def _shortened(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    except NotPlainError:
        text = type(value).__name__
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
