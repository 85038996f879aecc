"""What a person does with clients, policies and profiles: looks at them, changes them, answers questions."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import quote

from callboard.api.policy_schema import (
    ApprovalView,
    ClientPolicyView,
    PolicyView,
    ProfileView,
    QuestionView,
    RuleEdit,
    VerdictQuery,
    VerdictView,
)
from callboard.api.schema import Check, RosterEdit
from callboard.core.errors import CallboardError
from callboard.core.policy_shapes import DEFAULT_CLIENT, DefaultPolicy, Rules
from callboard.core.policy_words import ASK_WORDS
from callboard.engine.gateway.clients import ClientTokens
from callboard.engine.policy.approvals import Approval
from callboard.engine.policy.callers import PERSON, Policies
from callboard.engine.policy.questions import Choice, Question, Questions
from callboard.engine.roster_file import RosterFile

CLIENTS: Final = "clients"
PROFILES: Final = "profiles"
_OWN_NAMES: Final = {
    "script": "Scripts",
    "connect": "callboard connect",
    "other": "Any other client",
    "open": "Without a token (open gateway)",
    PERSON: "You (window, command line)",
}


class PolicyDesk:
    """Engine loop only. Changes of rules are changes of the roster's file."""

    def __init__(
        self,
        policies: Policies,
        questions: Questions,
        roster_file: RosterFile,
        tokens: ClientTokens,
        names: Mapping[str, str],
        *,
        last_seen: Callable[[str], float | None],
        url: Callable[[], str],
    ) -> None:
        """``names`` are those of the programs that have a configuration to copy, by id."""
        self._policies = policies
        self._questions = questions
        self._file = roster_file
        self._tokens = tokens
        self._names = {**names, **_OWN_NAMES}
        self._last_seen = last_seen
        self._url = url

    # looking

    def view(self) -> PolicyView:
        """All clients and profiles with their rules."""
        written = self._file.roster.sections
        ids = [*self._tokens.ids, *(name for name in ("open", PERSON) if name in written.get(CLIENTS, {}))]
        return PolicyView(
            revision=self._file.revision,
            policy=written.get("", {}).get("policy"),
            clients=[self._client(client) for client in dict.fromkeys(ids)],
            profiles=[self._profile(name) for name in self._policies.profiles],
        )

    def _client(self, client: str) -> ClientPolicyView:
        settings = self._file.roster.settings.clients.get(client)
        named = settings.display_name if settings is not None else ""
        return ClientPolicyView(
            id=client,
            name=named or self._names.get(client, client),
            known=client in self._names,
            entry=self._file.roster.sections.get(CLIENTS, {}).get(client),
            profile=settings.profile if settings is not None else "",
            has_policy=settings is not None and settings.policy is not None,
            last_seen=self._last_seen(client),
            approvals=sum(approval.client == client and self._holds(approval) for approval in self._all_approvals()),
        )

    def _profile(self, name: str) -> ProfileView:
        return ProfileView(
            name=name,
            entry=self._file.roster.sections[PROFILES][name],
            endpoint=f"{self._url()}/profiles/{quote(name)}/mcp",
            clients=[each for each, entry in self._file.roster.settings.clients.items() if entry.profile == name],
        )

    def verdict(self, query: VerdictQuery) -> VerdictView:
        """What would become of a call now; raises ``client-unknown`` and what a profile's endpoint raises."""
        self._check_client(query.client)
        caller = self._policies.caller(query.client, query.profile)
        verdict = caller.verdict(query.kind, query.server, query.name)
        return VerdictView(effect=verdict.effect, reason=verdict.reason)

    def checks(self) -> list[Check]:
        """What a slip of the pen leaves unprotected: clients of nearly a known name, and servers that are not there."""
        roster = self._file.roster
        found = []
        for client in roster.settings.clients:
            close = get_close_matches(client, [name for name in self._names if name != client], n=1, cutoff=0.8)
            if client not in self._names and close:
                message = (
                    f'The roster names a client "{client}", which has a token of its own; did you mean "{close[0]}"?'
                )
                fix = "Correct the name under clients, or leave it if another program has that token."
                found.append(Check(name="clients", status="warn", message=message, fix=fix))
        for name, profile in roster.settings.profiles.items():
            if missing := [server for server in profile.servers if server not in roster.servers]:
                message = f"The profile {name} names {', '.join(missing)}, which the roster does not have."
                fix = "Correct the names under profiles, or add the servers."
                found.append(Check(name="profiles", status="warn", message=message, fix=fix))
        return found

    # changing

    async def save_client(self, client: str, entry: dict[str, Any], revision: str) -> RosterEdit:
        """Give a client what the roster shall say of it; one that it did not know gets a token."""
        return await self._file.save_item(CLIENTS, client, entry, revision=revision)

    async def reset_client(self, client: str, revision: str) -> RosterEdit:
        """Take a client out of the roster: the default holds for it. Raises ``not-found``."""
        return await self._file.save_item(CLIENTS, client, None, revision=revision)

    async def save_policy(self, entry: dict[str, Any], revision: str) -> RosterEdit:
        """Give the default what the roster shall say."""
        return await self._file.save_item("", "policy", entry, revision=revision)

    async def save_profile(self, name: str, entry: dict[str, Any], revision: str) -> RosterEdit:
        """Add or change a profile; its sessions are told."""
        return await self._file.save_item(PROFILES, name, entry, revision=revision)

    async def remove_profile(self, name: str, revision: str) -> RosterEdit:
        """Take a profile out; raises ``profile-unknown``, and ``profile-in-use`` where clients are bound to it."""
        if name not in self._policies.profiles:
            raise CallboardError("profile-unknown", f'There is no profile named "{name}".')
        if bound := self._profile(name).clients:
            raise CallboardError("profile-in-use", f"The profile {name} is used by {', '.join(bound)}.")
        return await self._file.save_item(PROFILES, name, None, revision=revision)

    async def change_rules(self, client: str, edit: RuleEdit) -> RosterEdit:
        """Allow, ask for or deny patterns for a client; one without rules of its own gets the default's to begin with.

        ``client`` "default" changes the default itself.
        """
        sections, settings = self._file.roster.sections, self._file.roster.settings
        if client == DEFAULT_CLIENT:
            policy = dict(sections.get("", {}).get("policy") or {})
            return await self.save_policy(_with_rules(policy, settings.policy, edit), "")
        self._check_client(client)
        entry = dict(sections.get(CLIENTS, {}).get(client) or {})
        own = settings.clients[client].policy if client in settings.clients else None
        written = dict(entry.get("policy") or {}) if own is not None else _written(settings.policy)
        entry["policy"] = _with_rules(written, own or settings.policy, edit)
        return await self.save_client(client, entry, "")

    def _check_client(self, client: str) -> None:
        if client != PERSON and client != "open":
            self._tokens.token_for(client)

    # questions and approvals

    def questions(self) -> list[QuestionView]:
        """The calls that wait for the person, oldest first."""
        return [self._question(question) for question in self._questions.open()]

    def _question(self, question: Question) -> QuestionView:
        return QuestionView(
            id=question.id,
            client=question.client,
            client_name=self._client(question.client).name,
            program=question.program,
            kind=question.kind,
            server=question.server,
            name=question.shown_name,
            reason=question.reason,
            arguments=question.arguments,
            arguments_cut=question.arguments_cut,
            arguments_size=question.arguments_size,
            asked=question.asked,
            expires=question.expires,
        )

    def answer(self, question_id: int, choice: Choice) -> None:
        """Settle a question; raises ``question-over``."""
        self._questions.settle(question_id, choice)

    def approvals(self) -> list[ApprovalView]:
        """What was answered for good, oldest first."""
        return [
            ApprovalView(
                client=approval.client,
                kind=approval.kind,
                server=approval.server,
                name=approval.name,
                at=approval.at,
                holds=self._holds(approval),
            )
            for approval in self._all_approvals()
        ]

    async def revoke(self, client: str, server: str, name: str, kind: str) -> int:
        """Ask again from now on; returns how many answers are forgotten."""
        count = await self._policies.approvals.revoke(client, server, name, kind)
        self._policies.forget(client)
        return count

    def _all_approvals(self) -> list[Approval]:
        return self._policies.approvals.all()

    def _holds(self, approval: Approval) -> bool:
        mark = self._policies.mark(approval.kind, approval.server, approval.name)
        return self._policies.approvals.holds(approval.item, mark)


def _written(default: DefaultPolicy) -> dict[str, Any]:
    """The default's rules as a client's own."""
    return {
        key: value
        for key, value in default.model_dump(include=set(Rules.model_fields)).items()
        if key == "allow" or value != Rules.model_fields[key].default
    }


def _with_rules(written: dict[str, Any], rules: Rules, edit: RuleEdit) -> dict[str, Any]:
    """Written rules with patterns put under one effect, and taken from where they stood under another one."""
    lists = {"allow": list(rules.allow), "ask": list(rules.ask), "deny": list(rules.deny)}
    for effect, patterns in lists.items():
        if effect != edit.effect:
            lists[effect] = [pattern for pattern in patterns if pattern not in edit.patterns or pattern in ASK_WORDS]
    lists[edit.effect] += [pattern for pattern in edit.patterns if pattern not in lists[edit.effect]]
    changed = {effect: patterns for effect, patterns in lists.items() if patterns != getattr(rules, effect)}
    return {**written, **changed}
