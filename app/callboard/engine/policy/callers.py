"""Who calls, and what each may do: one :class:`Caller` for each client, and for each profile's endpoint it uses."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.policy import ALLOWED, UNDECLARED_HINTS, UNLISTED_HINTS, Hints, Policy, Verdict
from callboard.core.policy_shapes import ClientEntry, DefaultPolicy, Profile, Rules
from callboard.core.policy_words import ItemKind
from callboard.engine.policy.approvals import Approvals, Item, mark_of

log = logging.getLogger(__name__)

PERSON: Final = "callboard"  # window, command line and scripts with the admin token
MAX_VERDICTS: Final = 20_000  # remembered for each caller: names come from clients
MAX_REMEMBERED: Final = 512  # characters of a name; what is longer is decided each time
Definition = Callable[[str, str], bytes | None]


class Caller:
    """One client at the common endpoints, or at a profile's. Lives as long as the engine; its policy may be replaced.

    Two requests are of one caller if their callers are the same object.
    """

    __slots__ = ("_policies", "_policy", "_servers", "_verdicts", "client", "is_person", "max_result_chars", "profile")

    def __init__(self, client: str, profile: str, policies: "Policies") -> None:
        """``profile`` is the endpoint's, "" at the others."""
        self.client = client
        self.profile = profile
        self.is_person = client == PERSON
        self.max_result_chars = 0  # of the text of one result; 0 for no bound
        self._policy = Policy(DefaultPolicy())
        self._policies = policies
        self._servers: dict[str, bool] = {}
        self._verdicts: dict[tuple[str, str, str], Verdict] = {}

    @property
    def policy(self) -> Policy:
        """The rules in force."""
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._policy = policy
        self._servers.clear()
        self._verdicts.clear()

    @property
    def decides_by_definition(self) -> bool:
        """Whether the verdict of a tool may be another one once its definition is."""
        rules = self._policy.rules
        return rules.read_only or (bool(rules.ask) and not self.is_person)

    def verdict(self, kind: ItemKind, server: str, name: str) -> Verdict:
        """What becomes of a call now; what the person has allowed for good is allowed."""
        key = (kind, server, name)
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._decide(kind, server, name)
            if len(server) + len(name) > MAX_REMEMBERED:
                return verdict
            if len(self._verdicts) >= MAX_VERDICTS:
                self._verdicts.clear()
            self._verdicts[key] = verdict
        return verdict

    def _decide(self, kind: ItemKind, server: str, name: str) -> Verdict:
        definition = self._policies.definition(server, name) if kind == "tool" else None
        hints = _hints(definition) if kind == "tool" else UNDECLARED_HINTS
        verdict = self._policy.decide(kind, server, name, hints)
        if verdict.effect == "ask" and (
            self.is_person
            or self._policies.approvals.holds(
                (self.client, kind, server, name), self._policies.mark(kind, server, name)
            )
        ):
            return ALLOWED
        return verdict

    def sees(self, kind: ItemKind, server: str, name: str) -> bool:
        """Whether it may use this, if only after a question."""
        return self.verdict(kind, server, name).effect != "deny"

    def may_use(self, server: str) -> bool:
        """Whether it may use anything of a server."""
        known = self._servers.get(server)
        if known is None:
            known = self._policy.may_use(server)
            if len(server) > MAX_REMEMBERED:
                return known
            if len(self._servers) >= MAX_VERDICTS:
                self._servers.clear()
            self._servers[server] = known
        return known

    def forget(self) -> None:
        """Decide everything anew: tools or approvals have changed."""
        self._verdicts.clear()


