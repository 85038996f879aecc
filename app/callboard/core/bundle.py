"""MCP bundles (``.mcpb``): from the manifest of one to the way in which its server is set up.

The format is MANIFEST.md of the MCP Bundles project, versions 0.1 to 0.4. What the manifest calls ``user_config``
becomes inputs; ``${__dirname}`` and the person's folders are put in at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from callboard.core.errors import CallboardError
from callboard.core.references import escape_references
from callboard.core.registry import Argument, Input, InputKind, Way
from callboard.core.registry_fields import Fields
from callboard.core.registry_inputs import Inputs, reference

MANIFEST: Final = "manifest.json"
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_WHOLE = re.compile(r"\$\{user_config\.([^{}]*)\}")
_KINDS: Final[dict[str, InputKind]] = {
    "string": "text",
    "number": "number",
    "boolean": "boolean",
    "directory": "folder",
    "file": "file",
}
_SYSTEMS: Final = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}
_AT_LEAST = re.compile(r"(?:>=|\^|~)?\s*v?(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Place:
    """Where a bundle is unpacked, and the machine it is for. ``folders`` are the person's: HOME, DESKTOP and so on."""

    folder: str
    system: str  # as sys.platform has it
    separator: str = "/"
    folders: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """What a bundle says of itself. ``needed`` are files that must be in it, by their paths there, ``executables``
    those of them that are run as programs.
    """

    name: str
    title: str
    description: str
    version: str
    author: str
    way: Way
    needed: list[str] = field(default_factory=list)
    executables: list[str] = field(default_factory=list)


def read_manifest(document: Any, place: Place) -> Manifest:
    """The manifest as it counts on one machine. Raises ``bundle-invalid`` where no server can be made of it."""
    fields = Fields(document)
    server = fields.child("server")
    kind = server.line("type").lower()
    if kind not in ("node", "python", "binary", "uv"):
        raise _invalid(f'its server is of the type "{kind}"' if kind else "its manifest describes no server")
    name = fields.line("name")
    if not name:
        raise _invalid("its manifest gives no name")
    title = fields.line("displayName", "name")[:200]
    description = fields.line("description")[:1000]
    reader = _Reader(fields, server, kind, place)
    way = reader.way(title, description)
    entry_point = server.line("entryPoint")
    files = [entry_point] if entry_point and kind != "binary" else []
    return Manifest(
        name=name[:200],
        title=title,
        description=description,
        version=fields.line("version")[:100],
        author=fields.child("author").line("name")[:200],
        way=way,
        needed=[*files, *reader.executables],
        executables=reader.executables,
    )


def _invalid(why: str) -> CallboardError:
    return CallboardError("bundle-invalid", f"This is no bundle that Callboard can use: {why}.")


