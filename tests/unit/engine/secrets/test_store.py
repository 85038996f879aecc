"""The secret store over keyrings of every kind: working, absent, locked, slow, failing."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.errors import InitError, KeyringLocked, NoKeyringError, PasswordSetError

from callboard.core.errors import CallboardError
from callboard.engine.secrets import store as store_module
from callboard.engine.secrets.store import SecretStore
from callboard.engine.secrets.vault import PASSPHRASE
from tests.unit.engine.secrets.conftest import MemoryKeyring


@asynccontextmanager
async def opened(
    state: Path, on_change: Callable[[], None] = lambda: None, **options: Any
) -> AsyncIterator[SecretStore]:
    """A store that is closed afterwards."""
    secrets = SecretStore(state, on_change, environment=options.pop("environment", {}), **options)
    try:
        yield secrets
    finally:
        secrets.close()


def disk(folder: Path) -> bytes:
    """Everything that was written."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_values_live_in_the_keyring_and_only_names_on_the_disk(
    tmp_path: Path, memory_keyring: MemoryKeyring
) -> None:
    async with opened(tmp_path) as secrets:
        await secrets.set("github-token", "s3cr3t-value")
        await secrets.set("other", "more")
        assert await secrets.get_many(["github-token", "gone"]) == {"github-token": "s3cr3t-value"}
        view = await secrets.view({"github-token": ["b", "a"], "gone": ["a"]})
        assert (view.kind, view.backend, view.problem, view.waiting) == ("keyring", "Test", "", False)
        assert [(item.name, item.present, item.used_by) for item in view.secrets] == [
            ("github-token", True, ["a", "b"]),
            ("gone", False, ["a"]),
            ("other", True, []),
        ]
        await secrets.delete("other")
        await secrets.delete("other")
        assert secrets.names == {"github-token"}
    assert memory_keyring.stored == {("callboard", "github-token"): "s3cr3t-value"}
    assert memory_keyring.threads == {"secrets"}
    assert json.loads((tmp_path / "secrets.json").read_text()) == {"names": ["github-token"]}
    assert b"s3cr3t" not in disk(tmp_path)
    async with opened(tmp_path) as again:
        assert again.names == {"github-token"}


async def test_without_secrets_no_keyring_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "get_keyring", lambda: pytest.fail("looked"))
    async with opened(tmp_path) as secrets:
        view = await secrets.view()
        assert (view.kind, view.problem, view.secrets) == ("keyring", "", [])


async def test_names_follow_what_the_keyring_really_holds(tmp_path: Path, memory_keyring: MemoryKeyring) -> None:
    async with opened(tmp_path) as secrets:
        await secrets.set("here", "1")
        memory_keyring.stored.clear()
        memory_keyring.stored["callboard", "elsewhere"] = "2"
        assert await secrets.get_many(["here", "elsewhere"]) == {"elsewhere": "2"}
        assert secrets.names == {"elsewhere"}


async def test_installations_with_a_home_of_their_own_do_not_share(
    tmp_path: Path, memory_keyring: MemoryKeyring
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        async with opened(tmp_path / folder, environment={"CALLBOARD_HOME": "x"}) as secrets:
            await secrets.set("name", folder)
    assert sorted(memory_keyring.stored.values()) == ["one", "two"]


async def test_a_long_value_fits_a_keyring_of_short_entries(tmp_path: Path, memory_keyring: MemoryKeyring) -> None:
    memory_keyring.limit = 2560
    async with opened(tmp_path) as secrets:
        await secrets.set("oauth", "t" * 5000)
        assert await secrets.get_many(["oauth"]) == {"oauth": "t" * 5000}
        memory_keyring.fail_after = 2
        with pytest.raises(CallboardError) as caught:
            await secrets.set("oauth", "u" * 5000)
        assert caught.value.code == "secrets-refused"
        assert "uuu" not in caught.value.message
        assert "5000 characters" in caught.value.message
        assert await secrets.get_many(["oauth"]) == {"oauth": "t" * 5000}


@pytest.mark.usefixtures("no_keyring")
async def test_without_a_keyring_values_last_for_the_session_and_never_reach_the_disk(tmp_path: Path) -> None:
    changes = []
    async with opened(tmp_path, lambda: changes.append(1)) as secrets:
        view = await secrets.view({"token": ["a"]})
        assert (view.kind, view.backend) == ("session", "memory")
        assert "this session only" in view.problem
        assert "keyring" in view.fix
        await secrets.set("token", "s3cr3t-value")
        assert await secrets.get_many(["token", "gone"]) == {"token": "s3cr3t-value"}
        assert secrets.names == {"token"}
        await secrets.delete("token")
        assert await secrets.get_many(["token"]) == {}
        await secrets.set("token", "s3cr3t-value")
        assert changes
    assert disk(tmp_path) == b""
    async with opened(tmp_path) as again:
        assert await again.get_many(["token"]) == {}


@pytest.mark.usefixtures("no_keyring")
async def test_a_keyring_that_comes_up_later_takes_the_values_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "LOOK_AGAIN", 0.0)
    async with opened(tmp_path) as secrets:
        await secrets.set("token", "s3cr3t-value")
        late = MemoryKeyring()
        monkeypatch.setattr(keyring, "get_keyring", lambda: late)
        await secrets.set("other", "2")
        assert late.values == {"token": "s3cr3t-value", "other": "2"}
        assert secrets.problem == ""
        assert (await secrets.view()).kind == "keyring"


