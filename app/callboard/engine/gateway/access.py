"""Who may call: Host and Origin against DNS rebinding, and a bearer token for everything but ``/healthz``."""

import hmac
from collections.abc import Callable, Iterable
from enum import Enum, auto
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from callboard.core.errors import CallboardError

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
MAX_KNOWN: Final = 1000  # headers whose caller is remembered, which spares a hash per request


class Admin(Enum):
    """Whoever has the admin token. No text, so that no client's id can be taken for it."""

    ADMIN = auto()


Visitor = str | Admin  # a client's id, or the administrator


class Access:
    """The gateway's doorkeeper. Engine loop only."""

    def __init__(
        self,
        admin_token: str,
        client_of: Callable[[str], str | None],
        *,
        open_gateway: bool = False,
        hosts: Iterable[str] = (),
    ) -> None:
        """``client_of`` finds the client of a token; ``hosts`` are host names allowed besides the loopback ones."""
        self._admin_token = admin_token.encode()
        self._client_of = client_of
        self.configure(open_gateway=open_gateway, hosts=hosts)

    def configure(self, *, open_gateway: bool, hosts: Iterable[str], exposed: bool = False) -> None:
        """Take the roster's settings. An open gateway needs no token, except for the control API.

        A gateway that is ``exposed`` to other computers may be called by any address: a foreign page can point only a
        name at us, and load balancers look after engines by their addresses.
        """
        self.open = open_gateway
        self._exposed = exposed
        self._hosts = LOOPBACK | {host.lower() for host in hosts}
        self._good_hosts: set[bytes] = set()
        self.forget()

    def forget(self) -> None:
        """Look every token up anew: tokens were replaced."""
        self._known_callers: dict[bytes, Visitor] = {}

    def check_host(self, host: bytes | None, origin: bytes | None) -> CallboardError | None:
        """Refuse names that a foreign page could have pointed at us; None if all is well."""
        if host is None or (host not in self._good_hosts and not self._is_ours(b"//" + host)):
            name = (host or b"").decode("latin-1")
            return CallboardError("host-refused", f'The host name "{name}" is not one of this gateway.')
        if len(self._good_hosts) < 100:
            self._good_hosts.add(host)
        if origin is not None and not self._known(origin):
            return CallboardError("host-refused", f'Pages from "{origin.decode("latin-1")}" may not call this gateway.')
        return None

    def _is_ours(self, address: bytes) -> bool:
        return self._known(address) or (self._exposed and _is_number(_host_of(address)))

    def _known(self, address: bytes) -> bool:
        return _host_of(address) in self._hosts

    def caller(self, authorization: bytes | None) -> Visitor | None:
        """The client that a bearer token belongs to, or the administrator; None for no valid token."""
        if authorization is None:
            return "open" if self.open else None
        caller = self._known_callers.get(authorization)
        if caller is None:
            caller = self._look_up(authorization)
            if caller is not None and len(self._known_callers) < MAX_KNOWN:
                self._known_callers[authorization] = caller
        return caller

    def _look_up(self, authorization: bytes) -> Visitor | None:
        if authorization[:7].lower() != b"bearer ":
            return "open" if self.open else None
        token = authorization[7:].strip()
        if hmac.compare_digest(token, self._admin_token):
            return Admin.ADMIN
        try:
            client = self._client_of(token.decode("ascii"))
        except UnicodeDecodeError:
            client = None
        return client or ("open" if self.open else None)


def _host_of(address: bytes) -> str:
    try:
        return (urlsplit(address.decode("ascii")).hostname or "").lower()
    except ValueError:
        return ""


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
