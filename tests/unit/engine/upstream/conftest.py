"""A peer that takes down what a server says outside of any request, and a listener for what it says of one."""

import asyncio
from typing import Any

import msgspec

from callboard.core.errors import CallboardError
from callboard.engine.upstream.base import Answer, Params


class Peer:
    """See :class:`callboard.engine.upstream.base.Peer`."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, Any]] = []
        self.questions: list[tuple[str, Any]] = []
        self.noise: list[bytes] = []
        self.renewed = 0

    def on_server_notification(self, method: str, params: Params) -> None:
        self.notes.append((method, plain(params)))

    async def on_server_request(self, method: str, params: Params) -> Answer:
        self.questions.append((method, plain(params)))
        return Answer(result=b'{"answered":true}')

    def on_renewed(self) -> None:
        self.renewed += 1

    def on_noise(self, line: bytes) -> None:
        self.noise.append(bytes(line))


class Listener:
    """See :class:`callboard.engine.upstream.base.Listener`; fails a test whose request is answered twice."""

    def __init__(self, *, wants_progress: bool = False) -> None:
        self.wants_progress = wants_progress
        self.notes: list[tuple[str, Any]] = []
        self.progress: list[Any] = []
        self.done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def on_answer(self, answer: Answer) -> None:
        self.done.set_result(msgspec.json.decode(answer.error or answer.result or b""))

    def on_gone(self, error: CallboardError) -> None:
        self.done.set_result(error)

    def on_progress(self, params: Params) -> None:
        self.progress.append(plain(params))

    def on_notification(self, method: str, params: Params) -> None:
        self.notes.append((method, plain(params)))

    async def on_request(self, method: str, params: Params) -> Answer:
        return Answer(result=b'{"asked":true}')


def plain(params: Params) -> dict[str, Any]:
    """Parameters as plain values."""
    return {key: msgspec.json.decode(value) for key, value in params.items()}
