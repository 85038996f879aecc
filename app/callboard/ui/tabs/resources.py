"""A server's resources and templates, and reading one by hand."""

from html import escape
from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from callboard.api.client import EngineClient
from callboard.api.offer_schema import ResourceView, Result
from callboard.core.uri_template import expand, variables
from callboard.ui import formats
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.models.offers import resource_offer
from callboard.ui.tabs.offer_head import OfferHead
from callboard.ui.tabs.offer_tab import OfferKind, OfferTab, OfferWords
from callboard.ui.tabs.try_box import Try, TryBox
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
    return OfferTab(link, theme, kind, ResourcePage(link, theme, icons))


class ResourcePage(QWidget):
    """One resource or template: its address, what it is, and what stands in it."""

    def __init__(self, link: EngineLink, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._head = OfferHead(theme, icons, self.tr("Copy address"))
        self._try = TryBox(link, theme, icons, self.tr("Read"), raw=False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._head)
        layout.addWidget(self._try, 1)

    def show_offer(self, server: str, view: Any | None) -> None:
        """Show a resource of a server, or none."""
        if view is None:
            self._head.show_head("", "")
            self._try.show_try(None)
            return
        self._head.show_head(view.uri, resource_html(view))
        names = variables(view.uri) if view.template else []

        async def read(client: EngineClient, arguments: dict[str, Any]) -> Result:
            uri = expand(view.uri, {name: str(text) for name, text in arguments.items()}) if view.template else view.uri
            return await client.read_resource(server, uri)

        schema = {"properties": {name: {"type": "string"} for name in names}}
        self._try.show_try(Try(key=("resource", server, view.uri), schema=schema, ask=read))


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
