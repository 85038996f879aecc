"""The worker as a real process: what it loads, how it runs calls, and that nothing of an agent's gets into its pipe."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_worker import WORKER, Worker


def write(folder: Path, text: str, name: str = "my_agent.py") -> None:
    (folder / name).write_text(text, encoding="utf-8")


def texts(answer: dict[str, Any]) -> list[str]:
    return [part["text"] for part in answer["parts"] if part["part"] == "text"]


def test_a_function_is_a_tool(tmp_path: Path) -> None:
    write(tmp_path, "def add(a: int, b: int = 2) -> int:\n    'Adds.'\n    return a + b\n")
    with Worker(tmp_path) as worker:
        (agent,) = worker.load("my_agent:add")["agents"]
        assert agent["tools"][0]["name"] == "add"
        assert agent["tools"][0]["description"] == "Adds."
        assert agent["tools"][0]["input_schema"]["required"] == ["a"]
        assert worker.call("add", "add", a=1)["parts"] == [{"part": "data", "value": 3, "media_type": "", "text": None}]


def test_what_an_agent_prints_and_reads_is_not_the_protocol(tmp_path: Path) -> None:
    write(
        tmp_path,
        "import os, subprocess, sys\n"
        "print('at import')\n"
        "def noisy() -> str:\n"
        "    print('printed')\n"
        "    os.write(1, b'written\\n')\n"
        "    subprocess.run([sys.executable, '-c', 'print(\"of a child\")'], check=True)\n"
        "    return repr(sys.stdin.read())\n",
    )
    with Worker(tmp_path) as worker:
        worker.load("my_agent:noisy")
        assert texts(worker.call("noisy", "noisy")) == ["''"]
    for line in ("at import", "printed", "written", "of a child"):
        assert line in worker.errors


def test_it_runs_on_the_standard_library_alone(tmp_path: Path) -> None:
    write(
        tmp_path,
        "import sys\n"
        "from callboard.agents import Agent, tool\n"
        "class Mine(Agent):\n"
        "    @tool\n"
        "    def packages(self) -> list[str]:\n"
        "        return sorted(name for name, each in sys.modules.items()"
        " if 'site-packages' in str(getattr(each, '__file__', '')))\n",
    )
    with Worker(tmp_path, "-S", "-E") as worker:  # -S: no site-packages, so that importing from there would fail
        worker.load("my_agent:Mine")
        assert worker.call("Mine", "packages")["parts"][0]["value"] == []


def test_an_agents_modules_come_before_ours(tmp_path: Path) -> None:
    write(tmp_path, "NAME = 'mine'\n", "contract.py")
    write(tmp_path, "import contract\ndef name() -> str:\n    return contract.NAME\n")
    with Worker(tmp_path) as worker:
        worker.load("my_agent:name")
        assert texts(worker.call("name", "name")) == ["mine"]


def test_params_go_to_the_constructor(tmp_path: Path) -> None:
    write(
        tmp_path,
        "from callboard.agents import Agent\n"
        "class Mine(Agent):\n"
        "    def __init__(self, word): self.word = word\n"
        "    def run(self, request): return self.word + request\n",
    )
    with Worker(tmp_path) as worker:
        worker.load("my_agent:Mine", params={"word": "so: "})
        assert texts(worker.run("Mine", "yes")) == ["so: yes"]
    with Worker(tmp_path) as worker:
        error = worker.load("my_agent:Mine", params={"bogus": 1})["error"]
        assert error["kind"] == "TypeError"
        assert "unexpected keyword argument 'bogus'" in error["message"]


@pytest.mark.parametrize(
    ("text", "spec", "line", "part"),
    [
        ("x = 1\ndef broken(:\n", "my_agent:x", 2, "SyntaxError"),
        ("import json\n\nvalue = 1 / 0\n", "my_agent:x", 3, "ZeroDivisionError"),
        ("\nimport no_such_package\n", "my_agent:x", 2, "no_such_package is not installed"),
        ("def adder(): pass\n", "my_agent:addder", 0, "did you mean adder?"),
        ("x = 1\n", "my_agent:x", 0, "int is no agent that is known here"),
        ("x = 1\n", "not_there.at_all:x", 0, "There is no module not_there.at_all"),
        ("x = 1\n", "not_there.py:x", 0, "There is no file"),
        ("x = 1\n", "my agent:x y", 0, "is not of the form"),
        ("import sys\nsys.exit(3)\n", "my_agent:x", 2, "ended the program"),
        (
            "class Half:\n    def execute_mcp_tool(self): pass\n",
            "my_agent:Half",
            0,
            "must have get_mcp_tool_definitions",
        ),
        ("def make():\n    raise OSError('no disk')\n", "my_agent:make()", 2, "no disk"),
    ],
)
def test_an_agent_that_cannot_be_loaded(tmp_path: Path, text: str, spec: str, line: int, part: str) -> None:
    write(tmp_path, text)
    with Worker(tmp_path) as worker:
        answer = worker.load(spec)
    assert answer["type"] == "refused"
    assert part in answer["error"]["message"]
    assert answer["error"]["line"] == line
    if line:
        assert answer["error"]["file"].endswith("my_agent.py")
        assert f"line {line}" in answer["error"]["message"]


def test_exceptions_have_their_place_and_a_short_traceback(tmp_path: Path) -> None:
    write(tmp_path, "def fails(request):\n    helper()\ndef helper():\n    raise ValueError('kaboom')\n")
    with Worker(tmp_path) as worker:
        worker.load("my_agent:fails")
        error = worker.run("fails", "x")["error"]
    assert (error["code"], error["kind"], error["message"]) == ("agent-raised", "ValueError", "kaboom")
    assert (Path(error["file"]).name, error["line"]) == ("my_agent.py", 4)
    assert "running.py" not in error["traceback"]


def test_an_agent_that_ends_the_program_does_not_end_the_worker(tmp_path: Path) -> None:
    write(
        tmp_path,
        "import sys\n"
        "def leave(request):\n    sys.exit(1)\n"
        "async def leave_too(request):\n    raise KeyboardInterrupt\n"
        "def stop(request):\n    raise StopIteration\n"
        "agents = [leave, leave_too, stop]\n",
    )
    with Worker(tmp_path) as worker:
        worker.load("my_agent:agents")
        assert worker.run("leave", "")["error"]["kind"] == "SystemExit"
        assert worker.run("leave_too", "")["error"]["kind"] == "KeyboardInterrupt"
        assert worker.run("stop", "")["error"]["code"] == "agent-raised"
        assert worker.run("leave", "")["error"]["kind"] == "SystemExit"


def test_generators_yield_progress_and_pieces_of_the_answer(tmp_path: Path) -> None:
    write(
        tmp_path,
        "async def asynchronous(request):\n"
        "    yield {'progress': 1, 'total': 2, 'message': 'reading'}\n"
        "    yield 'a '\n"
        "    yield request\n"
        "def synchronous(request):\n"
        "    yield 'b '\n"
        "    yield request\n"
        "    return {'done': True}\n"
        "agents = [asynchronous, synchronous]\n",
    )
    with Worker(tmp_path) as worker:
        worker.load("my_agent:agents")
        assert texts(worker.run("asynchronous", "x")) == ["a x"]
        kinds = [(each["kind"], each["text"]) for each in worker.progress]
        assert kinds == [("progress", "reading"), ("delta", "a "), ("delta", "x")]
        assert (worker.progress[0]["current"], worker.progress[0]["total"]) == (1, 2)
        parts = worker.run("synchronous", "x")["parts"]
        assert [part["part"] for part in parts] == ["text", "data"]


def test_events_of_every_kind(tmp_path: Path) -> None:
    write(
        tmp_path,
        "from callboard.agents import *\n"
        "def agent(request):\n"
        "    yield Thought('hidden')\n"
        "    yield Delta('seen')\n"
        "    yield ToolCall('roll', {'sides': 6, 'long': 'x' * 1000})\n"
        "    yield ToolReturn('roll', 4)\n"
        "    yield Text('one')\n"
        "    yield Blob(b'%PDF-', 'application/pdf', 'a.pdf')\n"
        "    yield Link('https://a/', 'a')\n"
        "    yield Data([1], media_type='application/x+json')\n"
        "    yield b'\\x89PNG\\r\\n\\x1a\\n'\n"
        "    yield Failure('no more', 'quota')\n"
        "    yield Text('never')\n",
    )
    with Worker(tmp_path) as worker:
        worker.load("my_agent:agent")
        answer = worker.run("agent", "")
        assert [each["kind"] for each in worker.progress] == ["delta", "tool_call", "tool_result"]
        assert worker.progress[1]["text"].startswith("→ roll(sides=6, long=xxx")
        assert len(worker.progress[1]["text"]) < 300
        assert worker.progress[2]["text"] == "← 4"
    assert [part["part"] for part in answer["parts"]] == ["text", "blob", "link", "data", "blob"]
    assert answer["parts"][4]["media_type"] == "image/png"
    assert (answer["error"]["code"], answer["error"]["message"]) == ("quota", "no more")


def test_thoughts_are_told_where_they_are_asked_for(tmp_path: Path) -> None:
    write(
        tmp_path, "from callboard.agents import Thought\ndef agent(request):\n    yield Thought('hm')\n    yield 'ok'\n"
    )
    with Worker(tmp_path) as worker:
        worker.load("my_agent:agent", thoughts=True)
        worker.run("agent", "")
    assert worker.progress[0] == {"type": "progress", "id": 1, "kind": "thought", "text": "hm"}


def test_a_value_without_a_form_in_json_is_an_error_that_names_it(tmp_path: Path) -> None:
    write(tmp_path, "def agent(request):\n    return {'a': [object()]}\n")
    with Worker(tmp_path) as worker:
        worker.load("my_agent:agent")
        error = worker.run("agent", "")["error"]
    assert error["message"] == "a[0] is a object, which has no form in JSON"


def test_conversations_keep_state_and_memory_apart(tmp_path: Path) -> None:
    write(
        tmp_path,
        "class Live: pass\n"
        "def agent(request, context):\n"
        "    context.state['said'] = context.state.get('said', []) + [request]\n"
        "    live = context.conversation.memory.setdefault('live', Live())\n"
        "    live.count = getattr(live, 'count', 0) + 1\n"
        "    return f\"{context.conversation.turn} {live.count} {' '.join(context.state['said'])}\"\n",
    )
    with Worker(tmp_path) as worker:
        worker.load("my_agent:agent")
        worker.send({"type": "open", "conversation": "one"})
        worker.send({"type": "open", "conversation": "two", "turn": 4, "state": {"said": ["before"]}})
        assert texts(worker.run("agent", "a", "one")) == ["1 1 a"]
        answer = worker.run("agent", "b", "two")
        assert texts(answer) == ["5 1 before b"]
        assert answer["state"] == {"said": ["before", "b"]}
        assert texts(worker.run("agent", "c", "one")) == ["2 2 a c"]
        worker.send({"type": "close", "conversation": "one"})
        assert texts(worker.run("agent", "d", "one")) == ["1 1 d"]  # a conversation of this call alone


def test_cancelling_a_coroutine_a_loop_and_a_generator(tmp_path: Path) -> None:
    write(
        tmp_path,
        "import asyncio, time\n"
        "async def sleeps(request, context):\n"
        "    context.progress('begun')\n"
        "    try:\n"
        "        await asyncio.sleep(60)\n"
        "    finally:\n"
        "        print('cleaned up')\n"
        "def loops(request, context):\n"
        "    context.progress('begun')\n"
        "    while True: pass\n"
        "def polite(request, context):\n"
        "    context.progress('begun')\n"
        "    while not context.is_cancelled: time.sleep(0.01)\n"
        "    return 'left'\n"
        "def generates(request, context):\n"
        "    context.progress('begun')\n"
        "    while True:\n"
        "        time.sleep(0.01)\n"
        "        yield 'x'\n"
        "agents = [sleeps, loops, polite, generates]\n",
    )
    with Worker(tmp_path) as worker:
        worker.load("my_agent:agents")
        for name in ("sleeps", "loops", "polite", "generates"):
            number = worker.begin("run", name, request="", conversation="")
            assert worker.read()["text"] == "begun"
            worker.send({"type": "cancel", "id": number})
            answer = worker.answer()
            assert (answer["id"], answer["error"]["code"]) == (number, "cancelled")
    assert "cleaned up" in worker.errors


def test_calls_run_at_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        "import asyncio, threading\n"
        "here = threading.Event()\n"
        "def waits(request):\n    here.wait(20)\n    return 'waited'\n"
        "def goes(request):\n    here.set()\n    return 'gone'\n"
        "agents = [waits, goes]\n",
    )
    with Worker(tmp_path) as worker:
        worker.load("my_agent:agents")
        worker.begin("run", "waits", request="", conversation="")
        worker.begin("run", "goes", request="", conversation="")
        assert sorted(texts(worker.answer()) + texts(worker.answer())) == ["gone", "waited"]


def test_it_ends_with_its_host_whatever_the_agent_does(tmp_path: Path) -> None:
    write(
        tmp_path,
        "import time\nasync def blocks(request, context):\n    context.progress('begun')\n    time.sleep(600)\n",
    )
    with Worker(tmp_path) as worker:
        worker.load("my_agent:blocks")
        worker.begin("run", "blocks", request="", conversation="")
        assert worker.read()["text"] == "begun"


def test_unknown_agents_and_tools(tmp_path: Path) -> None:
    write(tmp_path, "def add(a: int): return a\n")
    with Worker(tmp_path) as worker:
        worker.load("my_agent:add")
        assert worker.call("add", "subtract")["error"]["code"] == "tool-unknown"
        assert worker.call("nobody", "add")["error"]["code"] == "tool-unknown"


def test_one_list_many_agents(tmp_path: Path) -> None:
    write(
        tmp_path,
        "def maths(request): return 'm'\n"
        "def history(request): return 'h'\n"
        "named = {'sums': maths, 'past': history}\n"
        "twice = [maths, maths]\n",
    )
    with Worker(tmp_path) as worker:
        assert [agent["name"] for agent in worker.load("my_agent:named")["agents"]] == ["sums", "past"]
    with Worker(tmp_path) as worker:
        assert "two agents have the name maths" in worker.load("my_agent:twice")["error"]["message"]


def test_a_file_of_a_package_may_import_its_neighbours(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    write(package, "", "__init__.py")
    write(package, "WORD = 'near'\n", "neighbour.py")
    write(package, "from .neighbour import WORD\ndef word() -> str:\n    return WORD\n", "agent.py")
    with Worker(tmp_path) as worker:
        answer = worker.load(f"{package / 'agent.py'}:word")
        assert len([file for file in answer["files"] if "pack" in file]) == 3  # what a reload watches
        assert texts(worker.call("word", "word")) == ["near"]


def test_the_agents_of_a_file_are_listed(tmp_path: Path) -> None:
    write(
        tmp_path,
        "from callboard.agents import Agent\n"
        "from os.path import join\n"
        "_private = lambda request: 1\n"
        "NUMBER = 3\n"
        "class Mine(Agent):\n    'Does things.'\n    def run(self, request): return 1\n"
        "def echo(request): return request\n",
    )
    found = subprocess.run(
        [sys.executable, str(WORKER), "--list", "my_agent.py"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        timeout=20,
    )
    listed = json.loads(found.stdout)["agents"]
    assert [(each["name"], each["kind"]) for each in listed] == [("Mine", "own"), ("echo", "plain")]
    assert listed[0]["description"] == "Does things."
