"""What engines agree on: values, clients' tokens and the key of request states, through a real PostgreSQL."""

import asyncio
from pathlib import Path

import pytest

from callboard.core.errors import CallboardError
from callboard.engine.gateway.clients import ClientTokens
from callboard.engine.policy.approvals import Approvals, Item
from callboard.engine.relay.seal import Seal
from callboard.engine.storage.shared import SharedStorage
from tests.support.balancer import Balancer
from tests.support.processes import until

pytestmark = pytest.mark.timeout(180)  # real databases, and waits for what they tell


class Sharer:
    """One engine's storage, tokens and seal."""

    def __init__(self, folder: Path, address: str, name: str) -> None:
        self.storage = SharedStorage(address, name, lambda: None)
        self.tokens = ClientTokens(folder / f"{name}.json", ["vscode", "codex"])
        self.own_token = self.tokens.token_for("vscode")
        self.seal = Seal()
        self.approvals = Approvals(folder / f"{name}-approvals.json")
        self.tokens.share(self.storage)
        self.seal.share(self.storage)
        self.approvals.share(self.storage)

    async def __aenter__(self) -> "Sharer":
        await self.storage.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.storage.close()


async def test_tokens_of_one_engine_are_those_of_all(tmp_path: Path, address: str) -> None:
    async with Sharer(tmp_path, address, "one") as one, Sharer(tmp_path, address, "two") as two:
        token = one.tokens.token_for("vscode")
        assert token == one.own_token  # clients that were set up before go on
        assert two.tokens.token_for("vscode") == token
        assert two.tokens.client_of(token) == "vscode"
        assert two.tokens.client_of(two.own_token) is None
        new = await one.tokens.rotate("vscode")
        assert one.tokens.client_of(new) == "vscode"
        assert one.tokens.client_of(token) is None
        await until(lambda: two.tokens.client_of(new) == "vscode", seconds=30)
        assert two.tokens.client_of(token) is None


async def test_engines_that_replace_tokens_together_lose_none(tmp_path: Path, address: str) -> None:
    async with Sharer(tmp_path, address, "one") as one, Sharer(tmp_path, address, "two") as two:
        wanted = [(one, "vscode"), (two, "codex"), (one, "codex"), (two, "vscode"), (one, "vscode")]
        await asyncio.gather(*(engine.tokens.rotate(client) for engine, client in wanted))
        third = Sharer(tmp_path, address, "three")
        async with third:
            assert third.tokens._stored.generations == {"vscode": 3, "codex": 2}


async def test_until_the_database_was_reached_nobody_is_let_in(
    tmp_path: Path, address: str, wire: Balancer, caplog: pytest.LogCaptureFixture
) -> None:
    await wire.cut()
    async with Sharer(tmp_path, address, "one") as one:
        assert not one.storage.is_known
        for ask in (one.tokens.token_for, one.tokens.client_of):
            with pytest.raises(CallboardError) as failed:
                ask("vscode")
            assert failed.value.code == "storage-away"
        await wire.restore()
        await until(lambda: one.storage.is_known, seconds=30)
        assert one.tokens.client_of(one.own_token) == "vscode"
        await wire.cut()
        with pytest.raises(CallboardError, match="cannot be reached"):
            await one.tokens.rotate("vscode")
        assert one.tokens.client_of(one.own_token) == "vscode"  # what was agreed on stays in force
    assert "is away" in caplog.text


async def test_states_sealed_by_one_engine_open_at_the_other(tmp_path: Path, address: str) -> None:
    async with Sharer(tmp_path, address, "one") as one, Sharer(tmp_path, address, "two") as two:
        state = one.seal.make("vscode", "files", "tools/call", {}, agreed=True, inner=b'"s"')
        opened = two.seal.open(state, "vscode", "tools/call", {})
        assert opened is not None
        assert (opened.server, opened.agreed, bytes(opened.inner)) == ("files", True, b'"s"')
        assert Seal().open(state, "vscode", "tools/call", {}) is None


async def test_what_the_person_allowed_at_one_engine_holds_at_all(tmp_path: Path, address: str) -> None:
    first: Item = ("vscode", "tool", "files", "delete")
    second: Item = ("codex", "tool", "files", "delete")
    async with Sharer(tmp_path, address, "one") as one, Sharer(tmp_path, address, "two") as two:
        await asyncio.gather(one.approvals.remember(first, "mark"), two.approvals.remember(second, "mark"))
        for engine in (one, two):
            await until(lambda engine=engine: len(engine.approvals.all()) == 2, seconds=30)
            assert engine.approvals.holds(first, "mark")
            assert engine.approvals.holds(second, "mark")
        assert await two.approvals.revoke("vscode") == 1
        await until(lambda: not one.approvals.holds(first, "mark"), seconds=30)
        assert one.approvals.holds(second, "mark")
    async with Sharer(tmp_path, address, "three") as three:
        assert [approval.client for approval in three.approvals.all()] == ["codex"]
