"""Where the gateway listens, and what a person should know of that."""

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final

from callboard.api.schema import Notice
from callboard.core.errors import FIXES, CallboardError
from callboard.core.roster import address_problem

LOOPBACK_ADDRESS: Final = "127.0.0.1"
VARIABLE: Final = "CALLBOARD_GATEWAY_HOST"  # stands above the roster, for containers


def find_host(written: str, environment: Mapping[str, str]) -> str:
    """The address to listen at; ``written`` is the roster's. Raises ``gateway-host`` for one that cannot be."""
    host = environment.get(VARIABLE, "").strip() or written
    if (why := address_problem(host)) is not None:
        raise CallboardError("gateway-host", f"{VARIABLE} {why}.")
    return host


def is_exposed(host: str) -> bool:
    """Whether other computers may reach a gateway that listens there."""
    return not ip_address(host).is_loopback


def is_local(peer: str, host: str) -> bool:
    """Whether whoever connects from the address ``peer`` is on this computer, where the gateway listens at ``host``."""
    try:
        address = ip_address(peer)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:  # as a socket for both families has it
        address = address.ipv4_mapped
    listening = ip_address(host)
    return address.is_loopback or (address == listening and not listening.is_unspecified)


def url_of(host: str, port: int) -> str:
    """The address for programs on this computer, without a path."""
    address = ip_address(host)
    if address.is_unspecified:
        host = LOOPBACK_ADDRESS
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def gateway_notices(host: str, port: int, wanted_port: int, *, is_open: bool, control_is_remote: bool) -> list[Notice]:
    """Another port than wanted, other computers that may come in, and what they may do, or without a token."""
    notices = []
    if wanted_port and port != wanted_port:
        message = f"Port {wanted_port} is taken; the gateway listens on {port}."
        notices.append(Notice(code="port-in-use", message=message, fix=FIXES["port-in-use"]))
    exposed = is_exposed(host)
    if exposed:
        message = f"Other computers can reach the gateway: it listens at {host}, without encryption."
        notices.append(Notice(code="gateway-exposed", message=message, fix=FIXES["gateway-exposed"]))
    if control_is_remote:
        message = "Other computers may use the control API: who has the engine's token can run any program here."
        notices.append(Notice(code="control-exposed", message=message, fix=FIXES["control-exposed"]))
    if is_open:
        who = "whoever reaches this computer" if exposed else "every program on this computer"
        message = f"The gateway is open: {who} can use the servers without a token."
        notices.append(Notice(code="gateway-open", message=message, fix=FIXES["gateway-open"]))
    return notices
