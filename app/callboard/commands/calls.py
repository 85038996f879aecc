"""Commands about calls: the call log, and a call made by hand."""

import json
from argparse import Namespace
from typing import Any, Final

import msgspec

from callboard.api.client import EngineClient
from callboard.api.schema import CallDetail, CallView
from callboard.commands.arguments import tool_arguments
from callboard.commands.servers import find_tool, known_tools
from callboard.commands.terminal import Cell, Terminal, clock, duration, size, width
from callboard.core.errors import CallboardError

_HEADERS: Final = ("ID", "TIME", "CLIENT", "TOOL", "STATUS", "DURATION", "SIZE", "ERROR")
_MEANING: Final = {"running": "busy", "completed": "fine", "failed": "failed", "cancelled": "attention"}
_PAGE: Final = 1000  # calls; the engine gives no more at once
_calls = list[CallView]


async def calls(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """The newest calls, one call with its payloads, or calls as they end."""
    if options.id is not None:
        detail = await client.call(options.id)
        if options.json:
            terminal.json(detail)
        else:
            _show(detail, terminal)
        return 0
    # more than shown: calls that still run are printed at their end
    found = await _newest(client, options, max(options.lines, 100))
    shown = found[-options.lines :] if options.lines else []
    if options.follow:
        await _follow(client, options, terminal, found, shown)
    elif options.json:
        terminal.json(shown)
    elif shown:
        shared = any(call.engine for call in shown)
        terminal.table(_headers(shared), [_row(call, shared) for call in shown])
    else:
        terminal.note("No calls.")
    return 0


async def call(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Call a tool and print what it answers."""
    server, _, name = options.tool.partition(".")
    known = await known_tools(client, server)
    schema = find_tool(known, server, name).input_schema
    result = await client.call_tool(server, name, tool_arguments(options.arg, options.args, schema))
    failed = result.get("isError") is True
    if options.json:
        terminal.json(result)
    elif failed:
        terminal.error(_text(result) or f"{options.tool} failed.")
    else:
        _print_result(result, terminal)
    return 1 if failed else 0


async def _follow(
    client: EngineClient, options: Namespace, terminal: Terminal, known: list[CallView], shown: list[CallView]
) -> None:
    """Print calls as they end, each once; those that still ran when the log was read are printed at their end."""
    shared = any(each.engine for each in known)
    headers = _headers(shared)
    rows = [_row(each, shared) for each in shown]
    widths = [max(width(row[n]) for row in [headers, *rows]) for n in range(len(headers))]
    if not options.json:
        terminal.columns([Cell(header, "off") for header in headers], widths)
    _print_ended([each for each in shown if each.status != "running"], options, terminal, widths, shared)
    known_to = max((each.started for each in known), default=0.0)
    newest: dict[str, int] = {}  # of each engine: the ids of one grow with time
    for each in known:
        newest[each.engine] = max(each.id, newest.get(each.engine, 0))
    running = {each.id for each in known if each.status == "running"}
    # From the oldest event still kept on: what happened between the page and the stream is in it.
    async for event in client.events(0, ["calls"]):
        if event.kind == "calls":
            changed = [each for each in msgspec.convert(event.data["calls"], _calls) if _wanted(each, options)]
        elif event.kind == "reset":
            changed = await _newest(client, options, _PAGE)
        else:
            continue  # an engine of another version tells of everything
        fresh = [each for each in changed if each.started >= known_to and each.id > newest.get(each.engine, 0)]
        ended = [each for each in changed if each.status != "running" and (each in fresh or each.id in running)]
        if options.text and ended:
            wanted = {each.id for each in await _newest(client, options, _PAGE)}
            ended = [each for each in ended if each.id in wanted]
        running = running.difference(each.id for each in changed if each.status != "running")
        running |= {each.id for each in fresh if each.status == "running"}
        for each in fresh:
            newest[each.engine] = max(each.id, newest.get(each.engine, 0))
        _print_ended(ended, options, terminal, widths, shared)
    raise CallboardError("engine-not-running", "The engine has ended.")


def _print_ended(
    ended: list[CallView], options: Namespace, terminal: Terminal, widths: list[int], shared: bool
) -> None:
    for each in ended:
        if options.json:
            terminal.json(each, indent=0)
        else:
            terminal.columns(_row(each, shared), widths)


async def _newest(client: EngineClient, options: Namespace, limit: int) -> list[CallView]:
    """The newest calls that pass the options' filters, oldest first."""
    filters = {name: getattr(options, name) or "" for name in ("server", "tool", "client", "engine", "status", "text")}
    page = await client.calls(offset=-1, limit=min(limit, _PAGE), **filters)
    found = page.calls
    while len(found) < limit and page.calls and page.offset > 0:
        count = min(limit - len(found), page.offset, _PAGE)
        page = await client.calls(offset=page.offset - count, limit=count, **filters)
        found = page.calls + found
    return found


def _wanted(each: CallView, options: Namespace) -> bool:
    return all(
        not getattr(options, name) or getattr(options, name) == getattr(each, name)
        for name in ("server", "tool", "client", "engine", "status")
    )


def _headers(shared: bool) -> tuple[str, ...]:
    """The columns' names; ``shared``: with the engine, where several share their log."""
    return ("ID", "TIME", "ENGINE", *_HEADERS[2:]) if shared else _HEADERS


def _row(each: CallView, shared: bool) -> list[str]:
    target = f"{each.server}.{each.tool}" if each.method == "tools/call" else f"{each.server} {each.method} {each.tool}"
    return [
        str(each.id),
        clock(each.started),
        *([each.engine] if shared else []),
        each.client,
        target,
        Cell(each.status, _MEANING[each.status]),
        duration(each.duration_ms),
        size(each.request_bytes + each.response_bytes),
        each.error,
    ]


def _show(detail: CallDetail, terminal: Terminal) -> None:
    terminal.pairs(
        [
            ("call", str(detail.id)),
            ("time", clock(detail.started)),
            *([("engine", detail.engine)] if detail.engine else []),
            ("client", detail.client),
            ("server", detail.server),
            ("method", detail.method),
            ("tool", detail.tool),
            ("status", detail.status),
            ("duration", duration(detail.duration_ms)),
            ("error", detail.error),
            ("arguments", _payload(detail.arguments, detail.request_bytes, detail.arguments_cut)),
            ("result", _payload(detail.result, detail.response_bytes, detail.result_cut)),
        ]
    )


def _payload(text: str, whole: int, was_cut: bool) -> str:
    if was_cut:
        return f"{text}\n… the beginning of {size(whole)}"
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except ValueError:
        return text


def _print_result(result: dict[str, Any], terminal: Terminal) -> None:
    content = result.get("content") or []
    for item in content:
        if _is_text(item):
            terminal.raw(item["text"])
        else:
            terminal.json(item)
    if not content and "structuredContent" in result:
        terminal.json(result["structuredContent"])


def _text(result: dict[str, Any]) -> str:
    return "\n".join(item["text"] for item in result.get("content") or [] if _is_text(item))


def _is_text(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "text" and isinstance(item.get("text"), str)
