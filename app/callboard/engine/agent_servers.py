"""The servers that run Python agents: which conversations they hold, and loading agents anew while they run."""

import msgspec

from callboard.api.agent_schema import ConversationsView, ConversationView
from callboard.core.agent_methods import CONVERSATIONS, RELOAD
from callboard.core.errors import CallboardError
from callboard.core.roster import AgentEntry
from callboard.engine.relay.catalogue import KINDS
from callboard.engine.relay.relay import Relay
from callboard.engine.server_table import ServerTable
from callboard.engine.upstream.answers import error_text
from callboard.engine.upstream.base import Upstream

_TOLD_MOST = 200  # conversations; who has more wants their number


class _Told(msgspec.Struct):
    """What one process of an agent's server answers."""

    held: int
    stored: int
    limit: int
    conversations: list[ConversationView]


class AgentServers:
    """Asks them what no client may. Engine loop only."""

    def __init__(self, table: ServerTable, relay: Relay) -> None:
        self._table = table
        self._relay = relay

    async def conversations(self, name: str) -> ConversationsView:
        """What a server holds, all its processes together.

        Raises ``server-unknown``, ``bad-request`` for a server that is no agent's, ``call-refused``.
        """
        self._entry(name)
        upstreams = self._relay.upstreams(name)
        told = [msgspec.json.decode(await _ask(each, CONVERSATIONS), type=_Told) for each in upstreams]
        found = sorted((one for each in told for one in each.conversations), key=lambda one: -one.used)
        return ConversationsView(
            running=bool(told),
            held=sum(each.held for each in told),
            stored=max((each.stored for each in told), default=0),
            limit=max((each.limit for each in told), default=0),
            conversations=found[:_TOLD_MOST],
        )

    async def reload(self, name: str) -> None:
        """Load a server's agents anew, and read what they offer; what they held before the load goes on.

        Raises as :meth:`conversations`, and ``server-not-ready``, and ``agent-load``: then the old agents go on.
        """
        limit = self._entry(name).timeouts.start
        upstreams = self._relay.upstreams(name)
        if not upstreams:
            raise CallboardError("server-not-ready", f"{name} does not run; it is loaded when it starts.")
        for upstream in upstreams:
            await _ask(upstream, RELOAD, code="agent-load", seconds=limit)
        self._relay.catalogue.read(name, upstreams[0], KINDS)
        await self._relay.catalogue.settled(name)

    def _entry(self, name: str) -> AgentEntry:
        entry = self._table.entry(name)
        if not isinstance(entry, AgentEntry):
            raise CallboardError("no-agent", f"{name} runs no Python agent.")
        return entry


async def _ask(upstream: Upstream, method: str, *, code: str = "call-refused", seconds: float = 10.0) -> bytes:
    answer = await upstream.request(method, {}, seconds=seconds)
    if answer.result is None:
        text = error_text(answer)
        raise CallboardError(code, f"{text[:1].upper()}{text[1:]}.")
    return bytes(answer.result)
