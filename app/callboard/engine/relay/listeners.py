"""Open ``subscriptions/listen`` requests of modern clients (2026-07-28, basic/patterns/subscriptions)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

from callboard.core.protocol import META_SUBSCRIPTION
from callboard.engine.policy.callers import Caller
from callboard.engine.relay.catalogue import PROMPTS, RESOURCES, TOOLS
from callboard.engine.relay.envelope import Raw, notification_bytes, raw_json, result_answer
from callboard.engine.relay.exchange import Exchange
from callboard.engine.relay.link import ServerLink
from callboard.engine.upstream.base import Params

FILTER: Final = {
    TOOLS.changed: "toolsListChanged",
    PROMPTS.changed: "promptsListChanged",
    RESOURCES.changed: "resourcesListChanged",
}


@dataclass(eq=False)
class Subscription:
    """One listen request and what it wants to hear."""

    exchange: Exchange
    scope: str
    wanted: dict[str, Any]
    resources: dict[tuple[ServerLink, str], str] = field(default_factory=dict)  # with its own URI → the URI shown
    on_end: Callable[["Subscription"], None] | None = None

    def meta(self) -> Raw:
        """The metadata that every message of the stream carries."""
        return raw_json({META_SUBSCRIPTION: Raw(self.exchange.request_id)})

    def tell(self, method: str, params: Params) -> None:
        """Send one notification; the same one does not wait twice for a client that does not read."""
        message = notification_bytes(method, params | {"_meta": self.meta()})
        if message not in self.exchange.messages:
            self.exchange.push(message)


class Listeners:
    """All subscriptions. Owned by the relay; engine loop only."""

    def __init__(self) -> None:
        self._open: dict[Exchange, Subscription] = {}

    def add(self, subscription: Subscription) -> None:
        """Begin: the acknowledgement is the stream's first message."""
        self._open[subscription.exchange] = subscription
        accepted = {key: value for key, value in subscription.wanted.items() if value}
        subscription.tell("notifications/subscriptions/acknowledged", {"notifications": raw_json(accepted)})
        subscription.exchange.stream()

    def remove(self, exchange: Exchange) -> None:
        """The request is over."""
        subscription = self._open.pop(exchange, None)
        if subscription is not None and subscription.on_end is not None:
            subscription.on_end(subscription)

    def list_changed(self, method: str, servers: set[str]) -> None:
        """A list of one of these servers changed ("" stands for the roster itself)."""
        for subscription in list(self._open.values()):
            scope, caller = subscription.scope, subscription.exchange.caller
            if not subscription.wanted.get(FILTER[method]) or (scope and scope not in servers):
                continue
            if any(not server or caller.may_use(server) for server in servers):
                subscription.tell(method, {})

    def policy_changed(self, callers: Collection[Caller]) -> None:
        """These callers may use other things now: what each sees of all lists may be another."""
        for subscription in list(self._open.values()):
            if subscription.exchange.caller in callers:
                for method, member in FILTER.items():
                    if subscription.wanted.get(member):
                        subscription.tell(method, {})

    def resource_updated(self, link: ServerLink, uri: str, params: Params) -> None:
        """A resource of a server changed."""
        for subscription in list(self._open.values()):
            shown = subscription.resources.get((link, uri))
            if shown is not None and subscription.exchange.caller.sees("resource", link.name, uri):
                subscription.tell("notifications/resources/updated", params | {"uri": raw_json(shown)})

    def close(self) -> None:
        """End all streams gracefully."""
        for subscription in list(self._open.values()):
            meta = {META_SUBSCRIPTION: Raw(subscription.exchange.request_id)}
            subscription.exchange.complete(result_answer({"resultType": "complete", "_meta": meta}))
