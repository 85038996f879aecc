"""What a change of rules has come to, told in words: what it changes beside, and what still stands in its way."""

import shlex
from argparse import Namespace
from typing import Any, Final

from callboard.api.client import EngineClient
from callboard.api.policy_schema import PolicyView
from callboard.commands.policy import DEFAULT
from callboard.commands.terminal import Terminal
from callboard.core.errors import CallboardError
from callboard.core.policy import Effect, Patterns, is_exact
from callboard.core.policy_shapes import Rules
from callboard.core.policy_words import ASK_WORDS, DESTRUCTIVE, ItemKind, split_kind
from callboard.core.roster_parse import check_shape

_STILL: Final = {
    "allow": "may still use {item} without a question",
    "ask": "may still use {item} only after a question",
    "deny": "may still not use {item}",
}


def rules_of(view: PolicyView, client: str) -> dict[str, Any]:
    """The rules that hold for a client, complete."""
    entry = next((each.entry for each in view.clients if each.id == client and each.has_policy), None)
    if entry is not None:
        return {"allow": [], "ask": [DESTRUCTIVE], "deny": [], **entry["policy"]}
    return {"allow": ["*"], "ask": [DESTRUCTIVE], "deny": [], **(view.policy or {})}


def check_patterns(effect: Effect, patterns: list[str]) -> None:
    """Raises ``entry-invalid`` for what is no pattern."""
    for problem in check_shape(Rules, {effect: patterns}):
        wrong = patterns[int(problem.path[1])]
        fix = f'Write SERVER.NAME, or "{wrong}.*" for all of a server.' if wrong.isalnum() else "Write SERVER.NAME."
        raise CallboardError("entry-invalid", f'"{wrong}" {problem.message}.', fix=fix)


async def tell_surroundings(
    client: EngineClient, before: PolicyView, effect: Effect, options: Namespace, terminal: Terminal
) -> None:
    """What a person should know of a change: whom it parts from the default, and what it names in vain."""
    name = options.client
    if name != DEFAULT and not any(each.id == name and each.has_policy for each in before.clients):
        terminal.note(f"{name} now has rules of its own; later changes of the default do not hold for it.")
    servers = [each.name for each in await client.servers()]
    rules = rules_of(before, name)
    for pattern in options.patterns:
        if pattern in ASK_WORDS:
            continue
        kind, glob = split_kind(pattern)
        named = glob.partition(".")[0]
        if is_exact(named) and named not in servers:
            terminal.note(f"No server is named {named}: {pattern} names nothing yet.")
        if effect == "allow":
            _tell_of_allowed(rules, pattern, kind or "tool", glob, terminal)


def _tell_of_allowed(rules: dict[str, Any], pattern: str, kind: ItemKind, glob: str, terminal: Terminal) -> None:
    wider = next((each for each in rules["allow"] if each != pattern and Patterns([each]).match(kind, glob)), "")
    if wider and not is_exact(glob):
        terminal.note(f'{pattern} was allowed already, by "{wider}", which goes on allowing all else too.')
    words = [word for word in ASK_WORDS if word in rules["ask"]]
    if words and not is_exact(glob):
        terminal.note(f"Tools are still asked for by {' and '.join(words)}; to allow one, name it in full.")


async def tell_verdicts(client: EngineClient, effect: Effect, options: Namespace, terminal: Terminal) -> int:
    """Ask what becomes now of each item that was named in full; 1 if it is not what was wanted."""
    view = await client.policy.view()
    judged = options.client
    if judged == DEFAULT:
        judged = next((each.id for each in view.clients if not each.has_policy and not each.profile), "")
    code = 0
    for pattern in options.patterns if judged else []:
        kind, glob = split_kind(pattern)
        server, dot, name = glob.partition(".")
        if not dot or not is_exact(glob):
            continue
        verdict = await client.policy.verdict(judged, server, name, kind=kind or "tool")
        if verdict.effect != effect and not (judged == "callboard" and effect == "ask"):
            reason = verdict.reason or 'was answered with "always"'
            message = f"{options.client} {_STILL[verdict.effect].format(item=glob)}: it {reason}."
            fix = _way_out(rules_of(view, options.client), kind or "tool", glob, verdict.effect, reason, options.client)
            terminal.failure(CallboardError("policy-denied", message, fix=fix))
            code = 1
    return code


def _way_out(rules: dict[str, Any], kind: ItemKind, glob: str, stands: Effect, reason: str, client: str) -> str:
    """What would change a verdict that a new rule has not changed."""
    if stands == "allow":
        return f"Run `callboard policy revoke {client} {shlex.quote(glob)}`, which forgets that answer."
    patterns = [each for each in rules[stands] if each not in ASK_WORDS]
    if pattern := Patterns(patterns).which(kind, glob):
        return (
            f"Run `callboard policy allow {client} {shlex.quote(pattern)}`, which takes that pattern out of {stands}."
        )
    if rules.get("read_only"):
        return f"Run `callboard clients set {client} --no-read-only`."
    return "Change the client's profile: see `callboard profiles`."
