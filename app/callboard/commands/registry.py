"""The commands of registries: registry search, registry show, and add for what they and bundles offer."""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from callboard.api.client import EngineClient
from callboard.api.registry_schema import BundleRequest, OfferPage, OfferView
from callboard.api.schema import EntryEdit, NeedView
from callboard.commands import asking
from callboard.commands.arguments import UsageError
from callboard.commands.shipped import save_new, tell_state
from callboard.commands.terminal import Cell, Terminal
from callboard.core.errors import CallboardError
from callboard.core.registry import Input, Way
from callboard.core.registry_fill import Filling, command_line, fill

BUNDLE_ENDINGS: Final = (".mcpb", ".dxt")
_MOST_PAGES: Final = 20


async def search(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """List what a registry offers."""
    page = await client.search_registry(" ".join(options.words), source=_source(options.source))
    offers, pages = page.offers, 1
    while page.cursor and (options.all and pages < _MOST_PAGES):
        page = await client.search_registry(" ".join(options.words), source=page.source, cursor=page.cursor)
        offers, pages = [*offers, *page.offers], pages + 1
    if options.json:
        terminal.json(OfferPage(offers=offers, cursor=page.cursor, source=page.source))
    elif not offers:
        terminal.note(f"Nothing was found in {page.source}.")
        return 1
    else:
        rows = [(each.offer.name, each.offer.version, _summary(each), each.offer.description) for each in offers]
        terminal.table(("NAME", "VERSION", "NEEDS", "DESCRIPTION"), rows)
        if page.cursor:
            terminal.note("There are more: use other words, or --all.")
    return 0


async def show(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """All about one server of a registry, and what it would be set up as."""
    found = await client.find_offer(options.name, source=_source(options.source))
    if options.json:
        terminal.json(found)
        return 0
    offer = found.offer
    terminal.pairs(
        [
            ("name", offer.name),
            ("title", offer.title),
            ("version", offer.version),
            ("status", "" if offer.status == "active" else f"{offer.status} {offer.status_message}".strip()),
            ("description", offer.description),
            ("website", offer.website),
            ("source", offer.repository),
        ]
    )
    for number, (way, needs) in enumerate(zip(offer.ways, found.needs, strict=True), 1):
        terminal.line(f"\n{number}. {way.title}")
        for line in _about(way, needs):
            terminal.line(f"   {line}")
    return 0


async def add_offer(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Put a server of a registry into the roster."""
    found = await client.find_offer(options.name, source=_source(options.source))
    way, needs = _chosen(found, options.way)
    if found.offer.status != "active":
        terminal.note(f"{found.offer.name} is {found.offer.status}. {found.offer.status_message}".strip())
    for remark in way.remarks:
        terminal.note(remark)
    if way.bundle is not None:
        request = BundleRequest(url=way.bundle.url, sha256=way.bundle.sha256)
        return await _add_bundle(client, request, options, terminal)
    return await _add(client, options.new_name or found.offer.short_name, way, needs, options, terminal)


async def add_bundle(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Put the server of a bundle's file into the roster."""
    return await _add_bundle(client, BundleRequest(path=_full_path(options.name)), options, terminal)


async def _add_bundle(client: EngineClient, request: BundleRequest, options: Namespace, terminal: Terminal) -> int:
    bundle = await client.open_bundle(request)
    try:
        by = f" by {bundle.author}" if bundle.author else ""
        terminal.note(f"{bundle.title} {bundle.version}{by}: {bundle.description}")
        name = options.new_name or bundle.id.rpartition("-")[0]
        return await _add(client, name, bundle.way, bundle.needs, options, terminal)
    finally:
        await client.release_bundle(bundle.id)


async def _add(
    client: EngineClient, name: str, way: Way, needs: list[NeedView], options: Namespace, terminal: Terminal
) -> int:
    if way.problem:
        raise CallboardError("needs-missing", way.problem, fix="Choose another way with --way, or another server.")
    lacks = [need for need in needs if need.state == "missing"]
    if lacks and not options.disabled:
        for need in lacks:
            terminal.error(f"{name}: {need.message}", need.fix)
        terminal.note("Then try again; with --disabled it is added for later.")
        return 1
    taken = {secret.name for secret in (await client.secrets()).secrets}
    filling = fill(way, name, _answers(way, options, terminal), taken)
    _check(way, filling, disabled=options.disabled)
    entry = {**filling.entry, "enabled": False} if options.disabled else filling.entry
    terminal.note(f"{name} is going to {'reach' if way.kind == 'remote' else 'run'}: {command_line(entry)}")
    if not options.yes and not asking.agrees("Add it? [y/N] ", "added"):
        terminal.note("Nothing was added.")
        return 1
    await save_new(client, name, EntryEdit(entry=entry, secrets=filling.secrets, create=True))
    return await tell_state(client, name, "added", options, terminal)


def _source(text: str | None) -> str:
    """A source as the engine takes it: an address, or a full path."""
    if not text or text.startswith(("http://", "https://")):
        return text or ""
    return _full_path(text)


def _full_path(text: str) -> str:
    return str(Path(text).expanduser().absolute())


def _chosen(found: OfferView, number: int | None) -> tuple[Way, list[NeedView]]:
    """The way of that number, else the first that can be gone here, else the first that is whole."""
    ways = list(zip(found.offer.ways, found.needs, strict=True))
    if number is not None:
        if not 0 < number <= len(ways):
            raise UsageError(f"{found.offer.name} can be set up in {len(ways)} ways; --way is the number of one.")
        return ways[number - 1]
    whole = [each for each in ways if not each[0].problem]
    ready = [each for each in whole if all(need.state != "missing" for need in each[1])]
    if not ways:
        raise CallboardError("registry-unknown", f"The registry does not say how {found.offer.name} is set up.")
    return (ready or whole or ways)[0]


def _answers(way: Way, options: Namespace, terminal: Terminal) -> dict[str, list[str]]:
    inputs = {each.key: each for each in way.inputs}
    answers: dict[str, list[str]] = {}
    for pair in options.set:
        key, equals, text = pair.partition("=")
        if not equals or key not in inputs:
            raise UsageError(f"--set takes KEY=VALUE; the keys are {', '.join(inputs) or 'none'}, not {key}.")
        answers.setdefault(key, []).append(text)
    if options.secret_stdin:
        answers.update(_secrets([each for each in way.inputs if each.secret and each.key not in answers]))
    for each in way.inputs:
        if each.required and not each.default and each.key not in answers and not options.disabled:
            answers[each.key] = _asked(each, terminal)
    return {key: texts for key, texts in answers.items() if any(texts)}


def _secrets(wanted: list[Input]) -> dict[str, list[str]]:
    """Standard input: the value of the only secret, or KEY=VALUE on each line."""
    text = asking.read_stdin()
    keys = {each.key for each in wanted}
    if not wanted:
        raise UsageError("It takes no secret.")
    if len(wanted) == 1 and not text.startswith(f"{wanted[0].key}="):
        return {wanted[0].key: [text]}
    pairs = [line.partition("=") for line in text.splitlines() if line.strip()]
    if not all(key in keys for key, _, _ in pairs):
        raise UsageError(f"--secret-stdin takes lines of KEY=VALUE; the keys are {', '.join(sorted(keys))}.")
    return {key: [value] for key, _, value in pairs}


def _asked(wanted: Input, terminal: Terminal) -> list[str]:
    if not asking.is_there():
        return []
    if wanted.description:
        terminal.note(f"{wanted.title}: {wanted.description}")
    if wanted.choices:
        terminal.note(f"One of: {', '.join(wanted.choices)}")
    return [asking.ask(f"{wanted.title}: ", hidden=wanted.secret)]


def _check(way: Way, filling: Filling, *, disabled: bool) -> None:
    titles = {each.key: each.title for each in way.inputs}
    for key, wrong in filling.wrong.items():
        raise UsageError(f"{titles[key]}: {wrong}")
    if filling.open and not disabled:
        ways = ["--secret-stdin" if need.input.secret else f"--set {need.input.key}=VALUE" for need in filling.open]
        raise UsageError(f"{filling.open[0].message} Give what is missing: {', '.join(dict.fromkeys(ways))}.")


def _summary(found: OfferView) -> Cell | str:
    """What the ways of an offer need, in a few words."""
    if found.offer.status != "active":
        return Cell(found.offer.status, "attention")
    shorts = list(dict.fromkeys(way.short for way in found.offer.ways if not way.problem))
    if not shorts:
        return Cell("cannot be set up", "off")
    asked = sum(each.required for each in found.offer.ways[0].inputs)
    return " or ".join(shorts) + (f", {asked} answer{'' if asked == 1 else 's'}" if asked else "")


def _about(way: Way, needs: list[NeedView]) -> Iterator[str]:
    if way.problem:
        yield way.problem
    elif way.bundle is None:
        yield command_line(fill(way, "NAME", {}).entry)
    yield from way.remarks
    yield from (f"{need.message} {need.fix}".strip() for need in needs if need.state == "missing")
    for each in way.inputs:
        said = [each.description, f"one of {', '.join(each.choices)}" if each.choices else ""]
        said += [f"default {' '.join(each.default)}" if each.default and not each.secret else ""]
        kind = "secret" if each.secret else each.kind
        words = "; ".join(filter(None, said))
        yield f"{each.key} ({'needed' if each.required else 'optional'}, {kind})" + (f": {words}" if words else "")
