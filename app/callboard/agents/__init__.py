"""Python agents as MCP servers."""
