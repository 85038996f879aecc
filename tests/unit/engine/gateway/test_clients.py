"""Client tokens: stable, separate, replaceable, and nowhere in clear."""

import json
import logging
import re
import stat
from pathlib import Path

import pytest

from callboard.core.errors import CallboardError
from callboard.engine.gateway.clients import OWN_CLIENTS, ClientTokens


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clients.json"


def test_tokens_outlive_a_restart_and_differ_by_client_and_installation(path: Path, tmp_path: Path) -> None:
    first = ClientTokens(path, ["vscode", "codex"])
    again = ClientTokens(path, ["codex", "vscode", "new"])
    other = ClientTokens(tmp_path / "other.json", ["vscode"])
    assert again.token_for("vscode") == first.token_for("vscode")
    assert len({first.token_for(client) for client in first.ids}) == 2 + len(OWN_CLIENTS)
    assert other.token_for("vscode") != first.token_for("vscode")
    assert re.fullmatch(r"cb_[A-Za-z0-9_-]{43}", first.token_for("vscode"))


def test_a_token_names_its_client(path: Path) -> None:
    tokens = ClientTokens(path, ["vscode"])
    assert [tokens.client_of(tokens.token_for(client)) for client in tokens.ids] == list(tokens.ids)
    for wrong in ("", "cb_", tokens.token_for("vscode")[:-1], "vscode", "\udcff"):
        assert tokens.client_of(wrong) is None


async def test_a_replaced_token_is_refused_from_then_on(path: Path) -> None:
    told: list[str] = []
    tokens = ClientTokens(path, ["vscode", "codex"], lambda: told.append("changed"))
    old, codex = tokens.token_for("vscode"), tokens.token_for("codex")
    new = await tokens.rotate("vscode")
    assert told == ["changed"]
    for reader in (tokens, ClientTokens(path, ["vscode", "codex"])):
        assert reader.client_of(old) is None
        assert reader.client_of(new) == "vscode"
        assert reader.token_for("codex") == codex


def test_the_file_is_for_its_owner_alone_and_holds_no_token(path: Path) -> None:
    tokens = ClientTokens(path, ["vscode"])
    path.chmod(0o644)
    ClientTokens(path, ["vscode"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert tokens.token_for("vscode") not in path.read_text()
    assert tokens.token_for("vscode").removeprefix("cb_") not in path.read_text()


async def test_unknown_clients_are_refused(path: Path) -> None:
    tokens = ClientTokens(path, ["vscode"])
    with pytest.raises(CallboardError) as caught:
        tokens.token_for("emacs")
    assert caught.value.code == "client-unknown"
    with pytest.raises(CallboardError) as caught:
        await tokens.rotate("emacs")
    assert caught.value.code == "client-unknown"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"key": "AAAA", "generations": {}}', '{"key": "!", "generations": {}}']
)
def test_a_damaged_file_is_kept_aside_and_told(path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text(text)
    with caplog.at_level(logging.WARNING):
        tokens = ClientTokens(path, ["vscode"])
    assert "new token" in caplog.text
    assert path.with_suffix(".broken").read_text() == text
    assert ClientTokens(path, ["vscode"]).token_for("vscode") == tokens.token_for("vscode")


def test_without_a_place_to_keep_them_tokens_last_for_the_session(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_text("not a folder")
    tokens = ClientTokens(folder / "clients.json", ["vscode"])
    (notice,) = tokens.notices
    assert (notice.code, "this session" in notice.message) == ("tokens-unsaved", True)
    assert tokens.client_of(tokens.token_for("vscode")) == "vscode"


async def test_the_file_is_plain_json(path: Path) -> None:
    await ClientTokens(path, ["vscode"]).rotate("vscode")
    assert json.loads(path.read_text())["generations"] == {"vscode": 1}
