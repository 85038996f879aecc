"""What an agent gives back, as events: any Python value becomes text, a file or JSON, or is refused by name."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import os
import uuid
from collections.abc import Mapping
from typing import Any

from callboard.agents.contract import (
    Blob,
    Chunk,
    Data,
    Delta,
    Event,
    Failure,
    Link,
    Progress,
    Text,
    Thought,
    ToolCall,
    ToolReturn,
)

EVENTS = (Progress, Delta, Thought, ToolCall, ToolReturn, Chunk, Text, Blob, Link, Data, Failure)
_AS_TEXT = (uuid.UUID, decimal.Decimal, os.PathLike, complex)
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"PK\x03\x04", "application/zip"),
)


class NotPlainError(TypeError):
    """A value that has no form in JSON."""


def events_of(value: Any) -> list[Event]:
    """The events that ``value`` stands for.

    Events stay themselves; None is nothing, text is text, bytes are a file of the type they begin with, and an image
    of a notebook kind is a PNG. A list that holds events or bytes is each of its items; what is left is JSON. Raises
    :class:`NotPlainError` for what cannot be JSON.
    """
    if value is None:
        return []
    if isinstance(value, EVENTS):
        return [value]
    if isinstance(value, str):
        return [Text(str(value))]
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return [Blob(data, media_type_of(data))]
    if isinstance(value, (list, tuple)) and any(isinstance(item, (*EVENTS, bytes, bytearray)) for item in value):
        return [event for item in value for event in events_of(item)]
    picture = getattr(value, "_repr_png_", None)
    if callable(picture) and not isinstance(value, type):
        png = picture()
        if isinstance(png, bytes):
            return [Blob(png, "image/png")]
    return [Data(plain(value))]


def yielded(value: Any) -> list[Event]:
    """The events of a value that a generator yields: texts are pieces of one text that grows.

    A mapping of "progress" and perhaps "total" and "message" is a remark instead of a part of the answer.
    """
    if isinstance(value, str):
        return [Chunk(str(value))]
    if isinstance(value, dict) and "progress" in value and value.keys() <= {"progress", "total", "message"}:
        current, total = value["progress"], value.get("total")
        if isinstance(current, (int, float)):
            known = total if isinstance(total, (int, float)) else None
            return [Progress(str(value.get("message", "")), float(current), known)]
        return [Progress(str(value.get("message", current)))]
    return events_of(value)


def media_type_of(data: bytes) -> str:
    """The media type that the first bytes tell."""
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    if data[:4] == b"RIFF":
        return {b"WAVE": "audio/wav", b"WEBP": "image/webp"}.get(data[8:12], "application/octet-stream")
    return "application/octet-stream"


def plain(value: Any, path: str = "") -> Any:
    """``value`` in terms of JSON: dataclasses and pydantic models by their fields, dates and the like as text.

    Raises :class:`NotPlainError` naming the place and the type of what has no such form.
    """
    if value is None or isinstance(value, (bool, int)):
        return int(value) if isinstance(value, enum.IntEnum) else value
    if isinstance(value, str):
        return str(value.value) if isinstance(value, enum.Enum) else str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotPlainError(f"{path or 'the value'} is {value}, which JSON does not have")
        return value
    if isinstance(value, enum.Enum):
        return plain(value.value, path)
    if isinstance(value, Mapping):
        return {_key(key, path): plain(item, f"{path}.{key}".lstrip(".")) for key, item in value.items()}
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, _AS_TEXT):
        return str(value)
    if isinstance(value, type):
        raise _refused(value, path)
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name), field.name) for field in dataclasses.fields(value)}
    if callable(dump := getattr(value, "model_dump", None)):
        return plain(dump(mode="json"), path)
    if isinstance(value, _SEQUENCES):
        items: list[Any] = [*value]  # type: ignore[misc]  # mypy has ruled out all that it can be
        return [plain(item, f"{path}[{index}]") for index, item in enumerate(items)]
    raise _refused(value, path)


_SEQUENCES: tuple[type, ...] = (list, tuple, set, frozenset, type({}.keys()), type({}.values()))


def _key(key: Any, path: str) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, (str, int, float)):
        return str(key)
    raise NotPlainError(f"{path or 'the value'} has a {type(key).__name__} as a key, which JSON does not have")


def _refused(value: Any, path: str) -> NotPlainError:
    kind = value.__name__ if isinstance(value, type) else type(value).__name__
    what = "the class" if isinstance(value, type) else "a"
    return NotPlainError(f"{path or 'the value'} is {what} {kind}, which has no form in JSON")
