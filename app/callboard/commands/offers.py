"""Commands about what servers offer beside tools: resources and prompts, listed and used."""

import asyncio
import base64
import binascii
from argparse import Namespace
from pathlib import Path
from typing import Any

from callboard.api.client import EngineClient
from callboard.api.offer_schema import PromptView, ResourceView, Result
from callboard.commands.arguments import UsageError, text_arguments
from callboard.commands.servers import awake, offered
from callboard.commands.terminal import Terminal, size
from callboard.core.errors import CallboardError
from callboard.core.uri_template import expand, variables


async def resources(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """The resources of one server or of all; with a URI, what stands in it."""
    if options.uri is not None:
        return await _read(client, options, terminal)
    if options.arg or options.output:
        raise UsageError("--arg and --output go with the URI of a resource.")
    if options.server:
        found = {options.server: await offered(client, options.server, client.resources)}
    else:
        found = {each.name: await client.resources(each.name) for each in await client.servers() if each.enabled}
    if options.json:
        terminal.json(found[options.server] if options.server else found)
        return 0
    rows = [(server, each.uri, _kind(each), _about(each)) for server, known in found.items() for each in known]
    if rows:
        terminal.table(("SERVER", "URI", "TYPE", "DESCRIPTION"), rows)
    else:
        terminal.note("No resources are known.")
    return 0


async def prompts(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """The prompts of one server or of all; with SERVER.PROMPT, its messages."""
    server, dot, name = (options.name or "").partition(".")
    if dot:
        return await _get(client, server, name, options, terminal)
    if options.arg:
        raise UsageError("--arg goes with SERVER.PROMPT.")
    if server:
        found = {server: await offered(client, server, client.prompts)}
    else:
        found = {each.name: await client.prompts(each.name) for each in await client.servers() if each.enabled}
    if options.json:
        terminal.json(found[server] if server else found)
        return 0
    rows = [
        (f"{owner}.{each.name}", _signature(each), each.description or each.title)
        for owner, known in found.items()
        for each in known
    ]
    if rows:
        terminal.table(("PROMPT", "ARGUMENTS", "DESCRIPTION"), rows)
    else:
        terminal.note("No prompts are known.")
    return 0


async def _read(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    values = text_arguments(options.arg)
    wanted = set(variables(options.uri))
    if unknown := values.keys() - wanted:
        raise UsageError(f"The URI has no variable {', '.join(sorted(unknown))}.")
    await awake(client, options.server)
    uri = expand(options.uri, values) if values else options.uri
    result = await client.read_resource(options.server, uri)
    contents = [each for each in result.get("contents") or [] if isinstance(each, dict)]
    if options.output:
        await asyncio.to_thread(_save, contents, options.output, terminal)
    elif options.json:
        terminal.json(result)
    else:
        for each in contents:
            if isinstance(each.get("text"), str):
                terminal.raw(each["text"])
            else:
                terminal.json(each)
    return 0


def _save(contents: list[dict[str, Any]], place: str, terminal: Terminal) -> None:
    """Write what was read into a file, as it is."""
    try:
        data = b"".join(_bytes(each) for each in contents)
        Path(place).write_bytes(data)
    except (OSError, binascii.Error) as error:
        raise CallboardError("bad-request", f"{place} was not written: {error}.", fix="Name another file.") from error
    terminal.note(f"Wrote {size(len(data))} to {place}.")


def _bytes(content: dict[str, Any]) -> bytes:
    if isinstance(text := content.get("text"), str):
        return text.encode()
    blob = content.get("blob")
    return base64.b64decode(blob, validate=True) if isinstance(blob, str) else b""


async def _get(client: EngineClient, server: str, name: str, options: Namespace, terminal: Terminal) -> int:
    known = {each.name: each for each in await offered(client, server, client.prompts)}
    if name not in known:
        fix = f"See `callboard prompts {server}`."
        raise CallboardError("prompt-unknown", f"{server} has no prompt {name}.", fix=fix)
    values = text_arguments(options.arg)
    missing = [each.name for each in known[name].arguments if each.required and each.name not in values]
    if missing:
        raise UsageError(f"{options.name} needs --arg {missing[0]}=VALUE.")
    result = await client.get_prompt(server, name, values)
    if options.json:
        terminal.json(result)
    else:
        _print_messages(result, terminal)
    return 0


def _print_messages(result: Result, terminal: Terminal) -> None:
    messages = [each for each in result.get("messages") or [] if isinstance(each, dict)]
    for each in messages:
        content = each.get("content")
        terminal.line(f"--- {each.get('role', '?')} ---")
        if isinstance(content, dict) and isinstance(content.get("text"), str):
            terminal.raw(content["text"])
        else:
            terminal.json(content)


def _kind(each: ResourceView) -> str:
    return ", ".join(part for part in ("template" if each.template else "", each.mime_type) if part)


def _about(each: ResourceView) -> str:
    return each.description or each.title or each.name


def _signature(each: PromptView) -> str:
    return " ".join(argument.name if argument.required else f"[{argument.name}]" for argument in each.arguments)
