"""The server that is there from the first start: a clock, an echo and a word counter.

It needs nothing but Python, touches neither files nor network, and so is the one to try a new client with.
"""

from __future__ import annotations

import difflib
import logging
import zoneinfo
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from callboard import __version__
from callboard.servers import importing_fastmcp

with importing_fastmcp():
    from fastmcp import FastMCP
    from fastmcp.exceptions import ToolError

READS_ONLY = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}


@dataclass(frozen=True)
class Moment:
    """The answer of current_time."""

    time: Annotated[str, Field(description="Date and time in ISO 8601 with the offset from UTC")]
    timezone: Annotated[str, Field(description="The time zone that the time is given in")]
    weekday: Annotated[str, Field(description="The day of the week, in English")]


@dataclass(frozen=True)
class Count:
    """The answer of word_count."""

    words: Annotated[int, Field(description="Runs of characters between white space")]
    characters: Annotated[int, Field(description="Unicode characters, white space included")]
    lines: Annotated[int, Field(description="Lines, the last one also without a line break at its end")]


server = FastMCP(
    "local-tools",
    version=__version__,
    instructions=(
        "Small tools that run on the person's own machine: the current time in any time zone, "
        "an echo to test the connection, and a word counter."
    ),
)


@server.tool(title="Current time", annotations={**READS_ONLY, "idempotentHint": False})
def current_time(
    timezone: Annotated[
        str | None,
        Field(
            description="An IANA time zone such as Europe/Berlin or UTC; left out, the time zone of this machine",
            examples=["Europe/Berlin", "America/New_York", "UTC"],
        ),
    ] = None,
) -> Moment:
    """Tells the current date, time and day of the week, on this machine or in a given time zone.

    Use it whenever an answer depends on what time or day it is now, or on what time it is somewhere else.
    """
    if timezone is None:
        now = datetime.now().astimezone()
        name = now.tzname() or "local time"
    else:
        now = datetime.now(_zone(timezone))
        name = timezone
    return Moment(time=now.isoformat(timespec="seconds"), timezone=name, weekday=f"{now:%A}")


@server.tool(title="Echo", annotations=READS_ONLY)
def echo(text: Annotated[str, Field(description="The text to give back")]) -> str:
    """Gives the text back exactly as it came. Use it to test that the connection to this server works."""
    return text


@server.tool(title="Word count", annotations=READS_ONLY)
def word_count(text: Annotated[str, Field(description="The text to count in")]) -> Count:
    """Counts the words, characters and lines of a text. Use it instead of an estimate when a limit must be kept."""
    return Count(words=len(text.split()), characters=len(text), lines=len(text.splitlines()))


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        pass
    known = {zone.casefold(): zone for zone in zoneinfo.available_timezones()}
    wanted = name.strip().replace(" ", "_").casefold()
    cities = {zone.rpartition("/")[2]: known[zone] for zone in known}
    near = [known[zone] for zone in difflib.get_close_matches(wanted, known, n=3, cutoff=0.75)]
    near += [cities[city] for city in difflib.get_close_matches(wanted, cities, n=3, cutoff=0.75)]
    hint = f"; did you mean {' or '.join(dict.fromkeys(near))}?" if near else "; it must be an IANA name"
    # The caller is told; it is no news for this server's own log.
    raise ToolError(f"There is no time zone {name!r}{hint}", log_level=logging.DEBUG)


def main() -> None:
    """Serves on standard input and output until the client closes the input."""
    server.run(transport="stdio", show_banner=False)


if __name__ == "__main__":
    main()
