"""The engine: asyncio, no Qt. It runs the servers and serves them to clients."""
