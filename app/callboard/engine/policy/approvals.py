"""What the person has allowed for good, for one client and one tool, prompt or resource; no secret.

An approval is for the program that the server runs, and of a tool for the tool as it was: if either becomes another
one, the person is asked again. It goes with its server.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, get_args

from callboard.core.errors import CallboardError
from callboard.core.policy_words import ItemKind
from callboard.engine.storage.agreement import Agreement
from callboard.system.safe_file import write_atomically

log = logging.getLogger(__name__)

Item = tuple[str, ItemKind, str, str]  # client, kind, server, the server's own name


@dataclass(frozen=True)
class Approval:
    """One answer "always". ``at`` in seconds since the epoch, ``mark`` is that of what was allowed."""

    client: str
    kind: ItemKind
    server: str
    name: str
    at: float
    mark: str

    @property
    def item(self) -> Item:
        """What it is for."""
        return (self.client, self.kind, self.server, self.name)


_Approvals = dict[Item, Approval]
_AGREED: Final = "approvals"  # what several engines call them


class Approvals:
    """All of them, kept in a file that a worker thread writes; engines that share a database keep them there instead.

    Engine loop only.
    """

    def __init__(self, path: Path | None, on_change: Callable[[], None] = lambda: None) -> None:
        """``path`` None: for this session only. A file that cannot be read is put aside: better to ask again.

        ``on_change`` hears that other ones hold.
        """
        self._path = path
        self._on_change = on_change
        self._agreement: Agreement | None = None
        self._approvals: _Approvals = {}
        self._lock = asyncio.Lock()
        if path is not None:
            self._approvals = {approval.item: approval for approval in _load(path)}

    def share(self, agreement: Agreement) -> None:
        """Agree with other engines; where they have none yet, those of this engine's file are taken."""
        self._agreement = agreement
        agreement.follow(_AGREED, _render(self._approvals), self._agreed)

    def _agreed(self, data: bytes) -> None:
        self._approvals = _by_item(data)
        self._on_change()

    def all(self) -> list[Approval]:
        """Every approval, oldest first."""
        return sorted(self._approvals.values(), key=lambda approval: approval.at)

    def holds(self, item: Item, mark: str) -> bool:
        """Whether the person has allowed this, and it still is what it was."""
        approval = self._approvals.get(item)
        return approval is not None and approval.mark == mark

    async def remember(self, item: Item, mark: str) -> None:
        """Allow for good. If it cannot be written, it holds for this session; raises ``approval-unsaved`` then."""
        approval = Approval(*item, at=time.time(), mark=mark)
        await self._change(lambda approvals: {**approvals, item: approval})

    async def revoke(self, client: str, server: str = "", name: str = "", kind: str = "") -> int:
        """Forget the approvals of a client, all or those that fit; returns how many they were."""

        def fits(item: Item) -> bool:
            asked = (client, kind, server, name)
            return item[0] == client and all(want in ("", have) for want, have in zip(asked, item, strict=True))

        count = sum(map(fits, self._approvals))
        if count:
            await self._change(lambda all_: {item: each for item, each in all_.items() if not fits(item)})
        return count

    async def forget_server(self, server: str) -> None:
        """The server is gone from the roster; raises as :meth:`remember`."""
        if any(item[2] == server for item in self._approvals):
            await self._change(lambda all_: {item: each for item, each in all_.items() if item[2] != server})

    async def _change(self, edit: Callable[[_Approvals], _Approvals]) -> None:
        self._approvals = edit(self._approvals)
        self._on_change()
        if self._agreement is not None:
            await self._agreement.change(_AGREED, lambda data: _render(edit(_by_item(data or b""))))
        elif self._path is not None:
            async with self._lock:  # one after the other, the newest state last
                try:
                    await asyncio.to_thread(write_atomically, self._path, _render(self._approvals))
                except OSError as error:
                    why = f"{self._path} cannot be written ({error.strerror}): the answer holds for this session only."
                    raise CallboardError("approval-unsaved", why) from error


def mark_of(program: str, definition: bytes | None) -> str:
    """What tells a server's program, and a definition of a tool (None: there is none), from others: a digest."""
    whole = hashlib.sha256(program.encode("utf-8", "surrogatepass"))
    whole.update(b"\0" + (definition or b""))
    return whole.hexdigest()[:32]


def _load(path: Path) -> list[Approval]:
    try:
        return _parse(path.read_bytes())
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError):
        kept = path.with_suffix(".broken")
        log.warning("%s is damaged: what was allowed for good is asked again. It is kept as %s.", path, kept)
        path.replace(kept)
    except OSError as error:
        log.warning("%s cannot be read (%s): what was allowed for good is asked again.", path, error.strerror)
    return []


def _render(approvals: _Approvals) -> bytes:
    return json.dumps({"version": 1, "approvals": [asdict(each) for each in approvals.values()]}, indent=1).encode()


def _parse(data: bytes) -> list[Approval]:
    return [_approval(each) for each in json.loads(data)["approvals"]]


def _by_item(data: bytes) -> _Approvals:
    return {approval.item: approval for approval in _parse(data)} if data else {}


def _approval(found: dict[str, Any]) -> Approval:
    if found["kind"] not in get_args(ItemKind):
        raise ValueError(found["kind"])
    texts = {key: str(found[key]) for key in ("client", "server", "name", "mark")}
    return Approval(kind=found["kind"], at=float(found["at"]), **texts)
