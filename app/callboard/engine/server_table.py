"""The servers of the roster in one place: their entries, their health, their connections.

Between the supervisor, which runs them, and the relay, which talks to them. It is what the relay knows as Servers.
"""

import asyncio
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final

from callboard.api.schema import ServerView
from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.core.launch import Launch, RemoteLaunch
from callboard.core.references import names_in
from callboard.core.roster import AgentEntry, AnyEntry, Roster
from callboard.core.shipped import is_first_party
from callboard.core.supervision import ServerStatus
from callboard.engine import tasks
from callboard.engine.containers import Containers
from callboard.engine.environment import Environment
from callboard.engine.eras import Eras
from callboard.engine.figures import FigureWatch
from callboard.engine.leftovers import Leftovers
from callboard.engine.looks import Looks
from callboard.engine.masking import Masking
from callboard.engine.output import OutputLog
from callboard.engine.relay.link import ServerLink
from callboard.engine.relay.relay import Relay
from callboard.engine.secrets.store import SecretStore
from callboard.engine.server_sign_in import ServerSignIns
from callboard.engine.supervisor import Supervisor
from callboard.engine.upstream.base import Upstream
from callboard.engine.upstream.stdio import StdioUpstream
from callboard.engine.views import server_view

log = logging.getLogger(__name__)


