"""What the engine asks of the server of a Python agent beside the Model Context Protocol. No client may ask for it."""

from typing import Final

CONVERSATIONS: Final = "callboard/conversations"
RELOAD: Final = "callboard/reload"
