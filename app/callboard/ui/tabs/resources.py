"""A server's resources and templates, and reading one by hand."""

from html import escape
from typing import Any

from PySide6.QtCore import QCoreApplication

from callboard.api.client import EngineClient
from callboard.api.offer_schema import ResourceView, Result
from callboard.core.uri_template import expand, variables
from callboard.ui import formats
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.models.offers import resource_offer
from callboard.ui.tabs.offer_page import OfferPage, Presented
from callboard.ui.tabs.offer_tab import OfferKind, OfferTab, OfferWords
from callboard.ui.tabs.try_box import Try
from callboard.ui.theme import Theme

translate = QCoreApplication.translate


def resources_tab(link: EngineLink, theme: Theme, icons: Icons) -> OfferTab:
    """The tab Resources."""
    words = OfferWords(
        name=translate("ResourcesTab", "Resources"),
        search=translate("ResourcesTab", "Search resources"),
        missing=translate("ResourcesTab", "No resource has “{text}” in its name, address or description."),
        unreadable=translate("ResourcesTab", "The resources cannot be read"),
        none=translate("ResourcesTab", "No resources"),
        none_offered=translate("ResourcesTab", "This server offers no resources."),
        unknown=translate("ResourcesTab", "Resources are not known yet"),
    )
    kind = OfferKind(words, lambda client, name: client.resources(name), resource_offer, lambda view: view.resources)
    copy, go = translate("ResourcePage", "Copy address"), translate("ResourcePage", "Read")
    return OfferTab(link, theme, kind, OfferPage(link, theme, icons, copy=copy, go=go, present=_present))


def _present(server: str, view: ResourceView) -> Presented:
    names = variables(view.uri) if view.template else []

    async def read(client: EngineClient, arguments: dict[str, Any]) -> Result:
        uri = expand(view.uri, {name: str(text) for name, text in arguments.items()}) if view.template else view.uri
        return await client.read_resource(server, uri)

    schema = {"properties": {name: {"type": "string"} for name in names}}
    return Presented(view.uri, resource_html(view), Try(key=("resource", server, view.uri), schema=schema, ask=read))


def resource_html(view: ResourceView) -> str:
    """What a resource is; all that comes from the server is escaped."""
    notes = [view.title or view.name]
    if view.template:
        notes.append(translate("ResourcePage", "template: fill in what stands in braces"))
    notes += [view.mime_type, formats.size(view.size) if view.size is not None else ""]
    lines = [escape(" · ".join(note for note in notes if note))]
    if view.description:
        lines.append(f'<span style="white-space:pre-wrap">{escape(view.description.strip())}</span>')
    return "<br/>".join(lines)
