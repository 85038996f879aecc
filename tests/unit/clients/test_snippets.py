"""Every snippet is valid in its format and says what the client needs."""

import json
import tomllib

import pytest

from callboard.clients.snippets import load_clients
from callboard.core.errors import CallboardError

URL = "http://127.0.0.1:4470/mcp"
TOKEN = "cb_" + "x" * 43
CLIENTS = load_clients()


def test_vscode_asks_for_the_token() -> None:
    view = CLIENTS.snippet("vscode", URL, "callboard")
    assert json.loads(view.text) == {
        "servers": {
            "callboard": {
                "type": "http",
                "url": URL,
                "headers": {"Authorization": "Bearer ${input:callboard-token}"},
            }
        },
        "inputs": [
            {
                "type": "promptString",
                "id": "callboard-token",
                "description": "Callboard token (in Callboard's window: Clients, VS Code, Copy token; "
                "or: callboard snippet vscode --with-token)",
                "password": True,
            }
        ],
    }
    assert view.file == ".vscode/mcp.json"
    assert "callboard snippet vscode --with-token" in view.note


def test_vscode_with_the_token_asks_nothing() -> None:
    view = CLIENTS.snippet("vscode", URL, "local-tools", TOKEN)
    assert json.loads(view.text) == {
        "servers": {"local-tools": {"type": "http", "url": URL, "headers": {"Authorization": f"Bearer {TOKEN}"}}}
    }
    assert "in clear" in view.note


def test_claude_code_reads_the_environment_and_has_a_command() -> None:
    view = CLIENTS.snippet("claude-code", URL, "callboard")
    assert json.loads(view.text)["mcpServers"]["callboard"] == {
        "type": "http",
        "url": URL,
        "headers": {"Authorization": "Bearer ${CALLBOARD_TOKEN}"},
    }
    command = f'claude mcp add --transport http --scope user callboard {URL} --header "Authorization: Bearer'
    assert f'{command} $CALLBOARD_TOKEN"' in view.note
    assert f'{command} {TOKEN}"' in CLIENTS.snippet("claude-code", URL, "callboard", TOKEN).note


def test_codex_names_a_variable_or_has_the_header() -> None:
    view = CLIENTS.snippet("codex", URL, "callboard")
    assert tomllib.loads(view.text) == {
        "mcp_servers": {"callboard": {"url": URL, "bearer_token_env_var": "CALLBOARD_TOKEN"}}
    }
    view = CLIENTS.snippet("codex", URL, "callboard", TOKEN)
    assert tomllib.loads(view.text) == {
        "mcp_servers": {"callboard": {"url": URL, "http_headers": {"Authorization": f"Bearer {TOKEN}"}}}
    }


@pytest.mark.parametrize("client", CLIENTS.ids)
def test_every_snippet_parses_and_shows_the_token_only_when_asked(client: str) -> None:
    parse = {"json": json.loads, "toml": tomllib.loads}
    for token in (None, TOKEN):
        view = CLIENTS.snippet(client, URL, "my-key", token)
        parse[view.format](view.text)
        assert URL in view.text
        assert "my-key" in view.text
        assert "<" not in view.text + view.note
        assert (TOKEN in view.text) == (token is not None)
        assert view.note


def test_views_and_an_unknown_client() -> None:
    views = CLIENTS.views()
    assert [view.id for view in views] == ["vscode", "claude-code", "cursor", "codex"]
    assert all(view.name and view.file for view in views)
    with pytest.raises(CallboardError, match="vscode, claude-code") as caught:
        CLIENTS.snippet("emacs", URL, "callboard")
    assert caught.value.code == "client-unknown"
