"""Shapes of the control API's queries (`?after=5&limit=10`), every field optional; see :mod:`callboard.api.schema`."""

from typing import Annotated, Final, get_args

from msgspec import Meta

from callboard.api.schema import EventKind, View

_LARGEST: Final = 2**53 - 1  # what every JSON reader keeps exactly
Count = Annotated[int, Meta(ge=0, le=_LARGEST)]
_Place = Annotated[int, Meta(ge=-_LARGEST, le=_LARGEST)]
_KIND: Final = f"({'|'.join(get_args(EventKind))})"
_Kinds = Annotated[str, Meta(pattern=f"^({_KIND}(,{_KIND})*)?$")]


class ServersQuery(View, frozen=True, kw_only=True):
    """GET /servers and /servers/NAME; with ``figures``, CPU and memory are measured for it."""

    figures: bool = False


class DoctorQuery(View, frozen=True, kw_only=True):
    """GET /doctor; empty: the engine itself."""

    server: str = ""


class EventsQuery(View, frozen=True, kw_only=True):
    """GET /events: those after the number of one; a negative number: from now on, beginning with a "reset"."""

    after: _Place = -1
    asks: bool = False  # whoever reads shows the questions to the person (GET /policy/questions)
    kinds: _Kinds = ""  # those that are wanted, with commas between them; all if empty, and "reset" in any case


class LogQuery(View, frozen=True, kw_only=True):
    """GET /servers/NAME/log: lines with numbers above ``after``; negative: the newest."""

    after: _Place = 0
    limit: Count = 5000


class CallsQuery(View, frozen=True, kw_only=True):
    """GET /calls: ``offset`` into the calls that match; negative: the last ``limit`` ones."""

    offset: _Place = -1
    limit: Count = 256
    server: str = ""
    tool: str = ""
    client: str = ""
    status: str = ""
    text: str = ""
    engine: str = ""  # the name of one, where several share their log


class RevisionQuery(View, frozen=True, kw_only=True):
    """DELETE /roster/servers/NAME: the revision that the change is meant for ("" to not check)."""

    revision: str = ""


class SnippetQuery(View, frozen=True, kw_only=True):
    """GET /snippet/CLIENT."""

    server: str = ""
    with_token: bool = False


class RegistryQuery(View, frozen=True, kw_only=True):
    """GET /registry: words to look for, and where: an address, or the full path of a file or folder ("": as set)."""

    search: str = ""
    source: str = ""
    cursor: str = ""


class OfferQuery(View, frozen=True, kw_only=True):
    """GET /registry/offer: a server's name in the registry, or the last part of it; ``source`` as in a search."""

    name: str = ""
    source: str = ""
