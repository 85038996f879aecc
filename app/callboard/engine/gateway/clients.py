"""Who calls: each client's own token, made from one key so that it outlives restarts and stands nowhere in clear."""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from callboard.api.schema import Notice
from callboard.core.errors import FIXES, CallboardError
from callboard.engine.storage.agreement import Agreement
from callboard.system.safe_file import write_atomically

log = logging.getLogger(__name__)

PREFIX = "cb_"
OWN_CLIENTS = ("script", "connect", "other")  # plain HTTP and command line, the stdio bridge, whatever has no id yet
WITHOUT_TOKEN = ("callboard", "open")  # the person, and whoever comes to an open gateway
_KEY_BYTES = 32
_AGREED = "client-tokens"  # what several engines call it


@dataclass
class _Stored:
    key: bytes
    generations: dict[str, int] = field(default_factory=dict)  # of clients whose token was replaced


class ClientTokens:
    """The clients' tokens. Belongs to the engine's loop; looking up costs one hash.

    The file holds a random key (mode 0600) and how often each token was replaced: a token is
    ``cb_`` + HMAC-SHA256(key, client, generation). Where the file cannot be written, tokens last for this session.
    Engines that share a database have the same there instead.
    """

    def __init__(self, path: Path, clients: Iterable[str], on_change: Callable[[], None] = lambda: None) -> None:
        """``on_change`` hears that tokens were replaced."""
        self._path = path
        self._own_ids = self._ids = tuple(dict.fromkeys([*clients, *OWN_CLIENTS]))
        self._on_change = on_change
        self._agreement: Agreement | None = None
        self._known = True
        self._problem = ""  # one sentence, if tokens will not outlive this session
        self._stored = self._load()
        self._by_digest: dict[bytes, str] = {}
        self._index()

    @property
    def notices(self) -> list[Notice]:
        """What a person should know: that tokens cannot be kept."""
        if not self._problem:
            return []
        return [Notice(code="tokens-unsaved", message=self._problem, fix=FIXES["tokens-unsaved"])]

    @property
    def ids(self) -> tuple[str, ...]:
        """Every known client."""
        return self._ids

    def share(self, agreement: Agreement) -> None:
        """Agree on the tokens with other engines; where they have none yet, those of this engine's file are taken.

        Until it is known what was agreed on, there are no tokens: ``storage-away``.
        """
        self._agreement = agreement
        self._known = False
        agreement.follow(_AGREED, _render(self._stored), self._agreed)

    def _agreed(self, data: bytes) -> None:
        self._stored = _parse(json.loads(data))
        self._known = True
        self._index()
        self._on_change()

    def _check_known(self) -> None:
        if not self._known:
            raise CallboardError("storage-away", "The tokens are not known yet: the database was not reached so far.")

    def know(self, clients: Iterable[str]) -> bool:
        """Take the roster's clients in beside our own; true if others are known now."""
        ids = tuple(dict.fromkeys([*self._own_ids, *(name for name in clients if name not in WITHOUT_TOKEN)]))
        changed = ids != self._ids
        self._ids = ids
        if changed and self._known:
            self._index()
        return changed

    def token_for(self, client: str) -> str:
        """The client's token in clear. Raises ``client-unknown`` and ``storage-away``."""
        self._check_known()
        if client not in self._ids:
            raise CallboardError("client-unknown", f'There is no client "{client}"; there are {", ".join(self._ids)}.')
        message = json.dumps([client, self._stored.generations.get(client, 0)]).encode()
        digest = hmac.digest(self._stored.key, message, "sha256")
        return PREFIX + base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def client_of(self, token: str) -> str | None:
        """Whose token this is; raises ``storage-away``.

        The time taken tells nothing about the tokens: only their hashes are compared.
        """
        self._check_known()
        return self._by_digest.get(_digest(token))

    async def rotate(self, client: str) -> str:
        """Replace the client's token: the old one is refused from now on, at other engines within seconds.

        Raises ``client-unknown`` and ``storage-away``.
        """
        self.token_for(client)
        if self._agreement is not None:
            await self._agreement.change(_AGREED, partial(_replaced, client))
        else:
            self._stored = _with_next(self._stored, client)
            await asyncio.to_thread(self._save, self._stored)
            self._index()
            self._on_change()
        return self.token_for(client)

    def _index(self) -> None:
        self._by_digest = {_digest(self.token_for(client)): client for client in self._ids}

    def _load(self) -> _Stored:
        try:
            stored = _parse(json.loads(self._path.read_text(encoding="utf-8")))
            self._path.chmod(0o600)
        except FileNotFoundError:
            stored = _Stored(secrets.token_bytes(_KEY_BYTES))
            self._save(stored)
        except (ValueError, KeyError, TypeError, AttributeError):
            kept = self._path.with_suffix(".broken")
            log.warning("%s is damaged: every client gets a new token. The old file is kept as %s.", self._path, kept)
            self._path.replace(kept)
            stored = _Stored(secrets.token_bytes(_KEY_BYTES))
            self._save(stored)
        except OSError as error:
            self._problem = f"{self._path} cannot be read ({error.strerror}): tokens last for this session only."
            stored = _Stored(secrets.token_bytes(_KEY_BYTES))
        return stored

    def _save(self, stored: _Stored) -> None:
        try:
            write_atomically(self._path, _render(stored))
        except OSError as error:
            self._problem = f"{self._path} cannot be written ({error.strerror}): tokens last for this session only."


def _parse(value: Any) -> _Stored:
    key = base64.b64decode(value["key"], validate=True)
    generations = {str(client): int(number) for client, number in value["generations"].items()}
    if len(key) != _KEY_BYTES:
        raise ValueError("the key has another length")
    return _Stored(key, generations)


def _render(stored: _Stored) -> bytes:
    return json.dumps({"key": base64.b64encode(stored.key).decode(), "generations": stored.generations}).encode()


def _with_next(stored: _Stored, client: str) -> _Stored:
    return replace(stored, generations={**stored.generations, client: stored.generations.get(client, 0) + 1})


def _replaced(client: str, data: bytes | None) -> bytes | None:
    return None if data is None else _render(_with_next(_parse(json.loads(data)), client))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
