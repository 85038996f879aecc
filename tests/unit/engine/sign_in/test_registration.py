"""As whom we sign in: given, by a document, or registered; and what is kept of that."""

import time
from typing import Any

import pytest

from callboard.core.errors import CallboardError
from tests.support.authorisation import AuthorisedServer
from tests.unit.engine.sign_in.conftest import PORT, Stand, call, step

OWN = f"http://127.0.0.1:{PORT}/oauth/callback"
DOCUMENT = "https://app.example.com/client.json"


@pytest.mark.parametrize(
    ("methods", "how"),
    [
        (["none"], "none"),
        (["client_secret_post", "none"], "none"),
        (["client_secret_basic"], "client_secret_basic"),
        (["client_secret_post"], "client_secret_post"),
        (None, "none"),
    ],
)
async def test_we_register_as_what_we_are(stand: Stand, methods: list[str] | None, how: str) -> None:
    async with AuthorisedServer(methods=methods, scopes=["read"]) as server:
        view, *_ = await stand.agree(server.mcp)
        assert view.state == "signed-in", view.message
        (registered,) = server.clients.values()
        assert registered == registered | {
            "client_name": "Callboard",
            "application_type": "native",
            "redirect_uris": [OWN],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": how,
            "scope": "read",
        }
        basic = server.requests("/token")[0].headers.get("authorization", "").startswith("Basic ")
        assert basic == (how == "client_secret_basic")


async def test_an_address_that_is_not_taken_is_followed_by_the_other(stand: Stand) -> None:
    async with AuthorisedServer(registration="localhost") as server:
        view, *_ = await stand.agree(server.mcp)
        assert view.state == "signed-in"
        assert view.redirect_uri == OWN.replace("127.0.0.1", "localhost")


