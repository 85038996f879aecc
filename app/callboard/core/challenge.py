"""What a refused request says of the sign-in that it wants (RFC 9110 section 11.6.1, RFC 6750 section 3)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_PARAMETER = re.compile(rf'({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_SCHEME = re.compile(rf"({_TOKEN})(?=\s|,|$)(?!\s*=)")
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]+=*(?=\s*(?:,|$))")
_GAP = re.compile(r"[\s,]+")


@dataclass(frozen=True)
class Challenge:
    """Why a request was refused: its HTTP ``status``, and what the challenge says, empty where nothing.

    ``bound`` is true where only tokens that are bound to a key are taken (RFC 9449 section 7.1).
    """

    status: int
    error: str = ""
    scope: str = ""
    resource_metadata: str = ""
    bound: bool = False

    @property
    def wants_scope(self) -> bool:
        """True if the token is good, but gives too few rights (2026-07-28, basic/authorization "Scope Challenge")."""
        return self.status == 403 and self.error == "insufficient_scope"


def challenge_of(status: int, www_authenticate: str) -> Challenge | None:
    """The challenge of a refused request; None if the answer asks for no sign-in and for no more rights."""
    if status not in (401, 403):
        return None
    found = dict(reversed(list(challenges(www_authenticate))))  # the first of each scheme
    bound = "bearer" not in found and "dpop" in found
    said = found.get("dpop" if bound else "bearer", {})
    challenge = Challenge(
        status,
        error=said.get("error", ""),
        scope=" ".join(said.get("scope", "").split()),
        resource_metadata=said.get("resource_metadata", ""),
        bound=bound,
    )
    return challenge if status == 401 or challenge.wants_scope else None


def challenges(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each scheme of a ``WWW-Authenticate`` header, in lower case, with its parameters; several headers are joined by
    commas. What is malformed is passed over.
    """
    scheme, found = "", dict[str, str]()
    position = 0
    while position < len(header):
        if gap := _GAP.match(header, position):
            position = gap.end()
        elif parameter := _PARAMETER.match(header, position):
            name, quoted, plain = parameter.groups()
            value = re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if quoted is not None else plain
            found.setdefault(name.lower(), value)
            position = parameter.end()
        elif word := _SCHEME.match(header, position):
            if scheme:
                yield scheme, found
            scheme, found = word.group(1).lower(), {}
            position = word.end()
            gap = _GAP.match(header, position)
            if gap and "," not in gap.group() and not _PARAMETER.match(header, gap.end()):
                credentials = _TOKEN68.match(header, gap.end())
                position = credentials.end() if credentials else position
        else:
            position += 1
    if scheme:
        yield scheme, found
