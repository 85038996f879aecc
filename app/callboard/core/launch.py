"""What it takes to reach a server, with every reference resolved.

Objects here hold secrets in the clear: they are made when a server starts, are never stored, logged or shown
(their ``repr`` hides values), and belong to the upstream that uses them.
"""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class LocalLaunch:
    """A child process: ``argv`` byte for byte as the person wrote it, ``env`` only what the roster adds."""

    argv: tuple[str, ...] = field(repr=False)
    env: dict[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None


@dataclass(frozen=True)
class RemoteLaunch:
    """A remote server. ``transport`` is "http" (streamable, falls back to SSE) or "sse"."""

    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    transport: str = "http"


Launch = LocalLaunch | RemoteLaunch
