"""Names and numbers of the Model Context Protocol that more than one module needs."""

from typing import Final

MODERN: Final = "2026-07-28"
LATEST_LEGACY: Final = "2025-11-25"
LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

# keys of _meta (2026-07-28, basic: "General fields")
META_PREFIX: Final = "io.modelcontextprotocol/"
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
META_SERVER: Final = "io.modelcontextprotocol/serverInfo"
PER_REQUEST_META: Final = frozenset({META_VERSION, META_CLIENT, META_CAPABILITIES, META_LOG_LEVEL})

# JSON-RPC error codes
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
SERVER_ERROR: Final = -32000  # of ours: the server behind the gateway is not there or ended
RESOURCE_NOT_FOUND: Final = -32002  # legacy revisions only
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
MODERN_ERRORS: Final = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})

# methods whose results carry caching hints (2026-07-28, server/utilities/caching)
CACHEABLE: Final = frozenset(
    {"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}
)
# requests that may be answered with input_required (2026-07-28, basic/patterns/mrtr)
ASKING: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
# what a server may ask of a client, and the capability that the client must have declared
CLIENT_CAPABILITY: Final = {
    "roots/list": "roots",
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
}
# methods of the call log
LOGGED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def log_rank(level: str) -> int:
    """Severity of a log level; unknown words count as "info"."""
    return LOG_LEVELS.index(level) if level in LOG_LEVELS else 1
