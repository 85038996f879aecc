"""From the packages and remotes of a ``server.json`` to the ways in which its server can be set up."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from callboard.core.registry import INPUT, Argument, BundleSource, Way
from callboard.core.registry_fields import Fields
from callboard.core.registry_inputs import Inputs, literal

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class _Call:
    """What a runner is given: the package, and the arguments of the runner itself as they were written."""

    identifier: str
    version: str
    base: str  # address of another package registry than the usual one, "" for the usual
    runtime: list[Argument]
    variables: list[str]  # names of environment variables

    @property
    def names_package(self) -> bool:
        """Whether the runner's arguments name the package already."""
        return any(self.identifier in text for argument in self.runtime for text in argument.texts)

    def says(self, *texts: str) -> bool:
        """Whether one of the texts stands among the runner's arguments."""
        return any(text in texts for argument in self.runtime for text in argument.texts)

    def spec(self, joint: str) -> list[Argument]:
        """The package in the version that was written."""
        if self.names_package:
            return []
        return [plain(self.identifier + (f"{joint}{self.version}" if self.version else ""))]


@dataclass(frozen=True)
class _Runner:
    """A program that fetches a package and runs it; ``arguments`` are those before the package's own."""

    program: str
    arguments: Callable[[_Call], list[Argument]]


def host_of(url: str) -> str:
    """The host of an address that begins with http:// or https://, "" for anything else."""
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        return ""
    return (parts.hostname or "") if is_whole else ""


def plain(*texts: str) -> Argument:
    """Arguments that are taken literally."""
    return Argument([literal(text) for text in texts])


def _npx(call: _Call) -> list[Argument]:
    yes = [] if call.says("-y", "--yes") else [plain("-y")]
    base = [plain(f"--registry={call.base}")] if call.base else []
    return [*call.runtime, *yes, *base, *call.spec("@")]


def _bunx(call: _Call) -> list[Argument]:
    return [*call.runtime, *call.spec("@")]


def _uvx(call: _Call) -> list[Argument]:
    base = [plain(f"--default-index={call.base.rstrip('/')}/simple")] if call.base else []
    return [*call.runtime, *base, *call.spec("@")]


def _uv(call: _Call) -> list[Argument]:
    words = [] if call.says("run", "tool") else [plain("tool", "run")]
    return [*words, *_uvx(call)]


def _pipx(call: _Call) -> list[Argument]:
    words = [] if call.says("run") else [plain("run")]
    base = [plain(f"--index-url={call.base.rstrip('/')}/simple")] if call.base else []
    return [*words, *call.runtime, *base, *call.spec("==")]


def _dnx(call: _Call) -> list[Argument]:
    yes = [] if call.says("-y", "--yes") else [plain("--yes")]
    base = [plain("--source", call.base)] if call.base else []
    return [*call.runtime, *call.spec("@"), *yes, *base, plain("--")]


def _go(call: _Call) -> list[Argument]:
    words = [] if call.says("run") else [plain("run")]
    return [*words, *call.runtime, *call.spec("@")]


def _container(call: _Call) -> list[Argument]:
    words = [] if call.says("run") else [plain("run")]
    keep = [] if call.says("-i", "--interactive", "-it", "-ti") else [plain("-i")]
    remove = [] if call.says("--rm") else [plain("--rm")]
    # without a value the variable is taken from the runner's own environment: a secret stays out of its arguments
    env = [plain("-e", name) for name in call.variables]
    written, options = call.runtime, [*keep, *remove, *env]
    if call.says("run"):
        at = next(place for place, each in enumerate(written) if "run" in each.texts) + 1
        return [*written[:at], *options, *written[at:], *_image(call)]
    return [*words, *options, *written, *_image(call)]


def _image(call: _Call) -> list[Argument]:
    if call.names_package:
        return []
    image, last = call.identifier, call.identifier.rpartition("/")[2]
    if call.version and ":" not in last and "@" not in last:
        image = f"{image}:{call.version}"
    host = host_of(call.base)
    return [plain(f"{host}/{image}" if host and not image.startswith(f"{host}/") else image)]


