"""Which fields each kind of server has, and what is said about them."""

from dataclasses import dataclass, field

from PySide6.QtCore import QObject

from callboard.api.schema import EntryKind
from callboard.ui.editor.agent_field import AgentField
from callboard.ui.editor.aliases_field import AliasesField
from callboard.ui.editor.argument_list import ArgumentList
from callboard.ui.editor.auth_fields import AuthFields
from callboard.ui.editor.command_field import CommandField
from callboard.ui.editor.entry_model import CommandLine
from callboard.ui.editor.expose_field import ExposeField
from callboard.ui.editor.field_row import FieldRow
from callboard.ui.editor.fields import (
    CheckField,
    ChoiceField,
    Field,
    LinesField,
    NumberField,
    ParagraphField,
    PathField,
    TextField,
    ValueField,
)
from callboard.ui.editor.json_field import JsonField
from callboard.ui.editor.key_value_table import KeyValueTable, TableWords
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.secret_desk import SecretDesk


@dataclass(frozen=True)
class Sections:
    """The rows of a form in the order in which they stand."""

    main: list[FieldRow] = field(default_factory=list)
    advanced: list[FieldRow] = field(default_factory=list)

    @property
    def rows(self) -> list[FieldRow]:
        """All of them."""
        return [*self.main, *self.advanced]


def build_sections(kit: Kit, desk: SecretDesk, kind: EntryKind) -> Sections:
    """The fields of one kind of server."""
    builder = SectionBuilder(kit, desk)
    match kind:
        case "local":
            main = builder.local()
        case "remote":
            main = [builder.address(), builder.auth(), builder.headers(), builder.transport()]
        case "agent":
            main = builder.agent()
    return Sections([*main, *builder.when()], builder.advanced())


