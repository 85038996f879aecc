"""Where the authorisation server of a remote server is, in all the ways in which it may be told."""

from typing import Any

import pytest

from tests.support.authorisation import HTML, OAUTH, OPENID, RESOURCE, AuthorisedServer
from tests.support.site import Said
from tests.unit.engine.sign_in.conftest import Stand, call, step


@pytest.mark.parametrize(
    "behaviour",
    [
        {},
        {"header": "relative"},
        {"header": "none"},
        {"header": "none", "metadata_at": (RESOURCE,)},
        {"header": "absolute", "metadata_at": (f"{RESOURCE}/some/where",)},
        {"header": "elsewhere"},
        {"server_metadata_at": (OPENID,)},
        {"issuer_path": "/tenant", "server_metadata_at": (f"{OAUTH}/tenant",)},
        {"issuer_path": "/tenant", "server_metadata_at": (f"{OPENID}/tenant",)},
        {"issuer_path": "/tenant", "server_metadata_at": (f"/tenant{OPENID}",)},
        {"header": "none", "metadata_at": ()},
        {"header": "none", "metadata_at": (), "metadata_broken": HTML},
        {"header": "none", "metadata_at": (), "metadata_broken": HTML, "server_metadata_at": (OPENID,)},
    ],
    ids=repr,
)
async def test_it_is_found(stand: Stand, behaviour: dict[str, Any]) -> None:
    async with AuthorisedServer(**behaviour) as server:
        assert (await stand.refused(server.mcp)).code == "remote-sign-in"
        view, status, _ = await stand.agree(server.mcp)
        assert (view.state, view.issuer, status) == ("signed-in", server.issuer, 200)
        assert step(view, "discovery").state == "done"
        async with stand.connected(server.mcp) as upstream:
            assert await call(upstream) == "client-1"
        assert not [one for one in server.seen if "elsewhere" in one.path]


@pytest.mark.parametrize("ending", ["/", ""])
async def test_a_slash_at_the_end_makes_no_difference(stand: Stand, ending: str) -> None:
    async with AuthorisedServer() as server:
        server.resource = f"{server.mcp}{ending}"
        server.issuers = [f"{server.url}/"]
        view, *_ = await stand.agree(server.mcp)
        assert view.state == "signed-in"
        assert view.resource == server.resource
        assert server.requests("/authorize")[0].query["resource"] == server.resource


async def test_a_server_that_was_never_reached_is_asked_what_it_wants(stand: Stand) -> None:
    async with AuthorisedServer(challenge_scope="read") as server:
        view = await stand.begin(server.mcp)
        assert view.state == "waiting"
        assert step(view, "discovery").requests[0].status == 401
        assert "scope=read" in view.url


@pytest.mark.parametrize(
    ("behaviour", "code", "said"),
    [
        (
            {"resource": "https://other.example.com/mcp"},
            "sign-in-failed",
            "for another one: https://other.example.com/mcp",
        ),
        ({"resource": "http://127.0.0.1:1/mcp"}, "sign-in-failed", "for another one"),
        ({"says_issuer": "https://other.example.com"}, "sign-in-failed", "says that it is another one"),
        ({"issuers": ["http://as.example.com"]}, "sign-in-failed", "is not an https address"),
        (
            {"server_metadata_at": ()},
            "sign-in-failed",
            "does not describe itself: something else than data (text/html)",
        ),
        ({"metadata_at": (), "metadata_broken": Said(503)}, "remote-failed", "did not tell how to sign in: HTTP 503"),
        (
            {"endpoints": {"token_endpoint": "http://evil.example.com/token"}},
            "sign-in-failed",
            "is not an https address",
        ),
        (
            {"endpoints": {"authorization_endpoint": "javascript:alert(1)"}},
            "sign-in-failed",
            "does not describe itself",
        ),
        ({"pkce": False}, "sign-in-failed", "protects codes against theft"),
    ],
    ids=repr,
)
async def test_what_is_wrong_is_refused_and_said(stand: Stand, behaviour: dict[str, Any], code: str, said: str) -> None:
    async with AuthorisedServer(**behaviour) as server:
        view = await stand.begin(server.mcp)
        assert (view.state, view.error_code, view.url) == ("failed", code, "")
        assert said in view.message
        assert "<" not in view.message
        assert not server.requests("/authorize")
        failed = [one for one in view.steps if one.state == "failed"]
        assert [one.note for one in failed] == [view.message]


async def test_a_server_elsewhere_cannot_send_us_to_this_computer(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name leads here only because a proxy, which loopback addresses never use, does as if it were elsewhere."""
    async with AuthorisedServer(header="none") as server:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        monkeypatch.setenv("NO_PROXY", "")
        server.resource = "http://far.example.com/mcp"
        view = await stand.begin("http://far.example.com/mcp")
        assert view.error_code == "sign-in-failed"
        assert "is on this computer, the server is not" in view.message
        assert not [one for one in server.seen if one.path == OAUTH]


async def test_where_nothing_is_said_the_issuer_of_the_configuration_is_asked(stand: Stand) -> None:
    async with AuthorisedServer(header="none", metadata_at=()) as server, AuthorisedServer() as other:
        view, *_ = await stand.agree(server.mcp, issuer=other.url)
        assert (view.state, view.issuer, view.resource) == ("signed-in", other.url, server.mcp)


async def test_a_server_that_says_nothing_at_all_is_told_apart(stand: Stand) -> None:
    async with AuthorisedServer(header="none", metadata_at=(), server_metadata_at=()) as server:
        view = await stand.begin(server.mcp)
        assert (view.state, view.error_code) == ("failed", "sign-in-unavailable")
        assert "Enter a token" in view.fix


async def test_the_issuer_of_the_configuration_is_taken_or_none(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        server.issuers = ["https://first.example.com", server.url]
        view, *_ = await stand.agree(server.mcp, issuer=server.url)
        assert (view.state, view.issuer) == ("signed-in", server.url)
        server.issuers = ["https://first.example.com"]
        view = await stand.begin(server.mcp, issuer=server.url)
        assert view.error_code == "sign-in-failed"
        assert "https://first.example.com, not http://127.0.0.1" in view.message