_NPX = _Runner("npx", _npx)
_UVX = _Runner("uvx", _uvx)
_DOCKER = _Runner("docker", _container)
_DNX = _Runner("dnx", _dnx)
_GO = _Runner("go", _go)
# what runs each type of package: the usual runner first, then the others that a hint may name
_RUNNERS: Final[dict[str, tuple[_Runner, ...]]] = {
    "npm": (_NPX, _Runner("bunx", _bunx)),
    "pypi": (_UVX, _Runner("uv", _uv), _Runner("pipx", _pipx)),
    "oci": (_DOCKER, _Runner("podman", _container)),
    "docker": (_DOCKER, _Runner("podman", _container)),
    "nuget": (_DNX,),
    "go": (_GO,),
}
_TITLES: Final = {
    "npm": "npm package",
    "pypi": "PyPI package",
    "oci": "container image",
    "docker": "container image",
    "nuget": "NuGet package",
    "cargo": "Rust crate",
    "go": "Go module",
    "mcpb": "bundle",
}
_USUAL_DOMAINS: Final = {
    "npm": ("npmjs.org",),
    "pypi": ("pypi.org",),
    "oci": ("docker.io", "docker.com"),
    "docker": ("docker.io", "docker.com"),
    "nuget": ("nuget.org",),
}


def ways_of(server: Fields) -> list[Way]:
    """All ways, packages first, in the document's order."""
    ways = [_package(package) for package in server.children("packages")]
    ways += [_remote(remote) for remote in server.children("remotes")]
    title = server.line("title") or server.line("name").rpartition("/")[2]
    common = {"display_name": title[:200], "description": server.line("description")[:1000]}
    common = {name: text for name, text in common.items() if text}
    return [_with_fields(way, common) for way in ways]


def _with_fields(way: Way, common: dict[str, Any]) -> Way:
    way.fields.update({**common, **way.fields})
    return way


def _package(package: Fields) -> Way:
    kind = package.line("registryType", "registryName").lower()
    identifier = package.line("identifier", "name")
    transport = package.child("transport")
    title = _TITLES.get(kind, kind or "package")
    if not re.fullmatch(r"[^\s-]\S*", identifier):
        return Way(title, kind, "local", problem=f"The {title} has no name that could be used.")
    if kind == "mcpb":
        return _bundle(package, identifier)
    inputs = Inputs()
    env = {name: text for name, text in map(inputs.pair, package.children("environmentVariables")) if name}
    runtime = [inputs.argument(each, is_runtime=True) for each in package.children("runtimeArguments")]
    own = [inputs.argument(each) for each in package.children("packageArguments")]
    version = package.line("version")
    version = "" if version == "latest" else version
    base = _other_base(kind, package.line("registryBaseUrl"))
    call = _Call(identifier, version, base, runtime, list(env))
    remarks = [f"The package comes from {urlsplit(base).hostname}, not from where such packages usually are."] * bool(
        base
    )
    if kind == "cargo":
        way = _crate(identifier, version, [*runtime, *own], env, inputs)
    elif (runner := _runner(kind, package.line("runtimeHint"), bool(runtime))) is not None:
        way = Way(
            title=f"{title} {identifier}, run by {runner.program}",
            short=runner.program,
            kind="local",
            command=literal(runner.program),
            arguments=[*runner.arguments(call), *own],
            env=env,
            inputs=inputs.all,
            programs={runner.program: ""},
            remarks=remarks,
        )
    else:
        return Way(
            f"{title} {identifier}", kind, "local", problem=f'Callboard cannot run packages of the type "{kind}".'
        )
    return _served(way, transport, inputs)


def _runner(kind: str, hint: str, has_arguments: bool) -> _Runner | None:
    known = _RUNNERS.get(kind)
    if known is None:
        return None
    named = next((runner for runner in known if runner.program == hint), None)
    if named is None and hint and has_arguments and re.fullmatch(r"[\w.-]+", hint):
        return _Runner(hint, lambda call: [*call.runtime, *call.spec("@")])  # the arguments were meant for that one
    return named or known[0]


def _crate(name: str, version: str, arguments: list[Argument], env: dict[str, str], inputs: Inputs) -> Way:
    how = f"cargo install {name}" + (f" --version {version}" if version else "")
    return Way(
        title=f"Rust crate {name}, installed by cargo",
        short="cargo",
        kind="local",
        command=literal(name),
        arguments=arguments,
        env=env,
        inputs=inputs.all,
        programs={name: ""},
        remarks=[f"Install the program first: {how}"],
    )


