"""What the browser brings back, and who may bring it."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from callboard.core.errors import CallboardError
from callboard.engine.sign_in.desk import answer_in
from tests.support.authorisation import AuthorisedServer, browse
from tests.support.gateway import until
from tests.support.site import Said, data
from tests.unit.engine.sign_in.conftest import Stand, step


@pytest.mark.parametrize(
    "behaviour",
    [{"iss": "own", "says_iss": True}, {"iss": "own", "says_iss": False}, {"iss": None, "says_iss": False}],
    ids=repr,
)
async def test_an_answer_of_the_server_that_was_asked_is_taken(stand: Stand, behaviour: dict[str, Any]) -> None:
    async with AuthorisedServer(**behaviour) as server:
        view, status, page = await stand.agree(server.mcp)
        assert (view.state, status) == ("signed-in", 200)
        assert b"You are signed in" in page
        assert stand.signed_in == ["one"]


@pytest.mark.parametrize("denies", ["", "access_denied"])
@pytest.mark.parametrize(
    "behaviour",
    [
        {"iss": "https://other.example.com", "says_iss": True},
        {"iss": "https://other.example.com", "says_iss": False},
        {"iss": None, "says_iss": True},
        {"iss": "", "says_iss": False},
        {"iss": "own/", "says_iss": True},
        {"iss": "OWN", "says_iss": True},
    ],
    ids=repr,
)
async def test_an_answer_of_another_server_is_not(stand: Stand, behaviour: dict[str, Any], denies: str) -> None:
    async with AuthorisedServer(denies=denies, **behaviour) as server:
        if server.iss in ("own/", "OWN"):
            server.iss = f"{server.url}/" if server.iss == "own/" else server.url.replace("http:", "HTTP:")
        view, status, page = await stand.agree(server.mcp)
        assert (view.state, view.error_code, status) == ("failed", "sign-in-failed", 400)
        assert "did not come from the sign-in server that was asked" in view.message
        assert not server.requests("/token")
        assert b"access_denied" not in page  # nothing is told of what another server says
        assert "access_denied" not in view.message


async def test_a_refusal_is_told(stand: Stand) -> None:
    async with AuthorisedServer(denies="access_denied") as server:
        view, status, page = await stand.agree(server.mcp)
        assert (view.error_code, status) == ("sign-in-refused", 400)
        assert view.message == "The sign-in was refused: access_denied, You said <no>."
        assert b"You said &lt;no&gt;" in page
        assert step(view, "authorisation").state == "failed"


async def test_the_state_is_good_for_one_answer_and_unguessable(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        view = await stand.begin(server.mcp)
        query = urlsplit(await browse(view.url)).query
        state = parse_qs(query)["state"][0]
        assert len(state) >= 43
        for wrong in (f"code=x&state={state[:-1]}", "code=x", "code=x&state=", "", "error=access_denied&state=no"):
            status, page = await stand.desk.callback(wrong)
            assert status == 400
            assert b"No sign-in is waiting" in page
        assert stand.desk.view("one").state == "waiting"  # what others send does not end it
        assert (await stand.desk.callback(query))[0] == 200
        assert (await stand.desk.callback(query))[0] == 400
        assert len(server.requests("/token")) == 1
        second = await stand.begin(server.mcp)
        assert state not in second.url


async def test_an_answer_that_says_a_thing_twice_is_refused(stand: Stand) -> None:
    with pytest.raises(CallboardError) as caught:
        await stand.desk.callback("code=a&code=b&state=c")
    assert caught.value.code == "bad-request"


async def test_the_address_or_the_code_can_be_pasted(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        for part in ("address", "query", "code"):
            view = await stand.begin(server.mcp)
            address = await browse(view.url)
            query = urlsplit(address).query
            stand.desk.pasted(
                "one", {"address": f" {address}\n", "query": query, "code": parse_qs(query)["code"][0]}[part]
            )
            await settled(stand)
            assert stand.desk.view("one").state == "signed-in"
            assert not stand.desk.view("one").message


async def test_what_is_pasted_for_another_sign_in_is_refused(stand: Stand) -> None:
    async with AuthorisedServer() as server, AuthorisedServer() as other:
        view = await stand.begin(server.mcp)
        await stand.begin(other.mcp, "two")
        address = await browse(view.url)
        for name, text in (("two", address), ("three", address), ("one", address.replace("state=", "state=x"))):
            with pytest.raises(CallboardError) as caught:
                stand.desk.pasted(name, text)
            assert caught.value.code == "sign-in-unknown"
        stand.desk.pasted("one", address)
        await settled(stand)
        assert stand.desk.view("one").state == "signed-in"
        assert stand.desk.view("two").state == "waiting"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("abc-._~==", {"code": "abc-._~=="}),
        ("http://127.0.0.1:1/oauth/callback?code=a%2Bb&state=s&other=x#f", {"code": "a+b", "state": "s"}),
        ("code=a&state=s", {"code": "a", "state": "s"}),
        ("state=s&error=no&error_description=not+now", {"state": "s", "error": "no", "error_description": "not now"}),
        ("?code=&state=s", {"code": "", "state": "s"}),
        ("", {}),
    ],
)
def test_what_an_answer_says(text: str, answer: dict[str, str]) -> None:
    assert answer_in(text) == answer


@pytest.mark.parametrize(
    ("broken", "code", "said"),
    [
        (Said(500), "remote-failed", "answered HTTP 500"),
        (Said(200, b"<html>", {"content-type": "text/html"}), "sign-in-failed", "something else than data (text/html)"),
        (data({"error": "invalid_grant", "error_description": "Too late."}, 400), "sign-in-failed", "Too late"),
        (data({"access_token": "a\nb", "token_type": "Bearer"}), "sign-in-failed", "cannot be used"),
        (data({"access_token": "", "token_type": "Bearer"}), "sign-in-failed", "holds no token"),
        (data({"access_token": 5, "token_type": "Bearer"}), "sign-in-failed", "holds no token"),
        (data({"access_token": "abc", "token_type": "mac"}), "sign-in-failed", "of a kind that is not known"),
        (Said(302, b"", {"location": "http://127.0.0.1:1/token"}), "sign-in-failed", "HTTP 302"),
        (Said(200, b"x" * (1024 * 1024 + 1)), "sign-in-failed", "larger than 1 MiB"),
    ],
)
async def test_a_token_that_is_none_is_said(stand: Stand, broken: Said, code: str, said: str) -> None:
    async with AuthorisedServer(token_broken=broken) as server:
        view, status, _ = await stand.agree(server.mcp)
        assert (view.state, view.error_code, status) == ("failed", code, 400)
        assert said in view.message
        assert step(view, "token").state == "failed"
        assert "a\nb" not in repr(view)


async def test_it_can_be_cancelled_at_any_time(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        view = await stand.begin(server.mcp)
        grant = stand.desk.find("one")
        assert grant is not None
        await grant.cancel()
        await grant.cancel()
        view = stand.desk.view("one")
        assert (view.state, view.error_code, view.url) == ("failed", "sign-in-cancelled", "")
        assert step(view, "authorisation").state == "failed"
        assert not stand.signed_in


async def test_to_begin_twice_is_to_go_on_with_the_one(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        views = await asyncio.gather(*(stand.begin(server.mcp, name) for name in ("one", "two", "one")))
        assert len({view.url for view in views}) == 1
        assert views[0].shared_with == ["two"]
        assert len(server.requests("/register")) == 1
        await stand.desk.callback(urlsplit(await browse(views[0].url)).query)
        assert stand.signed_in == ["one", "two"]


async def settled(stand: Stand) -> None:
    """Wait until the attempt of "one" has ended."""
    grant = stand.desk.find("one")
    assert grant is not None
    await until(lambda: not grant.busy)
