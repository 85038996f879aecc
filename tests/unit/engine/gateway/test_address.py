"""Where the gateway listens, who may reach it there, and what is said of that."""

import socket

import pytest

from callboard.core.errors import CallboardError
from callboard.core.roster_parse import parse_roster
from callboard.core.roster_yaml import RosterError
from callboard.engine.gateway.access import Access
from callboard.engine.gateway.address import find_host, gateway_notices, is_local, url_of
from callboard.engine.gateway.server import listen


def test_loopback_unless_said_otherwise() -> None:
    written = parse_roster("").settings.gateway.host
    assert find_host(written, {}) == "127.0.0.1"
    assert find_host(written, {"CALLBOARD_GATEWAY_HOST": "0.0.0.0"}) == "0.0.0.0"
    assert find_host(parse_roster("gateway: {host: 10.0.0.1}").settings.gateway.host, {}) == "10.0.0.1"


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(RosterError, match="host must be an address of this computer"):
        parse_roster("gateway: {host: example.com}")
    with pytest.raises(CallboardError, match="CALLBOARD_GATEWAY_HOST must be an address") as failed:
        find_host("127.0.0.1", {"CALLBOARD_GATEWAY_HOST": "*"})
    assert failed.value.code == "gateway-host"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:4470"),
        ("0.0.0.0", "http://127.0.0.1:4470"),
        ("::", "http://127.0.0.1:4470"),
        ("10.0.0.1", "http://10.0.0.1:4470"),
        ("::1", "http://[::1]:4470"),
    ],
)
def test_the_address_for_programs_on_this_computer(host: str, url: str) -> None:
    assert url_of(host, 4470) == url


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1"])
def test_it_listens_there(host: str) -> None:
    try:
        sock = listen(0, host)
    except OSError:
        pytest.skip(f"this computer has no {host}")
    with sock:
        with socket.create_connection((host, sock.getsockname()[1]), 5):
            pass
        assert sock.getsockname()[0] == host


def test_what_others_can_reach_is_said() -> None:
    def codes(host: str, **more: bool) -> list[str]:
        said = {"is_open": False, "control_is_remote": False, **more}
        return [notice.code for notice in gateway_notices(host, 4470, 4470, **said)]

    assert codes("127.0.0.1") == codes("::1") == []
    assert codes("0.0.0.0") == codes("::") == codes("10.0.0.1") == ["gateway-exposed"]
    assert codes("0.0.0.0", is_open=True) == ["gateway-exposed", "gateway-open"]
    assert codes("0.0.0.0", control_is_remote=True) == ["gateway-exposed", "control-exposed"]
    assert codes("127.0.0.1", control_is_remote=True) == ["control-exposed"]  # a proxy may stand in front
    (exposed,) = gateway_notices("0.0.0.0", 4470, 0, is_open=False, control_is_remote=False)
    assert "0.0.0.0" in exposed.message
    (_, other) = gateway_notices("10.0.0.1", 4470, 0, is_open=True, control_is_remote=False)
    assert "whoever reaches this computer" in other.message


@pytest.mark.parametrize(
    ("peer", "host", "local"),
    [
        ("127.0.0.1", "0.0.0.0", True),
        ("127.0.0.9", "127.0.0.1", True),
        ("::1", "::", True),
        ("::ffff:127.0.0.1", "::", True),
        ("::ffff:10.0.0.7", "::", False),
        ("10.0.0.7", "0.0.0.0", False),
        ("10.0.0.7", "10.0.0.1", False),
        ("10.0.0.1", "10.0.0.1", True),
        ("fd00::1", "fd00::2", False),
        ("0.0.0.0", "0.0.0.0", False),
        ("::", "::", False),
        ("", "127.0.0.1", False),
    ],
)
def test_who_is_on_this_computer(peer: str, host: str, local: bool) -> None:
    assert is_local(peer, host) is local


def test_which_names_a_request_may_bear() -> None:
    access = Access("admin", lambda token: None)
    access.configure(open_gateway=False, hosts=["MCP.example", "10.0.0.1"], exposed=False)
    for host in (b"localhost:1", b"127.0.0.1", b"mcp.EXAMPLE:443", b"10.0.0.1:4470", b"[::1]:80"):
        assert access.check_host(host, None) is None, host
    for host in (b"10.0.0.2", b"evil.example", b"", b"[::2]"):
        assert access.check_host(host, None) is not None, host
    access.configure(open_gateway=False, hosts=["mcp.example"], exposed=True)
    for host in (b"10.0.0.2:4470", b"[fd00::1]:4470", b"mcp.example"):
        assert access.check_host(host, None) is None, host
    for host in (b"evil.example", b"10.0.0.2.evil.example", b""):
        assert access.check_host(host, None) is not None, host
    # a page is no load balancer: its address must be known
    assert access.check_host(b"10.0.0.2", b"http://10.0.0.2") is not None
    assert access.check_host(b"10.0.0.2", b"https://mcp.example") is None
