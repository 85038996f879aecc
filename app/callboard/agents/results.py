"""From the parts of an agent's answer to MCP's result: content blocks, structured content, and nothing lost."""

import base64
import json
import re
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator

from callboard.agents.contract import Blob, Data, Link, Part, Text
from callboard.core.redact import Redactor

META_CONVERSATION: Final = "callboard/conversation"
META_TURN: Final = "callboard/turn"
META_LABEL: Final = "media_type"
NO_OUTPUT: Final = "(no output)"
_PATH: Final = re.compile(r"(?<![\w.:/\\])(?:~?/|[A-Za-z]:\\)(?:[^\s/\\:'\"<>|]+[/\\])+([^\s/\\:'\"<>|]*)")
MAX_ERROR: Final = 500  # characters


@dataclass
class Result:
    """A tools/call result in plain values, as JSON has them."""

    content: list[dict[str, Any]] = field(default_factory=list)
    structured: dict[str, Any] | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    is_error: bool = False


@dataclass(frozen=True)
class Kept:
    """A file or text that can be read under an address of its own."""

    client: str
    data: bytes | str
    media_type: str


class Shelf:
    """Answers that are too large or no text: each under a URI of its own, bounded by bytes, the oldest go first."""

    def __init__(self, limit: int) -> None:
        """``limit`` in bytes for all together, 0 for none."""
        self._limit = limit
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._size = 0

    def put(self, prefix: str, kept: Kept, name: str = "") -> str:
        """Keep it, and return its URI."""
        ending = f"/{quote(name)}" if name else ""
        uri = f"{prefix}/{secrets.token_urlsafe(12)}{ending}"
        self._kept[uri] = kept
        self._size += len(kept.data)
        while self._limit and self._size > self._limit and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest.data)
        return uri

    def get(self, uri: str, client: str) -> Kept | None:
        """What is kept there for this client."""
        kept = self._kept.get(uri)
        return kept if kept is not None and kept.client == client else None


@dataclass(frozen=True)
class Shape:
    """How one tool's answers are to look."""

    agent: str
    output_schema: Mapping[str, Any] | None = None  # as published
    wrapped: bool = False  # any value stands under "result"
    flagged: bool = True  # which clients are told by a flag
    label: str = ""  # for JSON without a label of its own
    limit: int = 0  # bytes of text, 0 for no bound
    check: Validator | None = None  # of the output schema


