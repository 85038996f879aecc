"""Which Python agent a server runs: typed, or found in a file."""

import asyncio
from functools import partial

from PySide6.QtCore import Signal

from callboard.api.agent_schema import AgentLook, FoundAgent
from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.ui.editor.fields import Field, PathField
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import InlineNotice, icon_button, put_in, take_out

MOST_CHOICES = 6  # agents of a file that have a button


class AgentField(PathField):
    """Edits ``agent``. On request, and after a file was chosen, it shows the agents there, or what one offers.

    The fields beside it say how the agent would run; an environment that was found is entered there by whoever listens
    to :attr:`python_found`.
    """

    python_found = Signal(str)

    def __init__(self, kit: Kit, label: str, *, required: str, python: Field, params: Field, folder: Field) -> None:
        super().__init__(kit, label, folder=False, placeholder="package.module:attribute", required=required)
        self._kit = kit
        self._python = python
        self._params = params
        self._run_in = folder
        self._notice: InlineNotice | None = None
        self._task: asyncio.Task[None] | None = None
        name = self.tr("Show the agents there, and what they offer")
        self._row.addWidget(icon_button(kit.icons, "search", name, self.look))
        self.edit.textEdited.connect(self._forget)

    @property
    def notice(self) -> InlineNotice | None:
        """What was found, while it is shown."""
        return self._notice

    def take_path(self, path: str) -> None:
        """Enter a chosen file, and see what is in it."""
        super().take_path(path)
        self.look()

    def look(self) -> None:
        """Ask the engine what there is. The agent's module is imported for it, by the agent's own interpreter."""
        self._forget()
        agent = self.state().strip()
        if not agent:
            return
        self._say(Severity.BUSY, self.tr("Looking …"))
        python, folder = self._python.state().strip(), self._run_in.state().strip()
        given = self._params.value()
        params = given if isinstance(given, dict) else {}
        self._task = self._kit.link.request(
            lambda client: client.look_at_agent(agent, python=python, params=params, cwd=folder),
            self._show_look,
            self._failed,
            owner=self,
            name="look at an agent",
        )

    def _show_look(self, look: AgentLook) -> None:
        self._task = None
        beside = next((each for each in look.interpreters if each.path == look.python), None)
        if beside is not None and beside.origin != "callboard" and not look.error:
            self.python_found.emit(look.python)
        if look.error:
            self._say(Severity.FAILED, look.error)
        elif len(look.agents) == 1:
            self._choose_agent(look.agents[0])
        elif look.agents:
            self._offer(look.agents)
        elif look.tools:
            tools = ", ".join(tool.name for tool in look.tools if not tool.whole)
            whole = next((tool.name for tool in look.tools if tool.whole), "")
            said = [self.tr("Its tools: {names}.").format(names=tools)] if tools else []
            if whole:
                said.append(self.tr("As a single tool: {name}.").format(name=whole))
            self._say(Severity.FINE, " ".join(said))
        else:
            self._say(Severity.ATTENTION, self.tr("No agent of a kind that is known was found there."))

    def _offer(self, agents: list[FoundAgent]) -> None:
        text = self.tr("There are several agents. Which one?")
        if len(agents) > MOST_CHOICES:
            rest = ", ".join(agent.name for agent in agents[MOST_CHOICES:])
            text += " " + self.tr("Also: {names}.").format(names=rest)
        notice = self._say(Severity.BUSY, text)
        for agent in agents[:MOST_CHOICES]:
            button = notice.add_button(agent.name, partial(self._choose_agent, agent))
            button.setToolTip(agent.description)

    def _choose_agent(self, agent: FoundAgent) -> None:
        self.edit.setText(agent.agent)
        self.look()

    def _failed(self, error: CallboardError) -> None:
        self._task = None
        self._say(Severity.FAILED, error.message)

    def _say(self, severity: Severity, text: str) -> InlineNotice:
        self._close()
        self._notice = InlineNotice(self._kit.theme, self._kit.icons, severity)
        self._notice.set_text(text)
        put_in(self._below, self._notice)
        return self._notice

    def _forget(self) -> None:
        """What was found is no longer of what stands here."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._close()

    def _close(self) -> None:
        if self._notice is not None:
            take_out(self._below, self._notice)
            self._notice = None
