"""What a worker is asked for on request: the tools that an agent uses itself, and what only the worker knows."""

from pathlib import Path

import pytest

from tests.support.agent_worker import Worker

INNER = """
from callboard.agents.contract import AdaptedAgent, NoToolsError, ToolSpec

class Inner(AdaptedAgent):
    can_run = True
    reason = None
    def run(self, request, context):
        return request
    async def gather_tools(self):
        if self.reason is not None:
            raise self.reason
        return [ToolSpec("double", "Doubles.")]
    def call(self, tool, arguments, context):
        return str(2 * arguments["x"])

agent = Inner("inner")
none, odd = Inner("none"), Inner("odd")
none.reason, odd.reason = NoToolsError("it has none"), ValueError("oh dear")
"""


@pytest.mark.parametrize(
    ("name", "tools", "said"), [("agent", ["double"], ""), ("none", [], "it has none"), ("odd", [], "ValueError")]
)
def test_the_tools_that_an_agent_uses_itself_are_told_on_request(
    name: str, tools: list[str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(INNER, encoding="utf-8")
    with Worker(tmp_path) as worker:
        (told,) = worker.load(f"mine.py:{name}")["agents"]
        assert (told["tools"], told["no_tools"], told["has_inner_tools"]) == ([], "", False)
    with Worker(tmp_path) as worker:
        (told,) = worker.load(f"mine.py:{name}", tools=True)["agents"]
        assert [each["name"] for each in told["tools"]] == tools
        assert said in told["no_tools"]
        assert told["has_inner_tools"] is bool(tools)
        if tools:
            assert worker.call("inner", "double", x=2)["parts"][0]["text"] == "4"


def test_a_conversation_is_recalled_and_remembered(tmp_path: Path) -> None:
    """Before a worker is replaced: what only it knows."""
    source = "def agent(request, context):\n    context.state['said'] = request\n    return request\n"
    (tmp_path / "mine.py").write_text(source, encoding="utf-8")
    with Worker(tmp_path) as worker:
        worker.load("mine.py:agent", persist=False)
        worker.send({"type": "open", "conversation": "c_1", "client": "ann", "turn": 0, "state": None})
        assert "state" not in worker.run("agent", "hello", "c_1")
        worker.send({"type": "recall", "id": 100, "conversation": "c_1"})
        assert worker.read() == {"type": "result", "id": 100, "parts": [], "state": {"said": "hello"}}
        worker.send({"type": "recall", "id": 101, "conversation": "nobody"})
        assert worker.read()["state"] == {}
        worker.send({"type": "remember"})
        assert worker.run("agent", "again", "c_1")["state"] == {"said": "again"}
