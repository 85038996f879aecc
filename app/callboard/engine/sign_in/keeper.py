"""Keeps the record of one sign-in in the secret store, without keeping anybody waiting for it."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from callboard.core.errors import CallboardError
from callboard.engine import tasks
from callboard.engine.sign_in.records import Record, decode, encode

log = logging.getLogger(__name__)

LAST_WORDS: Final = 1.0  # seconds that the end of the engine waits for the keyring


class Secrets(Protocol):
    """What a sign-in needs of the secret store."""

    @property
    def names(self) -> frozenset[str]:
        """Every name that has a value."""

    async def get_many(self, names: Iterable[str]) -> dict[str, str]:
        """The values that there are."""

    async def set(self, name: str, value: str) -> None:
        """Store a value."""

    async def delete(self, name: str) -> None:
        """Forget a value."""


class Keeper:
    """The record under one name. Engine loop only; ``learn`` hears of the secrets in it, to mask them."""

    def __init__(self, name: str, secrets: Secrets, learn: Callable[[str, list[str]], None]) -> None:
        self.name = name
        self.record = Record()
        self._secrets = secrets
        self._learn = learn
        self._loaded = False
        self._loading: asyncio.Task[CallboardError | None] | None = None
        self._saving: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Read what is kept, once. Asks the secret store, which may ask the person, only if there is something.

        Raises what the store raises; the next call tries again.
        """
        if self._loaded:
            return
        if self._loading is None or self._loading.done():
            self._loading = tasks.spawn(self._load(), name="read a sign-in")
        if (error := await asyncio.shield(self._loading)) is not None:
            raise error

    def keep(self, record: Record) -> None:
        """Take a record and write it soon; an empty one is forgotten."""
        self._take(record)
        if self._saving is None or self._saving.done():
            self._saving = tasks.spawn(self._save(), name="keep a sign-in")

    def forgotten(self) -> None:
        """A person took the record out of the store."""
        self._take(Record())

    async def close(self) -> None:
        """What must be written is written first, if that does not take long."""
        if self._saving is not None:
            await asyncio.wait([self._saving], timeout=LAST_WORDS)
        await tasks.cancel_and_wait(*(task for task in (self._saving, self._loading) if task is not None))

    async def _load(self) -> CallboardError | None:
        try:
            found = await self._secrets.get_many([self.name]) if self.name in self._secrets.names else {}
        except CallboardError as error:
            return error
        if not self._loaded:
            self._take(decode(found[self.name]) if self.name in found else Record())
        return None

    def _take(self, record: Record) -> None:
        self.record, self._loaded = record, True
        accounts = record.accounts.values()
        values = [
            text for one in accounts if one.tokens is not None for text in (one.tokens.access, one.tokens.refresh)
        ]
        values += [one.client.secret for one in accounts if one.client is not None]
        values += [one.key for one in accounts]
        self._learn(self.name, [value for value in values if value])

    async def _save(self) -> None:
        written: Record | None = None
        while written is not self.record:
            written = self.record
            try:
                if written.accounts:
                    await self._secrets.set(self.name, encode(written))
                else:
                    await self._secrets.delete(self.name)
            except CallboardError as error:
                log.info("A sign-in is kept for this session only: %s", error.message)
