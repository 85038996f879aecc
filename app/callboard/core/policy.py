"""Who may use what: the decision for one client and one tool, prompt or resource. Pure; asked on every single call.

Deny by default: what no rule names is refused. So is a resource whose URI servers may take for another one, unless no
pattern tells one thing of its server from another; other URIs are matched in one spelling. In this order, the first
that applies decides:

1. what is outside of the profile is denied,
2. what ``deny`` names is denied,
3. what neither ``allow`` nor ``ask`` names is denied,
4. with ``read_only``, a tool that does not declare ``readOnlyHint: true`` is denied,
5. what a pattern of ``ask`` names is asked for,
6. what a tool declares of itself makes it asked for, unless ``allow`` names this one tool in full, without a wildcard:
   whoever wrote that has looked at it,
7. the rest is allowed.

What a tool declares (2026-07-28, schema "ToolAnnotations"): where it does not say, ``readOnlyHint`` is false and
``destructiveHint`` true. So a tool that says ``readOnlyHint: false`` alone is destructive. One that carries neither
hint would be, too; but most servers in use declare nothing, and a question before each of their calls would teach
people to click it away. Such tools are "undeclared", a word of its own for ``ask``. A tool that its server does not
list at all counts as destructive. Hints come from the server and may be wrong: they decide when to ask and what counts
as reading, and open nothing that ``deny`` or a missing ``allow`` closes.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from typing import Any, Final, Literal

from callboard.core.policy_shapes import Profile, Rules
from callboard.core.policy_words import ASK_WORDS, DESTRUCTIVE, ITEM_KINDS, UNDECLARED, ItemKind, split_kind
from callboard.core.resource_uris import folded, is_ambiguous, unfolded

Effect = Literal["allow", "ask", "deny"]


@dataclass(frozen=True)
class Verdict:
    """What becomes of a call, and why: a clause that follows the item's name ("is not allowed").

    ``by_hints`` if what the tool declares of itself has decided it, ``pattern`` if one of ``ask`` has.
    """

    effect: Effect
    reason: str = ""
    by_hints: bool = False
    pattern: str = ""


_WILDCARDS: Final = frozenset("*?[")
ALLOWED: Final = Verdict("allow")


@dataclass(frozen=True)
class Hints:
    """What a tool declares of itself; None where it does not say."""

    read_only: bool | None = None
    destructive: bool | None = None
    is_listed: bool = True  # false for a tool of which only its name is known

    @classmethod
    def of(cls, annotations: Any) -> "Hints":
        """From a definition's ``annotations``; anything but booleans counts as not said."""
        found = annotations if isinstance(annotations, dict) else {}
        read_only, destructive = found.get("readOnlyHint"), found.get("destructiveHint")
        return cls(
            read_only if isinstance(read_only, bool) else None,
            destructive if isinstance(destructive, bool) else None,
        )

    @property
    def is_undeclared(self) -> bool:
        """The tool says nothing of what it does."""
        return self.is_listed and self.read_only is None and self.destructive is None

    @property
    def is_destructive(self) -> bool:
        """The tool declares, by itself or by the defaults of what it left out, that it may destroy something."""
        return not self.is_undeclared and self.read_only is not True and self.destructive is not False


UNDECLARED_HINTS: Final = Hints()
UNLISTED_HINTS: Final = Hints(is_listed=False)


