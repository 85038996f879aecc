"""A client that lets a language model use the tools of the gateway: at most three rounds, then an answer without tools.

    from fastmcp import Client
    async with Client("http://127.0.0.1:4470/mcp", auth=TOKEN) as client:
        print(await answer(client, model, "How many words has this sentence?"))

``model`` stands for any language model: it gets the conversation and the tools that it may use, and says either which
tools to call or what the answer is.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

ROUNDS = 3


@dataclass
class Turn:
    """What a model says: an answer, or calls of tools as (name, arguments)."""

    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


Messages = list[dict[str, Any]]
Model = Callable[[Messages, list[Any]], Awaitable[Turn]]


async def answer(client: Any, model: Model, question: str, *, rounds: int = ROUNDS) -> str:
    """The model's answer. A tool that fails is told to the model, which may do better in the next round."""
    tools = await client.list_tools()
    messages: Messages = [{"role": "user", "text": question}]
    for _ in range(rounds):
        turn = await model(messages, tools)
        if not turn.calls:
            return turn.text
        for name, arguments in turn.calls:
            result = await client.call_tool(name, arguments, raise_on_error=False)
            text = "\n".join(block.text for block in result.content if block.type == "text")
            messages.append({"role": "tool", "name": name, "failed": result.is_error, "text": text})
    return (await model(messages, [])).text  # no tools any more: it has to answer now
