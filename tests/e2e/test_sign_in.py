"""Signing in to a remote server: the engine as a process, a browser, the command line, and an authorisation server."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from callboard.api.sign_in_schema import SignInView
from callboard.core.errors import CallboardError
from callboard.core.health import Action
from tests.e2e.command_line import CommandLine
from tests.support.authorisation import AuthorisedServer, browse
from tests.support.engine import EngineProcess
from tests.support.mcp_client import mcp_client, text_of

VAULT = {"CALLBOARD_VAULT_PASSPHRASE": "open sesame", "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}


async def follow(url: str, *, host: str = "", origin: str = "") -> httpx2.Response:
    """What a browser does with the address where it is sent in the end."""
    headers = {name: value for name, value in (("host", host), ("origin", origin)) if value}
    async with httpx2.AsyncClient(trust_env=False) as browser:
        return await browser.get(url, headers=headers, timeout=30)


async def agree(engine: EngineProcess, name: str) -> SignInView:
    """The person presses the button, and agrees to what the browser shows."""
    view = await engine.client.sign_in(name)
    assert view.state == "waiting", view.message
    page = await follow(await browse(view.url))
    assert page.status_code == 200, page.text
    return await engine.client.sign_in_view(name)


async def whoami(engine: EngineProcess, name: str) -> str:
    result = await engine.client.call_tool(name, "whoami", {})
    text: str = result["content"][0]["text"]
    return text.strip()


async def test_from_a_server_that_needs_a_sign_in_to_a_call(tmp_path: Path) -> None:
    async with AuthorisedServer() as server:
        entries = {"hub": {"url": server.mcp, "auth": {"type": "oauth"}}, "plain": {"url": server.mcp}}
        async with EngineProcess(tmp_path, entries) as engine:
            for name in entries:
                view = await engine.wait_for(name, "needs-sign-in")
                assert (view.error_code, view.action) == ("remote-sign-in", Action.SIGN_IN)
                assert view.reason == "Nobody has signed in to this server yet."
            assert not server.requests("/authorize")  # nobody asked for a browser
            assert not server.requests("/register")
            waiting = await engine.client.sign_in("hub")
            view = await engine.client.server("plain")  # one sign-in for both
            assert (view.sign_in, view.action) == ("waiting", Action.CANCEL)
            assert "sign in in the browser" in view.reason
            page = await follow(await browse(waiting.url), origin="https://as.example.com")
            assert page.status_code == 200
            assert "You are signed in" in page.text
            assert page.headers["cache-control"] == "no-store"
            assert "default-src 'none'" in page.headers["content-security-policy"]
            for name in entries:
                await engine.wait_for(name, "ready")
                assert await whoami(engine, name) == "client-1"
            assert len(server.requests("/authorize")) == 1
            done = await engine.client.sign_in_view("hub")
            assert (done.state, done.shared_with) == ("signed-in", ["plain"])
            assert [step.state for step in done.steps] == ["done"] * 4
            async with mcp_client(engine, "hub") as client:
                assert text_of(await client.call_tool("whoami", {})).strip() == "client-1"


async def test_only_the_right_browser_may_come_back(tmp_path: Path) -> None:
    async with AuthorisedServer() as server, EngineProcess(tmp_path, {"hub": {"url": server.mcp}}) as engine:
        await engine.wait_for("hub", "needs-sign-in")
        view = await engine.client.sign_in("hub")
        back = await browse(view.url)
        foreign = await follow(back, host="evil.example.com")
        assert (foreign.status_code, foreign.json()["code"]) == (403, "host-refused")
        assert (await follow(back.replace("state=", "state=x"))).status_code == 400
        assert (await follow(back.partition("?")[0])).status_code == 400
        assert (await engine.client.sign_in_view("hub")).state == "waiting"
        assert (await follow(back)).status_code == 200
        assert (await follow(back)).status_code == 400
        await engine.wait_for("hub", "ready")


async def test_it_lasts_and_is_found_in_no_file(tmp_path: Path) -> None:
    async with AuthorisedServer(challenge_scope="read") as server:
        engine = EngineProcess(tmp_path, {"hub": {"url": server.mcp, "auth": "oauth"}}, environment=VAULT)
        async with engine:
            await engine.wait_for("hub", "needs-sign-in")
            await agree(engine, "hub")
            await engine.wait_for("hub", "ready")
            assert await whoami(engine, "hub") == "client-1 read"
        server.expire()
        async with engine:
            await engine.wait_for("hub", "ready")
            assert await whoami(engine, "hub") == "client-1 read"
            secrets = await engine.client.secrets()
            (kept,) = secrets.secrets
            assert (kept.name.startswith("oauth."), kept.present, kept.used_by) == (True, True, ["hub"])
        assert (len(server.requests("/authorize")), server.renewals) == (1, 1)
        hidden = [*server.tokens, *(one.refresh for one in server.tokens.values() if one.refresh)]
        hidden += [server.requests("/authorize")[0].query["state"]]
        for path in tmp_path.rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            assert not [text for text in hidden if text.encode() in content], path


async def test_a_sign_in_that_ends_while_the_server_is_in_use(tmp_path: Path) -> None:
    async with AuthorisedServer() as server, EngineProcess(tmp_path, {"hub": {"url": server.mcp}}) as engine:
        await engine.wait_for("hub", "needs-sign-in")
        await agree(engine, "hub")
        await engine.wait_for("hub", "ready")
        server.revoke()
        with pytest.raises(CallboardError):
            await whoami(engine, "hub")
        view = await engine.wait_for("hub", "needs-sign-in")
        assert view.reason.startswith("The sign-in has ended: invalid_grant")
        await agree(engine, "hub")
        await engine.wait_for("hub", "ready")
        assert await whoami(engine, "hub") == "client-1"
        await engine.client.sign_out("hub")
        view = await engine.wait_for("hub", "needs-sign-in")
        assert view.reason == "Nobody has signed in to this server yet."


async def test_more_rights_degrade_a_server_until_they_are_given(tmp_path: Path) -> None:
    behaviour = {"challenge_scope": "read", "calls_need": "write"}
    async with AuthorisedServer(**behaviour) as server, EngineProcess(tmp_path, {"hub": {"url": server.mcp}}) as engine:
        await engine.wait_for("hub", "needs-sign-in")
        await agree(engine, "hub")
        await engine.wait_for("hub", "ready")
        with pytest.raises(CallboardError) as caught:
            await whoami(engine, "hub")
        assert caught.value.code == "remote-scope"
        view = await engine.wait_for("hub", "degraded")
        assert (view.error_code, view.action) == ("remote-scope", Action.SIGN_IN)
        assert view.reason == "The server wants more rights for this: write"
        await agree(engine, "hub")
        await engine.wait_for("hub", "ready")
        assert await whoami(engine, "hub") == "client-1 read write"


async def test_a_sign_in_is_given_up(tmp_path: Path) -> None:
    async with AuthorisedServer() as server, EngineProcess(tmp_path, {"hub": {"url": server.mcp}}) as engine:
        await engine.wait_for("hub", "needs-sign-in")
        await engine.client.sign_in("hub")
        await engine.client.act("hub", "cancel")
        view = await engine.wait_for_view("hub", lambda view: view.sign_in == "failed")
        assert (view.state, view.error_code, view.action) == ("needs-sign-in", "sign-in-cancelled", Action.SIGN_IN)
        await engine.client.sign_in("hub")
        cancelled = await engine.client.cancel_sign_in("hub")
        assert (cancelled.state, cancelled.url) == ("failed", "")
        server.registration = "none"
        await engine.client.sign_in("hub")
        view = await engine.client.server("hub")
        assert (view.error_code, view.action) == ("sign-in-client-id", Action.FILL_IN)


async def test_servers_that_sign_in_in_another_way_say_so(tmp_path: Path) -> None:
    async with AuthorisedServer() as server:
        entries = {
            "none": {"url": server.mcp, "auth": "none"},
            "header": {"url": server.mcp, "headers": {"authorization": "Bearer wrong"}},
        }
        async with EngineProcess(tmp_path, entries) as engine:
            for name in entries:
                view = await engine.wait_for(name, "needs-sign-in")
                assert (view.action, view.sign_in) == (Action.EDIT, "")
                with pytest.raises(CallboardError) as caught:
                    await engine.client.sign_in(name)
                assert caught.value.code == "sign-in-unavailable"


async def test_the_command_line_takes_the_address_where_there_is_no_browser(tmp_path: Path) -> None:
    server = AuthorisedServer(challenge_scope="read")
    async with server, EngineProcess(tmp_path, {"hub": {"url": server.mcp}}) as engine:
        await engine.wait_for("hub", "needs-sign-in")
        command = CommandLine(tmp_path)
        async with command.talking("sign-in", "hub", "--no-browser") as running:
            (url,) = [line for line in await running.errors_until("paste it here") if "/authorize?" in line]
            answer = await browse(url.strip())
            await running.say(answer.replace("state=", "state=x"))
            await running.errors_until("Begin the sign-in anew")
            await running.say(answer)
            ended = await running.end()
        assert ended.code == 0, ended.err
        assert ended.out.splitlines() == ["hub: signed in, for read", "hub: ready"]
        ended = await command("sign-out", "hub")
        assert (ended.code, ended.out) == (0, "hub: signed out\n")
        await engine.wait_for("hub", "needs-sign-in")


async def test_the_command_line_can_be_interrupted_and_says_what_failed(tmp_path: Path) -> None:
    async with AuthorisedServer(pkce=False) as server, EngineProcess(tmp_path, {"hub": {"url": server.mcp}}) as engine:
        await engine.wait_for("hub", "needs-sign-in")
        command = CommandLine(tmp_path)
        ended = await command("sign-in", "hub", "--no-browser")
        assert ended.code == 1
        assert "protects codes against theft (PKCE with S256). (at the step authorisation)" in ended.err
        server.pkce = True
        async with command.talking("sign-in", "hub", "--no-browser") as running:
            await running.errors_until("paste it here")
            code, errors = await running.interrupt()
        assert (code, "Traceback" in errors) == (130, False)
        view = await engine.wait_for_view("hub", lambda view: view.sign_in == "failed")
        assert view.error_code == "sign-in-cancelled"
        unknown = await command("sign-in", "nobody")
        assert unknown.code == 4
