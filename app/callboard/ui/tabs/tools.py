"""A server's tools: what each takes, and calling one by hand."""

from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QStackedWidget, QTextBrowser, QVBoxLayout, QWidget

from callboard.api.schema import ToolView
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.models.offers import tool_offer
from callboard.ui.models.pretty import dump
from callboard.ui.tabs.offer_tab import OfferKind, OfferTab, OfferWords
from callboard.ui.tabs.tool_page import tool_html
from callboard.ui.tabs.try_box import Try, TryBox
from callboard.ui.theme import Theme
from callboard.ui.widgets.copy_button import CopyButton
from callboard.ui.widgets.elided_label import ElidedLabel
from callboard.ui.widgets.json_view import JsonView

translate = QCoreApplication.translate


def tools_tab(link: EngineLink, theme: Theme, icons: Icons) -> OfferTab:
    """The tab Tools."""
    words = OfferWords(
        name=translate("ToolsTab", "Tools"),
        search=translate("ToolsTab", "Search tools"),
        missing=translate("ToolsTab", "No tool has “{text}” in its name or description."),
        unreadable=translate("ToolsTab", "The tools cannot be read"),
        none=translate("ToolsTab", "No tools"),
        none_offered=translate("ToolsTab", "This server offers no tools."),
        unknown=translate("ToolsTab", "Tools are not known yet"),
    )
    kind = OfferKind(words, lambda client, name: client.tools(name), tool_offer, lambda view: view.tools)
    return OfferTab(link, theme, kind, ToolPage(link, theme, icons))


class ToolPage(QWidget):
    """One tool: description and parameters, its JSON, or a form to call it."""

    TEXT, JSON, CALL = range(3)

    def __init__(self, link: EngineLink, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._theme = theme
        self._server = ""
        self._tool: ToolView | None = None
        self._name = ElidedLabel()
        self._copy = CopyButton(icons, self.tr("Copy wire name"), self._wire_name)
        self._text = QTextBrowser()
        self._text.setOpenLinks(False)
        self._text.setFrameShape(QFrame.Shape.NoFrame)
        self._text.setAccessibleName(self.tr("Description of the tool"))
        self._text.document().setDocumentMargin(10)
        self._json = JsonView(theme, self.tr("Schema of the tool as JSON"))
        self._try = TryBox(link, theme, icons, self.tr("Call"))
        self._call = QPushButton(self.tr("Call…"))
        self._call.setToolTip(self.tr("Call this tool yourself"))
        self._switch = QPushButton(self.tr("JSON"))
        self._switch.setToolTip(self.tr("Show the schema as JSON"))
        self._views = QStackedWidget()
        for view in (self._text, self._json, self._try):
            self._views.addWidget(view)
        self._lay_out()
        theme.changed.connect(self._show)

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setContentsMargins(12, 8, 8, 8)
        bar.setSpacing(6)
        bar.addWidget(self._name, 1)
        bar.addWidget(self._copy)
        for button, other, view in ((self._call, self._switch, self.CALL), (self._switch, self._call, self.JSON)):
            button.setCheckable(True)
            button.toggled.connect(lambda on, other=other, view=view: self._turn(on, other, view))
            bar.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self._views, 1)

    def show_offer(self, server: str, view: Any | None) -> None:
        """Show a tool of a server, or none."""
        if (server, view) != (self._server, self._tool):
            self._server, self._tool = server, view
            self._show()

    def _turn(self, on: bool, other: QPushButton, view: int) -> None:
        if on:
            other.setChecked(False)
            self._views.setCurrentIndex(view)
            if view == self.CALL:
                self._try.focus_form()
        elif not other.isChecked():
            self._views.setCurrentIndex(self.TEXT)

    def _wire_name(self) -> str:
        return self._tool.wire_name if self._tool else ""

    def _show(self) -> None:
        tool, server = self._tool, self._server
        for button in (self._copy, self._call, self._switch):
            button.setEnabled(tool is not None)
        self._name.setText(self._wire_name())
        tip = self.tr("The name under which clients of /mcp see this tool")
        self._copy.setToolTip(f"{self._copy.accessibleName()}\n{tip}")
        if tool is None:
            self._text.clear()
            self._json.show_text("")
            self._try.show_try(None)
            return
        self._text.setHtml(tool_html(tool, self._theme))
        schema = {"inputSchema": tool.input_schema, "outputSchema": tool.output_schema, "annotations": tool.annotations}
        self._json.show_text(dump({key: value for key, value in schema.items() if value}))
        name = tool.name
        self._try.show_try(
            Try(
                key=("tool", server, name),
                schema=tool.input_schema,
                ask=lambda client, arguments: client.call_tool(server, name, arguments),
                note=self.tr("This tool may delete or overwrite.") if tool.annotations.get("destructiveHint") else "",
            )
        )
