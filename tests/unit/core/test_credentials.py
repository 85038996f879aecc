"""What is taken for a credential, and what is not."""

import pytest

from callboard.core.credentials import find_credentials, is_secret_name, looks_like_credential, suggest_secret
from callboard.core.references import SECRET_NAME

# put together so that no scanner takes this file for a leak
GITHUB = "ghp_" + "aB3dE5gH" * 4 + "1234"
SLACK = "xoxb-" + "123456789012-abcDEF"
AWS = "AKIA" + "Q3EGRIEXMPL5TKZA"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NSJ9." + "c2lnbmF0dXJl"
OPENAI = "sk-" + "proj-a1b2c3d4e5f6g7h8i9j0"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ANYTHING", GITHUB),
        ("", SLACK),
        ("AWS_ACCESS_KEY_ID", AWS),
        ("x", JWT),
        ("OPENAI", OPENAI),
        ("Authorization", f"Bearer {OPENAI}"),
        ("Authorization", "Bearer abcdefgh12345678"),
        ("Authorization", "Basic dXNlcjpwYXNzd29yZA=="),
        ("X-API-Key", "f81d4fae7dec11d0a76500a0c91e6bf6"),
        ("DB_PASSWORD", "correct-horse"),
        ("clientSecret", "p8Q~7uXv.Q1"),
        ("DATABASE_URL", "postgresql://me:hunter2@db.local/x"),
        ("url", "https://mcp.example.org/sse?api_key=9f8e7d6c5b4a"),
        ("--token", "abc123def456"),
        ("KEY", "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"),
    ],
)
def test_credentials(key: str, value: str) -> None:
    assert looks_like_credential(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("TOKEN_FILE", "secret-token-here"),
        ("GITHUB_TOKEN", "${secret:github-token}"),
        ("GITHUB_TOKEN", "Bearer ${env:GITHUB_TOKEN}"),
        ("GITHUB_TOKEN", "<your-token-here>"),
        ("GITHUB_TOKEN", "YOUR_GITHUB_TOKEN"),
        ("GITHUB_TOKEN", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        ("API_KEY", "changeme-please"),
        ("API_KEY", ""),
        ("API_KEY", "short"),
        ("MAX_TOKENS", "abcdefghij"),
        ("API_TOKEN", "1234567890"),
        ("ENABLE_TOKEN", "disabled"),
        ("AUTH_TOKEN", "https://auth.example.net/token"),
        ("PRIVATE_KEY", "/home/me/.ssh/id_ed25519"),
        ("PRIVATE_KEY", "~/.ssh/id_ed25519"),
        ("PRIVATE_KEY", "C:\\keys\\id_rsa"),
        ("SECRET", "config/keys.json"),
        ("DATABASE_URL", "postgresql://me@db.local/x"),
        ("url", "https://mcp.example.org/mcp?token_type=bearer"),
        ("PASSWORD", "see the wiki page"),
        ("LOG_LEVEL", "debug-everything"),
        ("COMMIT", "9fceb02d0ae598e95dc970b74767f19372d61af8"),
        ("ID", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        ("", "@modelcontextprotocol/server-filesystem"),
        ("KEY", "primary-key-column"),
        ("nextPageToken", "abcdefghijklmnop"),
        ("--header", "Accept: application/json"),
    ],
)
def test_no_credentials(key: str, value: str) -> None:
    assert looks_like_credential(key, value) is None


def test_every_place_of_an_entry_is_looked_at() -> None:
    entry = {
        "command": "npx",
        "args": [
            "-y",
            "srv",
            "--token",
            "abc123def456",
            f"--api-key={OPENAI}",
            "--header",
            f"Authorization: Bearer {JWT}",
        ],
        "env": {"GITHUB_TOKEN": GITHUB, "MODE": "fast", "N": 5},
        "params": {"deep": [{"password": "correct-horse"}], "n": 1},
        "headers": ["not", "a", "mapping"],
    }
    found = {item.field: item.secret for item in find_credentials("github", entry, ["github-token"])}
    assert found == {
        "env.GITHUB_TOKEN": "github-token-2",
        "params.deep.0.password": "github-password",
        "args.3": "github-token-3",
        "args.4": "github-api-key",
        "args.6": "github-authorization",
    }
    assert find_credentials("x", {"url": "https://u:secretpw@h/"})[0].why == "the address holds a password"


@pytest.mark.parametrize(
    ("server", "key", "name"),
    [
        ("github", "GITHUB_TOKEN", "github-token"),
        ("My_Server", "--api-key", "my-server-api-key"),
        ("x", "", "x-secret"),
        ("日本", "トークン", "secret"),
        ("github", "github", "github"),
    ],
)
def test_suggested_names(server: str, key: str, name: str) -> None:
    assert suggest_secret(server, key) == name
    second = suggest_secret(server, key, {name})
    assert second == f"{name}-2"
    assert SECRET_NAME.fullmatch(second)


def test_secret_names() -> None:
    for key in ("token", "API_KEY", "apiKey", "x-api-key", "client_secret", "Authorization", "Cookie", "DB_PASSWORD"):
        assert is_secret_name(key)
    for key in ("", "tokenizer", "token_count", "key", "monkey", "secret_name", "password_file", "tokens"):
        assert not is_secret_name(key)
