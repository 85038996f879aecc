"""A served agent behind any front: its tools, calls, conversations and kept files, whatever carries them."""

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from callboard.agents.arguments import ArgumentsError
from callboard.agents.attachments import read_attachments
from callboard.agents.contract import (
    BAD_TOOL,
    CANCELLED,
    LOAD_FAILED,
    RAISED,
    REPORTED,
    TOOL_FAILED,
    Blob,
    Data,
    Part,
    Text,
    part_to_wire,
)
from callboard.agents.conversations import Caller, ConversationError, Conversations, Held
from callboard.agents.exposing import ATTACHMENTS, CONVERSATION, REQUEST, ExposeError, Tool, proper_name, tools_of
from callboard.agents.keeper import AnyLink, Keeper, MakeLink
from callboard.agents.link import GONE, AgentError, Message, Outcome
from callboard.agents.progress import Progress, Report
from callboard.agents.results import (
    META_CONVERSATION,
    META_TURN,
    Kept,
    Result,
    Results,
    Shelf,
    failed,
    finished,
    kept_part,
    one_line,
    shaped,
)
from callboard.agents.settings import AgentSettings
from callboard.agents.starting import file_of, worker_maker
from callboard.agents.stores import Store, StoreError, open_store
from callboard.core.redact import Redactor

log = logging.getLogger(__name__)

META_ERROR: Final = "callboard/error"
_OWN_CODES: Final = frozenset({BAD_TOOL, CANCELLED, GONE, LOAD_FAILED, RAISED, REPORTED, TOOL_FAILED, "agent-python"})


class UnknownError(LookupError):
    """A tool, prompt or resource that is not there."""


