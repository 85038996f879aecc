"""Masking of secrets in everything that is stored or shown: call payloads, log lines, error texts.

Two rules. Values that are known to be secret are masked wherever they stand, also inside JSON strings (of JSON
strings), URL-encoded, and in base64 at any offset. And whatever stands under a name like ``password`` or
``Authorization`` is masked, whoever wrote it.
"""

import base64
import functools
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from callboard.core.credentials import is_secret_name

MASK = "***"
SHORTEST = 4  # characters; shorter values are not masked: they would be everywhere
_ALONE = 8  # characters; shorter values are masked only where they stand alone
_LINE = 16  # characters from which a line of a longer secret (a private key) is masked by itself
_SHORT = 300  # bytes of a payload up to which one pattern is quicker than a search for each stem
_BASE64 = 8  # characters of base64 that are enough to be sure

_STEMS = ("token", "secret", "passw", "passphrase", "pwd", "key", "credential", "authorization", "cookie", "bearer")
_NAME = r"(?P<name>[\w.-]{0,64}?(?:token|secret|passw|passphrase|pwd|key|credential|authorization|cookie)[\w.-]{0,64})"
_JSON = re.compile(rf'(?i)"{_NAME}"\s*:\s*"(?P<value>(?:[^"\\]|\\.)+)"', re.DOTALL)
_NESTED = re.compile(
    rf'(?i)(?P<quote>\\+"){_NAME}(?P=quote)\s*:\s*(?P=quote)(?P<value>.{{1,4096}}?)(?<!\\)(?P=quote)', re.DOTALL
)
_PYTHON = re.compile(rf"(?i)'{_NAME}'\s*[:,]\s*'(?P<value>(?:[^'\\]|\\.)+)'")
_ASSIGNED = re.compile(rf"""(?i)(?<![\w.-]){_NAME}=(?P<value>"[^"]+"|'[^']+'|[^\s&;,"'\\]+)""")
_HEADER_LINE = r"(?i)\b(?P<name>{})\s*:\s*(?:(?:bearer|basic|token)\s+)?(?P<value>[^\s\"'\\]+)"
_BEARER = re.compile(r"(?i)\bbearer\s+(?P<value>[\w.~+/-]{12,}=*)")
_USERINFO = re.compile(r"(?<=://)(?P<name>[^/\s:@\"]{0,128}):(?P<value>[^/\s@\"]{1,256})(?=@)")
_AUTHORIZATION = re.compile(_HEADER_LINE.format("(?:proxy-)?authorization"))
_COOKIE = re.compile(_HEADER_LINE.format("(?:set-)?cookie"))
_API_KEY = re.compile(_HEADER_LINE.format("x-api-key"))
# what a text must hold for a pattern to be worth trying: each costs a millisecond for 64 KiB
_NAMED = (('"', _JSON), ('\\"', _NESTED), ("'", _PYTHON), ("=", _ASSIGNED))
_ALWAYS = (
    ("authorization", _AUTHORIZATION),
    ("cookie", _COOKIE),
    ("x-api-key", _API_KEY),
    ("bearer", _BEARER),
    ("@", _USERINFO),
)
_ADDRESS = re.compile(
    r"(?P<start>\b[a-z][a-z0-9+.-]{1,30}://)(?P<user>[^/\s?#@\"'<>]*@)?(?P<place>[^\s?#\"'<>]*)(?P<rest>[?#][^\s\"'<>]+)?",
    re.I,
)
_ENCODED_STEMS = tuple(stem.encode() for stem in _STEMS)
_ANY_STEM = re.compile(b"|".join(_ENCODED_STEMS))
_is_secret_name = functools.lru_cache(maxsize=2048)(is_secret_name)