async def test_a_registration_is_used_again_while_the_port_stays(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        await stand.agree(server.mcp)
        view, *_ = await stand.agree(server.mcp)
        assert view.client_id == "client-1"
        assert "known from before" in step(view, "registration").note
        stand.port = PORT + 1
        view, *_ = await stand.agree(server.mcp)
        assert view.client_id != "client-1"
        assert f":{PORT + 1}/" in view.redirect_uri
        assert len(server.requests("/register")) == 2


async def test_a_registration_whose_secret_has_ended_is_not_used(stand: Stand) -> None:
    async with AuthorisedServer(methods=["client_secret_post"], clients_end_at=int(time.time()) - 1) as server:
        first, *_ = await stand.agree(server.mcp)
        second, *_ = await stand.agree(server.mcp)
        assert first.client_id != second.client_id
        server.clients_end_at = int(time.time()) + 3600
        third, *_ = await stand.agree(server.mcp)
        fourth, *_ = await stand.agree(server.mcp)
        assert third.client_id == fourth.client_id


async def test_if_the_browser_never_comes_back_we_register_anew(stand: Stand) -> None:
    """An authorisation server that has forgotten us tells that to the person alone, in the browser."""
    async with AuthorisedServer() as server:
        await stand.agree(server.mcp)
        server.clients.clear()
        assert (await stand.begin(server.mcp)).client_id == "client-1"
        grant = stand.desk.find("one")
        assert grant is not None
        await grant.cancel()
        assert stand.desk.view("one").error_code == "sign-in-cancelled"
        view, *_ = await stand.agree(server.mcp)
        assert view.state == "signed-in"
        assert view.client_id in server.clients


@pytest.mark.parametrize(
    ("registration", "code", "said"),
    [
        ("none", "sign-in-client-id", "it offers no registration"),
        ("closed", "sign-in-client-id", "access_denied"),
        ("full", "sign-in-failed", "invalid_client_metadata: No more clients"),
    ],
)
async def test_where_nobody_may_register_a_client_id_is_asked_for(
    stand: Stand, registration: str, code: str, said: str
) -> None:
    async with AuthorisedServer(registration=registration) as server:
        view = await stand.begin(server.mcp)
        assert (view.state, view.error_code) == ("failed", code)
        assert said in view.message
        assert step(view, "registration").state == "failed"
        assert view.redirect_uri == OWN  # what the person must enter there


@pytest.mark.parametrize(
    ("secret", "methods", "how"),
    [
        ("", ["none"], ""),
        ("s e/c", ["client_secret_basic", "client_secret_post"], "basic"),
        ("hush-hush", ["client_secret_post"], "post"),
        ("hush-hush", None, "basic"),
    ],
)
async def test_a_client_of_the_roster_is_used(stand: Stand, secret: str, methods: list[str] | None, how: str) -> None:
    given: dict[str, Any] = {
        "redirect_uris": [OWN],
        "client_secret": "s%20e%2Fc" if how == "basic" and "/" in secret else secret,
    }
    async with AuthorisedServer(registration="none", methods=methods) as server:
        server.clients["mine"] = given if secret else {"redirect_uris": [OWN]}
        view, *_ = await stand.agree(server.mcp, client_id="mine", client_secret=secret)
        assert (view.state, view.client_id) == ("signed-in", "mine"), view.message
        server.expire()
        async with stand.connected(server.mcp, client_id="mine", client_secret=secret) as upstream:
            assert await call(upstream) == "mine"  # renewed, with the secret that only the roster knows
        assert server.renewals == 1
        kept = await stand.secrets.get_many(stand.secrets.names)
        assert not any(secret in text for text in kept.values() if secret)


async def test_a_given_client_is_not_shown_to_another_authorisation_server(stand: Stand) -> None:
    async with AuthorisedServer() as server, AuthorisedServer() as other:
        for one in (server, other):
            one.clients["mine"] = {"redirect_uris": [OWN], "client_secret": "secret"}
            one.methods = ["client_secret_post"]
        view, *_ = await stand.agree(server.mcp, client_id="mine", client_secret="secret")
        assert view.state == "signed-in"
        server.issuers = [other.url]
        view = await stand.begin(server.mcp, client_id="mine", client_secret="secret")
        assert view.error_code == "sign-in-failed"
        assert f"is now {other.url}" in view.message
        assert not other.requests("/token")
        view, *_ = await stand.agree(server.mcp, client_id="mine", client_secret="secret", issuer=other.url)
        assert view.issuer == other.url


async def test_a_document_is_used_where_the_server_takes_them(stand: Stand) -> None:
    async with AuthorisedServer(documents=True) as server:
        view, *_ = await stand.agree(server.mcp, client_metadata=DOCUMENT)
        assert (view.state, view.client_id) == ("signed-in", DOCUMENT)
        assert not server.requests("/register")
    async with AuthorisedServer() as server:
        view, *_ = await stand.agree(server.mcp, client_metadata=DOCUMENT)
        assert (view.state, view.client_id) == ("signed-in", "client-1")


async def test_another_authorisation_server_gets_a_registration_of_its_own(stand: Stand) -> None:
    async with AuthorisedServer() as server, AuthorisedServer() as other:
        await stand.agree(server.mcp)
        server.revoke()
        server.issuers = [other.url]
        assert (await stand.refused(server.mcp)).code == "remote-sign-in"
        view, *_ = await stand.agree(server.mcp)
        assert (view.state, view.issuer) == ("signed-in", other.url)
        assert other.requests("/register")
        assert not [one for one in other.seen if b"refresh" in one.body and one.path == "/token"]
        server.issuers = None
        view, *_ = await stand.agree(server.mcp)
        assert (view.issuer, view.client_id) == (server.url, "client-1")  # what we had there is still known
        assert len(server.requests("/register")) == 1


async def test_a_server_that_knows_the_client_no_more_gets_a_new_registration(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        await stand.agree(server.mcp)
        server.clients.clear()
        server.expire()
        error = await stand.refused(server.mcp)
        assert error.code == "remote-sign-in"
        assert "The sign-in has ended: invalid_client" in error.message
        view, *_ = await stand.agree(server.mcp)
        assert view.state == "signed-in"
        assert len(server.requests("/register")) == 2


async def test_a_key_that_cannot_be_read_is_said_and_not_shown(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        key = "-----BEGIN PRIVATE KEY-----\nno key\n-----END PRIVATE KEY-----"
        with pytest.raises(CallboardError) as caught:
            async with stand.connected(server.mcp, client_id="mine", client_secret=key, grant="client-credentials"):
                pass
        assert caught.value.code == "remote-certificate"
        assert "no key" not in caught.value.message
