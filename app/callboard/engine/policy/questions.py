"""What the person is asked before a call is made: may this client call this tool with these arguments?

A call waits for the answer, for a time. Whoever shows questions to a person says so by :meth:`Questions.listening`;
where nobody does, the desktop's notifications are tried, and where there are none a call is refused at once.
"""

import asyncio
import contextlib
import itertools
import logging
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from callboard.core.errors import FIXES, CallboardError
from callboard.core.policy_words import ItemKind
from callboard.engine.policy.approvals import Item

log = logging.getLogger(__name__)

Choice = Literal["once", "always", "deny"]
CHOICES: Final[tuple[Choice, ...]] = get_args(Choice)
MAX_OPEN: Final = 50  # questions at once, of one client
MAX_ARGUMENTS: Final = 20_000  # characters shown
MAX_NAME: Final = 500
MAX_PROGRAM: Final = 200
PROGRESS_SECONDS: Final = 5.0


@dataclass(eq=False)
class Question:
    """One call that waits for the person. Times are seconds since the epoch.

    ``client`` is the owner of the token, ``program`` what it calls itself. ``shown_name`` is the name or URI, and
    ``arguments`` the JSON, secrets masked, without its middle where it is long; ``arguments_size`` counts the
    characters of the whole. ``reason`` is a clause: why the person is asked; ``pattern`` of ``ask`` is what asks, or
    "". ``mark`` is that of what is asked about.
    """

    id: int
    client: str
    program: str
    kind: ItemKind
    server: str
    name: str
    shown_name: str
    reason: str
    arguments: str
    arguments_size: int
    asked: float
    expires: float
    mark: str = ""
    pattern: str = ""
    answer: "asyncio.Future[Choice]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def arguments_cut(self) -> bool:
        """Whether the person cannot see all that the call would do. Then there is no answer for good."""
        return self.arguments_size > MAX_ARGUMENTS

    @property
    def item(self) -> Item:
        """What an answer for good would be for."""
        return (self.client, self.kind, self.server, self.name)


Notify = Callable[[Question], Awaitable[Choice | None]]


class Questions:
    """All open questions. Engine loop only."""

    def __init__(
        self,
        *,
        mask: Callable[[str], str] = lambda text: text,
        on_change: Callable[[], None] = lambda: None,
        notify: Notify | None = None,
        patience: float = 0.0,
    ) -> None:
        """``on_change`` hears that a question came or went. ``notify`` asks by a desktop notification: it returns the
        answer, or None if there is no way to show one; it is cancelled when the question is over. ``patience`` is how
        many seconds after the start, or after a window went, somebody may still come to show a question.
        """
        self._mask = mask
        self._on_change = on_change
        self._notify = notify
        self._patience = patience
        self._expected = time.monotonic() + patience  # until then a window may come (again)
        self._listeners = 0
        self._numbers = itertools.count(1)
        self._open: dict[int, Question] = {}

    def open(self) -> list[Question]:
        """The questions that wait, oldest first."""
        return list(self._open.values())

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """While this is entered, somebody shows questions to the person."""
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1
            self._expected = time.monotonic() + self._patience

    async def ask(
        self,
        item: Item,
        program: str,
        reason: str,
        arguments: bytes,
        *,
        seconds: float,
        mark: str = "",
        pattern: str = "",
        on_wait: Callable[[float], None] = lambda part: None,
    ) -> Choice:
        """Wait for the person's answer to one call; ``on_wait`` hears now and then which part of the time is gone.

        Raises ``policy-refused`` for a no, and ``policy-unanswered`` if none comes in time, or if nobody can be asked.
        """
        client, kind, server, name = item
        if sum(other.client == client for other in self._open.values()) >= MAX_OPEN:
            raise CallboardError("policy-unanswered", f"Too many calls of {client} wait for an answer already.")
        if not self._listeners and self._notify is None and time.monotonic() >= self._expected:
            raise nobody(item, pattern)
        now = time.time()
        text = self._mask(arguments.decode("utf-8", "replace"))
        question = Question(
            id=next(self._numbers),
            client=client,
            program=head_and_tail(program, MAX_PROGRAM),
            kind=kind,
            server=server,
            name=name,
            shown_name=head_and_tail(self._mask(name), MAX_NAME),
            reason=reason,
            arguments=head_and_tail(text, MAX_ARGUMENTS),
            arguments_size=len(text),
            asked=now,
            expires=now + seconds,
            mark=mark,
            pattern=pattern,
        )
        self._open[question.id] = question
        self._on_change()
        try:
            async with self._notified(question), asyncio.timeout(seconds):
                while not question.answer.done():
                    await asyncio.wait([question.answer], timeout=PROGRESS_SECONDS)
                    on_wait((time.time() - now) / seconds)
                choice = question.answer.result()
        except TimeoutError:
            reason = f"Nobody answered within {seconds:g} s whether {client} may use {server}.{name}."
            raise CallboardError("policy-unanswered", reason) from None
        finally:
            self._open.pop(question.id, None)
            self._on_change()
        if choice == "deny":
            raise CallboardError("policy-refused", f"The person refused this call of {server}.{name}.")
        return choice

    def settle(self, question_id: int, choice: Choice) -> Question:
        """Give the person's answer; "always" holds for the other open questions about the same tool, as it is, too.

        Raises ``question-over`` for one that is not open any more, and ``bad-request`` for "always" where the arguments
        are too long to be shown whole.
        """
        question = self._open.get(question_id)
        if question is None or question.answer.done():
            raise CallboardError("question-over", "This question is over: it was answered, or the call was given up.")
        if choice == "always" and question.arguments_cut:
            raise CallboardError(
                "bad-request",
                "The arguments are too long to be shown whole, so this call can be allowed once only.",
                fix="Answer with once or deny.",
            )
        question.answer.set_result(choice)
        if choice == "always":
            for other in self._open.values():
                is_same = other.item == question.item and other.mark == question.mark
                if is_same and not other.answer.done():
                    other.answer.set_result("once")
        return question

    @contextlib.asynccontextmanager
    async def _notified(self, question: Question) -> AsyncIterator[None]:
        """Show a desktop notification where nobody else asks the person."""
        if self._listeners:
            yield
            return
        asking = asyncio.ensure_future(self._ask_elsewhere(question))
        try:
            yield
        finally:
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([asking])

    async def _ask_elsewhere(self, question: Question) -> None:
        choice = None
        if self._notify is not None:
            try:
                choice = await self._notify(question)
            except Exception:
                log.exception("a question could not be shown as a notification")
        if choice is None:
            await asyncio.sleep(max(0.0, self._expected - time.monotonic()))
        if question.answer.done():
            return
        if choice is not None:
            question.answer.set_result(choice)
        elif not self._listeners:
            question.answer.set_exception(nobody(question.item, question.pattern))


def head_and_tail(text: str, characters: int) -> str:
    """A text whose middle is left out where it has more characters than this; says how many are missing."""
    missing = len(text) - characters
    if missing <= 0:
        return text
    tail = characters // 2
    return f"{text[: characters - tail]}\n[... {missing} characters are not shown ...]\n{text[-tail:]}"


def nobody(item: Item, pattern: str) -> CallboardError:
    """There is nobody to ask; ``pattern`` is the one that asks, "" for a word of ``ask``."""
    client, _, server, name = item
    rule = pattern or f"{server}.{name}"
    return CallboardError(
        "policy-unanswered",
        f"{client} may use {server}.{name} only after a question, and nobody can be asked: no window is open.",
        fix=f"{FIXES['policy-unanswered']} Or run `callboard policy allow {client} {shlex.quote(rule)}`.",
    )
