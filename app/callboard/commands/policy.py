"""Commands about clients, what each may use, profiles, and the questions to the person."""

import time
from argparse import Namespace
from typing import Any, Final

from callboard.api.client import EngineClient
from callboard.api.policy_schema import ClientPolicyView, PolicyView, QuestionView
from callboard.commands.arguments import UsageError
from callboard.commands.terminal import Cell, Terminal, clock, span
from callboard.core.errors import CallboardError

DEFAULT: Final = "default"
_MEANING: Final = {"allow": "fine", "ask": "attention", "deny": "failed"}
_LISTS: Final = ("allow", "ask", "deny")


# clients


async def clients(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Every client and what holds for it."""
    view = await client.policy.view()
    if options.json:
        terminal.json(view.clients)
        return 0
    now = time.time()
    rows = [
        (each.id, each.name, _rules_word(each), each.profile, _seen(each, now), str(each.approvals or ""))
        for each in view.clients
    ]
    terminal.table(("CLIENT", "NAME", "RULES", "PROFILE", "SEEN", "ALWAYS"), rows)
    return 0


async def show_client(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """One client with its rules."""
    view = await client.policy.view()
    found = _find(view, options.client)
    if options.json:
        terminal.json(found)
        return 0
    entry = found.entry or {}
    pairs = [
        ("client", found.id),
        ("name", found.name),
        ("seen", _seen(found, time.time())),
        ("last call", await _last_call(client, found.id)),
        ("profile", found.profile),
        ("max. result", f"{entry['max_result_chars']} characters" if entry.get("max_result_chars") else ""),
        ("always", str(found.approvals or "")),
        ("rules", _rules_word(found)),
    ]
    terminal.pairs([*pairs, *_rules(entry["policy"] if found.has_policy else view.policy, own=found.has_policy)])
    return 0


async def set_client(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Change what holds for a client; what is not named stays."""
    view = await client.policy.view()
    entry = dict(_find(view, options.client).entry or {})
    _apply(entry, options, view)
    await client.policy.save_client(options.client, entry, revision=view.revision)
    return await _show_anew(client, options, terminal)


async def add_client(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """A program that Callboard does not know gets a token of its own, which is printed."""
    view = await client.policy.view()
    if any(each.id == options.client for each in view.clients):
        raise CallboardError("name-taken", f"There is a client {options.client} already.")
    entry: dict[str, Any] = {"display_name": options.name or options.client}
    _apply(entry, options, view)
    await client.policy.save_client(options.client, entry, revision=view.revision)
    terminal.line(await client.token(options.client))
    return 0


async def rotate(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Replace a token; the old one is refused from now on."""
    _find(await client.policy.view(), options.client)
    terminal.line(await client.policy.rotate(options.client))
    return 0


async def reset_client(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """The default holds for the client again."""
    if _find(await client.policy.view(), options.client).entry is None:
        raise CallboardError(
            "not-found",
            f"The roster says nothing of {options.client}: the default holds for it already.",
            fix="`callboard clients` shows which clients have rules of their own.",
        )
    await client.policy.reset_client(options.client)
    return await _show_anew(client, options, terminal)


async def _show_anew(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """What holds after a change."""
    options.json = False
    return await show_client(client, options, terminal)


def _apply(entry: dict[str, Any], options: Namespace, view: PolicyView) -> None:
    if options.name is not None:
        entry["display_name"] = options.name
    if options.profile is not None:
        entry["profile"] = options.profile or None
    if options.max_result_chars is not None:
        entry["max_result_chars"] = options.max_result_chars or None
    if options.read_only is not None:
        default = {key: value for key, value in (view.policy or {}).items() if key in (*_LISTS, "read_only")}
        policy = entry.get("policy") or {"allow": ["*"], **default}
        entry["policy"] = {**policy, "read_only": options.read_only}


# rules


async def policy(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """The rules of one client, or the default's and who has rules of its own."""
    options.client = getattr(options, "client", None)
    if options.client and options.client != DEFAULT:
        return await show_client(client, options, terminal)
    view = await client.policy.view()
    if options.json:
        terminal.json(view)
        return 0
    terminal.pairs(
        [("default", "what holds for every client without rules of its own"), *_rules(view.policy, own=False)]
    )
    own = [each.id for each in view.clients if each.has_policy]
    if own:
        terminal.line(f"Rules of their own: {', '.join(own)}.")
    return 0


async def change_rules(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Allow, ask for or deny patterns; 1 if what was named in full is not treated so even now."""
    # the rules' shapes are slow to load, and every command loads this module
    from callboard.commands.policy_rules import check_patterns, tell_surroundings, tell_verdicts

    effect = options.name_of_command.split()[-1]
    check_patterns(effect, options.patterns)
    before = await client.policy.view()
    await client.policy.change_rules(options.client, effect, options.patterns)
    options.json = False
    await policy(client, options, terminal)
    terminal.flush()
    await tell_surroundings(client, before, effect, options, terminal)
    return await tell_verdicts(client, effect, options, terminal)


async def check(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """What would become of a call; 1 if it would be denied."""
    server, name = _item(options.item)
    verdict = await client.policy.verdict(options.client, server, name, kind=options.kind, profile=options.profile)
    if options.json:
        terminal.json(verdict)
    else:
        row = (Cell(verdict.effect, _MEANING[verdict.effect]), options.client, options.item, verdict.reason)
        terminal.table(("VERDICT", "CLIENT", "ITEM", "REASON"), [row])
    return 1 if verdict.effect == "deny" else 0


async def questions(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """The calls that wait for the person."""
    found = await client.policy.questions()
    if options.json:
        terminal.json(found)
    elif not found:
        terminal.note("No call waits for you.")
    for each in found if not options.json else []:
        _show_question(each, terminal)
    return 0


async def answer(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Let a call pass, for this client and tool always, or refuse it."""
    await client.policy.answer(options.question, options.choice)
    return 0


async def approvals(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """What was answered for good."""
    found = await client.policy.approvals()
    if options.json:
        terminal.json(found)
    elif not found:
        terminal.note('Nothing was answered with "always".')
    else:
        rows = [
            (
                each.client,
                each.kind,
                f"{each.server}.{each.name}",
                clock(each.at),
                "" if each.holds else "it has changed",
            )
            for each in found
        ]
        terminal.table(("CLIENT", "KIND", "ITEM", "SINCE", "ASKED AGAIN BECAUSE"), rows)
    return 0


async def revoke(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Ask again from now on."""
    _find(await client.policy.view(), options.client)
    server, name = _item(options.item) if options.item else ("", "")
    count = await client.policy.revoke(options.client, server=server, name=name)
    if not count:
        what = options.item or "Nothing"
        raise CallboardError(
            "not-found",
            f'{what} was {"not " if options.item else ""}answered with "always" for {options.client}.',
            fix="`callboard policy approvals` shows what was.",
        )
    return 0


def _cut(each: QuestionView) -> str:
    return f"not all {each.arguments_size} characters of the arguments are shown: it can be allowed once only"


def _show_question(each: QuestionView, terminal: Terminal) -> None:
    program = f" (calls itself {each.program})" if each.program not in (each.client, each.client_name) else ""
    terminal.pairs(
        [
            ("question", str(each.id)),
            ("client", f"{each.client_name}{program}"),
            (each.kind, f"{each.server}.{each.name}"),
            ("because", f"it {each.reason}"),
            ("arguments", each.arguments),
            *([("warning", _cut(each))] if each.arguments_cut else []),
            ("left", span(each.expires - time.time())),
        ]
    )
    terminal.line()


# profiles


async def profiles(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Every profile and what it selects."""
    found = (await client.policy.view()).profiles
    if options.json:
        terminal.json(found)
    elif not found:
        terminal.note("No profiles. Add one with `callboard profiles set NAME --server SERVER`.")
    else:
        rows = [
            (
                each.name,
                " ".join([*each.entry.get("servers", []), *each.entry.get("tools", [])]),
                " ".join(each.entry.get("deny", [])),
                " ".join(each.clients),
                each.endpoint,
            )
            for each in found
        ]
        terminal.table(("PROFILE", "SELECTS", "BUT NOT", "CLIENTS", "ENDPOINT"), rows)
    return 0


async def set_profile(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Add a profile, or say anew what it selects."""
    if not options.server and not options.tool:
        raise UsageError("a profile selects something: --server NAME or --tool PATTERN")
    entry = {
        "description": options.description or None,
        "servers": options.server or None,
        "tools": options.tool or None,
        "deny": options.deny or None,
    }
    await client.policy.save_profile(options.profile, {key: value for key, value in entry.items() if value})
    view = await client.policy.view()
    terminal.line(next(each.endpoint for each in view.profiles if each.name == options.profile))
    return 0


async def remove_profile(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Take a profile out."""
    await client.policy.remove_profile(options.profile)
    return 0


# words


def _find(view: PolicyView, client: str) -> ClientPolicyView:
    for each in view.clients:
        if each.id == client:
            return each
    raise CallboardError("client-unknown", f'There is no client "{client}".', fix="`callboard clients` lists them.")


def _item(text: str) -> tuple[str, str]:
    server, dot, name = text.partition(".")
    if not dot or not name:
        raise UsageError(f"{text!r} is not SERVER.NAME")
    return server, name


def _rules_word(each: ClientPolicyView) -> str:
    return "its own" if each.has_policy else "default"


def _rules(written: dict[str, Any] | None, *, own: bool) -> list[tuple[str, str]]:
    """Rules in words; ``own`` ones allow nothing that they do not name."""
    rules = written or {}
    allow = rules.get("allow", [] if own else ["*"])
    return [
        ("allow", " ".join(allow) or "nothing"),
        ("deny", " ".join(rules.get("deny", []))),
        ("ask", " ".join(rules.get("ask", ["destructive"])) or "never"),
        ("read-only", "yes" if rules.get("read_only") else ""),
        ("max. result", f"{rules['max_result_chars']} characters" if rules.get("max_result_chars") else ""),
    ]


async def _last_call(client: EngineClient, name: str) -> str:
    """What a client called last, and how that went."""
    newest = (await client.calls(client=name, limit=1)).calls
    if not newest:
        return ""
    call = newest[0]
    return f"{call.server}.{call.tool}, {clock(call.started)}, {call.status}"


def _seen(each: ClientPolicyView, now: float) -> str:
    return f"{span(now - each.last_seen)} ago" if each.last_seen is not None else ""


COMMANDS: Final = {
    "clients": clients,
    "clients show": show_client,
    "clients set": set_client,
    "clients add": add_client,
    "clients rotate": rotate,
    "clients reset": reset_client,
    "policy": policy,
    "policy show": policy,
    "policy allow": change_rules,
    "policy ask": change_rules,
    "policy deny": change_rules,
    "policy check": check,
    "policy questions": questions,
    "policy answer": answer,
    "policy approvals": approvals,
    "policy revoke": revoke,
    "profiles": profiles,
    "profiles set": set_profile,
    "profiles remove": remove_profile,
}
