"""Routes of the roster: its entries, the catalogue that new ones come from, and agents before they are served."""

from callboard.api.agent_schema import AgentLook, AgentLookRequest
from callboard.api.query_schema import RevisionQuery
from callboard.api.routes.route import Route
from callboard.api.schema import (
    EntryEdit,
    RosterEdit,
    RosterView,
    ShippedView,
    UndoRequest,
    ValidateRequest,
    Validation,
)
from callboard.engine.agent_look import look
from callboard.engine.engine import Engine


async def roster(engine: Engine) -> RosterView:
    """The roster in force."""
    return engine.roster_view()


async def validate(engine: Engine, body: ValidateRequest) -> Validation:
    """What is wrong with an entry under edit, and which of its values look like credentials."""
    return engine.validate(body.name, body.entry, body.editing)


async def save(engine: Engine, name: str, body: EntryEdit) -> RosterEdit:
    """Add or change an entry; secrets that come with it are stored first."""
    return await engine.save_entry(name, body)


async def remove(engine: Engine, name: str, query: RevisionQuery) -> RosterEdit:
    """Take an entry out of the roster."""
    return await engine.remove_entry(name, query.revision)


async def undo(engine: Engine, body: UndoRequest) -> RosterEdit:
    """Take a change back; the answer's `undo` is the redo."""
    return await engine.undo(body.undo)


async def shipped(engine: Engine) -> list[ShippedView]:
    """The catalogue of servers that are ready to be added, with what each needs and what of that is missing."""
    return await engine.shipped()


async def agent_look(engine: Engine, body: AgentLookRequest) -> AgentLook:
    """What there is at a Python agent's place; takes as long as the import of the agent's packages."""
    return await look(body)


ROUTES = (
    Route("GET", "/roster", roster),
    Route("POST", "/roster/validate", validate),
    Route("POST", "/roster/undo", undo),
    Route("PUT", "/roster/servers/{name}", save),
    Route("DELETE", "/roster/servers/{name}", remove),
    Route("GET", "/shipped", shipped),
    Route("POST", "/agents/look", agent_look),
)
