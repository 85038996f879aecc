"""From an entry to what starts its server."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callboard.core.errors import CallboardError
from callboard.core.launch import LocalLaunch, OAuthLaunch, RemoteLaunch, TlsLaunch
from callboard.core.references import escape_references, names_in, replace_references, split_references
from callboard.core.resolve import AGENT_CONFIG, Values, argv_for_display, resolve, values_to_hide
from callboard.core.roster import AnyEntry
from callboard.core.roster_parse import check_entry

VALUES = Values(
    env={"HOST": "db.local", "GITHUB_TOKEN": "from-environment", "EMPTY": "", "MODE": "fast"},
    secrets={"key": "s3cr3t", "line": " tok\n", "bad": "a\nb", "empty": "", "curly": "${env:HOST}"},
    python="/usr/bin/python3",
    home=Path("/home/me"),
)


def entry(**fields: Any) -> AnyEntry:
    """An entry that is right."""
    made, problems = check_entry(fields)
    assert made is not None, problems
    return made


def test_a_local_server() -> None:
    launch = resolve(
        entry(
            command="~/bin/srv",
            args=[
                "-m",
                "",
                "${python}",
                "a${env:HOST}b${secret:key}",
                "~/x",
                "$HOME $$ $${env:HOST}",
                "${secret:curly}",
            ],
            env={"TOKEN": "${secret:key}", "EMPTY": ""},
            cwd="~",
        ),
        VALUES,
    )
    assert launch == LocalLaunch(
        argv=(
            "/home/me/bin/srv",
            "-m",
            "",
            "/usr/bin/python3",
            "adb.localbs3cr3t",
            "~/x",
            "$HOME $$ ${env:HOST}",
            "${env:HOST}",
        ),
        env={"TOKEN": "s3cr3t", "EMPTY": ""},
        cwd=Path("/home/me"),
    )


def test_a_remote_server() -> None:
    launch = resolve(
        entry(
            url="https://${env:HOST}/mcp",
            headers={"X-A": "v", "authorization": "old"},
            auth={"type": "bearer", "secret": "line"},
        ),
        VALUES,
    )
    assert launch == RemoteLaunch("https://db.local/mcp", {"X-A": "v", "Authorization": "Bearer tok"})


@pytest.mark.parametrize(
    ("auth", "headers"),
    [
        ("none", {}),
        ({"type": "api_key", "secret": "key"}, {"X-API-Key": "s3cr3t"}),
        ({"type": "api_key", "secret": "key", "header": "Key"}, {"Key": "s3cr3t"}),
        ({"type": "custom_header", "secret": "key"}, {"Authorization": "s3cr3t"}),
        ({"type": "custom_header", "secret": "key", "header": "X-T"}, {"X-T": "s3cr3t"}),
    ],
)
def test_ways_to_sign_in(auth: Any, headers: dict[str, str]) -> None:
    launch = resolve(entry(url="http://h/", auth=auth, transport="sse"), VALUES)
    assert launch == RemoteLaunch("http://h/", headers, "sse")


def test_a_sign_in_with_oauth() -> None:
    assert resolve(entry(url="http://h/", auth="oauth"), VALUES) == RemoteLaunch("http://h/", oauth=OAuthLaunch())
    auth = {
        "type": "oauth",
        "client_id": "${env:HOST}",
        "secret": "key",
        "issuer": "https://a/",
        "grant": "client-credentials",
        "scopes": ["read", "write"],
    }
    launch = resolve(entry(url="http://h/", auth=auth), VALUES)
    expected = OAuthLaunch("db.local", "s3cr3t", "https://a/", "", ("read", "write"), "client-credentials")
    assert launch == RemoteLaunch("http://h/", oauth=expected)
    assert "s3cr3t" not in repr(launch)


def test_where_nothing_is_said_of_a_sign_in_the_server_may_ask_for_one() -> None:
    assert resolve(entry(url="http://h/"), VALUES) == RemoteLaunch("http://h/", oauth=OAuthLaunch())
    assert resolve(entry(url="http://h/", auth="none"), VALUES) == RemoteLaunch("http://h/")
    with_header = resolve(entry(url="http://h/", headers={"authorization": "x"}), VALUES)
    assert with_header == RemoteLaunch("http://h/", {"authorization": "x"})


def test_a_client_certificate() -> None:
    auth = {"type": "mtls", "certificate": "~/c.pem", "key": "/k.pem", "secret": "key", "ca": "/ca.pem"}
    launch = resolve(entry(url="https://h/", auth=auth), VALUES)
    tls = TlsLaunch(Path("/home/me/c.pem"), Path("/k.pem"), "s3cr3t", Path("/ca.pem"))
    assert launch == RemoteLaunch("https://h/", tls=tls)
    assert "s3cr3t" not in repr(launch)


def test_an_agent_gets_its_configuration_where_other_users_cannot_read_it() -> None:
    agent = entry(
        agent="my:Agent", params={"key": "${secret:key}", "deep": [{"n": 1, "h": "${env:HOST}"}]}, env={"A": "b"}
    )
    values = replace(VALUES, env={**VALUES.env, "CALLBOARD_HOME": "/srv/callboard"})
    launch = resolve(agent, values, "mine")
    assert isinstance(launch, LocalLaunch)
    assert launch.argv == ("/usr/bin/python3", "-m", "callboard.agents.host")
    assert (launch.env["A"], launch.env["CALLBOARD_HOME"]) == ("b", "/srv/callboard")
    assert json.loads(launch.env[AGENT_CONFIG]) == {
        "agent": "my:Agent",
        "python": "/usr/bin/python3",
        "params": {"key": "s3cr3t", "deep": [{"n": 1, "h": "db.local"}]},
        "expose": "auto",
        "server": "mine",
        "gateway": True,
        "hide": ["s3cr3t"],
    }


def test_an_agent_gets_its_settings() -> None:
    agent = entry(
        agent=["a:b", "~/c.py:d"],
        sharing="per-client",
        aliases="gaia",
        tools={"aliases": {"start": {"dir": "folder"}}},
        store="postgresql://me:${secret:key}@h/db",
        limits={"turns": 5},
        typed=True,
    )
    launch = resolve(agent, VALUES)
    assert isinstance(launch, LocalLaunch)
    config = json.loads(launch.env[AGENT_CONFIG])
    assert config["agent"] == ["a:b", "/home/me/c.py:d"]
    assert config["gateway"] is False  # the process has one client, and need not be told who it is
    assert config["aliases"] == {
        "app_dir": "appPath",
        "directory": "appPath",
        "project_path": "appPath",
        "start": {"dir": "folder"},
    }
    assert config["store"] == "postgresql://me:s3cr3t@h/db"
    assert config["limits"] == {"turns": 5}
    assert "typed" not in config


@pytest.mark.parametrize(
    ("fields", "code", "data"),
    [
        ({"command": "x", "args": ["${env:NOPE}"]}, "env-unset", {"env": "NOPE"}),
        ({"command": "x", "env": {"A": "${env:EMPTY}"}}, "env-unset", {"env": "EMPTY"}),
        ({"command": "x", "env": {"A": "${secret:gone}"}}, "secret-missing", {"secret": "gone"}),
        ({"url": "http://h/", "auth": {"type": "bearer", "secret": "empty"}}, "secret-missing", {"secret": "empty"}),
        ({"url": "http://h/", "auth": {"type": "bearer", "secret": "bad"}}, "entry-invalid", {}),
        ({"url": "http://h/", "headers": {"X": "${secret:bad}"}}, "entry-invalid", {}),
        (
            {"url": "http://h/", "auth": {"type": "oauth", "client_id": "c", "secret": "gone"}},
            "secret-missing",
            {"secret": "gone"},
        ),
        (
            {"url": "http://h/", "auth": {"type": "mtls", "certificate": "/c", "secret": "gone"}},
            "secret-missing",
            {"secret": "gone"},
        ),
        ({"url": "http://h/", "auth": {"type": "mtls", "certificate": "c.pem"}}, "entry-invalid", {}),
        ({"command": "x", "cwd": "sub/folder"}, "entry-invalid", {}),
    ],
)
def test_what_is_missing_is_named_and_never_empty(fields: Any, code: str, data: dict[str, str]) -> None:
    with pytest.raises(CallboardError) as caught:
        resolve(entry(**fields), VALUES)
    assert caught.value.code == code
    assert caught.value.data == data
    assert "a\nb" not in caught.value.message


def test_the_command_is_shown_without_secrets() -> None:
    shown = argv_for_display(
        entry(command="${python}", args=["--token", "${secret:key}", "${env:HOST}", "$${x}"]),
        python="/py",
        home=Path("/home/me"),
    )
    assert shown == ["/py", "--token", "${secret:key}", "${env:HOST}", "${x}"]
    assert argv_for_display(entry(url="http://h/"), python="/py", home=Path("/")) == []
    assert argv_for_display(entry(agent="a:b"), python="/py", home=Path("/")) == ["/py", "-m", "callboard.agents.host"]


def test_names_that_an_entry_needs() -> None:
    names = names_in(
        entry(
            url="http://${env:HOST}/${secret:path}",
            headers={"A": "$${env:NO} ${secret:key}"},
            auth={"type": "bearer", "secret": "t"},
        )
    )
    assert names.env == {"HOST"}
    assert names.secrets == {"path", "key", "t"}


def test_values_to_hide() -> None:
    made = entry(
        command="x",
        args=["${env:GITHUB_TOKEN}", "${env:MODE}", "${env:UNSET_TOKEN}", "--token", "tiny", "--port=80"],
        env={"PASSWORD": "hunter2", "PLAIN": "value", "K": "${secret:key}"},
    )
    assert values_to_hide(made, VALUES) == {"s3cr3t", "from-environment", "hunter2", "tiny"}
    made = entry(url="http://h/", headers={"Authorization": "Bearer abcdefgh"})
    assert values_to_hide(made, VALUES) == {"Bearer abcdefgh", "abcdefgh"}


def test_reference_syntax() -> None:
    assert split_references("a$b") == ["a$b"]
    assert split_references("") == []
    assert [str(part) for part in split_references("${python}${env:A}x")] == ["${python}", "${env:A}", "x"]
    for text in ("plain", "$${env:A}", "${", "$$${x}", "${python} ${secret:a}"):
        assert replace_references(escape_references(text), lambda _: "wrong") == text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("${HOME}", "perhaps ${env:HOME}"),
        ("${input:token}", "there are ${env:NAME}, ${secret:NAME} and ${python}"),
        ("${env:A B}", "does not name an environment variable"),
        ("${env:}", "does not name an environment variable"),
        ("${secret:a b}", "does not name a secret"),
        ("${env:A", "has no closing brace"),
        ("${}", "is not known here"),
        ("${PYTHON}", "${python}"),
    ],
)
def test_other_programs_references_are_refused(text: str, part: str) -> None:
    _, problems = check_entry({"command": "x", "env": {"A": text}})
    assert [problem.field for problem in problems] == ["env.A"]
    assert part in problems[0].message