class Policies:
    """All callers. Engine loop only."""

    def __init__(self, approvals: Approvals) -> None:
        self.approvals = approvals
        self.ask_seconds = DefaultPolicy().ask_seconds
        self.definition: Definition = lambda server, tool: None  # the catalogue's, once there is one
        self.program: Callable[[str], str] = lambda server: ""  # what a server runs, from the roster
        self._default = DefaultPolicy()
        self._clients: dict[str, ClientEntry] = {}
        self._profiles: dict[str, Profile] = {}
        self._callers: dict[tuple[str, str], Caller] = {}

    def configure(
        self, default: DefaultPolicy, clients: dict[str, ClientEntry], profiles: dict[str, Profile]
    ) -> list[Caller]:
        """Take the roster's rules; returns the callers whose rules are others now."""
        before = {caller: self._rules_of(caller) for caller in self._callers.values()}
        self._default, self._clients, self._profiles = default, clients, profiles
        self.ask_seconds = default.ask_seconds
        changed = []
        for caller, rules in before.items():
            if self._rules_of(caller) != rules:
                self._equip(caller)
                changed.append(caller)
        return changed

    def caller(self, client: str, profile: str = "") -> Caller:
        """The caller of a request at a profile's endpoint, "" for the others.

        Raises ``policy-denied`` if the client's token is bound to another profile, ``profile-unknown``.
        """
        caller = self._callers.get((client, profile))
        if caller is None or profile:
            self._check_profile(client, profile)
        if caller is None:
            caller = self._callers[client, profile] = Caller(client, profile, self)
            self._equip(caller)
        return caller

    @property
    def person(self) -> Caller:
        """Whoever has the admin token. Making a call by hand is consent to it, so nothing is asked and the default does
        not hold; what the roster denies to the client "callboard" stays denied.
        """
        return self.caller(PERSON)

    @property
    def profiles(self) -> dict[str, Profile]:
        """The profiles in force."""
        return self._profiles

    def mark(self, kind: ItemKind, server: str, name: str) -> str:
        """What an answer about this is for, as it is now; see :func:`mark_of`."""
        return mark_of(self.program(server), self.definition(server, name) if kind == "tool" else None)

    async def forget_server(self, server: str) -> None:
        """A server is gone from the roster: another one of its name has to be allowed anew."""
        try:
            await self.approvals.forget_server(server)
        except CallboardError as error:
            log.warning("%s", error.message)

    async def approve(self, item: Item, mark: str) -> None:
        """The person allows this for good. If that cannot be written, it holds for this session all the same."""
        try:
            await self.approvals.remember(item, mark)
        except CallboardError as error:
            log.warning("%s", error.message)
        self.forget(item[0])

    def forget(self, client: str = "") -> None:
        """Decide everything anew, for one client or for all."""
        for caller in self._callers.values():
            if client in ("", caller.client):
                caller.forget()

    def names(self) -> Iterable[str]:
        """The clients that the roster speaks of."""
        return self._clients

    def _check_profile(self, client: str, profile: str) -> None:
        bound = self._bound(client)
        if profile and bound and profile != bound:
            raise CallboardError("policy-denied", f'The client {client} may use the profile "{bound}" alone.')
        if profile and profile not in self._profiles:
            raise CallboardError("profile-unknown", f'There is no profile named "{profile}".')

    def _bound(self, client: str) -> str:
        entry = self._clients.get(client)
        return entry.profile if entry is not None else ""

    def _rules_of(self, caller: Caller) -> Any:
        entry = self._clients.get(caller.client, _NO_ENTRY)
        name = caller.profile or entry.profile
        profile = self._profiles.get(name, _NOTHING) if name else None
        if caller.is_person:
            return entry.policy or _OF_PERSON, profile, entry.max_result_chars or 0
        rules = entry.policy if entry.policy is not None else self._default
        return rules, profile, entry.max_result_chars or self._default.max_result_chars or 0

    def _equip(self, caller: Caller) -> None:
        rules, profile, bound = self._rules_of(caller)
        caller.policy = Policy(rules, profile)
        caller.max_result_chars = bound


_NO_ENTRY: Final = ClientEntry()
_OF_PERSON: Final = Rules(allow=["*"], ask=[])
_NOTHING: Final = Profile(tools=["*"], deny=["*"])  # what a profile that is gone still selects


class _Definition(msgspec.Struct):
    annotations: Any = None


_definition = msgspec.json.Decoder(_Definition)


def _hints(definition: bytes | None) -> Hints:
    if definition is None:
        return UNLISTED_HINTS
    try:
        return Hints.of(_definition.decode(definition).annotations)
    except msgspec.DecodeError:
        return UNDECLARED_HINTS
