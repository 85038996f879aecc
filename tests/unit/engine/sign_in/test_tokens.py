"""How long a sign-in lasts: renewal, revocation, more rights, and what is kept from one start to the next."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from callboard.core.errors import CallboardError
from callboard.engine.sign_in.grant import Grant
from callboard.engine.sign_in.records import Tokens, renewal_time
from callboard.engine.upstream.http import HttpUpstream
from tests.support.authorisation import AuthorisedServer
from tests.support.gateway import until
from tests.support.site import Said, data
from tests.unit.engine.sign_in.conftest import Stand, call


def grant_of(stand: Stand, name: str = "one") -> Grant:
    grant = stand.desk.find(name)
    assert grant is not None
    return grant


def age(stand: Stand, seconds: float) -> None:
    """Let time pass for the token that we hold."""
    keeper = grant_of(stand)._keeper
    account = keeper.record.account
    assert account is not None
    assert account.tokens is not None
    tokens = msgspec.structs.replace(
        account.tokens, expires_at=account.tokens.expires_at - seconds, renew_at=account.tokens.renew_at - seconds
    )
    keeper.record = keeper.record.put(msgspec.structs.replace(account, tokens=tokens))


async def calls(upstream: HttpUpstream, count: int) -> list[str]:
    return await asyncio.gather(*(call(upstream) for _ in range(count)))


async def test_a_token_is_renewed_before_it_ends_once_for_all_calls(stand: Stand) -> None:
    async with AuthorisedServer(lifetime=100) as server:
        await stand.agree(server.mcp)
        async with stand.connected(server.mcp) as upstream:
            age(stand, 85)
            assert await calls(upstream, 5) == ["client-1"] * 5
            assert server.renewals == 0
            age(stand, 10)  # within the last tenth of its life, so it still lets in
            refused = len([one for one in server.requests("/mcp") if one.bearer not in server.tokens])
            assert await calls(upstream, 20) == ["client-1"] * 20
            assert server.renewals == 1
            assert refused == len([one for one in server.requests("/mcp") if one.bearer not in server.tokens])
        used = {one.bearer for one in server.requests("/mcp")[-20:]}
        assert len(used) == 1


@pytest.mark.parametrize("rotates", [True, False])
async def test_calls_that_are_refused_at_once_lead_to_one_renewal(stand: Stand, rotates: bool) -> None:
    async with AuthorisedServer(rotates=rotates, lifetime=None) as server:
        await stand.agree(server.mcp)
        async with stand.connected(server.mcp) as upstream:
            for round_ in (1, 2):
                server.expire()
                assert await calls(upstream, 20) == ["client-1"] * 20
                assert server.renewals == round_
        assert server.requests("/token")[-1].form["resource"] == server.mcp


async def test_several_servers_at_one_address_share_the_sign_in_and_its_renewal(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        await stand.agree(server.mcp)
        async with stand.connected(server.mcp, "two") as second, stand.connected(server.mcp) as first:
            server.expire()
            await asyncio.gather(calls(first, 5), calls(second, 5))
            assert server.renewals == 1
        assert stand.desk.view("two").shared_with == ["one"]


async def test_calls_do_not_wait_for_one_another(stand: Stand) -> None:
    """A slow answer holds up nobody else who signs requests with the same token."""
    async with AuthorisedServer() as server:
        await stand.agree(server.mcp)
        async with stand.connected(server.mcp) as upstream:
            gate, answer = asyncio.Event(), server.answer

            async def slowly(seen: Any) -> Said:
                if seen.path == "/mcp" and b"tools/call" in seen.body and not gate.is_set():
                    gate.set()
                    await asyncio.wait_for(released.wait(), 10)
                return await answer(seen)

            released = asyncio.Event()
            server.answer = slowly  # type: ignore[method-assign]
            slow = asyncio.ensure_future(call(upstream))
            await asyncio.wait_for(gate.wait(), 10)
            assert await call(upstream) == "client-1"
            assert not slow.done()
            released.set()
            assert await slow == "client-1"


async def test_a_revoked_sign_in_ends_the_connection_and_says_so(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        await stand.agree(server.mcp)
        async with stand.connected(server.mcp) as upstream:
            server.revoke()
            found = await asyncio.gather(*(call(upstream) for _ in range(5)), return_exceptions=True)
            errors = [error for error in found if isinstance(error, CallboardError)]
            assert {error.code for error in errors} <= {"remote-sign-in", "upstream-gone"}
            assert "The sign-in has ended: invalid_grant: It was revoked." in {error.message for error in errors}
            closed = await asyncio.wait_for(upstream.closed, 5)
            assert closed.error == "remote-sign-in"
        assert server.renewals == 1  # not again and again
        assert stand.desk.view("one").error_code == "remote-sign-in"
        assert (await stand.refused(server.mcp)).message.startswith("The sign-in has ended")


async def test_a_server_that_does_not_renew_wants_a_sign_in_when_the_token_ends(stand: Stand) -> None:
    async with AuthorisedServer(refreshes=False) as server:
        view, *_ = await stand.agree(server.mcp)
        assert not view.renewable
        async with stand.connected(server.mcp) as upstream:
            server.expire()
            with pytest.raises(CallboardError) as caught:
                await call(upstream)
        assert caught.value.code == "remote-sign-in"


@pytest.mark.parametrize("broken", [Said(503), data({"error": "temporarily_unavailable"}, 400)])
async def test_if_renewal_fails_for_now_the_sign_in_is_kept(stand: Stand, broken: Said) -> None:
    async with AuthorisedServer(lifetime=100) as server:
        await stand.agree(server.mcp)
        async with stand.connected(server.mcp) as upstream:
            server.token_broken = broken
            age(stand, 92)
            assert await calls(upstream, 3) == ["client-1"] * 3  # what is left of its life is used
            assert await calls(upstream, 3) == ["client-1"] * 3
            assert len(server.requests("/token")) == 2  # and nobody is pestered
            server.expire()
            with pytest.raises(CallboardError) as caught:
                await call(upstream)
            assert caught.value.code in ("remote-failed", "sign-in-failed")
            assert "could not be renewed" in caught.value.message
            assert not upstream.closed.done()
            server.token_broken = None
            assert await call(upstream) == "client-1"


@pytest.mark.parametrize("known", [True, False])
async def test_the_old_transport_is_signed_too(stand: Stand, known: bool) -> None:
    async with AuthorisedServer(at="/sse") as server:
        if known:
            assert (await stand.refused(server.sse)).code == "remote-sign-in"
        view, *_ = await stand.agree(server.sse)
        assert view.state == "signed-in", view.message
        async with stand.connected(server.sse) as upstream:
            assert await calls(upstream, 3) == ["client-1"] * 3
            server.expire()
            assert await calls(upstream, 3) == ["client-1"] * 3
            server.revoke()
            with pytest.raises(CallboardError):
                await call(upstream)
            assert (await asyncio.wait_for(upstream.closed, 5)).error == "remote-sign-in"


async def test_more_rights_are_asked_for_and_those_of_before_are_kept(stand: Stand) -> None:
    async with AuthorisedServer(challenge_scope="read", calls_need="write") as server:
        await stand.agree(server.mcp)
        async with stand.connected(server.mcp) as upstream:
            with pytest.raises(CallboardError) as caught:
                await call(upstream)
            assert (caught.value.code, caught.value.message) == (
                "remote-scope",
                "The server wants more rights for this: write.",
            )
            assert not upstream.closed.done()
            assert not server.requests("/authorize")[1:]  # nobody was sent to a browser
            view, *_ = await stand.agree(server.mcp)
            assert view.scopes == ["read", "write"]
            assert not view.message
            assert await call(upstream) == "client-1 read write"
            server.calls_need = "admin"
            server.tokens[next(reversed(server.tokens))].scopes.add("admin")
            assert await call(upstream) == "client-1 admin read write"


async def test_rights_that_are_never_given_are_not_asked_for_again(stand: Stand) -> None:
    async with AuthorisedServer(challenge_scope="read", calls_need="write") as server:
        await stand.agree(server.mcp)
        async with stand.connected(server.mcp) as upstream:
            with pytest.raises(CallboardError):
                await call(upstream)
            await stand.agree(server.mcp)
            for grantee in server.tokens.values():
                grantee.scopes = {"read"}  # the server gives less than it says
            with pytest.raises(CallboardError) as caught:
                await call(upstream)
            assert caught.value.code == "remote-forbidden"
            assert "refuses this account the right to write" in caught.value.message


@pytest.mark.parametrize(
    ("behaviour", "configured", "asked"),
    [
        ({"challenge_scope": "a b", "scopes": ["c"]}, (), "a b"),
        ({"scopes": ["c", "d"]}, (), "c d"),
        ({"server_scopes": ["x"]}, (), None),
        ({"scopes": ["c"], "server_scopes": ["c", "offline_access"]}, (), "c offline_access"),
        ({"scopes": ["c"]}, ("e", "f"), "e f"),
        ({"challenge_scope": "a", "scopes": ["c"]}, ("e",), "e a"),
    ],
)
async def test_which_scopes_are_asked_for(
    stand: Stand, behaviour: dict[str, Any], configured: tuple[str, ...], asked: str | None
) -> None:
    async with AuthorisedServer(**behaviour) as server:
        await stand.agree(server.mcp, scopes=configured)
        query = server.requests("/authorize")[0].query
        assert query.get("scope") == asked
        assert query.get("prompt") == ("consent" if asked and "offline_access" in asked else None)


async def test_a_program_signs_in_by_itself(stand: Stand) -> None:
    given = {"client_id": "robot", "client_secret": "hush-hush", "grant": "client-credentials", "scopes": ("read",)}
    async with AuthorisedServer(methods=["client_secret_basic"], calls_need="write", refreshes=False) as server:
        server.clients["robot"] = {"client_secret": "hush-hush"}
        async with stand.connected(server.mcp, **given) as upstream:
            assert await call(upstream) == "robot read write"  # more rights, without anybody
            server.expire()
            assert await calls(upstream, 10) == ["robot read write"] * 10
        assert len(server.requests("/token")) == 3
        server.clients["robot"]["client_secret"] = "another"
        server.expire()
        for _ in range(3):
            error = await stand.refused(server.mcp, **given)
            assert (error.code, "invalid_client" in error.message) == ("sign-in-failed", True)
        assert len(server.requests("/token")) == 4  # not once for each request


@pytest.mark.parametrize("kind", ["ec", "rsa", "ed25519"])
@pytest.mark.parametrize("lines", [True, False])
async def test_a_program_can_prove_itself_with_a_key(stand: Stand, kind: str, lines: bool) -> None:
    keys: dict[str, Any] = {
        "ec": lambda: ec.generate_private_key(ec.SECP256R1()),
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
        "ed25519": ed25519.Ed25519PrivateKey.generate,
    }
    key = keys[kind]()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    given = {
        "client_id": "robot",
        "client_secret": pem if lines else " ".join(pem.split("\n")),
        "grant": "client-credentials",
    }
    async with AuthorisedServer(methods=["private_key_jwt"], refreshes=False) as server:
        server.clients["robot"] = {"public_key": key.public_key()}
        async with stand.connected(server.mcp, **given) as upstream:
            assert await call(upstream) == "robot"
            server.expire()
            assert await calls(upstream, 3) == ["robot"] * 3
        assert len(server.requests("/token")) == 2
        assert pem.split("\n")[1] not in repr(stand.desk.view("one"))


@pytest.mark.parametrize("nonce", ["", "first"])
async def test_tokens_are_bound_to_a_key_where_that_is_wanted(stand: Stand, tmp_path: Path, nonce: str) -> None:
    async with AuthorisedServer(bound=True, nonce=nonce) as server:
        view, *_ = await stand.agree(server.mcp)
        assert view.state == "signed-in", view.message
        async with stand.connected(server.mcp) as upstream:
            assert await calls(upstream, 5) == ["client-1"] * 5
            server.nonce = "second" if nonce else ""
            assert await calls(upstream, 5) == ["client-1"] * 5
            server.expire()
            assert await calls(upstream, 5) == ["client-1"] * 5
        assert server.renewals == 1
        assert len({json.dumps(one.key) for one in server.tokens.values()}) == 1
        await stand.close()
        again = Stand(tmp_path)
        async with again.connected(server.mcp) as upstream:
            assert await call(upstream) == "client-1"  # the key is kept with the tokens
        await again.close()
        assert not [one for one in server.requests("/mcp") if one.headers.get("authorization", "").startswith("Bearer")]


async def test_a_server_that_wants_bound_tokens_which_nobody_gives(stand: Stand) -> None:
    async with AuthorisedServer(bound=True) as server, AuthorisedServer() as other:
        server.issuers = [other.url]
        view = await stand.begin(server.mcp)
        assert view.error_code == "sign-in-failed"
        assert "bound to a key" in view.message


async def test_a_program_is_let_in_by_an_assertion(stand: Stand) -> None:
    given = {"client_id": "robot", "client_secret": "an.assert.ion", "grant": "jwt-bearer", "scopes": ("read",)}
    async with AuthorisedServer(methods=["none"], refreshes=False) as server:
        server.clients["robot"] = {"assertion": "an.assert.ion"}
        async with stand.connected(server.mcp, **given) as upstream:
            assert await call(upstream) == "robot read"
        assert "client_secret" not in server.requests("/token")[0].form
        assert "an.assert.ion" not in repr(stand.desk.view("one"))
        server.expire()
        server.clients["robot"]["assertion"] = "another"
        error = await stand.refused(server.mcp, **given)
        assert (error.code, "invalid_grant" in error.message) == ("sign-in-failed", True)
        assert len(server.requests("/token")) == 2  # it is not tried again, nor in another way


async def test_a_large_token_is_kept_where_entries_are_small(tmp_path: Path, small_keyring: Any) -> None:
    """Windows holds 2,560 bytes of UTF-16 in each entry."""
    stand = Stand(tmp_path)
    async with AuthorisedServer(padding="x" * 5000) as server:
        await stand.agree(server.mcp)
        await stand.close()
        assert len(small_keyring.values) > 4
        assert small_keyring.threads == {"secrets"}  # never on the loop's own
        again = Stand(tmp_path)
        async with again.connected(server.mcp) as upstream:
            assert await call(upstream) == "client-1"
        await again.close()
        assert len(server.requests("/authorize")) == 1


async def test_it_is_kept_from_one_start_to_the_next(stand: Stand, tmp_path: Path) -> None:
    async with AuthorisedServer() as server:
        await stand.agree(server.mcp)
        await stand.close()
        again = Stand(tmp_path)
        async with again.connected(server.mcp) as upstream:
            assert await call(upstream) == "client-1"
        assert len(server.requests("/authorize")) == 1
        server.expire()
        async with again.connected(server.mcp) as upstream:
            assert await call(upstream) == "client-1"
        assert server.renewals == 1
        assert again.desk.view("one").state == "signed-in"
        await again.close()
        third = Stand(tmp_path)
        async with third.connected(server.mcp) as upstream:
            assert await call(upstream) == "client-1"
        assert server.renewals == 1  # what came of the renewal was kept
        await third.close()


async def test_what_is_kept_is_keyed_by_issuer_and_lies_in_the_keyring_alone(stand: Stand, tmp_path: Path) -> None:
    async with AuthorisedServer() as server:
        await stand.agree(server.mcp)
        await stand.close()
        (name,) = stand.secrets.names
        assert name.startswith("oauth.")
        again = Stand(tmp_path)
        kept = json.loads((await again.secrets.get_many([name]))[name])
        await again.close()
        assert list(kept["accounts"]) == [server.url]
        token = kept["accounts"][server.url]["tokens"]["access"]
        assert token in server.tokens
        for path in tmp_path.rglob("*"):
            assert not path.is_file() or token.encode() not in path.read_bytes()


async def test_a_server_that_never_wanted_a_sign_in_opens_no_keyring(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        assert (await stand.refused(server.mcp)).code == "remote-sign-in"
        assert stand.secrets._backend is None


async def test_tokens_are_masked_also_those_of_later(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        view, *_ = await stand.agree(server.mcp)
        async with stand.connected(server.mcp) as upstream:
            server.expire()
            await call(upstream)
        assert len(server.tokens) == 2
        for token, grantee in server.tokens.items():
            assert token not in stand.masking.mask_text(f"got {token} here")
            if grantee.refresh:
                assert grantee.refresh not in stand.masking.mask_text(f"got {grantee.refresh} here")
        shown = repr(view)
        for secret in (*server.tokens, *(one["code_challenge"][:0] or "code-" for one in server.codes.values())):
            assert secret not in shown
        form = server.requests("/token")[0].form
        for key in ("code", "code_verifier"):
            assert form[key] not in shown
        assert server.requests("/authorize")[0].query["state"] not in shown


async def test_signing_out_forgets_all_and_tells_the_server(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        await stand.agree(server.mcp)
        await grant_of(stand).sign_out()
        assert stand.desk.view("one").state == "none"
        assert not any(grantee.alive for grantee in server.tokens.values())
        await until(lambda: not stand.secrets.names)
        assert (await stand.refused(server.mcp)).message == "Nobody has signed in to this server yet."


async def test_what_a_person_takes_out_of_the_store_is_gone(stand: Stand) -> None:
    async with AuthorisedServer() as server:
        await stand.agree(server.mcp)
        ((name, users),) = stand.desk.users().items()
        assert users == ["one"]
        stand.desk.secret_gone("other")
        assert stand.desk.view("one").state == "signed-in"
        stand.desk.secret_gone(name)
        assert stand.desk.view("one").state == "none"


def test_when_a_token_is_renewed() -> None:
    now = time.time()
    assert renewal_time(now, 3600) == now + 3540
    assert renewal_time(now, 100) == pytest.approx(now + 90)
    assert Tokens("a").renew_at == 0.0
