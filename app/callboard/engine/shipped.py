"""The shipped servers on this machine: a look at what each needs, before anybody starts it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callboard.api.schema import Check, NeedView, ShippedView
from callboard.core.shipped import Finding, FoldersNeed, SecretNeed, Shipped, findings, load_catalogue
from callboard.engine.machine import Machine


class ShippedServers:
    """Engine loop only. The catalogue is read with the first question."""

    def __init__(self, catalogue: Path, machine: Machine) -> None:
        self._file = catalogue
        self._machine = machine
        self._catalogue: dict[str, Shipped] | None = None

    async def views(self, written: Mapping[str, Mapping[str, Any]]) -> list[ShippedView]:
        """The whole catalogue, in its order. ``written`` are the roster's entries as they stand there."""
        catalogue = await self._load()
        here = await self._machine.look([need for shipped in catalogue.values() for need in shipped.needs])
        return [_view(name, shipped, findings(shipped, here), written) for name, shipped in catalogue.items()]

    async def checks(self, name: str, entry: Mapping[str, Any]) -> list[Check]:
        """What this machine lacks for a server of the roster, if it is one of the catalogue's."""
        shipped = next((each for each in (await self._load()).values() if each.is_like(entry)), None)
        if shipped is None:
            return []
        here = await self._machine.look(shipped.needs)
        return [
            Check(name=name, status="warn", message=found.message, code="needs-missing", fix=found.fix)
            for found in findings(shipped, here, [str(text) for text in entry.get("args") or []])
            if found.state == "missing"
        ]

    async def _load(self) -> dict[str, Shipped]:
        if self._catalogue is None:
            self._catalogue = load_catalogue(await asyncio.to_thread(self._file.read_text, encoding="utf-8"))
        return self._catalogue


def _view(name: str, shipped: Shipped, found: list[Finding], written: Mapping[str, Mapping[str, Any]]) -> ShippedView:
    return ShippedView(
        name=name,
        display_name=shipped.title,
        description=shipped.description,
        kind="remote" if "url" in shipped.entry else "local",
        entry=shipped.entry,
        needs=[need_view(each) for each in found],
        can_run=all(each.state != "missing" for each in found),
        added=[server for server, entry in written.items() if shipped.is_like(entry)],
    )


def need_view(found: Finding) -> NeedView:
    """A finding as the API answers it."""
    need = found.need
    secret = need if isinstance(need, SecretNeed) else None
    return NeedView(
        kind=need.kind,
        name=secret.secret if secret else "",
        title=need.title if isinstance(need, SecretNeed | FoldersNeed) else "",
        state=found.state,
        message=found.message,
        fix=found.fix,
        link=need.link,
        fields=secret.fields if secret else {},
    )
