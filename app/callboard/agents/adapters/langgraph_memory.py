"""What a LangGraph conversation remembers: a checkpointer for it alone, kept small, and put into JSON and back."""

from __future__ import annotations

import base64
from typing import Any

THREAD = "conversation"
STATE = "checkpoints"

CONFIG: dict[str, Any] = {"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}}


def new_saver() -> Any:
    """A checkpointer in memory that also takes what cannot be put into bytes, as the object that it is."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    class Serializer(JsonPlusSerializer):  # type: ignore[misc]
        def dumps_typed(self, obj: Any) -> Any:
            try:
                return super().dumps_typed(obj)
            except (TypeError, ValueError):
                return "object", obj

        def loads_typed(self, data: Any) -> Any:
            return data[1] if data[0] == "object" else super().loads_typed(data)

    return InMemorySaver(serde=Serializer())


def fork(saver: Any) -> Any:
    """A checkpointer with the same content: a call that fails or is cancelled leaves ``saver`` as it was."""
    twin = new_saver()
    for namespace, checkpoints in saver.storage[THREAD].items():
        twin.storage[THREAD][namespace].update(checkpoints)
    for place, writes in saver.writes.items():
        twin.writes[place].update(writes)
    twin.blobs.update(saver.blobs)
    return twin


def prune(saver: Any, graph: Any) -> Any:
    """A checkpointer that has only the newest checkpoint of ``saver``, where that one says everything.

    It does not if something waits for an answer, for graphs within the graph that remember something themselves, and
    for channels that are told by their changes. Then ``saver`` itself is returned.
    """
    newest = saver.get_tuple(CONFIG)
    namespaces = saver.storage[THREAD]
    if newest is None or newest.pending_writes or set(namespaces) != {""}:
        return saver
    if any(type(channel).__name__ == "DeltaChannel" for channel in graph.channels.values()):
        return saver
    small = new_saver()
    small.put(CONFIG, newest.checkpoint, newest.metadata, newest.checkpoint["channel_versions"])
    return small


def dump(saver: Any) -> dict[str, Any] | None:
    """The checkpointer's content in terms of JSON; None if it holds objects that have no such form."""
    try:
        return {
            "checkpoints": [
                [namespace, name, _packed(checkpoint), _packed(metadata), parent]
                for namespace, checkpoints in saver.storage[THREAD].items()
                for name, (checkpoint, metadata, parent) in checkpoints.items()
            ],
            "writes": [
                [namespace, name, task, index, channel, _packed(value), path]
                for (_thread, namespace, name), writes in saver.writes.items()
                for (task, index), (_task, channel, value, path) in writes.items()
            ],
            "values": [
                [namespace, channel, version, _packed(value)]
                for (_thread, namespace, channel, version), value in saver.blobs.items()
            ],
        }
    except TypeError:
        return None


def load(content: dict[str, Any]) -> Any:
    """The reverse of :func:`dump`."""
    saver = new_saver()
    for namespace, name, checkpoint, metadata, parent in content["checkpoints"]:
        saver.storage[THREAD][namespace][name] = (_unpacked(checkpoint), _unpacked(metadata), parent)
    for namespace, name, task, index, channel, value, path in content["writes"]:
        saver.writes[THREAD, namespace, name][task, index] = (task, channel, _unpacked(value), path)
    for namespace, channel, version, value in content["values"]:
        saver.blobs[THREAD, namespace, channel, version] = _unpacked(value)
    return saver


def _packed(value: tuple[str, bytes]) -> list[str]:
    kind, data = value
    if kind == "object":
        raise TypeError("an object that has no form in bytes")
    return [kind, base64.b64encode(data).decode("ascii")]


def _unpacked(value: list[str]) -> tuple[str, bytes]:
    kind, data = value
    return kind, base64.b64decode(data)
