"""URI templates (RFC 6570, all its operators, with text as values): their variables, and filling them in."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

_EXPRESSION: Final = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_RESERVED: Final = ":/?#[]@!$&'()*+,;=%"
# operator → what stands before the first value, what between two, whether names are written, what is left as it is
_FORMS: Final[dict[str, tuple[str, str, bool, str]]] = {
    "": ("", ",", False, ""),
    "+": ("", ",", False, _RESERVED),
    "#": ("#", ",", False, _RESERVED),
    ".": (".", ".", False, ""),
    "/": ("/", "/", False, ""),
    ";": (";", ";", True, ""),
    "?": ("?", "&", True, ""),
    "&": ("&", "&", True, ""),
}


def variables(template: str) -> list[str]:
    """The names of a template's variables, each once, in order."""
    names = [name for _, listed in _EXPRESSION.findall(template) for name, _ in _named(listed)]
    return list(dict.fromkeys(names))


def expand(template: str, values: Mapping[str, str]) -> str:
    """The URI with the values in place; a variable without one leaves nothing."""
    return _EXPRESSION.sub(lambda found: _filled(found[1], found[2], values), template)


def _filled(operator: str, listed: str, values: Mapping[str, str]) -> str:
    first, between, named, kept = _FORMS[operator]
    parts = []
    for name, longest in _named(listed):
        if name not in values:
            continue
        text = quote(values[name][:longest], safe=kept)
        if not named:
            parts.append(text)
        elif text or operator != ";":
            parts.append(f"{name}={text}")
        else:
            parts.append(name)
    return first + between.join(parts) if parts else ""


def _named(listed: str) -> list[tuple[str, int | None]]:
    """Names with the number of characters that are used of their values (None: all)."""
    found: list[tuple[str, int | None]] = []
    for each in listed.split(","):
        name, _, longest = each.strip().removesuffix("*").partition(":")
        if name:
            found.append((name, int(longest) if longest.isdecimal() else None))
    return found
