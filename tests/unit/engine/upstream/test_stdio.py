"""Servers on stdio: what they write, how they start, how they end."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.core.errors import CallboardError
from callboard.core.launch import LocalLaunch
from callboard.engine.relay.envelope import raw_json
from callboard.engine.upstream import rpc
from callboard.engine.upstream import stdio as stdio_module
from callboard.engine.upstream.base import Params
from callboard.engine.upstream.stdio import LineSplitter, StdioUpstream
from tests.support.gateway import FIXTURE, SERVERS, python, stdio
from tests.unit.engine.upstream.conftest import Listener, Peer

BAD_START = SERVERS / "bad_start.py"


@asynccontextmanager
async def running(launch: LocalLaunch, modern: bool | None = None) -> AsyncIterator[tuple[StdioUpstream, Peer]]:
    peer = Peer()
    upstream = stdio(peer, modern)
    try:
        await upstream.open(launch)
        yield upstream, peer
    finally:
        await upstream.close()


@pytest.fixture
async def fixture() -> AsyncIterator[tuple[StdioUpstream, Peer]]:
    """The fixture server, and who hears what it says."""
    async with running(python(FIXTURE), modern=False) as made:
        yield made


def call(tool: str, **arguments: Any) -> Params:
    return {"name": raw_json(tool), "arguments": raw_json(arguments)}


async def ask(upstream: StdioUpstream, tool: str, **arguments: Any) -> Any:
    listener = Listener()
    upstream.send("tools/call", call(tool, **arguments), listener)
    async with asyncio.timeout(60):
        return await listener.done


def text_of(result: Any) -> str:
    text: str = result["content"][0]["text"]
    return text


# ---- what it writes


def answer(text: str) -> str:
    return '{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":"TEXT"}]}}'.replace("TEXT", text)


LINES: dict[str, tuple[list[str], str, list[bytes]]] = {
    "noise before": (["hello\n", "[]\n", "5\n", "\n", answer("x") + "\n"], "x", [b"hello", b"[]", b"5"]),
    "glued": (["12:00 INFO done " + answer("x") + "\n"], "x", [b"12:00 INFO done "]),
    "glued behind json": (['{"level":"info","id":5} ' + answer("x") + "\n"], "x", [b'{"level":"info","id":5} ']),
    "crlf": ([answer("x") + "\r\n"], "x", []),
    "white space": (["  \t" + answer("x").replace(":", " : ") + " \n"], "x", []),
    "not UTF-8": ([answer("caf\xe9 \xff\xfe") + "\n"], "caf\ufffd \ufffd\ufffd", []),
    "lone surrogate": ([answer("a\\ud83d b\\udc00") + "\n"], "a\ufffd b\ufffd", []),
    "pair": ([answer("\\ud83d\\ude00 \\\\ud83d") + "\n"], "\U0001f600 \\ud83d", []),
    "nul": ([answer("a\\u0000b") + "\n"], "a\0b", []),
    "null error": ([answer("x")[:-1] + ',"error":null}\n'], "x", []),
    "result first": (['{"result":{"content":[{"text":"x"}]},"id":{id},"jsonrpc":"2.0"}\n'], "x", []),
    "unknown members": ([answer("x")[:-1] + ',"more":[1,{}]}\n'], "x", []),
    "strangers before": (
        [answer("y").replace("{id}", i) + "\n" for i in ('"{id}"', "null", "99999", "1.5")] + [answer("x") + "\n"],
        "x",
        [],
    ),
    "twice": ([answer("x") + "\n", answer("y") + "\n"], "x", []),
    "300 KiB": ([answer("{fill}") + "\n"], "x" * 300_000, []),
}


@pytest.mark.parametrize("what", LINES)
async def test_a_line(fixture: tuple[StdioUpstream, Peer], what: str) -> None:
    upstream, peer = fixture
    lines, expected, noise = LINES[what]
    found = await ask(upstream, "emit", lines=lines, fill=300_000)
    assert text_of(found) == expected
    assert peer.noise == noise
    assert text_of(await ask(upstream, "echo", text="on")) == "on"


async def test_a_result_of_5_mib_passes(fixture: tuple[StdioUpstream, Peer]) -> None:
    upstream, _ = fixture
    size = 5 * 1024 * 1024
    assert len(text_of(await ask(upstream, "big", size=size // 2))) == size // 2
    assert text_of(await ask(upstream, "emit", lines=[answer("{fill}") + "\n"], fill=size)) == "x" * size


@pytest.mark.parametrize(
    "line", [answer("{fill}"), '{"result":{"text":"{fill}","more":{"id":1}},"jsonrpc":"2.0","id":{id}}']
)
async def test_a_line_beyond_the_limit_fails_its_own_request_alone(
    fixture: tuple[StdioUpstream, Peer], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr(stdio_module, "MAX_LINE", 1_000_000)
    upstream, peer = fixture
    other = Listener()
    upstream.send("tools/call", call("slow", ms=300), other)
    found = await ask(upstream, "emit", lines=[line + "\n"], fill=2_000_000)
    assert found == {"code": -32603, "message": "The server's answer is larger than 64 MiB."}
    assert len(peer.noise) == 1
    assert text_of(await other.done) == "slow"


@pytest.mark.parametrize(
    "value", ["[" * 100_000 + "]" * 100_000, "NaN", "{1:2}", '"unended'], ids=lambda value: value[:8]
)
async def test_an_answer_that_is_no_json_fails_its_request(fixture: tuple[StdioUpstream, Peer], value: str) -> None:
    upstream, peer = fixture
    for line in ('{"jsonrpc":"2.0","id":{id},"result":VALUE}\n', '{"result":VALUE,"jsonrpc":"2.0","id":{id}}\n'):
        found = await ask(upstream, "emit", lines=[line.replace("VALUE", value)])
        assert found == {"code": -32603, "message": "The server's answer is not valid JSON."}
    assert len(peer.noise) == 2


async def test_a_quoted_message_is_not_taken_for_one(fixture: tuple[StdioUpstream, Peer]) -> None:
    """A debug line that quotes a request must not be answered, one that quotes an old answer not be taken."""
    upstream, peer = fixture
    lines = [
        'got {"jsonrpc":"2.0","id":7,"method":"sampling/createMessage"}\n',
        f"sent {answer('old').replace('{id}', '1')}\n",
    ]
    assert text_of(await ask(upstream, "emit", lines=[*lines, answer("x") + "\n"])) == "x"
    assert peer.questions == []
    assert len(peer.noise) == 2


# ---- how it starts


@pytest.mark.parametrize(
    ("how", "modern"),
    [
        ("dies", False),
        ("garbage", False),
        ("legacy", False),
        ("modern", True),
        ("banner", False),
        ("bom", False),
        ("null-error", False),
    ],
)
async def test_the_era_is_found_out(how: str, modern: bool) -> None:
    async with running(python(BAD_START, how)) as (upstream, peer):
        assert upstream.info.modern is modern
        assert await upstream.request("ping")
        assert bool(peer.noise) is (how == "banner")
        assert upstream.pid is not None
        assert not upstream.closed.done()


@pytest.mark.parametrize(("how", "modern"), [("deaf", False), ("late", True), ("later", True)])
async def test_a_server_that_says_nothing_may_be_either(
    how: str, modern: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "PROBE_SECONDS", 0.05)
    async with running(python(BAD_START, how)) as (upstream, _):
        assert upstream.info.modern is modern
        assert not upstream.pending


@pytest.mark.parametrize("how", ["modern", "legacy"])
async def test_what_was_remembered_of_the_era_may_be_wrong(how: str) -> None:
    async with running(python(BAD_START, how), modern=how == "legacy") as (upstream, _):
        assert upstream.info.modern is (how == "modern")


@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        ("nothing", "exited-early", "exited with code 7"),
        ("gone", "exited-early", "exited with code 7"),
        ("future", "handshake-failed", "no revision"),
        ("no-object", "handshake-failed", "no object"),
    ],
)
async def test_a_start_that_fails_says_why(how: str, code: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "PROBE_SECONDS", 0.05)
    with pytest.raises(CallboardError) as caught:
        async with running(python(BAD_START, how)):
            pass
    assert caught.value.code == code
    assert words in caught.value.message
    if code == "exited-early":
        assert caught.value.data == {"exit_code": 7}


async def test_a_start_can_be_given_up() -> None:
    peer = Peer()
    upstream = stdio(peer)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await upstream.open(python(BAD_START, "deaf"))
    await upstream.close()
    assert upstream.closed.done()


async def test_a_command_that_does_not_exist_leaves_nothing() -> None:
    upstream = stdio(Peer())
    with pytest.raises(CallboardError) as caught:
        await upstream.open(LocalLaunch(("no-such-command-of-ours",)))
    assert caught.value.code == "command-not-found"
    await upstream.close()
    assert upstream.closed.done()


# ---- how it ends


@pytest.mark.parametrize("how", ["die", "emit"])
async def test_every_request_fails_at_once_when_the_server_ends(how: str) -> None:
    async with running(python(FIXTURE), modern=False) as (upstream, peer):
        waiting = [Listener() for _ in range(5)]
        for listener in waiting:
            upstream.send("tools/call", call("slow", ms=60_000), listener)
        died = await ask(upstream, how, lines=['{"jsonrpc":"2.0","id":{id},"res'], die=True)
        errors = [died, *[await listener.done for listener in waiting]]
        assert {error.code for error in errors} == {"upstream-gone"}
        assert [error.message for error in errors] == ["The server ended: exited with code 3."] * 6
        assert [error.data for error in errors] == [{"exit_code": 3}] * 6
        assert upstream.closed.result().code == 3
        assert peer.noise == ([] if how == "die" else [b'{"jsonrpc":"2.0","id":7,"res'])
        late = Listener()
        upstream.send("tools/call", call("echo"), late).cancel("not any more")
        assert (await late.done).code == "upstream-gone"
        with pytest.raises(CallboardError, match="exited with code 3"):
            await upstream.request("ping")
        upstream.notify("notifications/cancelled", {})


async def test_an_answer_given_just_before_the_end_still_counts() -> None:
    async with running(python(FIXTURE), modern=False) as (upstream, _):
        for _ in range(3):
            assert text_of(await ask(upstream, "echo", text="x")) == "x"
        found = await ask(upstream, "emit", lines=[answer("last")], die=True)  # without the line's end
        assert text_of(found) == "last"
        await upstream.closed


async def test_a_request_of_ours_that_takes_too_long_is_cancelled(fixture: tuple[StdioUpstream, Peer]) -> None:
    upstream, _ = fixture
    with pytest.raises(CallboardError, match=r"did not answer tools/call within 0.05 s"):
        await upstream.request("tools/call", call("slow", ms=60_000), seconds=0.05)
    counted = json.loads(text_of(await ask(upstream, "counts")))
    assert counted["notifications/cancelled"] == 1
    assert not upstream.pending


async def test_progress_is_told_to_its_own_request(fixture: tuple[StdioUpstream, Peer]) -> None:
    upstream, peer = fixture
    listeners = [Listener(wants_progress=True), Listener(wants_progress=True), Listener()]
    for listener in listeners:
        upstream.send("tools/call", call("progress", steps=2, ms=1), listener)
    for listener in listeners:
        await listener.done
    assert [[one["progress"] for one in listener.progress] for listener in listeners] == [[1, 2], [1, 2], []]
    assert peer.notes == []


async def test_the_servers_questions_are_answered_by_the_peer(fixture: tuple[StdioUpstream, Peer]) -> None:
    upstream, peer = fixture
    assert text_of(await ask(upstream, "ping")) == "{}"
    found = await ask(upstream, "elicit")
    assert text_of(found) == "hello None"
    assert [method for method, _ in peer.questions] == ["elicitation/create"]


# ---- cutting lines


@given(st.lists(st.binary(max_size=8)), st.integers(4, 30))
def test_lines_are_cut_like_split_does(chunks: list[bytes], limit: int) -> None:
    lines: list[bytes] = []
    dropped: list[tuple[bytes, bytes]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stdio_module, "MAX_LINE", limit)
        patch.setattr(stdio_module, "_EDGE", 4)
        splitter = LineSplitter(lines.append, lambda head, tail: dropped.append((head, tail)))
        for chunk in chunks:
            splitter.feed(chunk)
    expected, expected_dropped = [], []
    line, began = b"", None
    for index, chunk in enumerate(chunks):
        for byte in chunk:
            if byte != ord("\n"):
                began = index if began is None else began
                line += bytes([byte])
                continue
            # a line that came in one piece is not measured: pieces are smaller than the limit is in earnest
            if len(line) > limit and began != index:
                expected_dropped.append((line[:4], line[-4:]))
            else:
                expected.append(line)
            line, began = b"", None
    assert lines == expected
    assert dropped == expected_dropped
