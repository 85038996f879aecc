"""Indented JSON."""

import json
from typing import Any


def pretty(text: str) -> str:
    """Indented JSON; a text that is not JSON (one that was cut, say) as it is."""
    try:
        return dump(json.loads(text))
    except (ValueError, RecursionError):
        return text


def dump(value: Any) -> str:
    """A value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)
