"""How much text of one result a client gets: more is cut at a character, and the cut says how much is missing.

The bound counts the characters of all text together: of text blocks, of embedded resources, of prompts' messages.
Images, audio and other blobs are no text and pass. ``structuredContent`` says the same once more, as data: it has the
same bound for itself, its texts are cut and its lists end where the bound is reached, so that its shape stays.
"""

from typing import Any, Final

import msgspec

Raw = msgspec.Raw
_members = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])
_HOLDERS: Final = ("content", "contents", "messages")  # of tools/call, resources/read, prompts/get


class _Room:
    """What is left of the bound."""

    def __init__(self, characters: int) -> None:
        self.left = characters

    def cut(self, text: str) -> str:
        """As much of a text as there is room for, with the mark if that is not all."""
        if len(text) <= self.left:
            self.left -= len(text)
            return text
        kept, self.left = text[: self.left], 0
        return f"{kept}... [{len(text) - len(kept)} characters truncated]"


def bounded_result(result: bytes, characters: int) -> bytes:
    """A result (raw JSON) with at most so many characters of text, beside the marks. What is no object stays."""
    try:
        members = _members.decode(result)
        room = _Room(characters)
        changed = {name: _blocks(members[name], room) for name in _HOLDERS if bytes(members.get(name, b""))[:1] == b"["}
        structured = bytes(members.get("structuredContent", b""))
        if len(structured) > characters:
            value = _data(msgspec.json.decode(structured), _Room(characters))
            changed["structuredContent"] = Raw(msgspec.json.encode(value))
    except (msgspec.DecodeError, RecursionError):
        return result
    return msgspec.json.encode({**members, **changed})


def _blocks(raw: Raw, room: _Room) -> Raw:
    return Raw(msgspec.json.encode([_block(each, room) for each in _list.decode(raw)]))


def _block(raw: Raw, room: _Room) -> Raw:
    """One block of content, message of a prompt or content of a resource, with its text cut."""
    members = _members.decode(raw)
    for name, inner in members.items():
        if name == "text" and bytes(inner)[:1] == b'"':
            text = msgspec.json.decode(inner, type=str)
            cut = room.cut(text)
            if cut is not text:
                members["text"] = Raw(msgspec.json.encode(cut))
        elif name in ("resource", "content") and bytes(inner)[:1] == b"{":
            members[name] = _block(inner, room)
    return Raw(msgspec.json.encode(members))


def _data(value: Any, room: _Room) -> Any:
    if isinstance(value, str):
        return room.cut(value)
    if isinstance(value, dict):
        return {name: _data(member, room) for name, member in value.items()}
    if isinstance(value, list):
        kept = []
        for item in value:
            if room.left <= 0:
                break
            kept.append(_data(item, room))
        return kept
    room.left = max(room.left - len(str(value)), 0)
    return value