class _Reader:
    """Reads the part of a manifest that says how the server runs."""

    def __init__(self, fields: Fields, server: Fields, kind: str, place: Place) -> None:
        self._fields, self._server, self._kind, self._place = fields, server, kind, place
        self._inputs = Inputs()
        self._keys: dict[str, str] = {}  # of inputs, by their names in user_config
        self.executables: list[str] = []  # files of the bundle that are run as programs
        self._known = {
            "__dirname": place.folder,
            "pathSeparator": place.separator,
            "/": place.separator,
            **place.folders,
        }

    def way(self, title: str, description: str) -> Way:
        """The one way in which a bundle's server is set up."""
        for name, value in self._fields.members("userConfig"):
            self._ask(name, Fields(value))
        command, arguments, env = self._call()
        fields = {"display_name": title, "description": description, "cwd": escape_references(self._place.folder)}
        return Way(
            title=f"{_sort(self._kind)}, unpacked from the bundle",
            short="bundle",
            kind="local",
            command=command,
            arguments=arguments,
            env=env,
            fields={name: text for name, text in fields.items() if text},
            inputs=self._inputs.all,
            programs=self._programs(command),
            problem=self._problem(),
        )

    def _call(self) -> tuple[str, list[Argument], dict[str, str]]:
        config = self._server.child("mcpConfig")
        override = _member(config, "platformOverrides", self._place.system)
        entry_point = self._server.line("entryPoint")
        command = override.line("command") or config.line("command")
        written = override.texts("args") if override.raw("args") is not None else config.texts("args")
        variables = dict(override.members("env") if override.raw("env") is not None else config.members("env"))
        if not command:
            command, written = self._usual(entry_point)
        env = {name: self._text(value) for name, value in variables.items() if isinstance(value, str)}
        return self._program(command), self._arguments(written), env

    def _usual(self, entry_point: str) -> tuple[str, list[str]]:
        """What runs a server whose manifest leaves that to us."""
        file = "${__dirname}/" + entry_point
        if not entry_point:
            raise _invalid("its manifest does not say what to run")
        match self._kind:
            case "uv":
                return "uv", ["run", "--directory", "${__dirname}", entry_point]
            case "node":
                return "node", [file]
            case "python":
                return "python", [file]
            case _:
                return file, []

    def _program(self, command: str) -> str:
        if command == "python" and self._place.system != "win32":
            return "python3"  # where nothing is called python any more
        path = re.sub(r"^(\$\{__dirname\}|\.)[/\\]+", "", command)
        is_inside = path != command or (self._kind == "binary" and not re.search(r"^[/\\~]|:|\$\{", command))
        if not is_inside and ("/" not in command or re.match(r"[/~]|\$\{", command)):
            return self._text(command)
        if self._place.system == "win32" and self._kind == "binary" and not re.search(r"\.\w{2,4}$", path):
            path += ".exe"
        path = re.sub(r"[/\\]+", "/", path)
        self.executables.append(path)
        return escape_references(self._place.separator.join([self._place.folder, *path.split("/")]))

    def _arguments(self, texts: list[str]) -> list[Argument]:
        """Each by itself; but an option and its value, where that may be missing, go together."""
        arguments: list[Argument] = []
        for text in texts:
            whole = _WHOLE.fullmatch(text)
            optional = whole is not None and not self._is_required(whole.group(1))
            before = arguments[-1].texts[-1] if arguments else ""
            if optional and before.startswith("-") and "=" not in before and "${" not in before:
                arguments[-1] = Argument([*arguments[-1].texts, self._text(text)])
            else:
                arguments.append(Argument([self._text(text)]))
        return arguments

    def _text(self, text: str) -> str:
        parts, end = [], 0
        for match in _VARIABLE.finditer(text):
            parts += [escape_references(text[end : match.start()]), self._replacement(match.group(1))]
            end = match.end()
        return "".join([*parts, escape_references(text[end:])])

    def _replacement(self, name: str) -> str:
        if name in self._known:
            return escape_references(self._known[name])
        if name.startswith("user_config."):
            return reference(self._key(name.removeprefix("user_config.")))
        return escape_references(f"${{{name}}}")

    def _key(self, name: str) -> str:
        """The input of that name; one that is used and not described is asked for all the same."""
        if name not in self._keys:
            self._ask(name, Fields({"required": True}))
        return self._keys[name]

    def _is_required(self, name: str) -> bool:
        key = self._key(name)
        return next(each.required for each in self._inputs.all if each.key == key)

    def _ask(self, name: str, option: Fields) -> None:
        kind = _KINDS.get(option.line("type"), "text")
        multiple = option.flag("multiple") and kind in ("file", "folder")
        defaults = [self._default(text) for text in option.texts("default") if text]
        self._keys[name] = self._inputs.add(
            name,
            Input(
                key="",
                title=option.line("title")[:200] or name[:200],
                description=option.line("description")[:1000],
                kind=kind,
                required=option.flag("required"),
                secret=option.flag("sensitive"),
                default=defaults if multiple else defaults[:1],
                multiple=multiple,
                minimum=option.number("min"),
                maximum=option.number("max"),
            ),
        )

    def _default(self, text: str) -> str:
        """A default with the person's folders put in; nothing else is replaced there."""
        return _VARIABLE.sub(lambda match: self._known.get(match.group(1), match.group()), text)

    def _programs(self, command: str) -> dict[str, str]:
        runtimes = self._fields.child("compatibility").child("runtimes")
        if "/" in command or "\\" in command:
            return {}
        wanted = {"node": runtimes.line("node"), "python": runtimes.line("python"), "python3": runtimes.line("python")}
        found = _AT_LEAST.match(wanted.get(command, ""))
        return {command: found.group(1) if found else ""}

    def _problem(self) -> str:
        systems = self._fields.child("compatibility").texts("platforms")
        if not systems or self._place.system in systems:
            return ""
        names = " and ".join(_SYSTEMS.get(each, each) for each in systems[:5])
        return f"This bundle is made for {names}, not for {_SYSTEMS.get(self._place.system, self._place.system)}."


def _member(fields: Fields, name: str, member: str) -> Fields:
    return next((Fields(value) for key, value in fields.members(name) if key == member), Fields(None))


def _sort(kind: str) -> str:
    return {"node": "Node.js server", "python": "Python server", "uv": "Python server run by uv"}.get(kind, "Program")
