"""The tools of the server that reads files. Each is called in a thread of its own."""

from __future__ import annotations

import functools
import json
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from callboard.servers import importing_fastmcp
from callboard.servers.filesystem.folder import Item, kind_of
from callboard.servers.filesystem.globs import Glob, Globs
from callboard.servers.filesystem.places import Refused, Roots, shown
from callboard.servers.filesystem.text import read_text, size_of
from callboard.servers.filesystem.trees import Bounds, by_name, search, tree
from callboard.servers.filesystem.walk import open_folder, parent_of
from callboard.servers.kit import add_tool, new_server, note_block, refused, tell_person, text_block

with importing_fastmcp():
    from fastmcp import FastMCP
    from fastmcp.tools import ToolResult

NAME: Final = "filesystem"
HardLinks = Literal["warn", "refuse"]

_INSTRUCTIONS: Final = (
    "Reads files and folders of the person's machine, and changes none. Only what lies below the folders that "
    "list_allowed_directories names can be reached; symbolic links are shown but never followed."
)
_OUTPUT: Final = {
    "type": "object",
    "properties": {"content": {"type": "string"}},
    "required": ["content"],
    "additionalProperties": False,
}
_TAGS: Final = {"file": "[FILE]", "folder": "[DIR]", "link": "[LINK]", "other": "[OTHER]"}
_LISTED: Final = 10_000  # items of one folder
_AT_ONCE: Final = 1_000  # files of one call
_REMEMBERED: Final = 1_000  # files that the person was told of

FilePath = Annotated[str, Field(description="The file: an absolute path, or one relative to the first allowed folder")]
FolderPath = Annotated[
    str, Field(description="The folder: an absolute path, or one relative to the first allowed folder")
]
Lines = float | SkipJsonSchema[None]
Excludes = Annotated[
    list[str],
    Field(description="Glob patterns of what to leave out; one without a slash leaves out that name at any depth"),
]


@dataclass
class Answer:
    """What a tool says: its text, remarks for whoever reads it, and some for the person alone."""

    text: str = ""
    remarks: list[str] = field(default_factory=list)
    for_person: list[str] = field(default_factory=list)

    def result(self) -> ToolResult:
        """As MCP has it; the structured content holds nothing but the text."""
        blocks: list[Any] = [note_block(remark) for remark in self.remarks]
        blocks += [note_block(remark, for_person=True) for remark in self.for_person]
        return ToolResult(content=[text_block(self.text), *blocks], structured_content={"content": self.text})


