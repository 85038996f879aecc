"""The servers that come with Callboard, to begin a new entry with."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from callboard.api.schema import ShippedView
from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.ui.editor.entry_model import Entry
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import GAP, CalmComboBox, clear_margins


class CatalogueList(QWidget):
    """A line with a list to choose from. Asks the engine once; is not shown where it has nothing to offer."""

    chosen = Signal(object)  # ShippedView

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        clear_margins(row)
        row.setSpacing(GAP)
        label = QLabel(self.tr("From the &catalogue:"))
        self.box = CalmComboBox()
        self.box.addItem(self.tr("Choose a server…"))
        self.box.setEnabled(False)
        label.setBuddy(self.box)
        row.addWidget(label)
        row.addWidget(self.box, 1)
        self._catalogue: list[ShippedView] = []
        self.box.activated.connect(self._activated)
        kit.link.request(
            lambda client: client.shipped(), self._show, self._failed, owner=self, name="read the catalogue"
        )

    def _show(self, catalogue: list[ShippedView]) -> None:
        self._catalogue = catalogue
        for shipped in catalogue:
            text = self.tr("{name} - {description}").format(name=shipped.display_name, description=shipped.description)
            if not shipped.can_run:
                text = self.tr("{server} (cannot run here yet)").format(server=text)
            self.box.addItem(text)
            self.box.setItemData(self.box.count() - 1, needs_of(shipped), Qt.ItemDataRole.ToolTipRole)
        self.box.setEnabled(bool(catalogue))
        self.setVisible(bool(catalogue))

    def _failed(self, _error: CallboardError) -> None:
        self.hide()

    def _activated(self, index: int) -> None:
        if index > 0:
            self.chosen.emit(self._catalogue[index - 1])


def needs_of(shipped: ShippedView) -> str:
    """What a server lacks and what the person has to give, one need a line, each with how to get it."""
    return "\n".join(f"{need.message} {need.fix}".strip() for need in shipped.needs if need.state != "met")


def severity_of(shipped: ShippedView) -> Severity:
    """How much a person must care for these needs."""
    return Severity.ATTENTION if not shipped.can_run else Severity.BUSY


def entry_of(shipped: ShippedView) -> Entry:
    """The entry to begin with: with what it has in addition where a secret is there already."""
    entry = dict(shipped.entry)
    for need in shipped.needs:
        if need.state == "met":
            entry |= need.fields
    return entry
