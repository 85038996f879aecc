"""Runs the calls of adapted agents, whatever these are: coroutines on the loop, plain code in threads of its own.

Standard library only: the worker runs this under the agent's interpreter, and an embedding program in its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import inspect
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any

from callboard.agents.contract import (
    BAD_TOOL,
    CANCELLED,
    RAISED,
    REPORTED,
    AdaptedAgent,
    Conversation,
    Event,
    part_from_wire,
    part_to_wire,
)
from callboard.agents.loading import place, trimmed
from callboard.agents.parts import NotPlainError, events_of, plain, yielded
from callboard.agents.running_call import Call, Message

INTERRUPT_AFTER = 0.5  # seconds that a cancelled thread has before it is interrupted


class Interrupted(BaseException):
    """Raised inside a thread whose call was cancelled and that did not end by itself."""


class Runner:
    """Takes the messages of the contract from "open" on and answers them through ``send``. Belongs to one loop.

    ``send`` is called from any thread. With ``persist`` each answer carries the conversation's state.
    """

    def __init__(
        self,
        agents: list[AdaptedAgent],
        send: Callable[[Message], None],
        *,
        persist: bool = False,
        thoughts: bool = False,
    ) -> None:
        self.agents = {agent.name: agent for agent in agents}
        self._send = send
        self._persist = persist
        self._thoughts = thoughts
        self._conversations: dict[str, Conversation] = {}
        self._calls: dict[int, Call] = {}
        self._chores: set[asyncio.Task[None]] = set()

    def take(self, message: Message) -> None:
        """One message from the host."""
        kind = message["type"]
        if kind == "open":
            self._conversations[message["conversation"]] = Conversation(
                message["conversation"], message.get("client", ""), message.get("turn", 0), message.get("state") or {}
            )
        elif kind == "close":
            conversation = self._conversations.pop(message["conversation"], None)
            if conversation is not None:
                self._chore(self._closed(conversation))
        elif kind == "cancel":
            call = self._calls.get(message["id"])
            if call is not None:
                self._cancel(call)
        elif kind == "remember":
            self._persist = True
        elif kind == "recall":
            self._recall(message["id"], self._conversations.get(message["conversation"]))
        else:
            self._begin(message)

    def _recall(self, number: int, conversation: Conversation | None) -> None:
        answer: Message = {"type": "result", "id": number, "parts": []}
        try:
            answer["state"] = plain(conversation.state) if conversation is not None else {}
        except NotPlainError as wrong:
            answer |= {"type": "error", "error": _error(RAISED, str(wrong), "TypeError")}
        self._send(answer)

    async def shutdown(self) -> None:
        """Cancel what runs, and let the agents go."""
        calls = list(self._calls.values())
        for call in calls:
            self._cancel(call)
        tasks = [call.task for call in calls if call.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=2 * INTERRUPT_AFTER)
        for agent in self.agents.values():
            await _settled(agent.shutdown)
        if self._chores:
            await asyncio.wait(self._chores, timeout=2 * INTERRUPT_AFTER)

    # one call

    def _begin(self, message: Message) -> None:
        known = self._conversations.get(message.get("conversation") or "")
        conversation = known if known is not None else Conversation("")
        attachments = [part_from_wire(each) for each in message.get("attachments") or ()]
        call = Call(message["id"], conversation, attachments, self._send)
        call.thoughts = self._thoughts
        self._calls[call.number] = call
        call.task = asyncio.get_running_loop().create_task(self._run(call, message))

    async def _run(self, call: Call, message: Message) -> None:
        error: Message | None = None
        if message["type"] in ("run", "call"):
            call.conversation.turn += 1
        try:
            function = self._function(call, message)
            await _drive(function, call)
            call.flush()
            if call.failure is not None:
                error = _error(call.failure.code or REPORTED, call.failure.message)
        except (asyncio.CancelledError, Interrupted):
            error = _error(CANCELLED, "the call was cancelled")
        except _Unknown as unknown:
            error = _error(BAD_TOOL, str(unknown))
        except BaseException as raised:  # noqa: BLE001  an agent that calls sys.exit() must not take the worker with it
            error = _raised(raised)
        if call.is_cancelled:
            error = _error(CANCELLED, "the call was cancelled")
        if not call.conversation.id:
            await self._closed(call.conversation)
        del self._calls[call.number]
        self._answer(call, error)

    def _answer(self, call: Call, error: Message | None) -> None:
        try:
            parts = [part_to_wire(part) for part in call.parts]
            answer: Message = {"type": "result", "id": call.number, "parts": parts}
            if error is not None:
                answer = {"type": "error", "id": call.number, "error": error, "parts": parts}
            if self._persist and call.conversation.id:
                answer["state"] = plain(call.conversation.state)
        except NotPlainError as wrong:
            answer = {"type": "error", "id": call.number, "parts": [], "error": _error(RAISED, str(wrong), "TypeError")}
        self._send(answer)

    def _function(self, call: Call, message: Message) -> Callable[[], Any]:
        agent = self.agents.get(message["agent"])
        if agent is None:
            raise _Unknown(f"there is no agent {message['agent']}")
        kind = message["type"]
        if kind == "run":
            return _bound(agent.run, message["request"], call)
        if kind == "prompt":
            return _bound(agent.prompt, message["name"], message["arguments"], call)
        if kind == "read":
            return _bound(agent.read, message["uri"], call)
        if not any(tool.name == message["tool"] for tool in agent.tools):
            raise _Unknown(f"{agent.name} has no tool {message['tool']}")
        return _bound(agent.call, message["tool"], message["arguments"], call)

    def _cancel(self, call: Call) -> None:
        call.cancel()
        if call.thread is not None:
            asyncio.get_running_loop().call_later(INTERRUPT_AFTER, _interrupt, call)
        elif call.task is not None:
            call.task.cancel()

    async def _closed(self, conversation: Conversation) -> None:
        """Let the agents know. A conversation without an id lasts for one call."""
        for agent in self.agents.values():
            if type(agent).close_conversation is not AdaptedAgent.close_conversation:
                await _settled(agent.close_conversation, conversation)

    def _chore(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)


class _Unknown(Exception):
    """What was called does not exist."""


class _Bound:
    """A method with its arguments, so that it can be seen what kind of function it is."""

    __slots__ = ("arguments", "method")

    def __init__(self, method: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.method = method
        self.arguments = arguments

    def __call__(self) -> Any:
        return self.method(*self.arguments)


def _bound(method: Callable[..., Any], *arguments: Any) -> _Bound:
    return _Bound(method, arguments)


async def _drive(function: Callable[[], Any], call: Call) -> None:
    """Call ``function`` where its kind belongs, and hand what comes of it to ``call``."""
    method = function.method if isinstance(function, _Bound) else function
    if inspect.iscoroutinefunction(method):
        value = await function()
    elif inspect.isasyncgenfunction(method):
        value = function()
    else:
        value = await _in_thread(lambda: _read(function(), call), call)
    while inspect.isawaitable(value):
        value = await value
    if isinstance(value, AsyncIterator):
        try:
            async for item in value:
                _take(yielded(item), call)
                if call.failure is not None:
                    break
        finally:
            if (close := getattr(value, "aclose", None)) is not None:
                await close()
        return
    if isinstance(value, Iterator):  # a coroutine gave a generator back
        value = await _in_thread(lambda: _read(value, call), call)
    _take(events_of(value), call)


def _read(value: Any, call: Call) -> Any:
    """What a plain function gave back: iterators are read here, in the thread; their last value is the rest."""
    if not isinstance(value, Iterator) or isinstance(value, Awaitable):
        return value
    while True:
        if call.is_cancelled:
            close = getattr(value, "close", None)
            if callable(close):
                close()
            raise Interrupted
        try:
            item = next(value)
        except StopIteration as end:
            return end.value
        _take(yielded(item), call)
        if call.failure is not None:
            return None


def _take(events: list[Event], call: Call) -> None:
    for event in events:
        call.emit(event)


async def _in_thread(work: Callable[[], Any], call: Call) -> Any:
    """Run ``work`` in a thread of its own, which ends with it; a cancelled one is interrupted."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        call.thread = None
        if done.done():
            return
        if error is None:
            done.set_result(value)
        elif isinstance(error, StopIteration):
            done.set_exception(RuntimeError("StopIteration was raised"))
        else:
            done.set_exception(error)

    def body() -> None:
        value, error = None, None
        try:
            value = context.run(work)
        except BaseException as raised:  # noqa: BLE001  sys.exit() and Interrupted too are told to the loop
            error = raised
        while True:
            try:
                loop.call_soon_threadsafe(settle, value, error)
            except Interrupted:  # came too late for the work itself
                continue
            except RuntimeError:  # the loop is closed: the worker ends
                pass
            return

    thread = threading.Thread(target=body, name=f"call {call.number}", daemon=True)
    thread.start()
    call.thread = thread.ident
    if call.is_cancelled:
        loop.call_later(INTERRUPT_AFTER, _interrupt, call)
    return await done


def _interrupt(call: Call) -> None:
    """Raise in the thread, at its next step of Python code; what waits inside C code cannot be reached so."""
    if call.thread is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(call.thread), ctypes.py_object(Interrupted))


async def _settled(function: Callable[..., Any], *arguments: Any) -> None:
    """Call something that may or may not be async, and whose failure is only of interest to the log."""
    try:
        value = function(*arguments)
        if inspect.isawaitable(value):
            await value
    except Exception:  # noqa: BLE001  an agent's clean-up must not stop the others'
        traceback.print_exc(file=sys.stderr)


def _error(code: str, message: str, kind: str = "") -> Message:
    return {"code": code, "message": message, "kind": kind, "traceback": "", "file": "", "line": 0}


def _raised(error: BaseException) -> Message:
    file, line = place(error.__traceback__)
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  an exception of the agent's own whose text fails
        message = ""
    return {
        "code": RAISED,
        "message": message,
        "kind": type(error).__name__,
        "traceback": trimmed(error),
        "file": file,
        "line": line,
    }