class Patterns:
    """A list of patterns, compiled once. Immutable."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._written = tuple(patterns)
        self._expressions: dict[ItemKind, re.Pattern[str] | None] = {}
        for kind in ITEM_KINDS:
            globs = [_spelled(kind, glob) for own, glob in map(split_kind, self._written) if own in (None, kind)]
            self._expressions[kind] = re.compile("|".join(map(translate, globs))) if globs else None

    def match(self, kind: ItemKind, *spellings: str) -> bool:
        """Whether one of them names ``server.name``, in one of its spellings; the first of a resource is folded."""
        expression = self._expressions[kind]
        return expression is not None and any(expression.match(each) for each in spellings)

    def which(self, kind: ItemKind, *spellings: str) -> str:
        """The first one, as written, that names it; for explanations."""
        for pattern in self._written:
            own, glob = split_kind(pattern)
            if own in (None, kind) and any(fnmatchcase(each, _spelled(kind, glob)) for each in spellings):
                return pattern
        return ""

    def touch(self, server: str) -> bool:
        """Whether one of them could name something of a server."""
        return any(_reaches(split_kind(pattern)[1], server) for pattern in self._written)

    def cover(self, server: str) -> bool:
        """Whether one of them names everything of a server, whatever that is."""
        return any(own is None and _is_all(glob, server) for own, glob in map(split_kind, self._written))


def _spelled(kind: ItemKind, identity: str) -> str:
    return folded(identity) if kind == "resource" else identity


def _reaches(glob: str, server: str) -> bool:
    """Whether something after ``server.`` could match; a wildcard may stand for the dot too."""
    start = f"{server}."
    upto = {"*": "*", "?": "?", "[": "?", ".": "."}
    return any(fnmatchcase(start, glob[:end] + upto[letter]) for end, letter in enumerate(glob) if letter in upto)


def _is_all(glob: str, server: str) -> bool:
    return glob.endswith("*") and fnmatchcase(f"{server}.", glob)


class Policy:
    """Rules, within a profile if there is one, ready to decide. Immutable."""

    def __init__(self, rules: Rules, profile: Profile | None = None) -> None:
        self.rules = rules
        self.profile = profile
        self._allow = Patterns([*rules.allow, *(each for each in rules.ask if each not in ASK_WORDS)])
        self._deny = Patterns([*rules.deny, *(profile.deny if profile is not None else [])])
        self._ask = Patterns([each for each in rules.ask if each not in ASK_WORDS])
        self._named = frozenset(named for each in rules.allow if (named := named_tool(each)))
        self._within: Patterns | None = None
        if profile is not None:
            self._within = Patterns([*(f"{server}.*" for server in profile.servers), *profile.tools])

    @property
    def is_open(self) -> bool:
        """Whether it hides nothing: lists need not be looked through."""
        rules = self.rules
        return "*" in rules.allow and not rules.deny and not rules.read_only and self._within is None

    def decide(self, kind: ItemKind, server: str, name: str, hints: Hints = UNDECLARED_HINTS) -> Verdict:
        """What becomes of a call. ``name`` is the server's own; ``hints`` are those of a tool."""
        identity = _spelled(kind, f"{server}.{name}")
        spellings = (identity, unfolded(identity)) if kind == "resource" else (identity,)
        if kind == "resource" and is_ambiguous(name) and not self._names_all(server):
            return Verdict("deny", "can be taken for another URI, so that no pattern holds")
        if self._within is not None and not self._within.match(kind, identity):
            return Verdict("deny", "is not in the profile")
        if self._deny.match(kind, *spellings):
            return Verdict("deny", f'is denied by "{self._deny.which(kind, *spellings)}"')
        if not self._allow.match(kind, identity):
            return Verdict("deny", "is not allowed")
        if kind == "tool" and self.rules.read_only and hints.read_only is not True:
            return Verdict("deny", "does not declare that it only reads", by_hints=True)
        if self._ask.match(kind, *spellings):
            pattern = self._ask.which(kind, *spellings)
            return Verdict("ask", f'is asked for by "{pattern}"', pattern=pattern)
        if kind != "tool" or identity in self._named:
            return ALLOWED
        if hints.is_destructive and DESTRUCTIVE in self.rules.ask:
            known = "declares that it may destroy something" if hints.is_listed else "is in no list of its server"
            return Verdict("ask", known, by_hints=True)
        if hints.is_undeclared and UNDECLARED in self.rules.ask:
            return Verdict("ask", "does not declare what it does", by_hints=True)
        return ALLOWED

    def may_use(self, server: str) -> bool:
        """Whether anything of a server could be allowed; decided by the rules alone, so that nothing of what there is
        can be learnt from it.
        """
        if self._within is not None and not self._within.touch(server):
            return False
        return self._allow.touch(server) and not self._deny.cover(server)

    def covers(self, server: str) -> bool:
        """Whether everything of a server is allowed without a question, also methods that no rule speaks of."""
        return self._names_all(server) and not self.rules.read_only

    def _names_all(self, server: str) -> bool:
        """Whether no pattern tells one thing of a server from another."""
        if self._within is not None and not self._within.cover(server):
            return False
        allowed = self._allow.cover(server) and not self._ask.touch(server)
        return allowed and not self._deny.touch(server)


def named_tool(pattern: str) -> str:
    """The one tool, as ``server.name``, that a pattern names in full; "" for one with a wildcard or of another kind."""
    kind, glob = split_kind(pattern)
    return glob if kind in (None, "tool") and is_exact(glob) else ""


def is_exact(glob: str) -> bool:
    """Whether it has no wildcard."""
    return not _WILDCARDS.intersection(glob)


def unknown_profile(name: str, known: Sequence[str]) -> str:
    """What is wrong with a profile's name that a client is bound to: a clause."""
    there = f"there {'is' if len(known) == 1 else 'are'} {', '.join(known) or 'none'}"
    return f'names "{name}", which is no profile; {there}'
