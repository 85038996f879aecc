"""The conversations of one server: whose each is, one call at a time in each, and bounds on all of them."""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from callboard.agents.keeper import AnyLink
from callboard.agents.link import AgentError
from callboard.agents.settings import Limits
from callboard.agents.stores import ChangedError, Record, Store, StoreError
from callboard.agents.turns import Turns

log = logging.getLogger(__name__)

_PREFIX: Final = "c_"
_RECALL_SECONDS: Final = 10.0  # an agent that blocks its worker's loop does not answer


class ConversationError(Exception):
    """A conversation that cannot be used for this call; the message is for the caller."""


@dataclass(frozen=True)
class Caller:
    """Who calls. ``client`` owns conversations; ``key`` names the one that is meant where none is named.

    ``key`` is None for a caller that cannot be recognised in its next call: it gets a new conversation each time.
    """

    client: str
    key: str | None = None


@dataclass
class Held:
    """A conversation during a call."""

    record: Record
    is_new: bool
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    link: AnyLink | None = None  # the worker that has it open
    has_turn: bool = False  # among the engines that share the store
    saving: "asyncio.Task[None] | None" = None

    @property
    def is_busy(self) -> bool:
        """True while a call is in it, or waits."""
        return self.lock.locked() or self.waiting > 0


class Conversations:
    """All conversations of one agent. One event loop; :meth:`close` it."""

    def __init__(self, agent: str, limits: Limits, store: Store | None, *, keeps_state: bool = True) -> None:
        """``keeps_state``: workers tell the state of a conversation with each answer."""
        self._agent = agent
        self._limits = limits
        self._store = store
        self._turns = Turns(store, limits.wait) if store is not None else None
        self._keeps_state = keeps_state
        self._held: OrderedDict[str, Held] = OrderedDict()  # the one used last stands last
        self._defaults: dict[tuple[str, str], str] = {}
        self._swept = 0.0
        self._chores: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._held)

    def of(self, client: str) -> list[dict[str, Any]]:
        """A client's conversations: id, turns and when each was used last (seconds since 1970), the newest first."""
        mine = [held.record for held in self._held.values() if held.record.client == client]
        return [{"id": each.id, "turns": each.turns, "used": round(each.used)} for each in reversed(mine)]

    def all(self) -> list[dict[str, Any]]:
        """Every client's, as :meth:`of` tells them, with the client, and whether a call is in it or waits."""
        return [
            {
                "id": held.record.id,
                "agent": self._agent,
                "client": held.record.client,
                "turns": held.record.turns,
                "used": held.record.used,
                "busy": held.is_busy,
            }
            for held in reversed(self._held.values())
        ]

    async def stored(self) -> int:
        """How many are kept beyond the life of this process."""
        return 0 if self._store is None else await asyncio.to_thread(self._store.count, self._agent)

    async def take(self, handle: str | None, caller: Caller) -> Held:
        """The conversation for a call, once it is this call's turn; every ``take`` needs one :meth:`give_back`.

        Raises ConversationError for a handle that is not this client's, one that is over, a queue that is full and a
        turn that did not come, and StoreError.
        """
        self._sweep()
        held = await self._find(handle, caller)
        if held.is_busy and self._limits.queue and held.waiting >= self._limits.queue:
            raise ConversationError(f"conversation {held.record.id} is busy: {held.waiting} calls wait already")
        held.waiting += 1
        try:
            await held.lock.acquire()
        finally:
            held.waiting -= 1
        try:
            await self._take_turn(held)
            await self._refresh(held)
            self._check(held, handle)
        except BaseException:
            self.release(held)
            raise
        held.record.used = time.time()
        self._held[held.record.id] = held
        self._held.move_to_end(held.record.id)
        self._evict()
        return held

    def opened_on(self, held: Held, link: AnyLink) -> None:
        """Open the conversation in the worker, unless it has it already."""
        if held.link is link:
            return
        held.link = link
        record = held.record
        link.tell(
            {
                "type": "open",
                "conversation": record.id,
                "client": record.client,
                "turn": record.turns,
                "state": record.state or None,
            }
        )
        if not self._keeps_state:
            record.state = {}  # from now on only the worker knows it

    def must_restart(self, held: Held, link: AnyLink) -> bool:
        """True where a worker ended with what was said in the conversation, and nothing was stored of it."""
        return held.link is not None and held.link is not link and not held.record.state and held.record.turns > 0

    def restart(self, held: Held, *, named: bool) -> None:
        """Begin it anew where it was meant by default; raises ConversationError where the caller named it."""
        if named:
            self._drop(held.record.id)
            raise ConversationError(f"conversation {held.record.id} ended with the agent's process; begin a new one")
        held.record.turns = 0
        held.record.size = 0

    def give_back(self, held: Held, size: int, state: dict[str, Any] | None) -> None:
        """The worker is done with the call, which held ``size`` bytes of request and answer."""
        record = held.record
        record.turns += 1
        record.size += size
        record.used = time.time()
        held.is_new = False
        if state is not None:
            record.state = state
            if not self._keeps_state:  # the worker is being replaced
                held.link = None
        if self._store is None:
            held.lock.release()
            return
        record.version += 1
        held.saving = self._chore(self._save(held, self._store))

    async def saved(self, held: Held) -> None:
        """Return once the last turn is stored, so that nobody hears of a conversation that cannot be found."""
        if held.saving is not None:
            await asyncio.wait([held.saving])

    def release(self, held: Held) -> None:
        """The call was not made."""
        if held.has_turn:
            self._chore(self._end_turn(held))
        else:
            held.lock.release()

    async def close(self) -> None:
        """Wait for what is being stored."""
        if self._chores:
            await asyncio.wait(self._chores)
        if self._turns is not None:
            await self._turns.close()

    # reloading

    async def recall(self, link: AnyLink) -> None:
        """Fetch from a worker that is to be replaced what only it knows; what runs now brings it with its answer."""
        link.tell({"type": "remember"})
        for held in list(self._held.values()):
            if held.link is link and not held.is_busy and not self._keeps_state:
                async with held.lock:
                    await self._recall(held, link)

    async def _recall(self, held: Held, link: AnyLink) -> None:
        with contextlib.suppress(AgentError, TimeoutError):
            async with asyncio.timeout(_RECALL_SECONDS):
                _, answering = link.begin({"type": "recall", "conversation": held.record.id}, None)
                outcome = await answering
            if outcome.state is not None:
                held.record.state = outcome.state
                held.link = None

    # the turn of one engine among several

    async def _take_turn(self, held: Held) -> None:
        if self._turns is None or not held.record.version:
            return  # nobody else can know of it
        if not await self._turns.take(held.record.id):
            raise ConversationError(f"conversation {held.record.id} is busy in another engine; try again later")
        held.has_turn = True

    async def _end_turn(self, held: Held) -> None:
        """Let the next engine have it, and then the next call here."""
        assert self._turns is not None
        try:
            if held.has_turn:
                await self._turns.give(held.record.id)
        except StoreError as error:
            log.warning("The turn in conversation %s was not given back: %s.", held.record.id, error)
        finally:
            held.has_turn = False
            held.lock.release()

    # which one

    async def _find(self, handle: str | None, caller: Caller) -> Held:
        if handle:
            held = self._held.get(handle) or await self._stored(lambda store: store.load(handle))
            if held is None or held.record.client != caller.client or held.record.agent != self._agent:
                raise ConversationError(f"there is no conversation {handle}; leave it out to begin one")
            return held
        if caller.key is None:
            return self._new(caller, "")
        known = self._defaults.get((caller.client, caller.key))
        found = self._held.get(known) if known else None
        key = caller.key
        if found is None:
            found = await self._stored(lambda store: store.default(self._agent, caller.client, key))
        if found is None or self._is_over(found.record):
            found = self._new(caller, key)
        self._defaults[caller.client, key] = found.record.id
        return found

    def _new(self, caller: Caller, key: str) -> Held:
        id_ = _PREFIX + secrets.token_urlsafe(16)
        held = Held(Record(id_, self._agent, caller.client, key), is_new=True)
        self._held[id_] = held
        return held

    async def _stored(self, find: Callable[[Store], Record | None]) -> Held | None:
        store = self._store
        if store is None:
            return None
        record = await asyncio.to_thread(find, store)
        if record is None:
            return None
        # while the thread looked, another call may have found the same one
        return self._held.setdefault(record.id, Held(record, is_new=False))

    async def _refresh(self, held: Held) -> None:
        """Take over what another engine stored of the conversation meanwhile."""
        store, record = self._store, held.record
        if store is None or not record.version:
            return
        stored = await asyncio.to_thread(store.load, record.id)
        if stored is not None and stored.version > record.version:
            held.record = stored
            if held.link is not None:
                held.link.tell({"type": "close", "conversation": record.id})
                held.link = None

    def _check(self, held: Held, handle: str | None) -> None:
        if held.record.id not in self._held and handle and self._store is None:
            raise ConversationError(f"there is no conversation {handle}; leave it out to begin one")
        if self._is_over(held.record):
            limits = self._limits
            raise ConversationError(
                f"conversation {held.record.id} has reached its limit ({limits.turns} turns, "
                f"{limits.conversation_kb} KiB); begin a new one"
            )

    def _is_over(self, record: Record) -> bool:
        limits = self._limits
        too_long = bool(limits.turns) and record.turns >= limits.turns
        return too_long or (bool(limits.conversation_kb) and record.size >= limits.conversation_kb * 1024)

    # bounds

    def _sweep(self) -> None:
        """Close what has been idle for too long."""
        now = time.time()
        limits = self._limits
        if limits.idle:
            for id_, held in list(self._held.items()):
                if now - held.record.used < limits.idle:
                    break
                if not held.is_busy:
                    self._drop(id_)
        if self._store is not None and now - self._swept > 60:
            self._swept = now
            since = now - limits.idle if limits.idle else 0.0
            self._chore(self._sweep_store(self._store, since))

    def _evict(self) -> None:
        limit = self._limits.conversations
        for id_, held in list(self._held.items()):
            if not limit or len(self._held) <= limit:
                return
            if not held.is_busy:
                self._drop(id_)

    def _drop(self, id_: str) -> None:
        held = self._held.pop(id_)
        record = held.record
        if self._defaults.get((record.client, record.key)) == id_:
            del self._defaults[record.client, record.key]
        if held.link is not None:
            held.link.tell({"type": "close", "conversation": id_})

    # storing

    async def _save(self, held: Held, store: Store) -> None:
        try:
            await asyncio.to_thread(store.save, held.record)
        except ChangedError:
            log.warning("Two engines had a turn in conversation %s at once: the first one counts.", held.record.id)
            held.record.version -= 1  # so that the next call takes over what the other one stored
        except StoreError as error:
            log.error("Conversation %s is kept in memory only: %s.", held.record.id, error)
            held.record.version -= 1
        finally:
            await self._end_turn(held)

    async def _sweep_store(self, store: Store, since: float) -> None:
        try:
            await asyncio.to_thread(store.sweep, self._agent, since, self._limits.conversations)
        except StoreError as error:
            log.warning("Old conversations stay: %s.", error)

    def _chore(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        return task
