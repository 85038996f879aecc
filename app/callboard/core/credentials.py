"""Telling values that look like credentials, so that they can be offered a place in the secret store.

A guess, and only ever an offer: paths, addresses, numbers, switches, placeholders and references are none.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from callboard.core.references import SECRET_NAME

# kind of credential: what it begins with (or looks like as a whole)
_KNOWN: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("a GitHub token", r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,}"),
        ("a GitLab token", r"gl(pat|rt|ptt|dt)-[\w-]{18,}"),
        ("a Slack token", r"xox[abeprs]-[\w-]{10,}|xapp-\d-[\w-]{10,}"),
        ("an AWS access key", r"(AKIA|ASIA)[0-9A-Z]{16}"),
        ("a Google API key", r"AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}"),
        ("a Stripe key", r"[rs]k_(live|test)_[0-9A-Za-z]{16,}"),
        ("an npm token", r"npm_[A-Za-z0-9]{30,}"),
        ("a PyPI token", r"pypi-[\w-]{40,}"),
        ("a Hugging Face token", r"hf_[A-Za-z0-9]{30,}"),
        ("a SendGrid key", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
        ("an API key", r"sk-[\w-]{20,}|xai-\w{20,}|gsk_\w{20,}|tvly-[\w-]{20,}|ctx7sk-[\w-]{16,}|pplx-\w{20,}"),
        ("an API key", r"(lin_api|ntn|secret|sbp|figd|glsa|dop_v1|shpat|tskey-\w+|cb)[_-][\w-]{30,}"),
        ("a JSON Web Token", r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"),
        ("a private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*"),
    )
)
_SCHEME = re.compile(r"(?i)(bearer|basic|token)\s+(?=\S{8})")
_USERINFO = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:([^/\s@]+)@")
_QUERY = re.compile(r"[?&]([\w-]+)=([^&#\s]+)")
_ASSIGNMENT = re.compile(r"(-{0,2}[A-Za-z][\w.-]*)=(.*)", re.DOTALL)
_HEADER_LINE = re.compile(r"([A-Za-z][\w-]*):\s*(.+)")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SECRET_WORDS = _set(
    "token secret password passwd pwd passphrase passcode apikey accesskey secretkey privatekey credential credentials "
    "authorization cookie pat"
)
_KEY_OWNERS = _set("api access private secret auth encryption signing service account license master")
# what a name is about when it ends so: TOKEN_FILE is a file, API_KEY_HEADER a header
_PLAIN_ENDINGS = _set(
    "file path dir directory folder url uri endpoint host name header type kind id ids length limit count size max min "
    "expiry ttl age prefix suffix env var variable enabled required timeout algorithm store mode method format"
)
_SWITCHES = _set("true false yes no on off none null nil undefined auto default enabled disabled required")
_PLACEHOLDER = re.compile(
    r"(?i)<.*>|\[.*\]|\{\{.*\}\}|%\w+%|\$\w+|your[\W_].*|.*your[\W_].*(key|token|secret|password).*|.*(changeme|change[\W_]me"
    r"|replace[\W_]?me|example|placeholder|redacted|dummy|insert).*|.*(?P<same>[x*.•])(?P=same){4,}.*|todo.*|\W*"
)
_PATH = re.compile(r"(?:[A-Za-z]:)?[/\\~.][^\s]*[/\\][^\s]*|[/~][\w.-]*|[A-Za-z]:[/\\].*|(?:[\w.-]+/)+[\w.-]+\.\w{1,8}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S*|[\w.-]+@[\w.-]+\.\w+|(localhost|[\w-]+(\.[\w-]+)+)(:\d+)?(/\S*)?")
_NUMBER = re.compile(r"[-+]?[\d.,:_]+[a-zA-Z]{0,2}")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SHORTEST = 8


@dataclass(frozen=True)
class Found:
    """A value that looks like a credential. ``field`` is a dotted path in the entry, ``secret`` a free name for it."""

    field: str
    secret: str
    why: str


def looks_like_credential(key: str, value: str) -> str | None:
    """Why ``value``, standing under ``key`` (a variable, header or option; may be empty), looks like a credential."""
    value = value.strip()
    if "${" in value or len(value) < _SHORTEST:
        return None
    bare = _SCHEME.sub("", value, count=1)
    if "://" not in bare and _PLACEHOLDER.fullmatch(bare):
        return None
    for kind, pattern in _KNOWN:
        if pattern.fullmatch(bare):
            return f"it looks like {kind}"
    if (userinfo := _USERINFO.match(value)) and not _PLACEHOLDER.fullmatch(userinfo.group(1)):
        return "the address holds a password"
    if value != bare and is_secret_name(key or "authorization"):
        return "it is sent to sign in"
    if any(is_secret_name(name) and _is_opaque(text) for name, text in _QUERY.findall(value)):
        return "the address holds a key"
    if is_secret_name(key) and _is_opaque(bare):
        return f"{key.lstrip('-')} is named like a secret"
    return None


def is_secret_name(key: str) -> bool:
    """Whether what stands under ``key`` is probably secret: GITHUB_TOKEN, x-api-key, clientSecret, --password."""
    words = [word.lower() for word in _WORDS.findall(key)]
    if not words or words[-1] in _PLAIN_ENDINGS:
        return False
    if words[-1] == "key":
        return len(words) > 1 and words[-2] in _KEY_OWNERS
    return any(word in _SECRET_WORDS for word in words) and words[0] not in ("page", "next", "max", "min")


def find_credentials(server: str, entry: dict[str, Any], taken: Collection[str] = ()) -> list[Found]:
    """Every value of an entry (plain values, right or wrong) that looks like a credential, with a name for each."""
    used = set(taken)
    found: list[Found] = []
    for field, key, value in places(entry):
        if (why := looks_like_credential(key, value)) is not None:
            name = suggest_secret(server, key, used)
            used.add(name)
            found.append(Found(field, name, why))
    return found


def suggest_secret(server: str, key: str, taken: Collection[str] = ()) -> str:
    """A free name for the secret under ``key`` of a server: github, GITHUB_TOKEN → "github-token"."""
    slug, owner = _slug(key) or "secret", _slug(server)
    if owner and slug != owner and not slug.startswith(f"{owner}-"):
        slug = f"{owner}-{slug}"
    wanted = name = slug[:100]
    number = 2
    while name in taken or not SECRET_NAME.fullmatch(name):
        name, number = f"{wanted or 'secret'}-{number}", number + 1
    return name


def places(entry: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(field, key, value) of every text of an entry that may hold a credential."""
    for group in ("env", "headers"):
        members = entry.get(group)
        for key, value in members.items() if isinstance(members, dict) else ():
            if isinstance(value, str):
                yield f"{group}.{key}", str(key), value
    yield from _nested(entry.get("params"), "params", "")
    if isinstance(url := entry.get("url"), str):
        yield "url", "url", url
    args = entry.get("args")
    option = ""
    for index, value in enumerate(args if isinstance(args, list) else ()):
        if isinstance(value, str):
            yield f"args.{index}", *_argument(option, value)
        option = value if isinstance(value, str) and value.startswith("-") and "=" not in value else ""


def _argument(option: str, value: str) -> tuple[str, str]:
    """The key and value within a command line argument: --token=x, TOKEN=x, "Authorization: Bearer x"."""
    for pattern in (_ASSIGNMENT, _HEADER_LINE):
        if (match := pattern.fullmatch(value)) and "://" not in match.group(1):
            return match.group(1), match.group(2)
    return option, value


def _nested(value: Any, path: str, key: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, str):
        yield path, key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _nested(item, f"{path}.{name}", str(name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nested(item, f"{path}.{index}", key)


def _is_opaque(value: str) -> bool:
    """Not a path, an address, a number, a switch, a placeholder, or words with spaces."""
    if len(value) < _SHORTEST or " " in value or value.lower() in _SWITCHES:
        return False
    return not any(pattern.fullmatch(value) for pattern in (_PLACEHOLDER, _PATH, _ADDRESS, _NUMBER))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