class Files:
    """The tools, for certain roots. ``limit`` is how many bytes of a file are read at once."""

    def __init__(self, roots: Roots, *, limit: int = 4 * 1024 * 1024, hard_links: HardLinks = "warn") -> None:
        self._roots = roots
        self._limit = limit
        self._hard_links = hard_links
        self._told: OrderedDict[tuple[int, int], None] = OrderedDict()

    def read_text_file(
        self,
        path: FilePath,
        tail: Annotated[Lines, Field(description="Only this many lines from the end of the file")] = None,
        head: Annotated[Lines, Field(description="Only this many lines from the beginning of the file")] = None,
    ) -> Answer:
        """Reads a file as text, whole or only its first (head) or last (tail) lines.

        UTF-8, UTF-16, UTF-32 and Windows-1252 are told apart; binary files and very large ones are refused with a
        reason. Use head or tail to look into a long file such as a log.
        """
        if head is not None and tail is not None:
            raise Refused("Cannot specify both head and tail parameters simultaneously")
        answer = Answer()
        answer.text = self._read(path, answer, self._limit, _count("head", head), _count("tail", tail))
        return answer

    def read_multiple_files(
        self,
        paths: Annotated[
            list[str], Field(min_length=1, description="The files: absolute paths, or relative to the first folder")
        ],
    ) -> Answer:
        """Reads several files as text in one call, each under its path, with lines of --- between them.

        A file that cannot be read has the reason in its place and does not keep the others from being read. Quicker
        than one call for each file.
        """
        if len(paths) > _AT_ONCE:
            raise Refused(f"At most {_AT_ONCE} files can be read at once.")
        answer = Answer()
        parts = []
        left = self._limit
        for path in paths:
            try:
                text = self._read(path, answer, left)
            except Refused as error:
                parts.append(f"{shown(path)}: Error - {error}")
            else:
                left = max(left - len(text), 1)
                parts.append(f"{shown(path)}:\n{text}\n")
        answer.text = "\n---\n".join(parts)
        return answer

    def list_directory(self, path: FolderPath) -> Answer:
        """Lists what is directly in a folder, one item a line: [FILE], [DIR], [LINK] or [OTHER], and its name.

        Links are not followed, and what is neither file nor folder cannot be read.
        """
        answer = Answer()
        with open_folder(self._roots.find(path)) as folder:
            items = _listed(folder.items(_LISTED + 1), answer)
        answer.text = "\n".join(f"{_TAGS[item.kind]} {shown(item.name)}" for item in items)
        return answer

    def list_directory_with_sizes(
        self,
        path: FolderPath,
        sortBy: Annotated[
            Literal["name", "size"], Field(description="Sort by name, or by size with the largest first")
        ] = "name",
    ) -> Answer:
        """Lists what is directly in a folder with the sizes of its files, and with totals below.

        Like list_directory, but looks at every item; use it to see what takes up space. A link counts nothing.
        """
        answer = Answer()
        sizes: dict[Item, int] = {}
        with open_folder(self._roots.find(path)) as folder:
            for item in _listed(folder.items(_LISTED + 1), answer):
                try:
                    sizes[item] = folder.look(item.name).st_size if item.kind == "file" else 0
                except Refused:
                    continue  # gone since it was listed
        if sortBy == "size":
            sizes = dict(sorted(sizes.items(), key=lambda pair: -pair[1]))
        lines = [
            f"{_TAGS[item.kind]} {shown(item.name):<30} {size_of(size) if item.kind == 'file' else '':>10}".rstrip()
            for item, size in sizes.items()
        ]
        kinds = [item.kind for item in sizes]
        lines += [
            "",
            f"Total: {len(kinds) - kinds.count('folder')} files, {kinds.count('folder')} directories",
            f"Combined size: {size_of(sum(sizes.values()))}",
        ]
        answer.text = "\n".join(lines)
        return answer

    def directory_tree(self, path: FolderPath, excludePatterns: Excludes = []) -> Answer:  # noqa: B006
        """Shows a folder and all below it as JSON: objects with name and type, folders with their children.

        The type is file, directory, symlink or other; links are not followed. Leave out folders such as node_modules
        and .git with excludePatterns: there is a limit to the size of the answer.
        """
        answer = Answer()
        bounds = Bounds(found=10_000)
        with open_folder(self._roots.find(path)) as folder:
            answer.text = json.dumps(tree(folder, Globs(excludePatterns), bounds), indent=2, ensure_ascii=False)
        answer.remarks += bounds.remarks
        return answer

    def search_files(
        self,
        path: FolderPath,
        pattern: Annotated[str, Field(description="A glob pattern for the path below the folder, such as **/*.py")],
        excludePatterns: Excludes = [],  # noqa: B006
    ) -> Answer:
        """Finds files and folders by name, below a folder; answers with whole paths, one a line.

        The pattern is matched against the path relative to the folder: *.txt finds only what is directly in it,
        **/*.txt at any depth. There are *, ?, [...] and {a,b} as well. Links are found but not followed.
        """
        answer = Answer()
        bounds = Bounds()
        with open_folder(self._roots.find(path)) as folder:
            found = search(folder, Glob(pattern), Globs(excludePatterns), bounds)
        answer.text = "\n".join(found) or "No matches found"
        if not found and "/" not in pattern:
            answer.remarks.append(f"{pattern} looks only directly in the folder; **/{pattern} looks at any depth")
        answer.remarks += bounds.remarks
        return answer

    def get_file_info(
        self, path: Annotated[str, Field(description="A file or folder: an absolute path, or a relative one")]
    ) -> Answer:
        """Tells the size, times, kind and permissions of a file or folder without reading it.

        A link is described itself, not what it leads to. hardLinks stands there only for a file with several names.
        """
        with parent_of(self._roots.find(path)) as (folder, name):
            status = folder.look(name)
        kind = kind_of(status)
        facts = {
            "size": str(status.st_size),
            "created": _time(getattr(status, "st_birthtime", None)),
            "modified": _time(status.st_mtime),
            "accessed": _time(status.st_atime),
            "isDirectory": str(kind == "folder").lower(),
            "isFile": str(kind == "file").lower(),
            "isSymbolicLink": "true" if kind == "link" else "",
            "permissions": f"{stat.S_IMODE(status.st_mode):03o}",
            "hardLinks": str(status.st_nlink) if kind == "file" and status.st_nlink > 1 else "",
        }
        return Answer("\n".join(f"{name}: {value}" for name, value in facts.items() if value))

    def list_allowed_directories(self) -> Answer:
        """Names the folders that can be read here, with all that is below them. Ask first where it is not known."""
        return Answer("Allowed directories:\n" + "\n".join(map(shown, self._roots.paths)))

    def _read(self, path: str, answer: Answer, limit: int, head: int | None = None, tail: int | None = None) -> str:
        place = self._roots.find(path)
        with parent_of(place) as (folder, name):
            if not name:
                raise Refused(f"{shown(place.path)} is a folder, not a file.")
            descriptor, status = folder.file(name)
        try:
            if status.st_nlink > 1:
                self._look_at_links(place.path, status, answer)
            found = read_text(descriptor, shown(place.path), limit, head=head, tail=tail)
        except OSError as error:
            raise Refused(f"{shown(place.path)} could not be read: {error.strerror}.") from None
        finally:
            os.close(descriptor)
        if found.remark:
            answer.remarks.append(f"{shown(place.path)}: {found.remark}")
        return found.text

    def _look_at_links(self, path: str, status: os.stat_result, answer: Answer) -> None:
        """A hard link cannot be told from the file itself: the same data may have a name outside of all roots."""
        if self._hard_links == "refuse":
            raise Refused(f"Access denied - {shown(path)} has {status.st_nlink} hard links, which are refused here.")
        remark = f"{shown(path)} has {status.st_nlink} hard links: its data may also have a name outside of the folders"
        answer.for_person.append(remark)
        key = (status.st_dev, status.st_ino)
        if key not in self._told:
            self._told[key] = None
            if len(self._told) > _REMEMBERED:
                self._told.popitem(last=False)
            tell_person(NAME, f"warning: {remark}.")


