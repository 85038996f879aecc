"""What the person has allowed for good, for one client and one tool, prompt or resource; no secret.

An approval of a tool is for the tool as it was: if its server changes its definition, the person is asked again.
"""

import asyncio
import hashlib
import json
import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from callboard.core.errors import CallboardError
from callboard.core.policy_shapes import ItemKind
from callboard.system.safe_file import write_atomically

log = logging.getLogger(__name__)

Item = tuple[str, ItemKind, str, str]  # client, kind, server, the server's own name


@dataclass(frozen=True)
class Approval:
    """One answer "always". ``at`` in seconds since the epoch, ``definition`` a digest of the tool as it was."""

    client: str
    kind: ItemKind
    server: str
    name: str
    at: float
    definition: str

    @property
    def item(self) -> Item:
        """What it is for."""
        return (self.client, self.kind, self.server, self.name)


class Approvals:
    """All of them, kept in a file. Engine loop only; the file is written in a worker thread."""

    def __init__(self, path: Path | None) -> None:
        """``path`` None: for this session only. A file that cannot be read is put aside: better to ask again."""
        self._path = path
        self._approvals: dict[Item, Approval] = {}
        self._lock = asyncio.Lock()
        if path is not None:
            self._approvals = {approval.item: approval for approval in _load(path)}

    def all(self) -> list[Approval]:
        """Every approval, oldest first."""
        return sorted(self._approvals.values(), key=lambda approval: approval.at)

    def holds(self, item: Item, definition: bytes | None) -> bool:
        """Whether the person has allowed this, and the tool still is what it was."""
        approval = self._approvals.get(item)
        return approval is not None and approval.definition == digest(definition)

    async def remember(self, item: Item, definition: bytes | None) -> None:
        """Allow for good. If it cannot be written, it holds for this session."""
        self._approvals[item] = Approval(*item, at=time.time(), definition=digest(definition))
        await self._save()

    async def revoke(self, client: str, server: str = "", name: str = "", kind: str = "") -> int:
        """Forget the approvals of a client, all or those that fit; returns how many they were."""
        gone = [
            item
            for item in self._approvals
            if item[0] == client and kind in ("", item[1]) and server in ("", item[2]) and name in ("", item[3])
        ]
        for item in gone:
            del self._approvals[item]
        if gone:
            await self._save()
        return len(gone)

    async def _save(self) -> None:
        if self._path is None:
            return
        async with self._lock:  # one after the other, the newest state last
            text = json.dumps({"version": 1, "approvals": [asdict(approval) for approval in self.all()]}, indent=1)
            try:
                await asyncio.to_thread(write_atomically, self._path, text.encode())
            except OSError as error:
                reason = f"{self._path} cannot be written ({error.strerror}): the answer holds for this session only."
                raise CallboardError("approval-unsaved", reason) from error


def digest(definition: bytes | None) -> str:
    """What tells one definition of a tool from another; "" for what has none."""
    return hashlib.sha256(definition).hexdigest()[:32] if definition is not None else ""


def _load(path: Path) -> list[Approval]:
    try:
        return [_approval(each) for each in json.loads(path.read_text(encoding="utf-8"))["approvals"]]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError):
        kept = path.with_suffix(".broken")
        log.warning("%s is damaged: what was allowed for good is asked again. It is kept as %s.", path, kept)
        path.replace(kept)
    except OSError as error:
        log.warning("%s cannot be read (%s): what was allowed for good is asked again.", path, error.strerror)
    return []


def _approval(found: dict[str, Any]) -> Approval:
    if found["kind"] not in get_args(ItemKind):
        raise ValueError(found["kind"])
    texts = {key: str(found[key]) for key in ("client", "server", "name", "definition")}
    return Approval(kind=found["kind"], at=float(found["at"]), **texts)
