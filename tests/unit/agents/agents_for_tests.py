"""Agents that the tests of this folder serve in their own process."""

import threading
from typing import Any

from callboard.agents import Agent, Context, tool


class GreeterAgent:
    """Greets."""

    def __init__(self, word: str = "Hello") -> None:
        self.word = word

    def get_mcp_server_info(self) -> dict[str, str]:
        return {"name": "Greeter", "version": "2.0.0"}

    def get_mcp_tool_definitions(self) -> list[dict[str, Any]]:
        return [
            {
                "name": "greet",
                "description": "Greet a person by name",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "class": {"type": "string"},
                        "x-y": {"type": ["string", "null"]},
                    },
                    "required": ["name"],
                },
            },
            {"name": "fail", "description": "Fails", "parameters": {"type": "object", "properties": {}}},
        ]

    def get_mcp_prompts(self) -> list[dict[str, Any]]:
        return [
            {
                "name": "welcome",
                "description": "A welcome",
                "template": "Welcome {who}!",
                "arguments": [{"name": "who"}],
            }
        ]

    def get_mcp_resources(self) -> list[dict[str, Any]]:
        return [{"uri": "greeter://about", "name": "about", "text": "It greets.", "mimeType": "text/plain"}]

    def execute_mcp_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if tool_name == "fail":
            return {"success": False, "error": "out of order"}
        if arguments["name"] == "boom":
            raise KeyError("name")
        return {"message": f"{self.word}, {arguments['name']}!"}


class Counter(Agent):
    """Counts."""

    name = "counter"
    instructions = "Count with it."

    def run(self, request: str, context: Context) -> str:
        context.state["n"] = context.state.get("n", 0) + 1
        return f"{request} {context.state['n']}"

    @tool
    def double(self, number: int) -> int:
        """Double a number."""
        return 2 * number


class Waiter(Agent):
    """Waits until it is let go."""

    name = "waiter"

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()

    def run(self, request: str, context: Context) -> str:
        self.begun.set()
        self.go.wait(20)
        return "waited"
