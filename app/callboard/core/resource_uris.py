"""Resource URIs under patterns: one spelling for all the spellings of a URI that mean the same (RFC 3986, section 6.2).

A server unfolds a URI in its own way, so what a pattern is matched against must not depend on how it is spelled. What
cannot be folded without knowing the server, a path with ``.`` or ``..`` in it, is refused where patterns decide.
"""

import re
from typing import Final
from urllib.parse import unquote

_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9._~-]")
_SEPARATOR: Final = re.compile(r"[/\\?#&=;]|%2F|%5C")
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")  # parsers drop some of them
_SCHEME: Final = re.compile(r"^([^.]*\.)([A-Za-z][A-Za-z0-9+.-]*)(?=:)")
_HOST: Final = re.compile(r"(?<=://)([^/#@]*@)?([^/#@]*)")
_LOCAL_FILE: Final = re.compile(r"^([^.]*\.)file:(?://localhost(?=/)|(?=/(?!/)))")
_NEEDLESS_SLASHES: Final = re.compile(r"(?<=[^:/]/)/+|(?<=:///)/+")


def is_ambiguous(uri: str) -> bool:
    """Whether servers may take a URI for another one than it seems: it has a ``.`` or ``..`` segment, in letters or
    percent-encoded, or characters that no URI has.
    """
    segments = _SEPARATOR.split(_unescaped(uri))
    return _CONTROL.search(uri) is not None or "." in segments or ".." in segments


def folded(identity: str) -> str:
    """``SERVER.URI``, or a pattern for it: scheme and host in small letters, no needless escapes, files alike."""
    text = _SCHEME.sub(lambda found: found[1] + found[2].lower(), _unescaped(identity))
    text = _HOST.sub(lambda found: (found[1] or "") + found[2].lower(), text, count=1)
    return _LOCAL_FILE.sub(lambda found: f"{found[1]}file://", text)


def unfolded(identity: str) -> str:
    """What a server may make of a folded ``SERVER.URI`` that decodes all escapes and joins slashes. Not every server
    does, so this is for what is denied or asked for, never for what is allowed.
    """
    text = unquote(identity)
    return _NEEDLESS_SLASHES.sub("", text) if "//" in text else text


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_one_escape, text) if "%" in text else text


def _one_escape(found: re.Match[str]) -> str:
    letter = chr(int(found[0][1:], 16))
    return letter if _UNRESERVED.fullmatch(letter) else found[0].upper()
