"""Routes of the clients' policies, of profiles, and of the questions to the person."""

from callboard.api.policy_schema import (
    Answer,
    ApprovalsQuery,
    ApprovalView,
    ItemEdit,
    PolicyView,
    QuestionView,
    Revoked,
    RuleEdit,
    VerdictQuery,
    VerdictView,
)
from callboard.api.query_schema import RevisionQuery
from callboard.api.routes.route import Route
from callboard.api.schema import RosterEdit, TokenView
from callboard.engine.engine import Engine


async def policy(engine: Engine) -> PolicyView:
    """Every client and profile with its rules, and the rules of all clients that have none of their own."""
    return engine.policy.view()


async def save_policy(engine: Engine, body: ItemEdit) -> RosterEdit:
    """Set the rules of all clients that have none of their own."""
    return await engine.policy.save_policy(body.entry, body.revision)


async def verdict(engine: Engine, query: VerdictQuery) -> VerdictView:
    """What would become of a client's call now, and why."""
    return engine.policy.verdict(query)


async def save_client(engine: Engine, client: str, body: ItemEdit) -> RosterEdit:
    """Set what the roster says of a client: its policy, profile and bound of results. A new one gets a token."""
    return await engine.policy.save_client(client, body.entry, body.revision)


async def reset_client(engine: Engine, client: str, query: RevisionQuery) -> RosterEdit:
    """Take a client out of the roster: the default holds for it."""
    return await engine.policy.reset_client(client, query.revision)


async def change_rules(engine: Engine, client: str, body: RuleEdit) -> RosterEdit:
    """Allow, ask for or deny patterns for a client; "default" is all those without rules of their own."""
    return await engine.policy.change_rules(client, body)


async def rotate(engine: Engine, client: str) -> TokenView:
    """Replace a client's token: the old one is refused from now on."""
    return TokenView(token=await engine.clients.rotate(client))


async def save_profile(engine: Engine, name: str, body: ItemEdit) -> RosterEdit:
    """Add or change a profile; sessions that use it are told of their new lists."""
    return await engine.policy.save_profile(name, body.entry, body.revision)


async def remove_profile(engine: Engine, name: str, query: RevisionQuery) -> RosterEdit:
    """Take a profile out of the roster."""
    return await engine.policy.remove_profile(name, query.revision)


async def questions(engine: Engine) -> list[QuestionView]:
    """The calls that wait for the person, oldest first."""
    return engine.policy.questions()


async def answer(engine: Engine, question: int, body: Answer) -> None:
    """Let a call pass once, for this client and tool always, or refuse it."""
    engine.policy.answer(question, body.choice)


async def approvals(engine: Engine) -> list[ApprovalView]:
    """What the person has allowed for good, oldest first."""
    return engine.policy.approvals()


async def revoke(engine: Engine, query: ApprovalsQuery) -> Revoked:
    """Forget what the person has allowed for good to a client: it is asked for again."""
    return Revoked(count=await engine.policy.revoke(query.client, query.server, query.name, query.kind))


ROUTES = (
    Route("GET", "/policy", policy),
    Route("PUT", "/policy", save_policy),
    Route("GET", "/policy/verdict", verdict),
    Route("GET", "/policy/questions", questions),
    Route("POST", "/policy/questions/{question}", answer),
    Route("GET", "/policy/approvals", approvals),
    Route("DELETE", "/policy/approvals", revoke),
    Route("PUT", "/clients/{client}", save_client),
    Route("DELETE", "/clients/{client}", reset_client),
    Route("POST", "/clients/{client}/rules", change_rules),
    Route("POST", "/clients/{client}/rotate", rotate),
    Route("PUT", "/profiles/{name}", save_profile),
    Route("DELETE", "/profiles/{name}", remove_profile),
)
