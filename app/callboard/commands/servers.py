"""Commands about servers: list, start, stop, restart, reset, tail, inspect, tools."""

import asyncio
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec

from callboard.api.client import EngineClient
from callboard.api.schema import LogLine, ServerView, ToolView
from callboard.commands.terminal import Cell, Terminal, clock, size, span
from callboard.core.errors import CallboardError
from callboard.core.health import State

_POLL: Final = 0.1  # seconds between two looks at a server that is changing
_UP: Final = {State.READY, State.DEGRADED}
_DOWN: Final = {State.STOPPED, State.DISABLED}
_CHANGING: Final = {State.STARTING, State.STOPPING}
_WAY_UP: Final = {
    State.STOPPED: "Start it with `callboard start {name}`.",
    State.DISABLED: "Enable it with `callboard enable {name}`.",
    State.STARTING: "Wait until it is ready: `callboard list` shows it.",
}
_lines = list[LogLine]
T = TypeVar("T")


async def list_servers(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Every server with its state."""
    servers = await client.servers(figures=True)
    if options.json:
        terminal.json(servers)
    elif not servers:
        terminal.note("No server is in the roster yet. Add one with `callboard add`, in the window, or in roster.yaml.")
    else:
        rows = [
            (
                server.name,
                _state(server),
                server.transport,
                str(server.tools or ""),
                _uptime(server),
                _cpu(server),
                _memory(server),
                _remark(server),
            )
            for server in servers
        ]
        terminal.table(("NAME", "STATE", "TRANSPORT", "TOOLS", "FOR", "CPU", "MEMORY", "REMARK"), rows)
    return 0


async def start(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Start servers and wait until they are ready."""
    return await _act(client, options, terminal, "start")


async def stop(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Stop servers and wait until they have ended."""
    return await _act(client, options, terminal, "stop")


async def restart(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Restart servers and wait until they are ready."""
    return await _act(client, options, terminal, "restart")


async def reset(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Forget earlier failures of servers, and wait for those that are started again for it."""
    return await _act(client, options, terminal, "reset")


async def tail(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """The last lines of a server's log, and what follows."""
    page = await client.log(options.server, after=-1, limit=max(options.lines, 1))
    _print_log(page.lines if options.lines else [], options.json, terminal)
    newest = page.next
    if not options.follow:
        return 0
    # From the oldest event still kept on: what was said between the page and the stream is in it.
    async for event in client.events(0, ["log", "server-removed"]):
        lines: list[LogLine] = []
        if event.kind == "log" and event.data["server"] == options.server:
            lines = msgspec.convert(event.data["lines"], _lines)
        elif event.kind == "reset":
            lines = (await client.log(options.server, after=newest)).lines
        elif event.kind == "server-removed" and event.data["name"] == options.server:
            raise CallboardError("server-unknown", f"{options.server} was removed.")
        new = [line for line in lines if line.n > newest]
        if new:
            newest = new[-1].n
            _print_log(new, options.json, terminal)
    raise CallboardError("engine-not-running", "The engine has ended.")


async def inspect(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """All that is known of a server, or of one of its tools."""
    name, _, tool_name = options.name.partition(".")
    if tool_name:
        tool = find_tool(await known_tools(client, name), name, tool_name)
        if options.json:
            terminal.json(tool)
        else:
            _show_tool(name, tool, terminal)
        return 0
    server = await client.server(name, figures=True)
    if options.json:
        terminal.json(server)
    else:
        entry = (await client.roster()).servers.get(name, {})
        terminal.pairs(_facts(server, str(entry.get("agent") or "")))
    return 0


async def tools(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """The tools of one server or of all."""
    if options.server:
        found = {options.server: await known_tools(client, options.server)}
    else:
        found = {server.name: await client.tools(server.name) for server in await client.servers() if server.enabled}
    if options.json:
        terminal.json(found[options.server] if options.server else found)
        return 0
    rows = [
        (
            f"{server}.{tool.name}",
            signature(tool),
            Cell(tool.problem, "attention") if tool.problem else tool.description,
        )
        for server, known in found.items()
        for tool in known
    ]
    if rows:
        terminal.table(("TOOL", "ARGUMENTS", "DESCRIPTION"), rows)
    else:
        terminal.note("No tools are known.")
    return 0


async def known_tools(client: EngineClient, name: str) -> list[ToolView]:
    """A server's tools; a server that starts on demand is started if it does not run."""
    return await offered(client, name, client.tools)


async def offered(client: EngineClient, name: str, read: Callable[[str], Awaitable[list[T]]]) -> list[T]:
    """What ``read`` finds of a server; if nothing, because the server does not run, that is raised."""
    server = await awake(client, name)
    found = await read(name)
    if not found and server.state not in _UP:
        raise _problem(server)
    return found


async def awake(client: EngineClient, name: str) -> ServerView:
    """See to it that a server that starts on demand runs, and wait for one that starts; raises why one does not."""
    server = await client.server(name)
    wanted = server.state is State.STOPPED and server.start == "on-demand"
    if wanted or server.state is State.STARTING:
        began = await client.act(name, "start") if wanted else server
        server = await settled(client, began, "start", 60.0)
        if server.state not in _UP:
            raise _problem(server)
    return server


def find_tool(known: list[ToolView], server: str, name: str) -> ToolView:
    """The tool of that name; raises ``tool-unknown``."""
    for tool in known:
        if tool.name == name:
            return tool
    raise CallboardError("tool-unknown", f"{server} has no tool {name}.", fix=f"See `callboard tools {server}`.")


async def settled(client: EngineClient, server: ServerView, action: str, patience: float) -> ServerView:
    """Wait until a server has become what ``action`` makes of it, or cannot; at most ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while not _is_settled(server, action) and time.monotonic() < deadline:
        await asyncio.sleep(_POLL)
        server = await client.server(server.name)
    return server


def signature(tool: ToolView) -> str:
    """A tool's arguments in short: required ones first, the others in brackets."""
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    names = list(schema.get("properties") or {})
    required = [name for name in names if name in (schema.get("required") or [])]
    return " ".join([*required, *(f"[{name}]" for name in names if name not in required)])


async def _act(client: EngineClient, options: Namespace, terminal: Terminal, action: str) -> int:
    began = [await client.act(name, action) for name in options.servers]
    servers = [await settled(client, server, action, options.timeout) for server in began]
    done = {"stop": _DOWN, "reset": _UP | _DOWN}.get(action, _UP)
    if options.json:
        terminal.json(servers)
    for server in servers:
        if server.state in done:
            if not options.json:
                offered = offer(server) if server.state in _UP else ""
                terminal.line(f"{server.name}: {server.state}" + (f", {offered}" if offered else ""))
        else:
            terminal.failure(_problem(server))
    return 0 if all(server.state in done for server in servers) else 1


def _is_settled(server: ServerView, action: str) -> bool:
    if server.state in _CHANGING:
        return False
    if action == "reset":
        return True
    if server.state is State.RESTARTING:
        return server.attempt > 0 and action != "stop"  # it crashed: the engine tries again, we have seen enough
    return server.state in _DOWN if action == "stop" else server.state is not State.STOPPED


def _problem(server: ServerView) -> CallboardError:
    reason = f" ({server.reason.rstrip('.')})" if server.reason else ""
    code = server.error_code or "server-not-ready"
    fix = server.fix or _WAY_UP.get(server.state, "See `callboard tail {name}`.").format(name=server.name)
    try:
        return CallboardError(code, f"{server.name} is {server.state}{reason}.", fix=fix)
    except KeyError:
        return CallboardError("server-not-ready", f"{server.name} is {server.state}{reason}.", fix=fix)


def _state(server: ServerView) -> Cell:
    return Cell(server.state.value, server.severity.value)


def _uptime(server: ServerView) -> str:
    return span(time.time() - server.ready_since) if server.ready_since is not None else ""


def _cpu(server: ServerView) -> str:
    return "" if server.cpu_percent is None else f"{server.cpu_percent:.0f} %"


def _memory(server: ServerView) -> str:
    return "" if server.memory_bytes is None else size(server.memory_bytes)


def _remark(server: ServerView) -> str:
    retry = f"next try {wait}" if (wait := _wait(server)) else ""
    return "; ".join(part for part in (server.reason.rstrip("."), retry) if part) if retry else server.reason


def _wait(server: ServerView) -> str:
    return "" if server.next_retry is None else f"in {span(max(0.0, server.next_retry - time.time()))}"


def _print_log(lines: list[LogLine], as_json: bool, terminal: Terminal) -> None:
    if as_json:
        for line in lines:
            terminal.json(line, indent=0)
    else:
        terminal.lines(f"--- {line.text} ---" if line.stream == "mark" else line.text for line in lines)


def _facts(server: ServerView, agent: str) -> list[tuple[str, str]]:
    retry = _wait(server)
    if retry and server.state is State.RESTARTING:
        retry += f" (attempt {server.attempt} of {server.max_attempts})"
    return [
        ("name", server.name if server.display_name in ("", server.name) else f"{server.name} ({server.display_name})"),
        ("description", server.description),
        ("state", f"{server.state}, since {clock(server.since)}"),
        ("uptime", _uptime(server)),
        ("reason", server.reason),
        ("fix", server.fix),
        ("kind", ", ".join(dict.fromkeys([server.kind, server.transport]))),
        ("agent", agent),
        ("starts", server.start + ("" if server.enabled else ", disabled")),
        ("command", " ".join(server.command)),
        ("folder", server.cwd),
        ("address", server.url),
        ("endpoint", server.endpoint),
        ("protocol", server.protocol),
        ("version", server.server_version),
        ("offers", offer(server)),
        ("health", _health(server)),
        ("pid", str(server.pid or "")),
        ("cpu", _cpu(server)),
        ("memory", _memory(server)),
        ("restarts", f"{server.restarts}, {server.restarts_today} of them today" if server.restarts else ""),
        ("next try", retry),
        ("last exit", _last_exit(server)),
    ]


def offer(server: ServerView) -> str:
    """What a server offers, in numbers."""
    counts = ((server.tools, "tool"), (server.resources, "resource"), (server.prompts, "prompt"))
    text = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count)
    return f"{text} (when it last ran)" if text and server.cached and server.state not in _UP else text


def _health(server: ServerView) -> str:
    found = server.health
    return "" if found is None else f"{found.status}, {span(time.time() - found.at)} ago: {found.message}"


def _last_exit(server: ServerView) -> str:
    last = server.last_exit
    if last is None:
        return ""
    how = f"signal {last.signal}" if last.signal else f"status {last.code}"
    return "\n".join([f"{how}, {clock(last.at)}", *last.stderr[-10:]])


def _show_tool(server: str, tool: ToolView, terminal: Terminal) -> None:
    def text(value: Any) -> str:
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() if value else ""

    terminal.pairs(
        [
            ("tool", f"{server}.{tool.name}"),
            ("title", tool.title),
            ("problem", tool.problem),
            ("wire name", tool.wire_name),
            ("description", tool.description),
            ("annotations", text(tool.annotations)),
            ("input", text(tool.input_schema)),
            ("output", text(tool.output_schema)),
        ]
    )
