"""What a service starts with, as its settings say: workers, and the file of its conversations."""

import hashlib
from pathlib import Path

from callboard.agents.exposing import proper_name
from callboard.agents.keeper import AnyLink, MakeLink
from callboard.agents.link import WorkerLink
from callboard.agents.settings import AgentSettings
from callboard.system.paths import find_paths


def file_of(settings: AgentSettings) -> Path:
    """Where an agent's conversations are kept: a file for each server, else for each folder an agent is served from."""
    folder = find_paths().state / "agents"
    if settings.server:
        return folder / f"{settings.server}.sqlite3"
    place = "\0".join((*settings.agent, str(Path.cwd())))
    mark = hashlib.blake2b(place.encode("utf-8", "replace"), digest_size=6).hexdigest()
    name = proper_name(settings.agent[0].rpartition(":")[2] or "agent")
    return folder / f"{name}-{mark}.sqlite3"


def worker_maker(settings: AgentSettings, spec: str) -> MakeLink:
    """Starts workers for an agent entry."""

    async def make() -> AnyLink:
        link = WorkerLink()
        await link.spawn(settings.python)
        try:
            await link.load(
                spec,
                settings.params,
                persist=settings.keeps_state,
                thoughts=settings.thoughts,
                tools=settings.wants_inner_tools,
            )
        except BaseException:
            await link.close()
            raise
        return link

    return make
