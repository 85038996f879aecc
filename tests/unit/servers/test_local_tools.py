"""The shipped server local-tools, in memory and as the process that the engine starts."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

from callboard import __version__
from callboard.servers.local_tools import server


@pytest.fixture
async def client() -> AsyncIterator[Client[Any]]:
    async with Client(server) as client:
        yield client


async def test_tools_describe_themselves(client: Client[Any]) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}

    assert sorted(tools) == ["current_time", "echo", "word_count"]
    for tool in tools.values():
        assert tool.title
        assert tool.description
        assert tool.output_schema
        assert tool.annotations
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.open_world_hint is False
        for argument in tool.input_schema["properties"].values():
            assert argument["description"]


async def test_current_time_here(client: Client[Any]) -> None:
    answer = (await client.call_tool("current_time")).structured_content

    told = datetime.fromisoformat(answer["time"])
    assert abs(told - datetime.now(UTC)) < timedelta(seconds=5)
    assert told.utcoffset() == datetime.now().astimezone().utcoffset()
    assert answer["weekday"] == f"{told:%A}"


async def test_current_time_elsewhere(client: Client[Any]) -> None:
    answer = (await client.call_tool("current_time", {"timezone": "Asia/Kolkata"})).structured_content

    told = datetime.fromisoformat(answer["time"])
    assert told.utcoffset() == timedelta(hours=5, minutes=30)
    assert abs(told - datetime.now(UTC)) < timedelta(seconds=5)
    assert answer["timezone"] == "Asia/Kolkata"


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("berlin", "did you mean Europe/Berlin?"),
        ("New York", "did you mean America/New_York?"),
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("Mars/Olympus", "it must be an IANA name"),
        ("../../etc/passwd", "it must be an IANA name"),
        ("", "it must be an IANA name"),
    ],
)
async def test_unknown_time_zone_names_the_nearest(client: Client[Any], given: str, hint: str) -> None:
    with pytest.raises(ToolError) as refused:
        await client.call_tool("current_time", {"timezone": given})

    assert repr(given) in str(refused.value)
    assert hint in str(refused.value)


@pytest.mark.parametrize("text", ["", "hello", "zwölf Boxkämpfer\n\t☃ \U0001f600", "x" * 100_000])
async def test_echo_changes_nothing(client: Client[Any], text: str) -> None:
    assert (await client.call_tool("echo", {"text": text})).data == text


@pytest.mark.parametrize(
    ("text", "words", "characters", "lines"),
    [("", 0, 0, 0), ("one", 1, 3, 1), ("one two\nthree\n", 3, 14, 2), (" \n ", 0, 3, 2), ("naïve café", 2, 10, 1)],
)
async def test_word_count(client: Client[Any], text: str, words: int, characters: int, lines: int) -> None:
    answer = (await client.call_tool("word_count", {"text": text})).structured_content

    assert answer == {"words": words, "characters": characters, "lines": lines}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_as_a_process_it_is_quiet_and_leaves_nothing(tmp_path: Path, mode: str) -> None:
    (tmp_path / ".env").write_text("FASTMCP_LOG_LEVEL=nonsense\n")
    log = tmp_path / "stderr"
    transport = StdioTransport(
        sys.executable,
        ["-m", "callboard.servers.local_tools"],
        env={"HOME": os.environ["HOME"], "FASTMCP_SHOW_SERVER_BANNER": "true"},
        cwd=str(tmp_path),
        keep_alive=False,
        log_file=log,
    )
    async with Client(transport, mode=mode) as client:
        assert client.server_info.name == "local-tools"
        assert client.server_info.version == __version__
        assert (await client.call_tool("echo", {"text": "☃"})).data == "☃"
        with pytest.raises(ToolError):
            await client.call_tool("current_time", {"timezone": "nowhere"})

    assert log.read_text() == ""
    assert list(Path(os.environ["HOME"]).iterdir()) == []
