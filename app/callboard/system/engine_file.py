"""The file by which window and command line find the running engine."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class EngineAddress:
    """Where the engine listens and the token that steers it."""

    pid: int
    url: str  # base, e.g. http://127.0.0.1:4470
    admin_token: str
    version: str


def write_engine_file(path: Path, address: EngineAddress) -> None:
    """Write atomically with mode 0600."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(address), file)
    temporary.replace(path)


def read_engine_file(path: Path) -> EngineAddress | None:
    """The engine's address, or None when none runs or the file is not whole."""
    try:
        return EngineAddress(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
