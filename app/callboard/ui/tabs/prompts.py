"""A server's prompts, and getting one by hand."""

from html import escape
from typing import Any

from PySide6.QtCore import QCoreApplication

from callboard.api.client import EngineClient
from callboard.api.offer_schema import PromptView, Result
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.models.offers import prompt_offer
from callboard.ui.tabs.offer_page import OfferPage, Presented
from callboard.ui.tabs.offer_tab import OfferKind, OfferTab, OfferWords
from callboard.ui.tabs.try_box import Try
from callboard.ui.theme import Theme

translate = QCoreApplication.translate


def prompts_tab(link: EngineLink, theme: Theme, icons: Icons) -> OfferTab:
    """The tab Prompts."""
    words = OfferWords(
        name=translate("PromptsTab", "Prompts"),
        search=translate("PromptsTab", "Search prompts"),
        missing=translate("PromptsTab", "No prompt has “{text}” in its name or description."),
        unreadable=translate("PromptsTab", "The prompts cannot be read"),
        none=translate("PromptsTab", "No prompts"),
        none_offered=translate("PromptsTab", "This server offers no prompts."),
        unknown=translate("PromptsTab", "Prompts are not known yet"),
    )
    kind = OfferKind(words, lambda client, name: client.prompts(name), prompt_offer, lambda view: view.prompts)
    copy, go = translate("PromptPage", "Copy wire name"), translate("PromptPage", "Get")
    return OfferTab(link, theme, kind, OfferPage(link, theme, icons, copy=copy, go=go, present=_present))


def _present(server: str, view: PromptView) -> Presented:
    async def get(client: EngineClient, arguments: dict[str, Any]) -> Result:
        return await client.get_prompt(server, view.name, {key: str(text) for key, text in arguments.items()})

    attempt = Try(key=("prompt", server, view.name), schema=prompt_schema(view), ask=get)
    return Presented(view.wire_name or view.name, prompt_html(view), attempt)


def prompt_html(view: PromptView) -> str:
    """What a prompt is; all that comes from the server is escaped."""
    lines = [escape(view.title)] if view.title and view.title != view.name else []
    if view.description:
        lines.append(f'<span style="white-space:pre-wrap">{escape(view.description.strip())}</span>')
    return "<br/>".join(lines)


def prompt_schema(view: PromptView) -> dict[str, Any]:
    """A prompt's arguments as the JSON Schema of a tool would have them."""
    return {
        "properties": {
            each.name: {"type": "string", "title": each.title, "description": each.description}
            for each in view.arguments
        },
        "required": [each.name for each in view.arguments if each.required],
    }