@pytest.mark.parametrize("error", [NoKeyringError("x"), InitError("Prompt dismissed.."), ConnectionResetError()])
async def test_a_keyring_that_cannot_be_reached_is_no_reason_to_lose_a_value(
    tmp_path: Path, memory_keyring: MemoryKeyring, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_keyring.error = error
    async with opened(tmp_path) as secrets:
        await secrets.set("token", "s3cr3t-value")
        assert await secrets.get_many(["token", "gone"]) == {"token": "s3cr3t-value"}
        for _ in range(2):
            view = await secrets.view()
            assert view.kind == "session"
            assert type(error).__name__ in view.problem
        memory_keyring.error = None
        monkeypatch.setattr(store_module, "LOOK_AGAIN", 0.0)
        monkeypatch.setattr("keyring.core.init_backend", lambda: None)
        await secrets.get_many(["gone"])
        assert memory_keyring.values == {"token": "s3cr3t-value"}
        assert (await secrets.view()).problem == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyringLocked("Failed to unlock the collection!"), "secrets-locked"),
        (PasswordSetError("Can't store s3cr3t-value"), "secrets-refused"),
        (OSError(1783, "stub received s3cr3t-value"), "secrets-refused"),
        (TimeoutError(), "secrets-refused"),
    ],
)
async def test_what_the_keyring_says_becomes_one_of_our_errors_without_the_value(
    tmp_path: Path, memory_keyring: MemoryKeyring, error: Exception, code: str
) -> None:
    async with opened(tmp_path) as secrets:
        memory_keyring.error = error
        for attempt in (secrets.set("token", "s3cr3t-value"), secrets.get_many(["token"]), secrets.delete("token")):
            with pytest.raises(CallboardError) as caught:
                await attempt
            assert caught.value.code == code
            assert "s3cr3t-value" not in caught.value.message
        memory_keyring.error = None
        await secrets.set("token", "s3cr3t-value")
    assert disk(tmp_path).count(b"s3cr3t") == 0


async def test_while_a_prompt_is_open_the_loop_lives_and_the_view_says_so(
    tmp_path: Path, memory_keyring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "WAITING_AFTER", 0.01)
    changed = asyncio.Event()
    async with opened(tmp_path, changed.set) as secrets:
        memory_keyring.gate.clear()
        reading = asyncio.ensure_future(secrets.get_many(["token"]))
        await changed.wait()
        changed.clear()
        view = await secrets.view({"token": ["a"]})
        assert view.waiting
        memory_keyring.gate.set()
        await reading
        await changed.wait()
        assert not (await secrets.view()).waiting


async def test_a_prompt_that_nobody_answers_ends_in_an_error(tmp_path: Path, memory_keyring: MemoryKeyring) -> None:
    memory_keyring.gate.clear()
    async with opened(tmp_path, limit=0.05) as secrets:
        with pytest.raises(CallboardError) as caught:
            await secrets.get_many(["token"])
        assert caught.value.code == "secrets-locked"
        memory_keyring.gate.set()
        await secrets.set("token", "later")


async def test_closing_does_not_wait_for_a_prompt(tmp_path: Path, memory_keyring: MemoryKeyring) -> None:
    memory_keyring.gate.clear()
    secrets = SecretStore(tmp_path, environment={})
    reading = asyncio.ensure_future(secrets.get_many(["token"]))
    await asyncio.to_thread(memory_keyring.entered.wait, 10)
    waiting = asyncio.ensure_future(secrets.set("other", "x"))
    await asyncio.sleep(0)
    reading.cancel()
    waiting.cancel()
    await asyncio.gather(reading, waiting, return_exceptions=True)
    secrets.close()
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "secrets"]
    assert thread.is_alive()
    assert thread.daemon  # the program ends without it
    memory_keyring.gate.set()
    await asyncio.to_thread(thread.join, 10)
    assert memory_keyring.stored == {}


async def test_a_vault_is_used_where_the_person_asked_for_one(tmp_path: Path) -> None:
    async with opened(tmp_path, environment={PASSPHRASE: "open sesame"}) as secrets:
        await secrets.set("token", "s3cr3t-value")
        view = await secrets.view()
        assert (view.kind, view.problem) == ("vault", "")
    assert b"s3cr3t" not in disk(tmp_path)
    async with opened(tmp_path, environment={PASSPHRASE: "open sesame"}) as again:
        assert await again.get_many(["token"]) == {"token": "s3cr3t-value"}
    async with opened(tmp_path, environment={PASSPHRASE: "wrong"}) as wrong:
        with pytest.raises(CallboardError) as caught:
            await wrong.get_many(["token"])
        assert caught.value.code == "secrets-locked"


@pytest.mark.usefixtures("memory_keyring")
async def test_names_and_values_that_cannot_be_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as secrets:
        for name, value in (("", "x"), ("a b", "x"), ("a#a0", "x"), ("a", ""), ("a", "\ud800")):
            with pytest.raises(CallboardError) as caught:
                await secrets.set(name, value)
            assert caught.value.code == "secret-invalid"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"names": 5}', "\x00"])
async def test_a_damaged_list_of_names_is_no_disaster(tmp_path: Path, text: str, memory_keyring: MemoryKeyring) -> None:
    (tmp_path / "secrets.json").write_text(text)
    memory_keyring.stored["callboard", "token"] = "v"
    async with opened(tmp_path) as secrets:
        assert secrets.names == frozenset()
        assert await secrets.get_many(["token"]) == {"token": "v"}
        assert secrets.names == {"token"}
