"""The command add: from the catalogue of shipped servers into the roster."""

from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from callboard.api.client import EngineClient
from callboard.api.schema import EntryEdit, NeedView, ShippedView
from callboard.commands import asking
from callboard.commands.arguments import UsageError
from callboard.commands.servers import settled
from callboard.commands.terminal import Cell, Terminal
from callboard.core.errors import CallboardError
from callboard.core.health import Severity

_PATIENCE: Final = 60.0  # seconds for the new server to start


async def add(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Put a server of the catalogue into the roster; without a name, list the catalogue."""
    catalogue = await client.shipped()
    if not options.name:
        _list(catalogue, options, terminal)
        return 0
    shipped = next((each for each in catalogue if each.name == options.name), None)
    if shipped is None:
        raise CallboardError("shipped-unknown", f'There is no server "{options.name}" in the catalogue.')
    lacks = [need for need in shipped.needs if need.state == "missing"]
    if lacks and not options.disabled:
        for need in lacks:
            terminal.error(f"{shipped.display_name}: {need.message}", need.fix)
        terminal.note(f"Then try again; `callboard add {shipped.name} --disabled` adds it for later.")
        return 1
    entry, secrets = _entry(shipped, options, terminal)
    name = options.new_name or shipped.name
    await save_new(client, name, EntryEdit(entry=entry, secrets=secrets, create=True))
    return await tell_state(client, name, "added", options, terminal)


def _list(catalogue: list[ShippedView], options: Namespace, terminal: Terminal) -> None:
    if options.json:
        terminal.json(catalogue)
        return
    rows = [(each.name, _remark(each), each.description) for each in catalogue]
    terminal.table(("NAME", "STATE", "DESCRIPTION"), rows)
    for each in catalogue:
        for need in each.needs:
            if need.state != "met":
                terminal.line(f"{each.name}: {need.message} {need.fix}")


def _remark(shipped: ShippedView) -> Cell:
    if shipped.added:
        return Cell("added", "fine")
    if not shipped.can_run:
        return Cell("cannot run yet", "attention")
    return Cell("needs an answer" if any(need.state == "asked" for need in shipped.needs) else "ready", "off")


def _entry(shipped: ShippedView, options: Namespace, terminal: Terminal) -> tuple[dict[str, Any], dict[str, str]]:
    """The entry with what the person gives, and the values of secrets that were typed."""
    entry = dict(shipped.entry)
    secrets: dict[str, str] = {}
    takes_folders = any(need.kind == "folders" for need in shipped.needs)
    wanted = [need for need in shipped.needs if need.kind == "secret"]
    if options.folder and not takes_folders:
        raise UsageError(f"{shipped.name} takes no folders.")
    if options.secret_stdin and not wanted:
        raise UsageError(f"{shipped.name} takes no secret.")
    if takes_folders:
        entry["args"] = [*entry.get("args", []), *_folders(shipped, options.folder)]
    for need in wanted:
        value = _secret(need, options, terminal)
        if value:
            secrets[need.name] = value
        if value or need.state == "met":
            entry |= need.fields
    if options.disabled:
        entry["enabled"] = False
    return entry, secrets


def _folders(shipped: ShippedView, given: list[str]) -> list[str]:
    if not given and asking.is_there():
        answer = asking.ask("Folder that may be read: ", hidden=False)
        given = [answer] if answer else []
    if not given:
        raise UsageError(f"{shipped.name} needs --folder PATH; repeat it for several.")
    folders = [Path(text).expanduser().absolute() for text in given]
    for folder in folders:
        if not folder.is_dir():
            raise CallboardError("bad-request", f"{folder} is not a folder.", fix="Name folders that are there.")
    return [str(folder).replace("${", "$${") for folder in folders]


def _secret(need: NeedView, options: Namespace, terminal: Terminal) -> str:
    if options.secret_stdin:
        return asking.read_stdin()
    if need.state == "met" or options.disabled:
        return ""
    if not asking.is_there():
        if need.state == "optional":
            return ""
        raise UsageError(f"{need.message.rstrip('.')}: give it with --secret-stdin. {need.fix}")
    terminal.note(f"{need.message} {need.fix}")
    return asking.ask(f"{need.title[:1].upper()}{need.title[1:]} (Enter to go on without): ", hidden=True)


async def save_new(client: EngineClient, name: str, edit: EntryEdit) -> None:
    """Put a new entry into the roster; raises ``name-taken`` with what the command line can do about it."""
    try:
        await client.save_entry(name, edit)
    except CallboardError as error:
        if error.code == "name-taken":
            error.fix = f"Give it another name: --as {name}-2. Or take the other one out: `callboard remove {name}`."
        raise


async def tell_state(client: EngineClient, name: str, done: str, options: Namespace, terminal: Terminal) -> int:
    """What has become of a server that was just ``done`` ("added", "enabled")."""
    server = await client.server(name)
    if server.enabled and server.start == "at-launch":
        server = await settled(client, server, "start", _PATIENCE)
    if options.json:
        terminal.json(server)
    else:
        terminal.line(f"{name}: {done}; {server.state}" + (f": {server.reason}" if server.reason else ""))
    return 1 if server.severity is Severity.FAILED else 0
