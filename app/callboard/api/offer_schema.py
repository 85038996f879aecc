"""Shapes of the control API for what servers offer beside tools; see :mod:`callboard.api.schema`."""

from typing import Any

import msgspec

from callboard.api.schema import View


class ResourceView(View, frozen=True, kw_only=True):
    """One resource of a server, or one template of them; ``template``: the variables in braces must be filled in."""

    uri: str
    template: bool = False
    name: str = ""
    title: str = ""
    description: str = ""
    mime_type: str = ""
    size: int | None = None  # bytes


class PromptArgument(View, frozen=True, kw_only=True):
    """One argument of a prompt; its value is text."""

    name: str
    title: str = ""
    description: str = ""
    required: bool = False


class PromptView(View, frozen=True, kw_only=True):
    """One prompt of a server. ``wire_name`` is its name on the aggregated endpoint."""

    name: str
    wire_name: str = ""
    title: str = ""
    description: str = ""
    arguments: list[PromptArgument] = msgspec.field(default_factory=list)


class ReadRequest(View, frozen=True, kw_only=True):
    """POST /servers/NAME/resources/read."""

    uri: str


class PromptRequest(View, frozen=True, kw_only=True):
    """POST /servers/NAME/prompts/get."""

    prompt: str
    arguments: dict[str, str] = msgspec.field(default_factory=dict)


Result = dict[str, Any]
"""MCP's result object of a read or a get."""
