"""The engine's secrets: their values by name, wherever this machine can keep them."""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from callboard.api.schema import SecretsView, SecretView
from callboard.core.errors import FIXES, CallboardError
from callboard.core.references import SECRET_NAME, SECRET_NAME_RULE
from callboard.engine.secrets import vault
from callboard.engine.secrets.backends import (
    Backend,
    BackendLockedError,
    BackendMissingError,
    BackendRefusedError,
    SessionBackend,
)
from callboard.engine.secrets.keyring_backend import find_keyring
from callboard.engine.worker import Worker
from callboard.system.safe_file import write_atomically

log = logging.getLogger(__name__)

T = TypeVar("T")
LIMIT = 600.0  # seconds that a person may take to answer the keyring's prompt
WAITING_AFTER = 0.7  # seconds after which a prompt must be open
LOOK = 3.0  # seconds that a view waits for a keyring to be found
LOOK_AGAIN = 10.0  # seconds between two looks for a keyring that was not there


class SecretStore:
    """Secret values by name. Belongs to the engine's loop; everything that may block runs in one daemon thread.

    Values are kept in the system's keyring; in an encrypted file where the person asked for that
    (:mod:`callboard.engine.secrets.vault`); where neither can be had, in memory until the engine ends. A value never
    reaches the disk in clear. The names (never values) of what is kept stand in ``secrets.json`` of the state folder,
    because keyrings cannot be listed.

    ``on_change`` is called on the loop, synchronously, when :meth:`view` would answer something new. Methods raise
    ``secrets-locked`` and ``secrets-refused``; a missing keyring is no error but a :attr:`problem`.
    """

    def __init__(
        self,
        state: Path,
        on_change: Callable[[], None] = lambda: None,
        *,
        environment: Mapping[str, str] = os.environ,
        limit: float = LIMIT,
    ) -> None:
        self._file = state / "secrets.json"
        self._vault_file = state / "secrets.vault"
        self._service = _service(state, environment)
        self._on_change = on_change
        self._environment = environment
        self._limit = limit
        self._worker = Worker("secrets")
        self._session = SessionBackend()
        self._backend: Backend | None = None  # None: not looked for yet, or not there
        self._broken = False  # it was found, but could not be reached when it was used
        self._looked = 0.0  # when, on the monotonic clock
        self._names = _read_names(self._file)
        self.problem = ""  # one sentence, while values last for this session only
        self.waiting = False  # the system's own prompt is open
        self._running = 0

    @property
    def names(self) -> frozenset[str]:
        """Every name that has a value, as far as is known without asking the keyring."""
        return self._names | self._session.values.keys()

    async def get_many(self, names: Iterable[str]) -> dict[str, str]:
        """The values of those ``names`` that have one. Asks the person to unlock the keyring if need be."""
        wanted, session = frozenset(names), self._session.values
        found = {name: session[name] for name in wanted & session.keys()}
        rest = wanted - found.keys()
        if rest:
            found |= await self._run(lambda: self._get(rest))
        return found

    async def set(self, name: str, value: str) -> None:
        """Store a value. Raises ``bad-request`` for a name or value that cannot be kept."""
        _check(name, value)
        await self._run(lambda: self._set(name, value))
        self._on_change()

    async def delete(self, name: str) -> None:
        """Forget a value; nothing happens where there is none."""
        await self._run(lambda: self._delete(name))
        self._on_change()

    async def look(self) -> None:
        """Find out where values are kept. Reads none, so that no prompt opens. Costs the keyring library's 10 MB."""
        if self._backend is None and self._running == 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._run(self._find)

    async def view(self, users: Mapping[str, list[str]] | None = None) -> SecretsView:
        """What the API answers. ``users``: the names in the roster and the servers that use them.

        Looks for a keyring only where there is a secret to keep.
        """
        if users or self.names:
            await self.look()
        used_by = users or {}
        kind, label = self._place()
        return SecretsView(
            kind=kind,
            backend=label,
            problem=self.problem,
            fix=FIXES["secrets-unavailable"] if self.problem else "",
            waiting=self.waiting,
            secrets=[
                SecretView(name=name, present=name in self.names, used_by=sorted(used_by.get(name, [])))
                for name in sorted(self.names | used_by.keys())
            ],
        )

    def close(self) -> None:
        """Forget what is only in memory and end the thread, or leave it to its prompt after half a second."""
        self._worker.close()
        self._session.values = {}

    # on the loop

    def _place(self) -> tuple[str, str]:
        """Kind and label of where values are kept."""
        if not self._looked:
            return "keyring", "the system's keyring"  # what would be looked for
        backend = self._backend if self._backend is not None and not self._broken else self._session
        return backend.kind, backend.label

    async def _run(self, work: Callable[[], T]) -> T:
        timer = asyncio.get_running_loop().call_later(WAITING_AFTER, self._set_waiting, True)
        self._running += 1
        problem = self.problem
        try:
            async with asyncio.timeout(self._limit):
                return await self._worker.run(work)
        except TimeoutError as error:
            raise CallboardError("secrets-locked", "The keyring's prompt was not answered in time.") from error
        except BackendLockedError as error:
            raise CallboardError("secrets-locked", str(error)) from error
        except BackendRefusedError as error:
            raise CallboardError("secrets-refused", str(error)) from error
        finally:
            timer.cancel()
            self._running -= 1
            if self._running == 0:
                self._set_waiting(False)
            if self.problem != problem:
                log.info("Secrets: %s", self.problem or "kept in the keyring again")
                self._on_change()

    def _set_waiting(self, waiting: bool) -> None:
        if self.waiting != waiting:
            self.waiting = waiting
            self._on_change()

    # in the thread

    def _use(self, operation: Callable[[Backend], T], otherwise: T) -> T:
        """What ``operation`` gives with the backend; ``otherwise`` where there is none."""
        backend = self._find()
        if backend is None:
            return otherwise
        try:
            result = operation(backend)
        except BackendMissingError as error:
            self._broken, self._looked = True, time.monotonic()
            self.problem = _session_only(error)
            return otherwise
        self._broken, self.problem = False, ""
        self._move_session(backend)
        return result

    def _find(self) -> Backend | None:
        """The backend, looked for if there was none or if it failed; not more often than makes sense."""
        if self._backend is not None and not self._broken:
            return self._backend
        now = time.monotonic()
        if self._looked and now - self._looked < LOOK_AGAIN:
            return None
        again, self._looked = bool(self._looked), now
        try:
            if vault.wanted(self._environment):
                passphrase = vault.find_passphrase(self._environment)
                self._backend = vault.VaultBackend(self._vault_file, passphrase)
            else:
                self._backend = find_keyring(self._service, again=again)
        except BackendMissingError as error:
            self._backend, self._broken = None, False
            self.problem = _session_only(error)
            return None
        if not self._broken:
            self.problem = ""
        return self._backend

    def _move_session(self, backend: Backend) -> None:
        """Give the backend what had to be kept in memory while there was none."""
        for name, value in self._session.values.items():
            with contextlib.suppress(BackendMissingError, BackendLockedError, BackendRefusedError):
                backend.set(name, value)
                self._session.delete(name)
                self._learn([name], ())

    def _learn(self, there: Iterable[str], gone: Iterable[str]) -> None:
        """Remember which names have a value."""
        names = (self._names | frozenset(there)) - frozenset(gone)
        if names == self._names:
            return
        self._names = names
        try:
            write_atomically(self._file, json.dumps({"names": sorted(names)}).encode())
        except OSError as error:
            log.info("The names of secrets cannot be written to %s: %s", self._file, error.strerror)

    def _get(self, names: frozenset[str]) -> dict[str, str]:
        def read(backend: Backend) -> dict[str, str]:
            found = {name: value for name in names if (value := backend.get(name)) is not None}
            self._learn(found, names - found.keys())
            return found

        return self._use(read, {})

    def _set(self, name: str, value: str) -> None:
        def write(backend: Backend) -> bool:
            backend.set(name, value)
            self._session.delete(name)
            self._learn([name], ())
            return True

        if not self._use(write, False):
            self._session.set(name, value)

    def _delete(self, name: str) -> None:
        def delete(backend: Backend) -> None:
            backend.delete(name)
            self._learn((), [name])

        self._session.delete(name)
        self._use(delete, None)


def _session_only(error: BackendMissingError) -> str:
    return f"{error} Values are kept for this session only."


def _check(name: str, value: str) -> None:
    if not SECRET_NAME.fullmatch(name):
        raise CallboardError("secret-invalid", f"{SECRET_NAME_RULE[:1].upper()}{SECRET_NAME_RULE[1:]}.")
    if not value:
        raise CallboardError("secret-invalid", "A secret's value must not be empty.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise CallboardError("secret-invalid", "The value is not valid text.") from error


def _service(state: Path, environment: Mapping[str, str]) -> str:
    """The name under which the keyring files our values: one for each installation that has a home of its own."""
    if not environment.get("CALLBOARD_HOME"):
        return "callboard"
    return f"callboard-{hashlib.sha256(os.fsencode(state.absolute())).hexdigest()[:12]}"


def _read_names(path: Path) -> frozenset[str]:
    try:
        names = json.loads(path.read_text(encoding="utf-8"))["names"]
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()
    return frozenset(map(str, names)) if isinstance(names, list) else frozenset()
