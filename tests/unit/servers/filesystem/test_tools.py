"""The tools of the server filesystem, in memory: what they read, what they refuse, and how they say it."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError

from callboard.servers.filesystem.places import Roots
from callboard.servers.filesystem.tools import Files, make_server

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes as POSIX has them")

Call = Callable[..., Coroutine[Any, Any, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("SECRET\n")
    return folder


def files(*roots: Path, **options: Any) -> Files:
    found, problems = Roots.of(map(str, roots))
    assert found is not None
    assert problems == []
    return Files(found, **options)


@pytest.fixture
async def client(root: Path) -> AsyncIterator[Client[Any]]:
    async with Client(make_server(files(root, limit=64 * 1024))) as client:
        yield client


@pytest.fixture
def call(client: Client[Any]) -> Call:
    async def call(tool: str, **arguments: Any) -> str:
        result = await client.call_tool(tool, arguments)
        assert result.structured_content == {"content": result.content[0].text}
        text: str = result.content[0].text
        return text

    return call


async def refusal(call: Call, tool: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as refused:
        await call(tool, **arguments)
    return str(refused.value)


# what is offered


async def test_assertion_31_the_eight_tools_of_filesystem_only_read(client: Client[Any]) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}

    assert list(tools) == [
        "read_text_file",
        "read_multiple_files",
        "list_directory",
        "list_directory_with_sizes",
        "directory_tree",
        "search_files",
        "get_file_info",
        "list_allowed_directories",
    ]
    for tool in tools.values():
        assert tool.title
        assert tool.description
        assert tool.annotations
        assert (tool.annotations.read_only_hint, tool.annotations.open_world_hint) == (True, False)
        assert tool.output_schema == {
            "type": "object",
            "properties": {"content": {"type": "string"}},
            "required": ["content"],
            "additionalProperties": False,
        }


async def test_assertion_31_the_schemas_of_filesystem_are_those_that_clients_know(client: Client[Any]) -> None:
    schemas = {}
    for tool in await client.list_tools():
        properties = {
            name: {key: value for key, value in schema.items() if key != "description"}
            for name, schema in tool.input_schema["properties"].items()
        }
        schemas[tool.name] = (properties, tool.input_schema.get("required", []))

    path = {"path": {"type": "string"}}
    excludes = {"excludePatterns": {"type": "array", "items": {"type": "string"}, "default": []}}
    assert schemas == {
        "read_text_file": ({**path, "tail": {"type": "number"}, "head": {"type": "number"}}, ["path"]),
        "read_multiple_files": ({"paths": {"type": "array", "items": {"type": "string"}, "minItems": 1}}, ["paths"]),
        "list_directory": (path, ["path"]),
        "list_directory_with_sizes": (
            {**path, "sortBy": {"type": "string", "enum": ["name", "size"], "default": "name"}},
            ["path"],
        ),
        "directory_tree": ({**path, **excludes}, ["path"]),
        "search_files": ({**path, "pattern": {"type": "string"}, **excludes}, ["path", "pattern"]),
        "get_file_info": (path, ["path"]),
        "list_allowed_directories": ({}, []),
    }


async def test_assertion_31_list_allowed_directories_names_the_roots(root: Path, call: Call) -> None:
    assert await call("list_allowed_directories") == f"Allowed directories:\n{root}"


# reading


async def test_a_file_is_read_whole_by_its_absolute_and_by_its_relative_path(root: Path, call: Call) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("one\r\ntwo ☃\n", newline="")

    assert await call("read_text_file", path=str(root / "sub" / "a.txt")) == "one\r\ntwo ☃\n"
    assert await call("read_text_file", path="sub/a.txt") == "one\r\ntwo ☃\n"
    assert await call("read_text_file", path="./sub/../sub//a.txt") == "one\r\ntwo ☃\n"
    assert await call("read_text_file", path="sub/a.txt", head=None, tail=None) == "one\r\ntwo ☃\n"


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("a\nb\nc\n", {"head": 2}, "a\nb"),
        ("a\nb\nc\n", {"tail": 1}, "c"),
        ("a\nb\nc", {"tail": 1}, "c"),
        ("a\nb\nc\n", {"tail": 2.0}, "b\nc"),
        ("a\r\nb\rc\n", {"tail": 2}, "b\nc"),
        ("a\nb\n", {"head": 9}, "a\nb"),
        ("a\nb\n", {"tail": 9}, "a\nb"),
        ("a\n\n", {"tail": 1}, ""),
        ("a\nb\n", {"head": 0}, ""),
        ("a\nb\n", {"tail": 0}, ""),
        ("", {"tail": 3}, ""),
    ],
)
async def test_assertion_31_head_and_tail_count_lines_and_not_line_ends(
    root: Path, call: Call, text: str, arguments: dict[str, float], expected: str
) -> None:
    (root / "a.txt").write_text(text, newline="")

    assert await call("read_text_file", path="a.txt", **arguments) == expected


async def test_assertion_31_head_and_tail_at_once_are_refused(root: Path, call: Call) -> None:
    (root / "a.txt").write_text("a\n")

    said = await refusal(call, "read_text_file", path="a.txt", head=1, tail=1)

    assert said == "Cannot specify both head and tail parameters simultaneously"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": "a.txt", "head": 1.5}, "head must be a whole number of lines."),
        ({"path": "a.txt", "tail": -1}, "tail must be a whole number of lines."),
        ({}, "Wrong arguments: path is missing."),
        ({"path": ["SENSITIVE"]}, "Wrong arguments: path must be a valid string."),
        ({"path": "a.txt", "lines": "SENSITIVE"}, "Wrong arguments: there is no argument lines."),
        ({"path": "a\0b"}, "A path cannot contain a NUL character."),
    ],
)
async def test_wrong_arguments_are_said_in_a_sentence_without_their_values(
    root: Path, call: Call, arguments: dict[str, Any], said: str
) -> None:
    (root / "a.txt").write_text("a\n")

    assert await refusal(call, "read_text_file", **arguments) == said


async def test_assertion_31_of_several_files_each_has_its_text_or_its_error(root: Path, call: Call) -> None:
    (root / "a.txt").write_text("alpha")
    (root / "b.txt").write_text("beta\n")

    text = await call("read_multiple_files", paths=["a.txt", "gone.txt", str(root / "b.txt")])

    assert text == (
        f"a.txt:\nalpha\n\n---\ngone.txt: Error - There is no file or folder {root / 'gone.txt'}."
        f"\n---\n{root / 'b.txt'}:\nbeta\n\n"
    )


async def test_several_files_are_bounded_together(root: Path, call: Call) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (root / name).write_text(name[0] * 30_000)

    text = await call("read_multiple_files", paths=["a.txt", "b.txt", "c.txt"])

    assert "a" * 30_000 in text
    assert "b" * 30_000 in text
    assert "c.txt: Error - " in text
    assert "more than the" in text
    assert "At most 1000 files" in await refusal(call, "read_multiple_files", paths=["a.txt"] * 1001)


async def test_a_file_that_is_too_large_is_refused_whole_but_read_in_part(root: Path, call: Call) -> None:
    lines = [f"line {number}" for number in range(20_000)]
    (root / "big.log").write_text("\n".join(lines) + "\n")

    said = await refusal(call, "read_text_file", path="big.log")
    assert "big.log is " in said
    assert "which is more than the 64.00 KB that are read at once; use head or tail." in said
    assert await call("read_text_file", path="big.log", head=3) == "line 0\nline 1\nline 2"
    assert await call("read_text_file", path="big.log", tail=2) == "line 19998\nline 19999"


async def test_a_part_that_is_too_large_is_cut_and_says_so(root: Path, client: Client[Any]) -> None:
    (root / "big.log").write_text("é" * 9 + "\n" + "line é\n" * 20_000)

    for arguments, part in (({"head": 20_000}, "first"), ({"tail": 20_000}, "last")):
        result = await client.call_tool("read_text_file", {"path": "big.log", **arguments})
        text, note = [block.text for block in result.content]
        assert set(text.split("\n")[2:-2]) == {"line é"}
        assert f"only the {part} 64.00 KB of the file are here" in note


# encodings


@pytest.mark.parametrize(
    ("data", "text", "remark"),
    [
        ("grüße ☃".encode(), "grüße ☃", ""),
        (b"\xef\xbb\xbfwith a mark", "with a mark", ""),
        ("grüße ☃\n".encode("utf-16"), "grüße ☃\n", "UTF-16"),
        ("plain words\n".encode("utf-16-le"), "plain words\n", "UTF-16"),
        ("plain words\n".encode("utf-16-be"), "plain words\n", "UTF-16"),
        ("grüße".encode("utf-32"), "grüße", "UTF-32"),
        ("Grüße aus Köln “quoted”".encode("cp1252"), "Grüße aus Köln “quoted”", "Windows-1252"),
        ("äöüäöü".encode() + b"\xff", "äöüäöü\ufffd", "not UTF-8"),
        (b"\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n", ""),
    ],
)
async def test_encodings_are_told_apart(root: Path, client: Client[Any], data: bytes, text: str, remark: str) -> None:
    (root / "a.txt").write_bytes(data)

    result = await client.call_tool("read_text_file", {"path": "a.txt"})

    assert result.content[0].text == text
    assert [remark in block.text for block in result.content[1:]] == ([True] if remark else [])


@pytest.mark.parametrize(
    "data", [b"\x7fELF\x02\x01\x01\0\0\0", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", bytes(range(256)), b"\0"]
)
async def test_binary_data_is_refused(root: Path, call: Call, data: bytes) -> None:
    (root / "a.bin").write_bytes(data)

    assert await refusal(call, "read_text_file", path="a.bin") == f"{root / 'a.bin'} is not text, but binary data."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32"])
async def test_the_end_of_a_large_file_is_read_in_its_encoding(root: Path, call: Call, encoding: str) -> None:
    words = "plain words and a ☃\n" if encoding != "utf-16-le" else "plain words\n"
    (root / "a.txt").write_bytes((words * 10_001).encode(encoding))

    assert await call("read_text_file", path="a.txt", tail=2) == "\n".join([words.strip()] * 2)


# what cannot be reached


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside/secret.txt", "sub/../../outside/secret.txt", "..", "~"])
async def test_assertion_31_what_lies_outside_of_the_roots_is_refused(
    root: Path, outside: Path, call: Call, path: str
) -> None:
    for tool in ("read_text_file", "list_directory", "list_directory_with_sizes", "directory_tree", "get_file_info"):
        said = await refusal(call, tool, path=path)
        assert said.startswith("Access denied - path outside allowed directories: ")
        assert said.endswith(f" not in {root}")
    assert "Access denied" in await refusal(call, "search_files", path=path, pattern="**")
    assert "Error - Access denied" in await call("read_multiple_files", paths=[path])


async def test_a_folder_whose_name_only_begins_like_a_root_is_outside(tmp_path: Path, root: Path, call: Call) -> None:
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2" / "a.txt").write_text("SECRET")

    assert "outside allowed directories" in await refusal(call, "read_text_file", path=f"{root}2/a.txt")


async def test_assertion_31_no_tool_follows_a_link(root: Path, outside: Path, call: Call) -> None:
    (root / "file").symlink_to(outside / "secret.txt")
    (root / "folder").symlink_to("../outside")
    (root / "inside.txt").write_text("inside")
    (root / "to-inside").symlink_to("inside.txt")

    for path in ("file", "folder/secret.txt", "to-inside"):
        said = await refusal(call, "read_text_file", path=path)
        assert said.startswith("Access denied - symbolic links are not followed: ")
    for tool in ("list_directory", "list_directory_with_sizes", "directory_tree"):
        assert f"{root / 'folder'} leads to ../outside." in await refusal(call, tool, path="folder")
    assert "not followed" in await refusal(call, "search_files", path="folder", pattern="**")
    assert "not followed" in await refusal(call, "get_file_info", path="folder/secret.txt")
    everything = await call("directory_tree", path=".") + await call("search_files", path=".", pattern="**")
    assert "secret" not in everything


async def test_assertion_31_sizes_are_those_of_links_and_not_of_what_they_lead_to(
    root: Path, outside: Path, call: Call
) -> None:
    (outside / "large").write_bytes(b"x" * 5000)
    (root / "link").symlink_to(outside / "large")
    (root / "a.txt").write_bytes(b"x" * 1229)

    listing = await call("list_directory_with_sizes", path=".")

    assert listing.endswith("\n\nTotal: 2 files, 0 directories\nCombined size: 1.20 KB")
    info = dict(line.split(": ", 1) for line in (await call("get_file_info", path="link")).splitlines())
    assert info["size"] == str(len(str(outside / "large")))
    assert info["isSymbolicLink"] == "true"


@pytest.mark.timeout(10)
async def test_pipes_devices_and_sockets_are_refused_at_once(root: Path, call: Call) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        os.chdir(root)  # a socket's path must be short
        sock.bind("socket")

    assert await refusal(call, "read_text_file", path="pipe") == f"{root / 'pipe'} is a named pipe, not a file."
    assert await refusal(call, "read_text_file", path="socket") == f"{root / 'socket'} is a socket, not a file."
    assert await refusal(call, "read_text_file", path=".") == f"{root} is a folder, not a file."
    assert await call("list_directory", path=".") == "[OTHER] pipe\n[OTHER] socket"


@pytest.mark.timeout(10)
async def test_a_device_is_refused() -> None:
    async with Client(make_server(files(Path("/dev")))) as client:
        with pytest.raises(ToolError, match="/dev/zero is a device, not a file"):
            await client.call_tool("read_text_file", {"path": "zero"})


async def test_a_path_that_is_not_there_or_no_folder_is_said_so(root: Path, call: Call) -> None:
    (root / "a.txt").write_text("a")

    assert await refusal(call, "read_text_file", path="b") == f"There is no file or folder {root / 'b'}."
    assert await refusal(call, "list_directory", path="b") == f"There is no file or folder {root / 'b'}."
    assert await refusal(call, "list_directory", path="a.txt") == f"{root / 'a.txt'} is not a folder."
    assert await refusal(call, "read_text_file", path="a.txt/b") == f"{root / 'a.txt'} is not a folder."
    assert await refusal(call, "read_text_file", path="x" * 300) == "The path is too long."


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read everything")
async def test_a_file_without_permission_is_said_so(root: Path, call: Call) -> None:
    (root / "a.txt").write_text("a")
    (root / "a.txt").chmod(0)

    assert "Permission denied" in await refusal(call, "read_text_file", path="a.txt")


async def test_a_root_that_was_exchanged_for_a_link_since_the_start_is_refused(
    root: Path, outside: Path, call: Call
) -> None:
    root.rename(root.with_name("away"))
    root.symlink_to(outside)

    assert "not followed" in await refusal(call, "read_text_file", path="secret.txt")
    assert "not followed" in await refusal(call, "list_directory", path=".")


async def test_a_root_may_be_named_by_a_link_and_made_anew(tmp_path: Path, root: Path) -> None:
    (tmp_path / "name").symlink_to(root)
    async with Client(make_server(files(tmp_path / "name"))) as client:
        for _ in range(2):
            (root / "a.txt").write_text("inside")
            for path in ("a.txt", str(tmp_path / "name" / "a.txt"), str(root / "a.txt")):
                assert (await client.call_tool("read_text_file", {"path": path})).content[0].text == "inside"
            root.rename(tmp_path / f"old-{root.stat().st_ino}")
            root.mkdir()


async def test_several_roots_and_one_in_another(tmp_path: Path) -> None:
    for name in ("one", "one/inner", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    async with Client(make_server(files(tmp_path / "one", tmp_path / "two", tmp_path / "one" / "inner"))) as client:
        for name in ("one", "one/inner", "two"):
            result = await client.call_tool("read_text_file", {"path": str(tmp_path / name / "a.txt")})
            assert result.content[0].text == name
        assert (await client.call_tool("read_text_file", {"path": "a.txt"})).content[0].text == "one"


# hard links


async def test_a_hard_link_is_read_with_a_warning_for_the_person(
    root: Path, outside: Path, client: Client[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    os.link(outside / "secret.txt", root / "a.txt")

    for _ in range(2):
        result = await client.call_tool("read_text_file", {"path": "a.txt"})
        text, note = result.content
        assert text.text == "SECRET\n"
        assert note.annotations.audience == ["user"]
        assert "has 2 hard links" in note.text
    assert capsys.readouterr().err.count("hard links") == 1
    info = (await client.call_tool("get_file_info", {"path": "a.txt"})).content[0].text
    assert "hardLinks: 2" in info.splitlines()


async def test_hard_links_are_refused_where_that_is_wanted(root: Path, outside: Path) -> None:
    os.link(outside / "secret.txt", root / "a.txt")
    (root / "b.txt").write_text("one name")
    async with Client(make_server(files(root, hard_links="refuse"))) as client:
        with pytest.raises(ToolError, match="has 2 hard links, which are refused here"):
            await client.call_tool("read_text_file", {"path": "a.txt"})
        assert (await client.call_tool("read_text_file", {"path": "b.txt"})).content[0].text == "one name"


# listings


async def test_assertion_31_a_folder_is_listed_one_item_a_line(root: Path, call: Call) -> None:
    (root / "sub").mkdir()
    (root / "a.txt").write_text("x" * 1500)
    (root / "B.txt").write_text("x")

    assert await call("list_directory", path=".") == "[FILE] a.txt\n[FILE] B.txt\n[DIR] sub"
    listing = (await call("list_directory_with_sizes", path=".", sortBy="size")).splitlines()
    assert [line.split() for line in listing[:3]] == [
        ["[FILE]", "a.txt", "1.46", "KB"],
        ["[FILE]", "B.txt", "1", "B"],
        ["[DIR]", "sub"],
    ]
    assert listing[3:] == ["", "Total: 2 files, 1 directories", "Combined size: 1.47 KB"]
    assert await call("list_directory", path="sub") == ""


async def test_a_name_chosen_with_malice_stays_on_its_line(root: Path, call: Call) -> None:
    (root / "a\n[DIR] b").write_text("")
    (root / "c\x1b[2J").write_text("")
    (Path(os.fsdecode(os.fsencode(root) + b"/d\xff"))).write_text("")

    assert (await call("list_directory", path=".")).splitlines() == [
        r"[FILE] a\n[DIR] b",
        r"[FILE] c\x1b[2J",
        r"[FILE] d\xff",
    ]
    assert len((await call("search_files", path=".", pattern="*")).splitlines()) == 3
    assert len(json.loads(await call("directory_tree", path="."))) == 3


async def test_a_very_large_folder_is_listed_in_part(root: Path, client: Client[Any]) -> None:
    for number in range(10_001):
        os.mknod(root / f"{number}")

    result = await client.call_tool("list_directory", {"path": "."})

    assert len(result.content[0].text.splitlines()) == 10_000
    assert "only 10000 of the items" in result.content[1].text


async def test_a_tree_shows_kinds_and_children_and_leaves_out_what_is_asked(root: Path, call: Call) -> None:
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "deep" / "a.py").write_text("")
    (root / "node_modules" / "x").mkdir(parents=True)
    (root / "src" / "node_modules").mkdir()
    (root / "src" / "a.pyc").write_text("")
    (root / "link").symlink_to("src")

    tree = json.loads(await call("directory_tree", path=".", excludePatterns=["node_modules", "**/*.pyc"]))

    deep = {"name": "deep", "type": "directory", "children": [{"name": "a.py", "type": "file"}]}
    assert tree == [
        {"name": "link", "type": "symlink"},
        {"name": "src", "type": "directory", "children": [deep]},
    ]


async def test_a_tree_is_bounded_in_depth_and_number(root: Path, client: Client[Any]) -> None:
    path = root
    for _ in range(70):
        path /= "d"
        path.mkdir()
    result = await client.call_tool("directory_tree", {"path": "."})
    assert result.content[0].text.count('"name"') == 64
    assert "nothing below 64 folders" in result.content[1].text

    for number in range(10_001):
        os.mknod(root / f"{number}")
    result = await client.call_tool("directory_tree", {"path": "."})
    assert result.content[0].text.count('"name"') == 10_000
    assert "there is more than this answer has" in result.content[1].text


async def test_search_finds_by_glob_relative_to_the_folder(root: Path, call: Call) -> None:
    for name in ("a.py", "sub/b.py", "sub/deep/c.py", "sub/deep/c.pyc", "node_modules/d.py", ".hidden/e.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")

    async def search(pattern: str, *without: str, path: str = ".") -> list[str]:
        text = await call("search_files", path=path, pattern=pattern, excludePatterns=list(without))
        return [str(Path(line).relative_to(root)) for line in text.splitlines()]

    assert await search("*.py") == ["a.py"]
    assert await search("*.py", path="sub") == ["sub/b.py"]
    assert await search("**/*.py", "node_modules", ".hidden/**") == ["a.py", "sub/b.py", "sub/deep/c.py"]
    assert await search("sub/**") == ["sub/b.py", "sub/deep", "sub/deep/c.py", "sub/deep/c.pyc"]
    assert await search("**/{b,c}.p?") == ["sub/b.py", "sub/deep/c.py"]
    assert await search("sub/*/[!x].py") == ["sub/deep/c.py"]
    assert await search("**/deep") == ["sub/deep"]


async def test_search_says_when_nothing_is_found_and_why_that_may_be(root: Path, client: Client[Any]) -> None:
    result = await client.call_tool("search_files", {"path": ".", "pattern": "*.py"})

    assert result.content[0].text == "No matches found"
    assert "**/*.py looks at any depth" in result.content[1].text
    assert len((await client.call_tool("search_files", {"path": ".", "pattern": "**/*.py"})).content) == 1


@pytest.mark.timeout(10)
async def test_a_pattern_cannot_take_forever(root: Path, call: Call) -> None:
    (root / ("a" * 250)).write_text("")

    assert await call("search_files", path=".", pattern="*a" * 100 + "b") == "No matches found"
    assert await call("search_files", path=".", pattern="**/" * 300 + "b") == "No matches found"
    assert "256 others" in await refusal(call, "search_files", path=".", pattern="{a,b}" * 20)
    assert "2000 characters" in await refusal(call, "search_files", path=".", pattern="a" * 2001)


async def test_what_is_left_open_is_nothing(root: Path, outside: Path, call: Call) -> None:
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (root / "link").symlink_to(outside)
    os.mkfifo(root / "pipe")
    before = set(Path("/dev/fd").iterdir())

    await call("search_files", path=".", pattern="**")
    await call("directory_tree", path=".")
    await call("read_text_file", path="a.txt")
    await call("list_directory_with_sizes", path="sub")
    for path in ("pipe", "link", "link/secret.txt", "gone", "sub/gone", ".", "/"):
        await refusal(call, "read_text_file", path=path)
        await refusal(call, "list_directory", path="link")

    assert set(Path("/dev/fd").iterdir()) == before


async def test_info_of_a_file_and_of_a_folder(root: Path, call: Call) -> None:
    (root / "a.txt").write_bytes(b"x" * 10)
    (root / "a.txt").chmod(0o640)
    os.utime(root / "a.txt", (1_000_000_000, 1_000_000_000))

    info = dict(line.split(": ", 1) for line in (await call("get_file_info", path="a.txt")).splitlines())
    assert info["size"] == "10"
    assert info["modified"] == "2001-09-09T01:46:40.000+00:00"
    assert (info["isFile"], info["isDirectory"], info["permissions"]) == ("true", "false", "640")
    info = dict(line.split(": ", 1) for line in (await call("get_file_info", path=".")).splitlines())
    assert (info["isFile"], info["isDirectory"]) == ("false", "true")
    assert info["permissions"] == f"{stat.S_IMODE(root.stat().st_mode):03o}"
