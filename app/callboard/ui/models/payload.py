"""What a call sent and got, as text that a person reads without decoding JSON in the head."""

import json
from typing import Any

from PySide6.QtCore import QCoreApplication

from callboard.ui import formats
from callboard.ui.models.pretty import dump

translate = QCoreApplication.translate


def readable(text: str) -> str:
    """The texts inside an MCP result, one below the other; "" if ``text`` is no result or has no text in it.

    Knows the results of tools/call (content), resources/read (contents) and prompts/get (messages). Pictures and
    other data are named with their type and size.
    """
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(result, dict):
        return ""
    parts: list[str] = []
    for key in ("content", "contents", "messages"):
        if isinstance(items := result.get(key), list):
            parts += [_part(item) for item in items]
    return "\n\n".join(part for part in parts if part)


def _part(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    if isinstance(role := item.get("role"), str):
        inner = item.get("content")
        inner = inner if isinstance(inner, list) else [inner]
        return f"{role}: " + "\n".join(_part(one) for one in inner)
    if isinstance(text := item.get("text"), str):
        return _indented(text)
    if isinstance(resource := item.get("resource"), dict):
        return _part(resource)
    for key in ("data", "blob"):
        if isinstance(data := item.get(key), str):
            kind = str(item.get("mimeType") or item.get("type") or key)
            return translate("Payload", "[{kind}, {size}]").format(kind=kind, size=formats.size(len(data) * 3 // 4))
    if isinstance(uri := item.get("uri"), str):
        return uri
    return dump(item)


def _indented(text: str) -> str:
    """A text that is JSON itself, as many servers answer, gets its lines."""
    if text[:1] in "{[":
        try:
            return dump(json.loads(text))
        except (ValueError, RecursionError):
            return text
    return text