def make_server(files: Files) -> FastMCP[Any]:
    """The MCP server for these tools."""
    server = new_server(NAME, _INSTRUCTIONS)
    for title, method in (
        ("Read text file", files.read_text_file),
        ("Read multiple files", files.read_multiple_files),
        ("List directory", files.list_directory),
        ("List directory with sizes", files.list_directory_with_sizes),
        ("Directory tree", files.directory_tree),
        ("Search files", files.search_files),
        ("Get file info", files.get_file_info),
        ("List allowed directories", files.list_allowed_directories),
    ):
        add_tool(server, _answering(method), title, _OUTPUT)
    return server


def _answering(method: Callable[..., Answer]) -> Callable[..., ToolResult]:
    """A tool's method with its answer as MCP has it, and its refusals as errors that a caller sees."""

    @functools.wraps(method)
    def tool(*args: Any, **kwargs: Any) -> ToolResult:
        try:
            return method(*args, **kwargs).result()
        except Refused as error:
            raise refused(str(error)) from None

    return tool


def _count(name: str, value: float | None) -> int | None:
    if value is None:
        return None
    if value < 0 or value != int(value):
        raise Refused(f"{name} must be a whole number of lines.")
    return int(value)


def _listed(items: list[Item], answer: Answer) -> list[Item]:
    if len(items) > _LISTED:
        answer.remarks.append(f"only {_LISTED} of the items in this folder are here")
    return by_name(items[:_LISTED])


def _time(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
