"""How the engine's state is shown: servers and tools as the control API gives them."""

import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from callboard.api.offer_schema import PromptArgument, PromptView, ResourceView
from callboard.api.schema import Figures, HealthView, LastExit, ServerView, ToolView
from callboard.api.sign_in_schema import SignInView
from callboard.core.health import PRIMARY_ACTION, SEVERITY, Action, State
from callboard.core.resolve import argv_for_display
from callboard.core.roster import AgentEntry, AnyEntry, RemoteEntry
from callboard.core.supervision import ServerStatus, restarts_today
from callboard.engine.relay.catalogue import PROMPTS, RESOURCES, TEMPLATES, TOOLS, Item, Offer
from callboard.engine.upstream.base import Upstream


def server_view(
    name: str,
    entry: AnyEntry,
    status: ServerStatus,
    offer: Offer,
    upstream: Upstream | None,
    *,
    base_url: str,
    python: str,
    figures: Figures | None = None,
    sign_in: SignInView | None = None,
    health: HealthView | None = None,
) -> ServerView:
    """One server as row, tray and command line show it. ``sign_in`` is None for one that does not sign in by OAuth."""
    last = status.last_exit
    info = upstream.info if upstream is not None else None
    view = ServerView(
        name=name,
        display_name=entry.display_name or name,
        description=entry.description,
        kind=entry.kind,
        transport=_transport(entry),
        enabled=entry.enabled,
        start=entry.start,
        state=status.state,
        severity=SEVERITY[status.state],
        since=status.since,
        ready_since=status.ready_since,
        reason=status.reason,
        error_code=status.error_code,
        fix=status.fix,
        action=primary_action(status),
        pid=status.pid,
        restarts=status.restarts,
        restarts_today=restarts_today(status, time.time()),
        cpu_percent=figures.cpu_percent if figures is not None else None,
        memory_bytes=figures.memory_bytes if figures is not None else None,
        attempt=status.attempt,
        max_attempts=status.max_attempts,
        next_retry=status.next_retry,
        last_exit=LastExit(at=last.at, code=last.code, signal=last.signal, stderr=list(last.stderr)) if last else None,
        command=argv_for_display(entry, python=python, home=Path.home()),
        url=entry.url if isinstance(entry, RemoteEntry) else "",
        cwd="" if isinstance(entry, RemoteEntry) else entry.cwd,
        endpoint=f"{base_url}/servers/{quote(name)}/mcp",
        protocol=info.protocol if info else "",
        server_version=" ".join(part for part in (info.name, info.version) if part) if info else "",
        tools=len(offer.items(TOOLS)),
        resources=len(offer.items(RESOURCES)) + len(offer.items(TEMPLATES)),
        prompts=len(offer.items(PROMPTS)),
        cached=upstream is None or offer.cached,
        health=health,
        sign_in=sign_in.state if sign_in is not None else "",
    )
    return _with_sign_in(view, sign_in)


def _with_sign_in(view: ServerView, sign_in: SignInView | None) -> ServerView:
    """The view with how far the sign-in is that the server waits for."""
    if sign_in is None:
        waits = view.state is State.NEEDS_SIGN_IN
        return msgspec.structs.replace(view, action=Action.EDIT) if waits else view
    if view.state is not State.NEEDS_SIGN_IN and view.error_code != "remote-scope":
        return view
    if sign_in.state == "waiting":
        return msgspec.structs.replace(view, reason="waiting for you to sign in in the browser", action=Action.CANCEL)
    if sign_in.state == "running":
        step = next((step.name for step in sign_in.steps if step.state == "running"), "")
        return msgspec.structs.replace(view, reason=f"signing in: {step}".rstrip(": "), action=Action.CANCEL)
    if sign_in.state == "failed":
        fill_in = sign_in.error_code in ("sign-in-client-id", "sign-in-unavailable")
        action = Action.FILL_IN if fill_in else Action.SIGN_IN
        changes = {"reason": sign_in.message, "error_code": sign_in.error_code, "fix": sign_in.fix, "action": action}
        return msgspec.structs.replace(view, **changes)
    return msgspec.structs.replace(view, action=Action.SIGN_IN)


def _transport(entry: AnyEntry) -> str:
    if isinstance(entry, RemoteEntry):
        return entry.transport
    return "agent" if isinstance(entry, AgentEntry) else "stdio"


# failures that another try cannot mend: the entry must be changed
_OF_THE_ENTRY = frozenset({"command-not-found", "command-not-executable", "cwd-missing", "entry-invalid"})


def primary_action(status: ServerStatus) -> Action:
    """The one action that helps most."""
    if status.state is State.FAILED and status.error_code in _OF_THE_ENTRY:
        return Action.EDIT
    return PRIMARY_ACTION[status.state]


def tool_views(server: str, offer: Offer, wire_names: dict[tuple[str, str], str]) -> list[ToolView]:
    """The tools of a server, then those that were left out with the reason."""
    views = [_tool(item.raw, item.key, wire_names.get((server, item.key), "")) for item in offer.items(TOOLS)]
    left_out = [
        ToolView(name=problem.key or "?", wire_name="", problem=problem.reason)
        for problem in offer.problems
        if problem.kind == TOOLS.name
    ]
    return views + left_out


def resource_views(offer: Offer) -> list[ResourceView]:
    """The resources of a server, then its templates."""
    return [
        *(_resource(item, template=False) for item in offer.items(RESOURCES)),
        *(_resource(item, template=True) for item in offer.items(TEMPLATES)),
    ]


def _resource(item: Item, *, template: bool) -> ResourceView:
    found: dict[str, Any] = msgspec.json.decode(item.raw)
    size = found.get("size")
    return ResourceView(
        uri=item.key,
        template=template,
        name=_text(found, "name"),
        title=_text(found, "title"),
        description=_text(found, "description"),
        mime_type=_text(found, "mimeType"),
        size=size if isinstance(size, int) and not isinstance(size, bool) else None,
    )


def prompt_views(server: str, offer: Offer, wire_names: dict[tuple[str, str], str]) -> list[PromptView]:
    """The prompts of a server."""
    return [_prompt(item, wire_names.get((server, item.key), "")) for item in offer.items(PROMPTS)]


def _prompt(item: Item, wire_name: str) -> PromptView:
    found: dict[str, Any] = msgspec.json.decode(item.raw)
    listed = found.get("arguments")
    arguments = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return PromptView(
        name=item.key,
        wire_name=wire_name,
        title=_text(found, "title"),
        description=_text(found, "description"),
        arguments=[
            PromptArgument(
                name=_text(each, "name"),
                title=_text(each, "title"),
                description=_text(each, "description"),
                required=each.get("required") is True,
            )
            for each in arguments
            if _text(each, "name")
        ],
    )


def _text(found: dict[str, Any], key: str) -> str:
    """A member that should be text; empty if it is not."""
    value = found.get(key)
    return value if isinstance(value, str) else ""


def _tool(raw: bytes, name: str, wire_name: str) -> ToolView:
    found: dict[str, Any] = msgspec.json.decode(raw)
    annotations = found.get("annotations")
    return ToolView(
        name=name,
        wire_name=wire_name,
        title=str(found.get("title") or ""),
        description=str(found.get("description") or ""),
        input_schema=found.get("inputSchema"),
        output_schema=found.get("outputSchema"),
        annotations=annotations if isinstance(annotations, dict) else {},
        problem="" if wire_name else "not offered to clients",
    )