class Results:
    """Makes results. ``shelf`` takes what does not fit, or is no text."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def make(self, parts: Iterable[Part], shape: Shape, client: str) -> Result:
        """The result of a call that did not fail, or of what a failed one said before."""
        result = Result()
        for part in parts:
            if isinstance(part, Text):
                self._add_text(result, part.text, shape, client)
            elif isinstance(part, Blob):
                self._add_blob(result, part, shape, client)
            elif isinstance(part, Link):
                result.content.append(_link(part.uri, part.name or part.uri, part.media_type, part.description))
            else:
                self._add_data(result, part, shape, client)
        return result

    def _add_text(self, result: Result, text: str, shape: Shape, client: str) -> None:
        if not text:
            return
        used = sum(len(block["text"]) for block in result.content if block["type"] == "text")
        room = shape.limit - used
        if not shape.limit or len(text) <= room:
            result.content.append({"type": "text", "text": text})
            return
        head = text[: max(room, 0)]
        uri = self._shelf.put(f"agent://{quote(shape.agent)}", Kept(client, text, "text/plain"), "whole.txt")
        rest = len(text) - len(head)
        result.content.append({"type": "text", "text": f"{head}… [{rest} characters more: the whole text is {uri}]"})
        result.content.append(_link(uri, "whole.txt", "text/plain", "The whole text"))

    def _add_blob(self, result: Result, blob: Blob, shape: Shape, client: str) -> None:
        kind = blob.media_type.partition("/")[0]
        if kind in ("image", "audio"):
            data = base64.b64encode(blob.data).decode("ascii")
            result.content.append({"type": kind, "data": data, "mimeType": blob.media_type})
            return
        text = _text_of(blob)
        kept = Kept(client, blob.data if text is None else text, blob.media_type)
        uri = self._shelf.put(f"agent://{quote(shape.agent)}", kept, blob.name)
        if shape.limit and len(blob.data) > shape.limit:
            result.content.append(_link(uri, blob.name or uri, blob.media_type, f"{len(blob.data)} bytes"))
            return
        resource: dict[str, Any] = {"uri": uri, "mimeType": blob.media_type}
        if text is None:
            resource["blob"] = base64.b64encode(blob.data).decode("ascii")
        else:
            resource["text"] = text
        result.content.append({"type": "resource", "resource": resource})

    def _add_data(self, result: Result, data: Data, shape: Shape, client: str) -> None:
        label = data.media_type or shape.label
        if label:
            self._structure(result, data.value, label)
            text = _compact(data.value) if data.text is None else data.text
        else:
            if shape.output_schema is not None:
                _wrap(result, data.value, always=shape.wrapped, flag=shape.flagged)
            text = json.dumps(data.value, ensure_ascii=False) if data.text is None else data.text
        self._add_text(result, text, shape, client)

    def _structure(self, result: Result, value: Any, label: str) -> None:
        """A labelled reply: the value as it is, or under "result" with the flag by which clients unwrap it."""
        result.meta[META_LABEL] = label
        _wrap(result, value, always=False, flag=True)


def shaped(result: Result, shape: Shape) -> Result:
    """The result with the structured content that its schema demands: text that is JSON is taken for it."""
    if shape.output_schema is None or result.is_error:
        return result
    if result.structured is None:
        text = "".join(block["text"] for block in result.content if block["type"] == "text")
        wanted = shape.output_schema.get("properties", {}).get("result", {}).get("type", "string")
        try:
            value = text if shape.wrapped and wanted == "string" else json.loads(text)
        except ValueError:
            return failed("The answer is not the JSON that this tool's output schema promises.", result)
        _wrap(result, value, always=shape.wrapped, flag=shape.flagged)
    if shape.check is not None and META_LABEL not in result.meta:
        wrong = best_match(shape.check.iter_errors(result.structured))
        if wrong is not None:
            result.structured = None
            return failed(f"The answer does not fit this tool's output schema: {wrong.message[:MAX_ERROR]}", result)
    return result


def failed(message: str, before: Result | None = None) -> Result:
    """An error: what was said before it, and the message."""
    result = before if before is not None else Result()
    if message or not result.content:
        result.content.append({"type": "text", "text": message or "The agent says that it failed."})
    result.is_error = True
    return result


def finished(result: Result) -> Result:
    """A result that says so if there is nothing in it."""
    if not result.content and result.structured is None:
        result.content.append({"type": "text", "text": NO_OUTPUT})
    return result


def one_line(text: str, redactor: Redactor) -> str:
    """An error's text as it may leave the machine: one line, secrets masked, paths cut to their last name."""
    line = _PATH.sub(lambda found: "…/" + found[1], redactor.text(" ".join(text.split())))
    return line if len(line) <= MAX_ERROR else line[:MAX_ERROR] + "…"


def _wrap(result: Result, value: Any, *, always: bool, flag: bool) -> None:
    """Structured content is an object: what is none stands under "result", with the flag by which clients unwrap it."""
    if isinstance(value, dict) and not always:
        result.structured = value
        return
    result.structured = {"result": value}
    if flag:
        result.meta["fastmcp"] = {"wrap_result": True}


def _link(uri: str, name: str, media_type: str, description: str) -> dict[str, Any]:
    block = {"type": "resource_link", "uri": uri, "name": name}
    if media_type:
        block["mimeType"] = media_type
    if description:
        block["description"] = description
    return block


def _text_of(blob: Blob) -> str | None:
    if blob.media_type.startswith("text/") or blob.media_type in ("application/json", "image/svg+xml"):
        try:
            return blob.data.decode()
        except UnicodeDecodeError:
            return None
    return None


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def kept_part(part: Part, media_type: str, client: str) -> Kept:
    """What an agent's own resource holds, for one client; ``media_type`` as it was listed."""
    if isinstance(part, Blob):
        return Kept(client, part.data, media_type or part.media_type)
    text = part.text if isinstance(part, Text) else str(getattr(part, "value", ""))
    return Kept(client, text or "", media_type or "text/plain")
