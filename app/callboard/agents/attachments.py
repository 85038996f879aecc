"""Files and addresses that come along with a request."""

import base64
import binascii
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from callboard.agents.arguments import ArgumentsError
from callboard.agents.contract import Blob, Link, Part

_ENCODED: Final = ";base64"


def read_attachments(given: list[Any], limit: int) -> list[Part]:
    """Attachments as parts. Raises ArgumentsError for what is no base64, too large, or neither content nor address."""
    found: list[Part] = []
    size = 0
    for number, each in enumerate(given):
        media_type, name = each.get("mimeType", ""), each.get("name", "")
        data, uri = each.get("data"), each.get("uri", "")
        if data is None and uri.startswith("data:"):
            head, _, content = uri.removeprefix("data:").partition(",")
            media_type = media_type or head.removesuffix(_ENCODED)
            raw = _decoded(content, number) if head.endswith(_ENCODED) else unquote_to_bytes(content)
        elif data is not None:
            raw = _decoded(data, number)
        elif uri:
            found.append(Link(uri, name, media_type))
            continue
        else:
            raise ArgumentsError(f"attachments[{number}] needs data or uri")
        size += len(raw)
        if limit and size > limit:
            raise ArgumentsError(f"the attachments are larger than {limit // 1024} KiB")
        found.append(Blob(raw, media_type or "application/octet-stream", name))
    return found


def _decoded(text: str, number: int) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ArgumentsError(f"attachments[{number}].data is not base64") from error