class ServerTable:
    """Engine loop only. :meth:`attach` is called once, before anything else."""

    def __init__(
        self,
        output: OutputLog,
        secrets: SecretStore,
        environment: Environment,
        masking: Masking,
        state: Path,
        *,
        port: Callable[[], int],
        on_change: Callable[[str], None],
    ) -> None:
        """``state`` is the folder for what is remembered; ``port`` is the gateway's; ``on_change`` hears which server's
        view changed.
        """
        self._output = output
        self._secrets = secrets
        self._environment = environment
        self._masking = masking
        self._eras = Eras(state / "eras.json")
        self._leftovers = Leftovers(state / "processes.json")
        self._containers = Containers(state / "containers")
        self._on_change = on_change
        self._roster = Roster()
        self._learning: set[str] = set()  # servers that run only so that their tools become known
        self._relay: Relay | None = None
        self.sign_ins = ServerSignIns(
            secrets,
            environment,
            masking,
            port=port,
            entry_of=self.entry,
            secret_values=self._secret_values,
            on_change=on_change,
        )
        self.supervisor = Supervisor(
            connect=self._connect,
            output=output,
            secrets_lookup=self._secret_values,
            environment=environment,
            on_change=on_change,
            on_upstream=self._on_upstream,
            leftovers=self._leftovers,
            containers=self._containers,
            mask=masking.mask_text,
            unlock=self.sign_ins.unlock,
        )
        self.sign_ins.attach(self.supervisor)
        self.figures = FigureWatch(self.supervisor.pids)
        self.looks = Looks(
            self.supervisor,
            output,
            catalogue=lambda: self.relay.catalogue,
            entry_of=self.entry,
            variables=lambda: dict(environment.variables),
            on_change=on_change,
        )

    def attach(self, relay: Relay) -> None:
        """The relay that talks to these servers."""
        self._relay = relay

    @property
    def relay(self) -> Relay:
        """The attached relay."""
        assert self._relay is not None
        return self._relay

    async def end_leftovers(self) -> None:
        """End what an engine that was killed left behind. Called once, before the first roster."""
        ended, _ = await asyncio.gather(
            self._leftovers.end_previous(), self._containers.end_previous(self._environment.variables)
        )
        for server in ended:
            log.info("ended what an earlier engine left of %s", server)

    # the roster

    def apply(self, roster: Roster) -> list[str]:
        """Take a roster into force; returns the names of the servers that are gone."""
        before = self._roster.servers
        gone = [name for name in before if name not in roster.servers]
        self._roster = roster
        self.relay.sync(name for name, entry in roster.servers.items() if entry.enabled)
        self.supervisor.apply(roster)
        for name, entry in roster.servers.items():
            if self._is_to_learn(name, entry, before.get(name)):
                self._learning.add(name)
                self.supervisor.start(name)
        for name in gone:
            self.relay.forget(name)
            self.sign_ins.leave(name)
            self.looks.forget(name)
        return gone

    def _is_to_learn(self, name: str, entry: AnyEntry, before: AnyEntry | None) -> bool:
        """Whether a server that starts on demand must run once: nobody can want tools that nobody has heard of."""
        if not entry.enabled or entry.start != "on-demand" or self.supervisor.status(name).state is not State.STOPPED:
            return False
        changed = before is not None and before.enabled and _mark(before) != _mark(entry)
        return changed or not self.relay.catalogue.known(name)

    async def _rest_when_known(self, name: str) -> None:
        await self.relay.catalogue.settled(name)
        self.supervisor.rest(name, "its tools are known; a call starts it")

    def entry(self, name: str) -> AnyEntry:
        """A server's entry; raises ``server-unknown``."""
        entry = self._roster.servers.get(name)
        if entry is None:
            raise CallboardError("server-unknown", f'There is no server named "{name}".')
        return entry

    def program(self, name: str) -> str:
        """What a server runs or where it is, as the roster says; "" for one that is not there."""
        entry = self._roster.servers.get(name)
        if entry is None:
            return ""
        return json.dumps(entry.model_dump(include=_PROGRAM), sort_keys=True)

    def status(self, name: str) -> ServerStatus:
        """A server's health."""
        return self.supervisor.status(name)

    def count_states(self) -> dict[str, int]:
        """How many servers are in each state."""
        counted = Counter(self.supervisor.status(name).state for name in self.supervisor.names)
        return {state.value: counted[state] for state in State}

    def view(self, name: str, base_url: str) -> ServerView:
        """A server as it is shown; raises ``server-unknown``."""
        entry = self.entry(name)
        link = self.relay.links.get(name)
        return server_view(
            name,
            entry,
            self.supervisor.status(name),
            self.relay.catalogue.offer(name),
            link.upstream if link is not None else None,
            base_url=base_url,
            python=sys.executable,
            figures=self.figures.of(name),
            sign_in=self.sign_ins.shown(name),
            health=self.looks.shown(name),
        )

    def act(self, name: str, action: str) -> None:
        """Start, stop, restart (``reconnect`` is the same), retry, cancel, or reset (forget earlier failures).

        Raises ``bad-request`` for another word.
        """
        actions: dict[str, Callable[[str], None]] = {
            "start": self.supervisor.start,
            "stop": self.supervisor.stop,
            "restart": self.supervisor.restart,
            "reconnect": self.supervisor.restart,
            "retry": self.supervisor.retry,
            "cancel": self.supervisor.cancel,
            "reset": self.supervisor.reset,
        }
        if action not in actions:
            raise CallboardError("bad-request", f"A server cannot be told to {action}.")
        self._learning.discard(name)
        actions[action](name)

    async def close(self) -> None:
        """Stop all servers."""
        await self.figures.close()
        await self.supervisor.close()
        await self.sign_ins.close()

    # secrets

    def secret_users(self) -> dict[str, list[str]]:
        """Every secret's name in the roster with the servers that use it."""
        users: dict[str, list[str]] = {}
        for server, entry in self._roster.servers.items():
            for name in names_in(entry).secrets:
                users.setdefault(name, []).append(server)
        return users | self.sign_ins.secret_users()

    def secrets_changed(self, names: Iterable[str]) -> None:
        """Servers that waited for one of these secrets are tried again."""
        self.supervisor.secrets_changed(names)

    async def _secret_values(self, names: Iterable[str]) -> Mapping[str, str]:
        values: Mapping[str, str] = await self._secrets.get_many(names)
        self._masking.learn(values.values())
        return values

    # connections

    def _connect(self, name: str, entry: AnyEntry, launch: Launch, key: str) -> Upstream:
        link: ServerLink = self.relay.links[name]
        capabilities: dict[str, Any] | None = None
        if key:
            private = self.relay.private.find(name, key)
            if private is None:
                raise CallboardError("server-not-ready", f"Nobody waits for {name} any more.")
            link, capabilities = private, private.capabilities
        link.noise_lines = 0  # each run has its own say
        self._output.set_redact(name, self._masking.mask_text)
        modern = self._eras.modern(name, _mark(entry))
        if isinstance(launch, RemoteLaunch):
            from callboard.engine.upstream.http import HttpUpstream  # httpx2: only where a remote server is used

            paths = partial(self.relay.catalogue.header_paths, name)
            auth = self.sign_ins.auth(name, launch)
            return HttpUpstream(link, modern=modern, capabilities=capabilities, header_paths=paths, auth=auth)
        return StdioUpstream(
            link,
            environment=self._environment.variables,
            on_stderr=lambda data: self._output.append(name, "stderr", data),
            modern=modern,
            capabilities=capabilities,
        )

    def _on_upstream(self, name: str, upstream: Upstream | None) -> None:
        if upstream is None:
            self.relay.disconnected(name)
        else:
            self._eras.learn(name, _mark(self.entry(name)), upstream.info.modern)
            self.relay.connected(name, upstream)
            if name in self._learning:
                self._learning.discard(name)
                tasks.spawn(self._rest_when_known(name), name=f"learn what {name} offers")
        self._on_change(name)

    def noise(self, name: str, line: bytes) -> None:
        """Keep what a server printed on stdout, and say once that it does."""
        self._output.append(name, "stdout", line)
        link = self.relay.links.get(name)
        if link is not None and link.noise_lines == 1:
            log.info("%s prints on stdout what is not protocol", name)
            self.supervisor.degraded(name, "stdout-noise", "prints on stdout what is not protocol")

    # what the relay asks

    async def upstream(self, name: str) -> Upstream:
        """See the relay's Servers."""
        return await self.supervisor.upstream(name)

    def exposed(self, server: str, tool: str) -> str | None:
        """See the relay's Servers."""
        entry = self._roster.servers.get(server)
        if entry is None:
            return None
        rules = entry.tools
        if rules.allow is not None and not any(fnmatchcase(tool, pattern) for pattern in rules.allow):
            return None
        if any(fnmatchcase(tool, pattern) for pattern in rules.deny):
            return None
        return rules.rename.get(tool, tool)

    def time_limit(self, server: str) -> float:
        """See the relay's Servers."""
        entry = self._roster.servers.get(server)
        return entry.timeouts.call if entry is not None else 0.0

    def sharing(self, server: str) -> str:
        """See the relay's Servers."""
        entry = self._roster.servers.get(server)
        return entry.sharing if entry is not None else "shared"

    def is_told_callers(self, server: str) -> bool:
        """See the relay's Servers."""
        entry = self._roster.servers.get(server)
        return isinstance(entry, AgentEntry) or (entry is not None and is_first_party(entry))

    async def open_private(self, name: str, key: str) -> Upstream:
        """See the relay's Servers."""
        return await self.supervisor.open_instance(name, key)

    async def close_private(self, name: str, key: str) -> None:
        """See the relay's Servers."""
        await self.supervisor.close_instance(name, key)

    def touch(self, server: str) -> None:
        """See the relay's Servers."""
        self.supervisor.touch(server)


_PROGRAM: Final = {"command", "args", "url", "transport", "agent", "python", "cwd"}


def _mark(entry: AnyEntry) -> str:
    """What makes an entry another server to talk to."""
    return json.dumps(entry.model_dump(include={"command", "args", "url", "transport", "agent"}), sort_keys=True)
