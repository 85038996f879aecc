"""From documents of registries to entries of the roster."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.core.registry import Offer, Way, short_name
from callboard.core.registry_document import matches, read_page
from callboard.core.registry_fill import Filling, command_line, fill, wrong_answers
from callboard.core.registry_programs import load_registry_defaults, needs_of
from callboard.core.roster_parse import check_entry
from callboard.system.resources import resource
from tests.support.registry_server import package, server


def offer(**parts: Any) -> Offer:
    (found,) = read_page(server("io.github.somebody/weather", **parts)).offers
    return found


def way(kind: str = "npm", identifier: str = "@somebody/weather", **more: Any) -> Way:
    (found,) = offer(packages=[package(kind, identifier, **more)]).ways
    return found


def remote(**parts: Any) -> Way:
    (found,) = offer(remotes=[{"type": "streamable-http", "url": "https://weather.example.com/mcp", **parts}]).ways
    return found


def filled(chosen: Way, **answers: str | list[str]) -> Filling:
    given = {key: [text] if isinstance(text, str) else text for key, text in answers.items()}
    filling = fill(chosen, "weather", given)
    entry, problems = check_entry(filling.entry)
    if not filling.open and not chosen.problem:
        assert entry is not None, problems
    return filling


def runs(chosen: Way, **answers: str | list[str]) -> str:
    return command_line(filled(chosen, **answers).entry)


# the runners of packages


@pytest.mark.parametrize(
    ("kind", "identifier", "more", "line"),
    [
        ("npm", "@me/x", {"version": "1.2.3"}, "npx -y @me/x@1.2.3"),
        ("npm", "@me/x", {}, "npx -y @me/x"),
        ("npm", "x", {"version": "latest"}, "npx -y x"),
        ("npm", "x", {"version": "1", "runtimeHint": "npx"}, "npx -y x@1"),
        ("npm", "x", {"version": "1", "runtimeHint": "bunx"}, "bunx x@1"),
        ("npm", "x", {"version": "1", "runtimeHint": "node"}, "npx -y x@1"),
        ("pypi", "x", {"version": "2.0"}, "uvx x@2.0"),
        ("pypi", "x", {"version": "2.0", "runtimeHint": "uvx"}, "uvx x@2.0"),
        ("pypi", "x", {"version": "2.0", "runtimeHint": "pipx"}, "pipx run x==2.0"),
        ("pypi", "x", {"version": "2.0", "runtimeHint": "uv"}, "uv tool run x@2.0"),
        ("pypi", "x", {"version": "2.0", "runtimeHint": "python"}, "uvx x@2.0"),
        ("oci", "ghcr.io/me/x:1.0", {}, "docker run -i --rm ghcr.io/me/x:1.0"),
        ("oci", "me/x", {"version": "1.0"}, "docker run -i --rm me/x:1.0"),
        ("oci", "me/x@sha256:00", {"version": "1.0"}, "docker run -i --rm me/x@sha256:00"),
        ("oci", "localhost:5000/x", {"version": "2"}, "docker run -i --rm localhost:5000/x:2"),
        ("oci", "me/x", {"version": "1", "registryBaseUrl": "https://docker.io"}, "docker run -i --rm me/x:1"),
        ("oci", "me/x", {"registryBaseUrl": "https://quay.io"}, "docker run -i --rm quay.io/me/x"),
        ("oci", "me/x:1", {"runtimeHint": "podman"}, "podman run -i --rm me/x:1"),
        ("nuget", "Me.X", {"version": "0.1"}, "dnx Me.X@0.1 --yes --"),
        ("cargo", "me-x", {"version": "0.3.0"}, "me-x"),
        ("go", "github.com/me/x", {"version": "v1.0.0"}, "go run github.com/me/x@v1.0.0"),
        ("npm", "x", {"registryBaseUrl": "https://www.npmjs.org"}, "npx -y x"),
        ("npm", "x", {"registryBaseUrl": "https://npm.example.com"}, "npx -y --registry=https://npm.example.com x"),
        (
            "pypi",
            "x",
            {"registryBaseUrl": "https://p.example.com/"},
            "uvx --default-index=https://p.example.com/simple x",
        ),
    ],
)
def test_each_type_of_package_has_its_runner(kind: str, identifier: str, more: dict[str, Any], line: str) -> None:
    assert runs(way(kind, identifier, **more)) == line


def test_a_package_from_elsewhere_says_so() -> None:
    assert way(registryBaseUrl="https://npmjs.org").remarks == []
    assert way(registryBaseUrl="https://notnpmjs.org").remarks
    (remark,) = way(registryBaseUrl="https://npm.example.com").remarks
    assert "npm.example.com" in remark


@pytest.mark.parametrize("identifier", ["-evil", "--registry=http://x", "two words", ""])
def test_a_name_that_would_be_an_option_is_no_package(identifier: str) -> None:
    assert way("npm", identifier).problem


def test_a_type_that_cannot_be_run_says_so() -> None:
    assert way("homebrew", "x").problem == 'Callboard cannot run packages of the type "homebrew".'


def test_the_runners_own_arguments_stand_before_the_package() -> None:
    written = [
        {"type": "named", "name": "-y"},
        {"type": "named", "name": "--quiet"},
        {"type": "named", "name": "--cache", "value": "/tmp/c"},
        {"type": "named", "name": "-p", "value": "8080"},
    ]

    assert runs(way(version="1", runtimeArguments=written)) == (
        "npx -y --quiet --cache=/tmp/c -p 8080 @somebody/weather@1"
    )


def test_a_package_that_the_runners_arguments_name_is_not_named_twice() -> None:
    written = [{"type": "positional", "value": "-y"}, {"type": "positional", "value": "@somebody/weather@latest"}]
    assert runs(way(version="1", runtimeArguments=written)) == "npx -y @somebody/weather@latest"
    source = [{"type": "named", "name": "--from", "value": "x[all]==1"}]
    command = [{"type": "positional", "value": "x-server"}]
    assert (
        runs(way("pypi", "x", runtimeArguments=source, packageArguments=command)) == "uvx '--from=x[all]==1' x-server"
    )


def test_a_runner_that_is_not_known_is_used_where_it_has_arguments() -> None:
    written = [{"type": "positional", "value": "run"}]
    chosen = way("npm", "x", version="1", runtimeHint="deno", runtimeArguments=written)
    assert runs(chosen) == "deno run x@1"
    assert chosen.programs == {"deno": ""}


def test_a_container_gets_the_variables_without_their_values_on_the_command_line() -> None:
    variables = [{"name": "TOKEN", "isSecret": True, "isRequired": True}, {"name": "MODE", "default": "fast"}]
    filling = filled(way("oci", "me/x:1", environmentVariables=variables), TOKEN="t0p")

    assert command_line(filling.entry) == "docker run -i --rm -e TOKEN -e MODE me/x:1"
    assert filling.entry["env"] == {"TOKEN": "${secret:weather-token}", "MODE": "fast"}
    assert filling.secrets == {"weather-token": "t0p"}


def test_a_container_whose_run_is_written_out_gets_what_it_lacks() -> None:
    written = [{"type": "positional", "value": "run"}, {"type": "named", "name": "--rm"}]
    chosen = way("oci", "me/x:1", runtimeArguments=written, environmentVariables=[{"name": "A", "value": "b"}])
    assert runs(chosen) == "docker run -i -e A --rm me/x:1"


def test_dnx_separates_the_servers_arguments() -> None:
    words = [{"type": "positional", "value": "mcp"}, {"type": "positional", "value": "start"}]
    assert runs(way("nuget", "Me.X", version="0.4.0-beta", packageArguments=words)) == (
        "dnx Me.X@0.4.0-beta --yes -- mcp start"
    )


def test_a_crate_is_installed_by_the_person() -> None:
    chosen = way("cargo", "me-x", version="0.3.0")
    assert chosen.remarks == ["Install the program first: cargo install me-x --version 0.3.0"]
    assert chosen.programs == {"me-x": ""}


# inputs


def test_environment_variables_of_all_sorts() -> None:
    chosen = way(
        environmentVariables=[
            {"name": "FIXED", "value": "1"},
            {"name": "REGION", "default": "eu", "choices": ["eu", "us"], "description": "Where"},
            {"name": "LIMIT", "format": "number"},
            {"name": "API_KEY", "isRequired": True, "isSecret": True, "description": "A key"},
            {"name": "ACCOUNT", "isRequired": True, "placeholder": "me@example.com"},
            {"name": "GITHUB_TOKEN"},
            {
                "name": "URL",
                "value": "https://{tenant}.example.com/{path}",
                "variables": {"tenant": {"isRequired": True}},
            },
        ]
    )

    inputs = {each.key: each for each in chosen.inputs}
    assert [each.key for each in chosen.inputs][:3] == ["API_KEY", "ACCOUNT", "tenant"]
    assert (inputs["API_KEY"].secret, inputs["API_KEY"].description) == (True, "A key")
    assert (inputs["GITHUB_TOKEN"].secret, inputs["GITHUB_TOKEN"].required) == (True, False)
    assert (inputs["REGION"].choices, inputs["REGION"].default) == (["eu", "us"], ["eu"])
    assert inputs["LIMIT"].kind == "number"
    assert inputs["ACCOUNT"].placeholder == "me@example.com"
    assert "FIXED" not in inputs
    filling = filled(chosen, API_KEY="k", ACCOUNT="me", tenant="acme")
    assert filling.entry["env"] == {
        "FIXED": "1",
        "REGION": "eu",
        "API_KEY": "${secret:weather-api-key}",
        "ACCOUNT": "me",
        "URL": "https://acme.example.com/{path}",
    }
    assert filling.open == []


def test_what_is_still_needed_is_marked_at_its_place() -> None:
    chosen = way(
        environmentVariables=[
            {"name": "API_KEY", "isRequired": True, "isSecret": True, "description": "A key."},
            {"name": "ACCOUNT", "isRequired": True},
        ],
        packageArguments=[
            {"type": "named", "name": "--root", "value": "{root}/x", "variables": {"root": {"isRequired": True}}},
            {"type": "positional", "valueHint": "folder", "isRequired": True},
        ],
    )

    filling = filled(chosen)

    assert filling.entry["env"] == {"API_KEY": "${secret:weather-api-key}", "ACCOUNT": ""}
    assert filling.entry["args"][-2:] == ["--root=<root>/x", "<folder>"]
    assert [(need.field, need.marker) for need in filling.open] == [
        ("args", "<root>"),
        ("args", "<folder>"),
        ("env.API_KEY", "${secret:weather-api-key}"),
        ("env.ACCOUNT", ""),
    ]
    assert filling.open[2].message == "Needed: API_KEY: A key."
    assert filling.secrets == {}


def test_arguments_of_all_sorts() -> None:
    chosen = way(
        packageArguments=[
            {"type": "positional", "value": "serve"},
            {"type": "named", "name": "--mode", "default": "local", "choices": ["local", "remote"]},
            {"type": "named", "name": "-v", "format": "boolean"},
            {"type": "named", "name": "--port", "format": "number"},
            {"type": "named", "name": "-c", "valueHint": "file", "format": "filepath"},
            {"type": "named", "name": "--allow", "isRepeated": True},
            {"type": "positional", "valueHint": "folder", "isRepeated": True, "format": "filepath"},
        ]
    )

    assert runs(chosen) == "npx -y @somebody/weather serve --mode=local"
    assert runs(chosen, v="true", port="80", c="/x y", allow=["a", "b"], folder=["/1", "/2"]) == (
        "npx -y @somebody/weather serve --mode=local -v --port=80 -c '/x y' --allow=a --allow=b /1 /2"
    )
    assert runs(chosen, v="false") == "npx -y @somebody/weather serve --mode=local"


def test_an_argument_of_several_variables() -> None:
    mount = {
        "type": "named",
        "name": "--mount",
        "value": "type=bind,src={source_path},dst={target_path}",
        "isRequired": True,
        "variables": {
            "source_path": {"format": "filepath", "isRequired": True},
            "target_path": {"isRequired": True, "default": "/project"},
        },
    }
    chosen = way("oci", "me/files:1", runtimeArguments=[mount])

    assert runs(chosen, source_path="/home/me") == (
        "docker run -i --rm --mount=type=bind,src=/home/me,dst=/project me/files:1"
    )


def test_a_secret_inside_an_argument_is_a_reference() -> None:
    key = {"type": "named", "name": "--api-key", "isSecret": True, "isRequired": True}
    filling = filled(way(packageArguments=[key]), **{"api-key": "k"})
    assert filling.entry["args"][-1] == "--api-key=${secret:weather-api-key}"
    assert filling.secrets == {"weather-api-key": "k"}


def test_what_a_person_says_is_taken_literally() -> None:
    chosen = way(environmentVariables=[{"name": "A"}, {"name": "B", "value": "${HOME}/{x}"}])
    filling = filled(chosen, A="${secret:other}")
    assert filling.entry["env"] == {"A": "$${secret:other}", "B": "$${HOME}/{x}"}
    fixed = way(environmentVariables=[{"name": "A", "value": "${input:B}"}, {"name": "B"}])
    assert filled(fixed, B="b").entry["env"] == {"A": "$${input:B}", "B": "b"}


def test_answers_are_checked() -> None:
    chosen = way(
        environmentVariables=[{"name": "A", "choices": ["x", "y"]}, {"name": "N", "format": "number"}],
        packageArguments=[{"type": "named", "name": "-b", "format": "boolean"}],
    )
    wrong = wrong_answers(chosen, {"A": ["z"], "N": ["ten"], "b": ["yes"]})
    assert wrong == {
        "A": "It must be one of: x, y.",
        "N": "It must be a number.",
        "b": "It must be true or false.",
    }
    assert wrong_answers(chosen, {"A": ["x"], "N": ["-1.5"], "b": ["true"]}) == {}


def test_a_new_secret_gets_a_free_name() -> None:
    chosen = way(environmentVariables=[{"name": "TOKEN", "isSecret": True, "isRequired": True}])
    assert fill(chosen, "weather", {}, {"weather-token"}).entry["env"] == {"TOKEN": "${secret:weather-token-2}"}


def test_a_stored_secret_can_be_used() -> None:
    chosen = way(environmentVariables=[{"name": "TOKEN", "isSecret": True, "isRequired": True}])
    filling = fill(chosen, "weather", {}, {"mine"}, {"TOKEN": "mine"})
    assert filling.entry["env"] == {"TOKEN": "${secret:mine}"}
    assert (filling.secrets, filling.open) == ({}, [])


# remotes


def test_a_remote_server() -> None:
    chosen = remote()
    assert chosen.short == "HTTP"
    assert filled(chosen).entry == {
        "display_name": "weather",
        "description": "What io.github.somebody/weather does",
        "url": "https://weather.example.com/mcp",
    }


def test_a_remote_server_over_sse() -> None:
    assert filled(remote(type="sse")).entry["transport"] == "sse"


def test_an_address_with_variables() -> None:
    chosen = remote(url="https://{tenant}.example.com:{port}/mcp", variables={"tenant": {}, "port": {"default": "443"}})
    assert [(each.key, each.required) for each in chosen.inputs] == [("tenant", True), ("port", False)]
    assert filled(chosen, tenant="acme").entry["url"] == "https://acme.example.com:443/mcp"
    assert [need.field for need in fill(chosen, "weather", {}).open] == ["url"]


def test_a_bearer_token_becomes_authentication() -> None:
    header = {
        "name": "Authorization",
        "value": "Bearer {token}",
        "isRequired": True,
        "variables": {"token": {"isSecret": True, "description": "From your account"}},
    }
    filling = filled(remote(headers=[header]), token="t")
    assert filling.entry["auth"] == {"type": "bearer", "secret": "weather-token"}
    assert "headers" not in filling.entry
    assert filling.secrets == {"weather-token": "t"}
    (need,) = fill(remote(headers=[header]), "weather", {}).open
    assert need.field == "auth.secret"


def test_a_bearer_token_that_may_be_left_out() -> None:
    header = {"name": "Authorization", "value": "Bearer {token}", "variables": {"token": {"isSecret": True}}}
    assert "auth" not in filled(remote(headers=[header])).entry


def test_headers_of_all_sorts() -> None:
    chosen = remote(
        headers=[
            {"name": "X-API-Key", "isSecret": True, "isRequired": True},
            {"name": "X-Region", "default": "eu", "choices": ["eu", "us"]},
            {"name": "X-Version", "value": "2"},
            {"name": "X-Trace"},
            {"name": "Authorization", "isSecret": True, "isRequired": True, "description": "Bearer and the token"},
        ]
    )
    filling = filled(chosen, **{"X-API-Key": "k", "Authorization": "Bearer t"})
    assert filling.entry["headers"] == {
        "X-API-Key": "${secret:weather-x-api-key}",
        "X-Region": "eu",
        "X-Version": "2",
        "Authorization": "${secret:weather-authorization}",
    }


@pytest.mark.parametrize("parts", [{"url": ""}, {"type": "websocket"}, {"type": ""}])
def test_a_remote_that_cannot_be_reached_says_so(parts: dict[str, Any]) -> None:
    assert remote(**parts).problem


def test_an_address_without_encryption_is_remarked() -> None:
    assert remote(url="http://weather.example.com/mcp").remarks == ["Its address is not encrypted (http://)."]


def test_a_package_that_listens_is_reached_at_its_address() -> None:
    chosen = way(
        transport={"type": "streamable-http", "url": "http://localhost:{--port}/mcp"},
        packageArguments=[{"type": "named", "name": "--port", "default": "3000"}],
    )
    assert chosen.kind == "remote"
    assert filled(chosen).entry["url"] == "http://localhost:3000/mcp"
    assert "npx -y @somebody/weather --port=<port>" in chosen.remarks[-1]


# bundles


def test_a_bundle_is_to_be_fetched_and_verified() -> None:
    chosen = way("mcpb", "https://example.com/x/weather.mcpb", fileSha256="AB" * 32)
    assert chosen.kind == "bundle"
    assert chosen.bundle is not None
    assert (chosen.bundle.url, chosen.bundle.sha256) == ("https://example.com/x/weather.mcpb", "ab" * 32)


@pytest.mark.parametrize(
    ("identifier", "checksum"),
    [
        ("ftp://example.com/x.mcpb", "ab" * 32),
        ("x.mcpb", "ab" * 32),
        ("http://example.com/x.mcpb", ""),
        ("https://example.com/x.mcpb", "abc"),
        ("https://[/x.mcpb", ""),
    ],
)
def test_a_bundle_that_cannot_be_trusted_is_none(identifier: str, checksum: str) -> None:
    chosen = way("mcpb", identifier, fileSha256=checksum)
    assert chosen.problem
    assert chosen.bundle is None


# documents


def test_documents_of_all_shapes() -> None:
    one = server("io.github.a/one", packages=[package("npm", "one")])
    two = server("io.github.a/two", remotes=[{"type": "sse", "url": "https://two.example.com/sse"}])
    answered = {"server": two, "_meta": {"io.modelcontextprotocol.registry/official": {"isLatest": True}}}

    assert [each.name for each in read_page(one).offers] == ["io.github.a/one"]
    assert [each.name for each in read_page(answered).offers] == ["io.github.a/two"]
    assert [each.name for each in read_page([one, two]).offers] == ["io.github.a/one", "io.github.a/two"]
    page = read_page({"servers": [one, answered], "metadata": {"nextCursor": "c", "count": 2}})
    assert ([each.name for each in page.offers], page.cursor) == (["io.github.a/one", "io.github.a/two"], "c")


def test_one_version_of_each_the_latest() -> None:
    def answer(version: str, *, latest: bool, status: str = "active") -> dict[str, Any]:
        official = {"isLatest": latest, "status": status}
        document = server("io.github.a/one") | {"version": version}
        return {"server": document, "_meta": {"io.modelcontextprotocol.registry/official": official}}

    versions = [answer("1", latest=False), answer("2", latest=True), answer("3", latest=False)]
    assert [each.version for each in read_page({"servers": versions}).offers] == ["2"]
    gone = [answer("1", latest=False), answer("2", latest=True, status="deleted")]
    assert read_page({"servers": gone}).offers == []
    (old,) = read_page({"servers": [answer("1", latest=True, status="deprecated")]}).offers
    assert old.status == "deprecated"


def test_documents_of_older_versions() -> None:
    old = {
        "name": "io.github.a/old",
        "description": "Old",
        "version_detail": {"version": "0.9"},
        "packages": [
            {
                "registry_name": "npm",
                "name": "old",
                "version": "0.9",
                "runtime_hint": "npx",
                "package_arguments": [{"type": "positional", "value_hint": "dir", "is_required": True}],
                "environment_variables": [{"name": "KEY", "is_required": True, "is_secret": True}],
            }
        ],
        "remotes": [{"transport_type": "streamable", "url": "https://old.example.com"}],
    }
    (found,) = read_page(old).offers
    assert found.version == "0.9"
    first, second = found.ways
    assert runs(first, dir="/d", KEY="k") == "npx -y old@0.9 /d"
    assert filled(second).entry["url"] == "https://old.example.com"


def test_searching_in_documents() -> None:
    found = offer(title="Sky", packages=[package("npm", "x")])
    assert matches(found, "")
    assert matches(found, "SKY weather")
    assert not matches(found, "sky rain")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("io.github.me/weather", "weather"),
        ("com.example/my server.js", "my-server-js"),
        ("weather/", "weather"),
        ("…", "server"),
        ("a/" + "x" * 100, "x" * 64),
    ],
)
def test_names_for_the_roster(name: str, short: str) -> None:
    assert short_name(name) == short


# programs


def test_what_must_be_here_comes_with_how_to_get_it() -> None:
    programs = load_registry_defaults(resource("registry.yaml").read_text(encoding="utf-8")).programs
    for kind, identifier in (("npm", "x"), ("pypi", "x"), ("oci", "x"), ("nuget", "x"), ("go", "x"), ("cargo", "x")):
        (need,) = needs_of(way(kind, identifier), programs)
        for system in ("linux", "darwin", "win32"):
            assert need.advice(system)
    assert [need.of for need in needs_of(way(), programs)] == ["Node.js"]
    assert [need.of for need in needs_of(way("cargo", "me-x"), programs)] == ["me-x"]


# whatever is written


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=12,
)
WHOLE = server(
    "io.github.a/whole",
    title="Whole",
    repository={"url": "https://example.com", "source": "github"},
    packages=[
        package(
            kind,
            identifier,
            version="1",
            runtimeHint="npx",
            fileSha256="ab" * 32,
            registryBaseUrl="https://npm.example.com",
            runtimeArguments=[{"type": "named", "name": "-e", "value": "A={b}", "variables": {"b": {"default": "c"}}}],
            packageArguments=[{"type": "positional", "valueHint": "x", "isRepeated": True, "isRequired": True}],
            environmentVariables=[{"name": "A", "isSecret": True, "choices": ["a"], "format": "string"}],
        )
        for kind, identifier in (("npm", "x"), ("oci", "x/y"), ("mcpb", "https://example.com/x.mcpb"), ("cargo", "x"))
    ],
    remotes=[
        {
            "type": "streamable-http",
            "url": "https://{a}.example.com",
            "variables": {"a": {"isRequired": True}},
            "headers": [{"name": "Authorization", "value": "Bearer {t}", "variables": {"t": {"isSecret": True}}}],
        }
    ],
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


PLACES = places(WHOLE)


def survives(document: Any) -> None:
    page = read_page(document)
    assert msgspec.json.decode(msgspec.json.encode(page), type=type(page)) == page
    for found in page.offers:
        for each in found.ways:
            filling = fill(each, found.short_name, {})
            msgspec.json.encode(filling)
            command_line(filling.entry)
            answers = {asked.key: asked.choices[:1] or ["1"] for asked in each.inputs}
            whole = fill(each, found.short_name, answers)
            assert whole.open == []
            if each.kind == "local" and not each.problem and not whole.wrong:
                entry, problems = check_entry(whole.entry)
                assert entry is not None, problems


@given(JSON)
@settings(deadline=None)
def test_nothing_that_is_json_makes_it_fall(document: Any) -> None:
    survives(document)


@given(st.sampled_from(PLACES), JSON)
@settings(deadline=None, max_examples=300)
def test_nothing_at_any_place_makes_it_fall(place: tuple[Any, ...], wrong: Any) -> None:
    document = copy.deepcopy(WHOLE)
    target: Any = document
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = wrong
    survives(document)


def test_the_whole_document_is_whole() -> None:
    survives(json.loads(json.dumps(WHOLE)))
    (found,) = read_page(WHOLE).offers
    assert [bool(each.problem) for each in found.ways] == [False] * 5
