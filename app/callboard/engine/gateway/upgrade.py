"""Requests to go on in another protocol (RFC 9110, 7.8), which the gateway passes over, as a server may.

Some clients make one with the first request of each connection: Java's ``HttpClient`` asks for HTTP/2 so.
"""

from collections.abc import Iterable
from typing import Final

_WISHES: Final = (b"upgrade", b"http2-settings")


def without_upgrade(method: bytes, url: bytes, version: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A request's head as it would be on the wire without the wish. Header names are in lower case."""
    lines = [b"%b %b HTTP/%b" % (method, url, version.encode("ascii"))]
    for name, value in headers:
        if name == b"connection":
            options = (option.strip() for option in value.split(b","))
            value = b", ".join(option for option in options if option.lower() not in _WISHES)
        if name not in _WISHES:
            lines.append(b"%b: %b" % (name, value))
    return b"\r\n".join([*lines, b"", b""])
