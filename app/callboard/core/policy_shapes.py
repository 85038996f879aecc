"""What the roster says of clients: their policies, and profiles. Only data; see :mod:`callboard.core.policy`.

A pattern is a glob over ``server.name``, where the name is that of a tool or prompt, or a resource's URI: ``github.*``,
``*.delete_*``, ``files.file:///docs/*``. It holds for all three, unless it begins with ``tool:``, ``prompt:`` or
``resource:``.
"""

import re
from difflib import get_close_matches
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, model_validator

from callboard.core.policy_words import ASK_WORDS, DESTRUCTIVE, split_kind
from callboard.core.shape import Filled, Model, Seconds, Text, wrong

SELECTION_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
DEFAULT_CLIENT: Final = "default"  # stands for every client without rules of its own
RESERVED_CLIENTS: Final = {
    "admin": "is no client: it is what the administrator is called",
    DEFAULT_CLIENT: "is no client: it stands for all clients without rules of their own (write them under policy)",
}


def _pattern(pattern: str) -> str:
    _, glob = split_kind(pattern)
    if "." not in glob and "*" not in glob:
        name = glob or "SERVER"
        raise wrong(f'must be SERVER.NAME with * for anything, like "{name}.*"')
    return pattern


def _asked(pattern: str) -> str:
    if pattern in ASK_WORDS:
        return pattern
    if pattern.isalpha() and get_close_matches(pattern, ASK_WORDS):
        raise wrong(f"must be {', '.join(ASK_WORDS)} or SERVER.NAME with * for anything")
    return _pattern(pattern)


def _selection_name(name: str) -> str:
    if not SELECTION_NAME.fullmatch(name):
        raise wrong("must be 1 to 64 letters (a-z), digits, - and _, beginning with a letter or digit")
    return name


def reserved_client(name: str) -> str | None:
    """Why no client can have this name, which means something else, or None; a clause that follows the name."""
    return RESERVED_CLIENTS.get(name.casefold())


def _client_name(name: str) -> str:
    if why := reserved_client(name):
        raise wrong(why)
    return name


def _server(name: str) -> str:
    if not SELECTION_NAME.fullmatch(name):
        raise wrong("must be a server's name")
    return name


Pattern = Annotated[Filled, AfterValidator(_pattern)]
Asked = Annotated[Filled, AfterValidator(_asked)]
SelectionName = Annotated[str, AfterValidator(_selection_name)]
ClientName = Annotated[SelectionName, AfterValidator(_client_name)]
Characters = Annotated[int, Field(ge=100, le=100_000_000)]


class Rules(Model):
    """What a client may use: what ``allow`` or ``ask`` names and ``deny`` does not. The person is asked before each
    call of what ``ask`` names.

    ``read_only`` leaves tools out that do not declare that they only read. Beside patterns, ``ask`` takes two words:
    "destructive" for tools that declare to be so, and "undeclared" for tools that declare nothing; neither holds for
    a tool that ``allow`` names in full, without a wildcard.
    """

    allow: list[Pattern] = []
    deny: list[Pattern] = []
    read_only: bool = False
    ask: list[Asked] = [DESTRUCTIVE]


class DefaultPolicy(Rules):
    """The rules of every client that has none of its own, and what holds for all clients.

    ``ask_seconds`` is how long a call waits for the person. ``max_result_chars`` bounds the text of one result.
    """

    allow: list[Pattern] = ["*"]
    ask_seconds: Seconds = 120.0
    max_result_chars: Characters | None = None


class ClientEntry(Model):
    """One client. ``profile`` binds its token to a profile: it reaches nothing else."""

    display_name: Text = ""
    policy: Rules | None = None  # None: the default
    profile: Text = ""
    max_result_chars: Characters | None = None  # None: the default's


class Profile(Model):
    """A named selection: all of ``servers``, and what ``tools`` names, less what ``deny`` names."""

    description: Text = ""
    servers: list[Annotated[Filled, AfterValidator(_server)]] = []
    tools: list[Pattern] = []
    deny: list[Pattern] = []

    @model_validator(mode="after")
    def _selects(self) -> Any:
        if not self.servers and not self.tools:
            raise wrong("needs servers or tools")
        return self
