"""What it takes to reach a server, with every reference resolved.

Objects here hold secrets in the clear: they are made when a server starts, are never stored, logged or shown
(their ``repr`` hides values), and belong to the upstream that uses them.
"""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class LocalLaunch:
    """A child process: ``argv`` byte for byte as the person wrote it, ``env`` only what the roster adds.

    ``written_once`` is a file that the program writes, and that must not be there when it starts.
    """

    argv: tuple[str, ...] = field(repr=False)
    env: dict[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    written_once: Path | None = None


@dataclass(frozen=True)
class OAuthLaunch:
    """How to sign in to a remote server; ``grant`` is "authorization-code", "client-credentials" or "jwt-bearer".

    ``client_id`` (with ``client_secret``) was registered by hand, with the authorisation server ``issuer`` if that is
    set; ``client_metadata`` is the address of a Client ID Metadata Document. Each may be empty. For jwt-bearer the
    secret is not the client's but the assertion that lets it in.
    """

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    issuer: str = ""
    client_metadata: str = ""
    scopes: tuple[str, ...] = ()
    grant: str = "authorization-code"

    @property
    def as_program(self) -> bool:
        """True if nobody need agree in a browser."""
        return self.grant != "authorization-code"

    @property
    def proof(self) -> str:
        """What proves that we are the client, empty for a public one."""
        return "" if self.grant == "jwt-bearer" else self.client_secret


@dataclass(frozen=True)
class TlsLaunch:
    """A client certificate and its key (None: in the same file) in PEM, and the CAs to trust (None: the system's)."""

    certificate: Path
    key: Path | None = None
    passphrase: str = field(default="", repr=False)
    ca: Path | None = None


@dataclass(frozen=True)
class RemoteLaunch:
    """A remote server. ``transport`` is "http" (streamable, falls back to SSE) or "sse".

    ``oauth`` is set where a sign-in may be wanted; a server that does not ask for one is used without.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    transport: str = "http"
    oauth: OAuthLaunch | None = None
    tls: TlsLaunch | None = None


Launch = LocalLaunch | RemoteLaunch
