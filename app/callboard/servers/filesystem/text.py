"""From the bytes of a file to text: its encoding found, its beginning or end cut out, its size kept in bounds."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from typing import Final

from callboard.servers.filesystem.places import Refused

_SAMPLE: Final = 8192  # bytes that a guess is made from
_CHUNK: Final = 1024 * 1024
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNIT: Final = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
_NOT_IN_TEXT: Final = frozenset(range(0x20)) - {0x07, 0x08, 0x09, 0x0A, 0x0C, 0x0D, 0x1B}


@dataclass(frozen=True)
class Text:
    """A file's text, or a part of it; ``remark`` is what a reader should know of how it was had."""

    text: str
    remark: str = ""


def read_text(descriptor: int, path: str, limit: int, *, head: int | None = None, tail: int | None = None) -> Text:
    """The whole text of a file, or its first or last lines. At most ``limit`` bytes are read. Raises Refused.

    Lines that are cut out end with a line feed each, but the last one. ``path`` is for messages.
    """
    size = os.fstat(descriptor).st_size
    if tail is not None and size > limit:
        return _end_of(descriptor, path, size, limit, tail)
    data = _read(descriptor, limit + 1)
    is_cut = len(data) > limit
    if is_cut and head is None:
        how_big = f"is {size_of(size)}, which is" if size > limit else "has"
        raise Refused(f"{path} {how_big} more than the {size_of(limit)} that are read at once; use head or tail.")
    whole = _decode(data[:limit], _encoding(data[:_SAMPLE]), path)
    if head is None and tail is None:
        return whole
    lines = _lines(whole.text)
    if tail is not None:
        return Text("\n".join(lines[len(lines) - min(tail, len(lines)) :]), whole.remark)
    assert head is not None
    if is_cut and head >= len(lines):
        cut = f"only the first {size_of(limit)} of the file are here"
        return Text("\n".join(lines), _join(whole.remark, cut))
    return Text("\n".join(lines[:head]), whole.remark)


def size_of(count: int) -> str:
    """A number of bytes for people."""
    if count < 1024:
        return f"{count} B"
    scaled = float(count)
    for unit in ("KB", "MB", "GB"):
        scaled /= 1024
        if scaled < 1024:
            return f"{scaled:.2f} {unit}"
    return f"{scaled / 1024:.2f} TB"


def _end_of(descriptor: int, path: str, size: int, limit: int, tail: int) -> Text:
    encoding = _encoding(_read(descriptor, _SAMPLE))
    start = size - limit
    start += -start % _UNIT.get(encoding or "", 1)
    os.lseek(descriptor, start, os.SEEK_SET)
    data = _read(descriptor, limit)
    if encoding == "utf-8":
        data = data.lstrip(bytes(range(0x80, 0xC0)))  # the rest of a character whose beginning was not read
    found = _decode(data, encoding, path)
    lines = _lines(found.text)[1:]  # the first is the end of a longer one
    if tail > len(lines):
        return Text("\n".join(lines), _join(found.remark, f"only the last {size_of(limit)} of the file are here"))
    return Text("\n".join(lines[len(lines) - tail :]), found.remark)


def _read(descriptor: int, limit: int) -> bytes:
    chunks = []
    while limit > 0 and (chunk := os.read(descriptor, min(limit, _CHUNK))):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)


def _encoding(sample: bytes) -> str | None:
    """The encoding that a file's beginning shows; None if it is no text. "utf-8" may still turn out wrong."""
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    if b"\0" in sample:
        # text in UTF-16 without its mark: every other byte of Western letters, digits and line ends is zero
        for name, zeros, others in (("utf-16-le", sample[1::2], sample[::2]), ("utf-16-be", sample[::2], sample[1::2])):
            if len(sample) >= 8 and zeros.count(0) > 0.7 * len(zeros) and not _NOT_IN_TEXT.intersection(others):
                return name
        return None
    odd = sum(byte in _NOT_IN_TEXT for byte in sample)
    return None if odd > 0.05 * len(sample) else "utf-8"


def _decode(data: bytes, encoding: str | None, path: str) -> Text:
    if encoding is None:
        raise Refused(f"{path} is not text, but binary data.")
    if encoding != "utf-8":
        text = data.decode(encoding, "replace").removeprefix("\ufeff")
        return Text(text, f"the file is in {encoding.upper().removesuffix('-LE').removesuffix('-BE')}")
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    wrong = text.count("\ufffd")
    if not wrong or not _is_wrong(data):
        return Text(text)
    if sum(char > "\x7f" for char in text) - wrong > wrong:
        return Text(text, "bytes that are not UTF-8 are shown as \ufffd")
    return Text(data.decode("cp1252", "replace"), "the file is not in UTF-8; it was read as Windows-1252")


def _is_wrong(data: bytes) -> bool:
    """Whether data is not UTF-8; a character cut off at the end does not count."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return True
    return False


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _join(*remarks: str) -> str:
    return "; ".join(filter(None, remarks))
