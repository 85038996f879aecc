"""Whose tasks are whose: each belongs to the client whose call it came of (tasks extension; 2025-11-25)."""

from collections import OrderedDict
from collections.abc import Callable, Set
from typing import Final

import msgspec

from callboard.core.protocol import INTERNAL_ERROR
from callboard.engine.relay.envelope import Raw, decode_json, decode_params, error_answer, raw_json
from callboard.engine.relay.errors import RpcError
from callboard.engine.relay.router import text_member
from callboard.engine.upstream.base import Answer

MAX_TASKS: Final = 100_000


class TaskOwners:
    """Remembers the newest tasks of all servers. Owned by the relay; engine loop only."""

    def __init__(self, is_shared: Callable[[str], bool]) -> None:
        """``is_shared`` tells whether clients share a server's process; where not, each client's tasks are its own,
        though their ids may be the same.
        """
        self._is_shared = is_shared
        self._owners: OrderedDict[tuple[str, str], set[str]] = OrderedDict()

    def of(self, server: str, task_id: str) -> Set[str]:
        """The clients that have a task of this id; none where that is not known."""
        return self._owners.get((server, task_id), frozenset())

    def learn(self, server: str, method: str, answer: Answer, client: str) -> None:
        """Remember the task that an answer tells of. One that somebody has stays theirs."""
        result = bytes(answer.result or b"")
        if b'"taskId"' not in result or method.startswith("tasks/"):
            return
        try:
            found = decode_params(result)
            task_id = text_member(decode_params(found["task"]) if "task" in found else found, "taskId")
        except (msgspec.DecodeError, RpcError):
            return
        owners = self._owners.setdefault((server, task_id), set())
        if not owners or not self._is_shared(server):
            owners.add(client)
        if len(self._owners) > MAX_TASKS:
            self._owners.popitem(last=False)

    def forget(self, server: str) -> None:
        """The server's process is another one, which may count its tasks anew."""
        for key in [key for key in self._owners if key[0] == server]:
            del self._owners[key]

    def only_own(self, server: str, answer: Answer, client: str) -> Answer:
        """The answer to ``tasks/list`` without the tasks of other clients."""
        if answer.result is None or not self._is_shared(server):
            return answer
        try:
            found = decode_params(bytes(answer.result))
            tasks: list[Raw] = decode_json(found["tasks"], list[Raw])
            own = [task for task in tasks if client in self.of(server, text_member(decode_params(task), "taskId"))]
        except (KeyError, msgspec.DecodeError, RpcError):
            return error_answer(INTERNAL_ERROR, "The server's list of tasks cannot be read.")
        return Answer(result=msgspec.json.encode(found | {"tasks": raw_json(own)}))