class Service:
    """One server's agents. One event loop; ``start`` it, then ``close`` it."""

    def __init__(self, settings: AgentSettings, makers: list[MakeLink] | None = None) -> None:
        """``makers`` stand in for workers, one for each entry, where the agents are in this process."""
        self.settings = settings
        self.tools: dict[str, Tool] = {}
        self.on_change: Callable[[], None] = lambda: None
        self.verbose = False  # tell each call to the log, without what it holds
        self._redactor = Redactor(settings.hide)
        self._shelf = Shelf(int(settings.limits.resources_kb * 1024))
        self._results = Results(self._shelf)
        self._conversations: dict[str, Conversations] = {}
        self._store: Store | None = None
        self._watchers: list[asyncio.Task[None]] = []
        self._is_up = False
        makers = makers if makers is not None else [worker_maker(settings, spec) for spec in settings.agent]
        self._keepers = list(map(self.keeper, makers))

    def keeper(self, make: MakeLink) -> Keeper:
        """What keeps one agent entry running."""
        return Keeper(make, grace=self.settings.limits.grace, on_agents=self._agents_changed, on_replace=self._recall)

    async def start(self) -> None:
        """Load the agents. Raises AgentError, ExposeError and StoreError."""
        if self.settings.is_persistent:
            self._store = await asyncio.to_thread(open_store, self.settings.store, file_of(self.settings))
        async with asyncio.TaskGroup() as group:
            starting = [group.create_task(_settled(keeper)) for keeper in self._keepers]
        errors = [task.result() for task in starting]
        for error in errors:
            if error is not None:
                raise error
        self._is_up = True
        self._expose()
        if self.settings.reload:
            loop = asyncio.get_running_loop()
            self._watchers = [loop.create_task(keeper.watch(), name="watch the agent") for keeper in self._keepers]

    async def close(self) -> None:
        """End the workers, and store what is to be stored."""
        for watcher in self._watchers:
            watcher.cancel()
        if self._watchers:
            await asyncio.wait(self._watchers)
        for keeper in self._keepers:
            await keeper.close()
        for conversations in self._conversations.values():
            await conversations.close()
        if self._store is not None:
            await asyncio.to_thread(self._store.close)
            self._store = None

    @property
    def agents(self) -> list[Message]:
        """The agents as the contract describes them."""
        return [agent for keeper in self._keepers for agent in keeper.agents]

    async def reload(self) -> None:
        """Load the agents anew; conversations go on. Raises AgentError; then the old ones stay."""
        for keeper in self._keepers:
            try:
                await keeper.replace()
            except AgentError as error:
                raise AgentError(error.error | {"message": self._redactor.text(str(error))}) from error

    async def _recall(self, link: AnyLink) -> None:
        for conversations in self._conversations.values():
            await conversations.recall(link)

    # calls

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        caller: Caller,
        *,
        handle: str | None = None,
        report: Report | None = None,
    ) -> Result:
        """Call a tool. Everything that goes wrong is an error result, but for a name that does not exist.

        ``handle`` names a conversation where the arguments do not; ``report`` hears the progress.
        Raises :class:`UnknownError`.
        """
        tool = self.tools.get(name)
        if tool is None:
            raise UnknownError(f"Unknown tool: {name}")
        try:
            message, size = self._message(tool, arguments)
        except ArgumentsError as error:
            return failed(f"Invalid arguments: {one_line(str(error), self._redactor)}")
        if self.verbose:
            log.info("%s is called with %s", name, ", ".join(arguments) or "nothing")
        handle = message.pop(CONVERSATION, None) or handle
        try:
            if not tool.converses:
                outcome = await self._run(tool.keeper, message, report)
                return finished(self._result(tool, outcome, caller))
            return await self._converse(tool, message, size, caller, handle, report)
        except (ConversationError, StoreError) as error:
            return failed(f"{str(error)[0].upper()}{str(error)[1:]}.")
        except AgentError as error:
            return self._failure(error.error)

    async def _converse(
        self, tool: Tool, message: Message, size: int, caller: Caller, handle: str | None, report: Report | None
    ) -> Result:
        conversations = self._of(tool.agent)
        held = await conversations.take(handle, caller)
        try:
            link = await tool.keeper.link()
            if conversations.must_restart(held, link):
                conversations.restart(held, named=bool(handle))
            conversations.opened_on(held, link)
        except BaseException:
            conversations.release(held)
            raise
        message["conversation"] = held.record.id
        turn = held.record.turns + 1

        def ended(outcome: Outcome) -> None:
            conversations.give_back(held, size + _size(outcome.parts), outcome.state)

        outcome = await self._run(tool.keeper, message, report, link, ended)
        await conversations.saved(held)
        result = finished(self._result(tool, outcome, caller))
        self._name_conversation(tool, result, outcome, held, turn)
        return result

    async def _run(
        self,
        keeper: Keeper,
        message: Message,
        report: Report | None,
        link: AnyLink | None = None,
        ended: Callable[[Outcome], None] = lambda outcome: None,
    ) -> Outcome:
        link = link if link is not None else await keeper.link()
        progress = Progress(report, heartbeat=self.settings.heartbeat) if report is not None else None
        try:
            return await keeper.call(link, message, progress.take if progress is not None else None, ended)
        finally:
            if progress is not None:
                await progress.close()

    def _message(self, tool: Tool, given: Mapping[str, Any]) -> tuple[Message, int]:
        """The message to the worker, and how large its content is."""
        arguments = tool.arguments.read(given)
        size = _length(arguments)
        if not tool.is_whole:
            return {"type": "call", "agent": tool.agent, "tool": tool.own_name, "arguments": arguments}, size
        attachments = read_attachments(arguments.get(ATTACHMENTS) or [], int(self.settings.limits.attachment_kb * 1024))
        message = {
            "type": "run",
            "agent": tool.agent,
            "request": arguments[REQUEST],
            "attachments": [part_to_wire(part) for part in attachments],
        }
        if arguments.get(CONVERSATION):
            message[CONVERSATION] = arguments[CONVERSATION]
        return message, size

    # results

    def _result(self, tool: Tool, outcome: Outcome, caller: Caller) -> Result:
        result = self._results.make(outcome.parts, tool.shape, caller.client)
        if outcome.error is not None:
            return self._failure(outcome.error, result)
        return shaped(result, tool.shape)

    def _failure(self, error: Message, before: Result | None = None) -> Result:
        """An error result: one redacted line, and the number under which the log has the rest."""
        code, kind = error["code"], error["kind"]
        said = one_line(error["message"], self._redactor)
        meta: dict[str, Any] = {"code": code}
        if error["traceback"]:
            number = meta["id"] = secrets.token_hex(4)
            log.error("Error %s: %s", number, self._redactor.text(error["traceback"].rstrip()))
            said = f"{kind}: {said} (error {number})" if said else f"{kind} (error {number})"
        elif code in _OWN_CODES:
            said = f"{said[:1].upper()}{said[1:]}"
        elif said and code:  # the agent's own code, which its message need not hold
            said = f"{said} ({code})"
        result = failed(said, before)
        result.structured = None if not error["message"] else result.structured
        result.meta[META_ERROR] = meta
        return result

    def _name_conversation(self, tool: Tool, result: Result, outcome: Outcome, held: Held, turn: int) -> None:
        id_ = held.record.id
        result.meta[META_CONVERSATION] = id_
        result.meta[META_TURN] = turn
        if tool.is_whole and tool.shape.output_schema is None and result.structured is None and not result.is_error:
            values = [part.value for part in outcome.parts if isinstance(part, Data)]
            texts = [block["text"] for block in result.content if block["type"] == "text"]
            alone = len(values) == 1 and len(outcome.parts) == 1
            result.structured = {"result": values[0] if alone else "\n".join(texts), "conversation": id_}

    # prompts and resources

    async def prompt(self, name: str, arguments: Mapping[str, Any], caller: Caller) -> list[Any]:
        """A prompt's messages, as MCP's PromptMessage objects. Raises UnknownError and AgentError."""
        keeper, agent = self._offering("prompts", "name", name)
        message = {"type": "prompt", "agent": agent, "name": name, "arguments": dict(arguments)}
        outcome = await self._run(keeper, message, None)
        if outcome.error is not None:
            raise AgentError(outcome.error | {"message": one_line(outcome.error["message"], self._redactor)})
        messages: list[Any] = []
        for part in outcome.parts:
            if isinstance(part, Data) and isinstance(part.value, list):
                messages += part.value
            elif isinstance(part, Text):
                messages.append({"role": "user", "content": {"type": "text", "text": part.text}})
        return messages

    async def read(self, uri: str, caller: Caller) -> list[Kept]:
        """What is at a URI: a file that was an answer, or a resource of the agent's. Raises as :meth:`prompt`."""
        kept = self._shelf.get(uri, caller.client)
        if kept is not None:
            return [kept]
        if (agent := self.conversation_lists().get(uri)) is not None:
            return [await self._conversations_of(agent, caller)]
        keeper, owner = self._offering("resources", "uri", uri)
        outcome = await self._run(keeper, {"type": "read", "agent": owner, "uri": uri}, None)
        if outcome.error is not None:
            raise AgentError(outcome.error | {"message": one_line(outcome.error["message"], self._redactor)})
        listed = next(each for each in self._offered("resources") if each["uri"] == uri)
        return [kept_part(part, listed["media_type"], caller.client) for part in outcome.parts]

    def conversation_lists(self) -> dict[str, str]:
        """The URIs under which agents tell of their conversations, with the agents' names."""
        if self.settings.stateless:
            return {}
        names = [agent["name"] for agent in self.agents if agent["keeps_conversations"]]
        return {f"agent://{proper_name(name)}/conversations": name for name in names}

    async def _conversations_of(self, agent: str, caller: Caller) -> Kept:
        """How many there are, and which of them are the caller's."""
        conversations = self._of(agent)
        told = {
            "held": len(conversations),
            "limit": self.settings.limits.conversations,
            "stored": await conversations.stored(),
            "yours": conversations.of(caller.client),
        }
        return Kept(caller.client, json.dumps(told), "application/json")

    async def all_conversations(self) -> Message:
        """How many there are, and which, whose-ever they are, the one used last first. Raises StoreError."""
        groups = self._conversations.values()
        return {
            "held": sum(map(len, groups)),
            "limit": self.settings.limits.conversations,
            "stored": sum([await each.stored() for each in groups]),
            "conversations": sorted((one for each in groups for one in each.all()), key=lambda one: -one["used"]),
        }

    def prompts(self) -> list[Message]:
        """The prompts of all agents."""
        return self._offered("prompts")

    def resources(self) -> list[Message]:
        """The resources of all agents."""
        return self._offered("resources")

    def _offered(self, kind: str) -> list[Message]:
        return [each for agent in self.agents for each in agent[kind]]

    def _offering(self, kind: str, key: str, value: str) -> tuple[Keeper, str]:
        for keeper in self._keepers:
            for agent in keeper.agents:
                if any(each[key] == value for each in agent[kind]):
                    return keeper, agent["name"]
        raise UnknownError(f"There is no {value}")

    # what is offered

    def _of(self, agent: str) -> Conversations:
        found = self._conversations.get(agent)
        if found is None:
            settings = self.settings
            found = self._conversations[agent] = Conversations(
                agent, settings.limits, self._store, keeps_state=settings.keeps_state
            )
        return found

    def _agents_changed(self) -> None:
        if not self._is_up:
            return
        try:
            self._expose()
        except ExposeError as error:
            log.error("The tools stay as they were: %s", error)
            return
        self.on_change()

    def _expose(self) -> None:
        self.tools = {tool.name: tool for tool in tools_of(self._keepers, self.settings)}


async def _settled(keeper: Keeper) -> AgentError | None:
    try:
        await keeper.link()
    except AgentError as error:
        return error
    return None


def _size(parts: list[Part]) -> int:
    return sum(len(part.data) if isinstance(part, Blob) else _length(part_to_wire(part)) for part in parts)


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(str(key)) + _length(item) for key, item in value.items())
    return sum(map(_length, value)) if isinstance(value, list) else 8
