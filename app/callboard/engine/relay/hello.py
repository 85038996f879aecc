"""What an endpoint says of itself: capabilities, identity and instructions, in either era."""

from typing import TYPE_CHECKING, Any

from callboard import __version__
from callboard.engine.policy.callers import Caller

if TYPE_CHECKING:
    from callboard.engine.relay.relay import Relay

IDENTITY = {"name": "callboard", "title": "Callboard", "version": __version__}
_LISTS = ("tools", "prompts", "resources")


def identity(relay: "Relay", scope: str) -> dict[str, Any]:
    """Who answers: the server itself on its own endpoint, we on the aggregate."""
    upstream = relay.links[scope].upstream if scope else None
    return dict(upstream.info.raw) if upstream is not None and upstream.info.name else IDENTITY


def capabilities(relay: "Relay", scope: str, *, modern: bool) -> dict[str, Any]:
    """What the endpoint can do. The aggregate can do what any server might, since servers come and go."""
    if scope and (upstream := relay.links[scope].upstream) is not None:
        found = dict(upstream.info.capabilities) or {"tools": {}}
        offered = [name for name in _LISTS if name in found]
    else:
        found = {"completions": {}, "logging": {}}
        offered = list(_LISTS)
        if not scope:
            found |= _extensions(relay)
    for name in offered:
        members = dict(found[name]) if isinstance(found.get(name), dict) else {}
        members["listChanged"] = True
        if name == "resources":
            members["subscribe"] = members.get("subscribe", not scope)
        found[name] = members
    if modern:
        found.pop("tasks", None)
    return found


def _extensions(relay: "Relay") -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for link in relay.links.values():
        if link.upstream is not None:
            extensions = link.upstream.info.capabilities.get("extensions")
            if isinstance(extensions, dict):
                merged = extensions | merged
    return {"extensions": merged} if merged else {}


def instructions(relay: "Relay", scope: str, caller: Caller) -> str:
    """What the servers that a caller may use want a model to know, in roster order."""
    links = [relay.links[scope]] if scope else [link for link in relay.links.values() if caller.may_use(link.name)]
    texts = [
        (link.name, link.upstream.info.instructions.strip())
        for link in links
        if link.upstream is not None and link.upstream.info.instructions.strip()
    ]
    if scope:
        return texts[0][1] if texts else ""
    return "\n\n".join(f"# {name}\n{text}" for name, text in texts)