class Redactor:
    """Masks a fixed set of values and what stands under secret names. Immutable; usable from any thread.

    Costs some microseconds for a short payload, under a millisecond for 64 KiB, and some milliseconds for 64 KiB
    that speak of secrets.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms = sorted({form for value in values for form in _forms(value)}, key=lambda form: (-len(form), form))
        self._encoded = [form.encode("utf-8", "surrogatepass") for form in self._forms]
        self._shortest = min(map(len, self._forms), default=0)

    def data(self, payload: bytes) -> bytes:
        """``payload`` (JSON, or any text) with its secrets masked.

        JSON stays JSON, unless a secret happens to be spelled like part of an escape sequence.
        """
        known = len(payload) >= self._shortest and any(form in payload for form in self._encoded)
        if not known and b"@" not in payload and not _names_secrets(payload.lower()):
            return payload
        text = payload.decode("utf-8", "surrogateescape")
        masked = self._mask(text)
        return payload if masked == text else masked.encode("utf-8", "surrogateescape")

    def known(self, payload: bytes) -> bytes:
        """``payload`` with the known values masked, whatever else it says of secrets: for payloads that are large and
        many, since looking for names costs more than all the rest of a call.
        """
        if not any(form in payload for form in self._encoded):
            return payload
        text = payload.decode("utf-8", "surrogateescape")
        for form in self._forms:
            if form in text:
                text = _replace(text, form)
        return text.encode("utf-8", "surrogateescape")

    def text(self, text: str) -> str:
        """``text`` (a log line, an error) with its secrets masked."""
        known = len(text) >= self._shortest and any(form in text for form in self._forms)
        lowered = text.lower()
        if not known and "@" not in text and not any(stem in lowered for stem in _STEMS):
            return text
        return self._mask(text)

    def _mask(self, text: str) -> str:
        for form in self._forms:
            if form in text:
                text = _replace(text, form)
        lowered = text.lower()
        if any(stem in lowered for stem in _STEMS):
            for needed, pattern in _NAMED:
                if needed in text:
                    text = pattern.sub(_masked_if_secret, text)
        for needed, pattern in _ALWAYS:
            if needed in lowered:
                text = pattern.sub(_masked, text)
        return text


def mask_addresses(text: str) -> str:
    """``text`` with what addresses carry beside the place itself masked: user, password, query and fragment.

    For texts in which nothing of that is needed: any of it may be a secret, whatever its name.
    """
    return _ADDRESS.sub(_masked_address, text) if "://" in text else text


def _masked_address(match: re.Match[str]) -> str:
    user = f"{MASK}@" if match["user"] else ""
    rest = match["rest"][0] + MASK if match["rest"] else ""
    return match["start"] + user + match["place"] + rest


def _names_secrets(lowered: bytes) -> bool:
    """Whether any of ``_STEMS`` stands in ``lowered``. One pattern is quicker for short payloads only."""
    if len(lowered) <= _SHORT:
        return _ANY_STEM.search(lowered) is not None
    return any(stem in lowered for stem in _ENCODED_STEMS)


def _replace(text: str, form: str) -> str:
    if len(form) >= _ALONE:
        return text.replace(form, MASK)
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(form)}(?![A-Za-z0-9])", MASK, text)


def _masked_if_secret(match: re.Match[str]) -> str:
    return _masked(match) if _is_secret_name(match["name"]) else match.group()


def _masked(match: re.Match[str]) -> str:
    start, end = match.span("value")
    whole, offset = match.group(), match.start()
    value = match["value"]
    mark = f"{value[0]}{MASK}{value[0]}" if len(value) > 1 and value[0] in "\"'" and value[0] == value[-1] else MASK
    return whole[: start - offset] + mark + whole[end - offset :]


def _forms(value: str) -> set[str]:
    """Every way in which ``value`` may be spelled."""
    forms: set[str] = set()
    if len(value) < SHORTEST or value.strip() == "":
        return forms
    lines = [line.strip() for line in value.splitlines()]
    for text in {value, value.strip(), *(line for line in lines if len(line) >= _LINE)}:
        for escaped in (text, *_json_forms(text)):
            forms |= {escaped, *_json_forms(escaped)}
        for encoded in (
            quote(text, safe="", errors="replace"),
            quote(text, errors="replace"),
            quote_plus(text, errors="replace"),
        ):
            forms |= {encoded, re.sub(r"%[0-9A-F]{2}", lambda code: code.group().lower(), encoded)}
    return forms | _base64_forms(value.encode("utf-8", "replace"))


def _json_forms(text: str) -> set[str]:
    return {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}


def _base64_forms(data: bytes) -> set[str]:
    """The characters that ``data`` alone determines, at each of the three offsets, in both alphabets."""
    forms = set()
    for offset, skip in ((0, 0), (1, 2), (2, 3)):
        whole = base64.b64encode(bytes(offset) + data).decode().rstrip("=")
        core = whole[skip : (offset + len(data)) * 8 // 6]
        if len(core) >= _BASE64:
            forms |= {core, core.replace("+", "-").replace("/", "_")}
    return forms