def _bundle(package: Fields, identifier: str) -> Way:
    host, is_https = host_of(identifier), identifier.startswith("https://")
    sha256 = package.line("fileSha256").lower()
    title = f"bundle {identifier.rpartition('/')[2]}"
    if not host:
        return Way(title, "bundle", "bundle", problem="The address of the bundle is not one that begins with https://.")
    remarks = [f"The bundle is fetched from {host} when you go on."]
    if not _SHA256.fullmatch(sha256):
        if sha256 or not is_https:
            return Way(title, "bundle", "bundle", problem="The bundle has no checksum by which it could be verified.")
        remarks.append("The registry gives no checksum for it.")
    return Way(title, "bundle", "bundle", bundle=BundleSource(identifier, sha256), remarks=remarks)


def _remote(remote: Fields) -> Way:
    inputs = Inputs()
    kind = remote.line("type", "transportType").lower()
    variables = dict(remote.members("variables"))
    url = inputs.template(remote.line("url"), variables, required=True)
    if not url or kind not in ("streamable-http", "streamable", "http", "sse"):
        problem = "It has no address." if not url else f'Callboard does not speak "{kind}".'
        return Way(url or kind or "address", kind, "remote", problem=problem)
    headers, bearer = _headers(remote, inputs, variables)
    remarks = ["Its address is not encrypted (http://)."] if remote.line("url").startswith("http://") else []
    sse = kind == "sse"
    return Way(
        title=f"{'SSE' if sse else 'HTTP'} at {remote.line('url')}",
        short="SSE" if sse else "HTTP",
        kind="remote",
        url=url,
        headers=headers,
        bearer=bearer,
        fields={"transport": "sse"} if sse else {},
        inputs=inputs.all,
        remarks=remarks,
    )


def _headers(remote: Fields, inputs: Inputs, variables: dict[str, Any]) -> tuple[dict[str, str], str]:
    """The headers as templates, and the input of a bearer token that stands in none of them."""
    headers: dict[str, str] = {}
    bearer = ""
    for each in remote.children("headers"):
        name, text = inputs.pair(each, variables)
        alone = re.fullmatch(r"Bearer \$\{input:([^}]*)\}", text, re.IGNORECASE)
        if name.lower() == "authorization" and alone and inputs.is_secret(alone.group(1)):
            bearer = alone.group(1)
        elif name:
            headers[name] = text
    return headers, bearer


def _served(way: Way, transport: Fields, inputs: Inputs) -> Way:
    """A package that does not speak on its standard streams is reached at its address; the person starts it."""
    kind = transport.line("type").lower()
    if kind in ("", "stdio"):
        return way
    url = inputs.template(transport.line("url"), inputs.by_name())
    if kind not in ("streamable-http", "streamable", "http", "sse") or not url:
        return Way(way.title, way.short, "local", problem=f'Callboard does not speak "{kind}" with a package.')
    headers, bearer = _headers(transport, inputs, inputs.by_name())
    words = " ".join([way.command, *(text for argument in way.arguments for text in argument.texts)])
    words = INPUT.sub(lambda match: f"<{match.group(1)}>" if match.group(1) else "${", words)
    used = {match.group(1) for text in (url, *headers.values()) for match in INPUT.finditer(text)} | {bearer}
    remark = f"It does not speak on its standard streams. Start it yourself, then Callboard reaches it: {words}"
    return Way(
        title=f"{way.title}, reached over HTTP",
        short=f"{way.short}, HTTP",
        kind="remote",
        url=url,
        headers=headers,
        bearer=bearer,
        fields={"transport": "sse"} if kind == "sse" else {},
        inputs=[each for each in inputs.all if each.key in used],
        programs=way.programs,
        remarks=[*way.remarks, remark],
    )


def _other_base(kind: str, base: str) -> str:
    """``base`` where it names another place than the one that is asked where none is named."""
    host = host_of(base)
    usual = _USUAL_DOMAINS.get(kind, (host,))
    return base if host and not any(host == domain or host.endswith(f".{domain}") for domain in usual) else ""
