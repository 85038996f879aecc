"""Callboard: runs a person's MCP servers and serves them to every AI client on the machine."""

__version__ = "0.1.0"
