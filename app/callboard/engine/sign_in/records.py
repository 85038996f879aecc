"""What is kept of a sign-in, as it lies in the secret store."""

import hashlib
import re
from urllib.parse import urlsplit, urlunsplit

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.launch import OAuthLaunch

SECRET_PREFIX = "oauth."
LEAD = 60.0  # seconds before its end at which a token is renewed; a tenth of its life, if that is shorter


class Client(msgspec.Struct, frozen=True):
    """As whom we are known to an authorisation server. ``expires_at``: seconds since the epoch, 0 for never.

    ``kind``: "registered" (by ourselves, dynamically), "given" (by the roster) or "document" (its id is an address).
    """

    id: str
    kind: str
    secret: str = ""
    method: str = "none"  # how it proves who it is at the token endpoint
    redirect_uri: str = ""
    expires_at: float = 0.0


class Tokens(msgspec.Struct, frozen=True):
    """What lets us in. Times are seconds since the epoch, 0 where the server did not say."""

    access: str
    refresh: str = ""
    scope: str = ""
    expires_at: float = 0.0
    renew_at: float = 0.0
    bound: bool = False  # to the account's key


class Account(msgspec.Struct, frozen=True):
    """All that we have with one authorisation server for one resource. ``asked``: every scope asked for so far.

    ``key`` is the private key (PEM) that tokens are bound to, empty where none is wanted.
    """

    issuer: str
    resource: str
    token_endpoint: str
    revocation_endpoint: str = ""
    asked: str = ""
    client: Client | None = None
    tokens: Tokens | None = None
    key: str = ""


class Record(msgspec.Struct, frozen=True):
    """The accounts of one resource by issuer, and which is in use."""

    issuer: str = ""
    accounts: dict[str, Account] = {}

    @property
    def account(self) -> Account | None:
        """The one in use."""
        return self.accounts.get(self.issuer)

    def put(self, account: Account) -> "Record":
        """With an account that is from now on the one in use."""
        return Record(account.issuer, {**self.accounts, account.issuer: account})


_decoder = msgspec.json.Decoder(Record)


def encode(record: Record) -> str:
    """As the secret store keeps it."""
    return msgspec.json.encode(record).decode()


def decode(text: str) -> Record:
    """From the secret store; empty if it cannot be read."""
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError:
        return Record()


def canonical(url: str) -> str:
    """The address of a resource without what makes no difference (2026-07-28, authorization "Canonical Server URI")."""
    parts = urlsplit(url)
    path = "" if parts.path == "/" else parts.path
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, parts.query, ""))


def secret_name(url: str, oauth: OAuthLaunch) -> str:
    """Under which name of the secret store the record of a resource lies; another client is another sign-in."""
    who = "\0".join((canonical(url), oauth.client_id, oauth.grant))
    return SECRET_PREFIX + hashlib.sha256(who.encode()).hexdigest()[:32]


def usable(name: str, value: str) -> str:
    """``value`` if it can be sent in a header; raises ``sign-in-failed`` without showing it."""
    if not re.fullmatch(r"[\x21-\x7e]+", value):
        raise CallboardError("sign-in-failed", f"The sign-in server sent {name} that cannot be used: it must be ASCII.")
    return value


def union(*scopes: str) -> str:
    """All scopes of some lists, each once, in order."""
    return " ".join(dict.fromkeys(scope for text in scopes for scope in text.split()))


def renewal_time(now: float, lifetime: float) -> float:
    """When a token that lives for ``lifetime`` seconds is renewed."""
    return now + lifetime - min(LEAD, lifetime / 10)
