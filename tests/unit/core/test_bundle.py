"""From the manifest of a bundle to an entry of the roster."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.core.bundle import Manifest, Place, read_manifest
from callboard.core.errors import CallboardError
from callboard.core.registry_fill import Filling, command_line, fill
from callboard.core.roster_parse import check_entry
from tests.support.bundles import manifest
from tests.unit.core.test_registry import JSON

FOLDERS = {"HOME": "/home/me", "DOCUMENTS": "/home/me/Documents"}
LINUX = Place("/data/b", "linux", "/", FOLDERS)
WINDOWS = Place("C:\\data\\b", "win32", "\\", {"HOME": "C:\\Users\\me"})


def read(
    kind: str, entry_point: str, config: dict[str, Any] | None = None, place: Place = LINUX, **more: Any
) -> Manifest:
    server = {"type": kind, "entry_point": entry_point, **({"mcp_config": config} if config is not None else {})}
    return read_manifest(manifest(**more) | {"server": server}, place)


def filled(found: Manifest, **answers: str | list[str]) -> Filling:
    given = {key: [text] if isinstance(text, str) else text for key, text in answers.items()}
    filling = fill(found.way, "shouter", given)
    entry, problems = check_entry(filling.entry)
    assert entry is not None, problems
    return filling


def line(found: Manifest, **answers: str | list[str]) -> str:
    return command_line(filled(found, **answers).entry)


def test_a_node_server() -> None:
    found = read("node", "server/index.js", {"command": "node", "args": ["${__dirname}/server/index.js", "--x"]})
    assert line(found) == "node /data/b/server/index.js --x"
    assert filled(found).entry["cwd"] == "/data/b"
    assert filled(found).entry["display_name"] == "Shouter"
    assert found.way.programs == {"node": ""}
    assert (found.needed, found.executables) == (["server/index.js"], [])


def test_a_python_server_with_its_packages() -> None:
    config = {"command": "python", "args": ["server/main.py"], "env": {"PYTHONPATH": "${__dirname}/server/lib"}}
    found = read("python", "server/main.py", config)
    assert line(found) == "python3 server/main.py"
    assert filled(found).entry["env"] == {"PYTHONPATH": "/data/b/server/lib"}
    assert read("python", "server/main.py", config, WINDOWS).way.command == "python"


@pytest.mark.parametrize("command", ["server/tool", "./server/tool", "${__dirname}/server/tool"])
def test_a_program(command: str) -> None:
    found = read("binary", "server/tool", {"command": command})
    assert line(found) == "/data/b/server/tool"
    assert found.way.programs == {}
    assert (found.needed, found.executables) == (["server/tool"], ["server/tool"])
    there = read("binary", "server/tool", {"command": command}, WINDOWS)
    assert there.way.command == "C:\\data\\b\\server\\tool.exe"


def test_a_server_that_uv_runs() -> None:
    assert line(read("uv", "src/server.py")) == "uv run --directory /data/b src/server.py"
    written = {"command": "uv", "args": ["run", "${__dirname}/src/server.py"]}
    assert line(read("uv", "src/server.py", written)) == "uv run /data/b/src/server.py"


def test_what_a_manifest_leaves_out_is_as_usual() -> None:
    assert line(read("node", "index.js")) == "node /data/b/index.js"
    assert line(read("python", "main.py")) == "python3 /data/b/main.py"
    assert line(read("binary", "tool")) == "/data/b/tool"


def test_another_system_may_have_its_own() -> None:
    config = {
        "command": "server/tool",
        "args": ["--posix"],
        "env": {"A": "1"},
        "platform_overrides": {
            "win32": {"command": "server/tool.exe", "args": []},
            "darwin": {"env": {"B": "2"}},
        },
    }
    assert line(read("binary", "server/tool", config)) == "/data/b/server/tool --posix"
    there = read("binary", "server/tool", config, WINDOWS)
    assert (there.way.command, there.way.arguments) == ("C:\\data\\b\\server\\tool.exe", [])
    mac = read("binary", "server/tool", config, Place("/data/b", "darwin", "/", FOLDERS))
    assert filled(mac).entry["env"] == {"B": "2"}


def test_variables_of_the_machine() -> None:
    config = {"command": "node", "args": ["${HOME}/x${/}y", "${pathSeparator}", "${unknown}", "$HOME", "${DESKTOP}"]}
    args = filled(read("node", "i.js", config)).entry["args"]
    assert args == ["/home/me/x/y", "/", "$${unknown}", "$HOME", "$${DESKTOP}"]


def test_what_the_person_is_asked() -> None:
    options = {
        "api_key": {"type": "string", "title": "API key", "description": "Yours", "sensitive": True, "required": True},
        "folders": {
            "type": "directory",
            "title": "Folders",
            "multiple": True,
            "default": ["${HOME}/a", "${DOCUMENTS}"],
        },
        "file": {"type": "file", "title": "File"},
        "size": {"type": "number", "title": "Size", "default": 10, "min": 1, "max": 100},
        "loud": {"type": "boolean", "title": "Loud", "default": True},
    }
    config = {
        "command": "node",
        "args": ["i.js", "--file", "${user_config.file}", "--size=${user_config.size}", "${user_config.folders}"],
        "env": {"API_KEY": "${user_config.api_key}", "LOUD": "${user_config.loud}"},
    }
    found = read("node", "i.js", config, user_config=options)

    inputs = {each.key: each for each in found.way.inputs}
    assert found.way.inputs[0].key == "api_key"
    assert (inputs["api_key"].secret, inputs["api_key"].title) == (True, "API key")
    assert (inputs["folders"].kind, inputs["folders"].multiple) == ("folder", True)
    assert inputs["folders"].default == ["/home/me/a", "/home/me/Documents"]
    assert (inputs["size"].minimum, inputs["size"].maximum, inputs["size"].default) == (1.0, 100.0, ["10"])
    filling = filled(found, api_key="k")
    assert filling.entry["args"] == ["i.js", "--size=10", "/home/me/a", "/home/me/Documents"]
    assert filling.entry["env"] == {"API_KEY": "${secret:shouter-api-key}", "LOUD": "true"}
    assert filling.secrets == {"shouter-api-key": "k"}
    more = filled(found, api_key="k", file="/f", folders=["/1"], size="200", loud="false")
    assert more.entry["args"] == ["i.js", "--file", "/f", "--size=200", "/1"]
    assert more.entry["env"]["LOUD"] == "false"
    assert more.wrong == {"size": "It must be at most 100."}


def test_a_value_that_is_used_and_not_described_is_asked_for() -> None:
    found = read("node", "i.js", {"command": "node", "args": ["${user_config.thing}"]})
    (asked,) = found.way.inputs
    assert (asked.key, asked.required) == ("thing", True)
    assert [need.marker for need in filled(found).open] == ["<thing>"]


@pytest.mark.parametrize(
    ("wanted", "version"), [(">=16.0.0", "16.0"), ("^20", "20"), ("v18.1", "18.1"), ("", ""), ("<30", ""), ("*", "")]
)
def test_the_version_that_node_must_have(wanted: str, version: str) -> None:
    compatibility = {"runtimes": {"node": wanted}} if wanted else {}
    found = read("node", "i.js", {"command": "node"}, compatibility=compatibility)
    assert found.way.programs == {"node": version}


def test_a_bundle_for_another_system_says_so() -> None:
    found = read("node", "i.js", compatibility={"platforms": ["darwin", "win32"]})
    assert found.way.problem == "This bundle is made for macOS and Windows, not for Linux."
    assert read("node", "i.js", compatibility={"platforms": ["linux"]}).way.problem == ""


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"name": "x"},
        {"name": "x", "server": {"type": "ruby", "entry_point": "x.rb"}},
        {"server": {"type": "node", "entry_point": "x.js"}},
        {"name": "x", "server": {"type": "uv"}},
    ],
)
def test_what_is_no_manifest_is_refused(document: Any) -> None:
    with pytest.raises(CallboardError, match="no bundle") as caught:
        read_manifest(document, LINUX)
    assert caught.value.code == "bundle-invalid"


@given(
    st.fixed_dictionaries(
        {
            "name": JSON | st.just("x"),
            "server": st.fixed_dictionaries({"type": st.sampled_from(["node", "binary", "uv"])}),
        }
        | dict.fromkeys(("version", "user_config", "compatibility", "display_name", "author"), JSON)
    ),
    JSON | st.just("a/b"),
    JSON | st.fixed_dictionaries({"command": JSON | st.text(), "args": st.lists(st.text() | JSON), "env": JSON}),
)
@settings(deadline=None)
def test_no_manifest_makes_it_fall(document: dict[str, Any], entry_point: Any, config: Any) -> None:
    document["server"] = {**document["server"], "entry_point": entry_point, "mcp_config": config}
    try:
        found = read_manifest(document, LINUX)
    except CallboardError:
        return
    msgspec.json.encode(found)
    filling = fill(found.way, "x", {})
    msgspec.json.encode(filling)
