"""Plain data and pure rules, without I/O, asyncio, Qt, fastmcp or keyring."""