class SectionBuilder(QObject):
    """Builds the rows that the kinds of servers share or have alone."""

    def __init__(self, kit: Kit, desk: SecretDesk) -> None:
        super().__init__()
        self._kit = kit
        self._desk = desk

    def local(self) -> list[FieldRow]:
        """A program with its arguments, environment and folder."""
        command = CommandField(self._kit, self.tr("Command"), required=self.tr("Enter the program to start."))
        args = ArgumentList(self._kit, self._desk, self.tr("Arguments"))
        env = self._env_table()

        def split(line: CommandLine) -> None:
            args.add_texts(line.args)
            if line.env:
                env.add_pairs(line.env)

        command.was_split.connect(split)
        return [
            self._row("command", command),
            self._row("args", args),
            self._row("env", env),
            self.folder(),
        ]

    def environment(self) -> FieldRow:
        """Variables of a child process."""
        return self._row("env", self._env_table())

    def _env_table(self) -> KeyValueTable:
        words = TableWords(
            row=self.tr("Variable {number}"), add=self.tr("Add variable"), name=self.tr("NAME"), separators="="
        )
        return KeyValueTable(self._kit, self._desk, self.tr("Environment"), words)

    def headers(self) -> FieldRow:
        """Headers of every request."""
        words = TableWords(
            row=self.tr("Header {number}"),
            add=self.tr("Add header"),
            name=self.tr("Name"),
            separators=":",
            ignore_case=True,
        )
        return self._row("headers", KeyValueTable(self._kit, self._desk, self.tr("Headers"), words))

    def folder(self) -> FieldRow:
        """Where a child process starts."""
        field = PathField(self._kit, self.tr("Working folder"), folder=True, placeholder=self.tr("your home folder"))
        return self._row("cwd", field)

    def address(self) -> FieldRow:
        """Where a remote server is."""
        field = ValueField(
            self._kit,
            self._desk,
            self.tr("URL"),
            "url",
            placeholder="https://example.com/mcp",
            required=self.tr("Enter the server's address."),
        )
        return self._row("url", field)

    def auth(self) -> FieldRow:
        """How a remote server is told who calls."""
        return self._row("auth", AuthFields(self._kit, self._desk, self.tr("Authentication")))

    def transport(self) -> FieldRow:
        """What a remote server speaks."""
        choices = [("http", self.tr("HTTP, or SSE where there is nothing else")), ("sse", self.tr("SSE only"))]
        return self._row("transport", ChoiceField(self.tr("Transport"), choices))

    def agent(self) -> list[FieldRow]:
        """A Python agent, and what runs it."""
        python = PathField(
            self._kit, self.tr("Python interpreter"), folder=False, placeholder=self.tr("Callboard's own")
        )
        folder = self.folder()
        params = JsonField(self._kit, self._desk, self.tr("Parameters"), placeholder='{"silent_mode": true}')
        agent = AgentField(
            self._kit,
            self.tr("Agent"),
            required=self.tr("Enter the agent's module and attribute, or choose its file."),
            python=python,
            params=params,
            folder=folder.field,
        )

        def fill_in(path: str) -> None:
            if not python.edit.text():
                python.edit.setText(path)

        agent.python_found.connect(fill_in)
        return [
            self._row(
                "agent",
                agent,
                self.tr("module:attribute or file.py:attribute; the attribute is the agent, its class or a function."),
            ),
            self._row("python", python, self.tr("The one of the environment in which the agent's packages are.")),
            self._row("params", params, self.tr("Arguments for the agent's constructor: a JSON object.")),
            self._row("expose", ExposeField(self.tr("Expose"))),
            self._row("aliases", AliasesField(self.tr("Other names of arguments"))),
            self._row("persist", CheckField(self.tr("Keep conversations when it is restarted"), default=False)),
            self._row("reload", CheckField(self.tr("Load it anew when its files change"), default=False)),
            self.environment(),
            folder,
        ]

    def when(self) -> list[FieldRow]:
        """When the server runs."""
        start = [
            ("at-launch", self.tr("When Callboard starts")),
            ("on-demand", self.tr("With the first call")),
            ("manual", self.tr("Only by hand")),
        ]
        return [
            self._row("start", ChoiceField(self.tr("Start"), start)),
            self._row("enabled", CheckField(self.tr("Enabled"), default=True)),
        ]

    def advanced(self) -> list[FieldRow]:
        """What most servers need not say."""
        seconds, times, never = self.tr("seconds"), self.tr("times"), self.tr("never")
        sharing = [
            ("shared", self.tr("One process for all clients")),
            ("per-client", self.tr("A process for each client")),
            ("per-session", self.tr("A process for each session")),
        ]
        tool = self.tr("one name or pattern on each line, such as read_*")
        texts = [
            self._row("display_name", TextField(self.tr("Display name"))),
            self._row("description", ParagraphField(self.tr("Description"), rows=2)),
        ]
        numbers = [
            self._row("timeouts.start", NumberField(self.tr("Start within"), seconds, placeholder="30")),
            self._row("timeouts.call", NumberField(self.tr("Answer a call within"), seconds, placeholder="300")),
            self._row("timeouts.idle", NumberField(self.tr("Stop when idle for"), seconds, placeholder=never)),
            self._row("restart.max", NumberField(self.tr("Restart after crashes"), times, placeholder="5", whole=True)),
            self._row("restart.delay", NumberField(self.tr("Wait before restarting"), seconds, placeholder="1")),
        ]
        use = [
            self._row("sharing", ChoiceField(self.tr("Sharing"), sharing)),
            self._row("tools.allow", LinesField(self.tr("Tools allowed (all, if empty)"), placeholder=tool)),
            self._row("tools.deny", LinesField(self.tr("Tools denied"), placeholder=tool)),
        ]
        return [*texts, *numbers, *use]

    def _row(self, dotted: str, field: Field, help_text: str = "") -> FieldRow:
        return FieldRow(self._kit, tuple(dotted.split(".")), field, help_text)
