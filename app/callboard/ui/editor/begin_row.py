"""What a new server can begin with, beside an empty form."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from callboard.ui.bundle_drop import ENDINGS
from callboard.ui.editor.catalogue_list import CatalogueList
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import GAP, clear_margins


class BeginRow(QWidget):
    """The catalogue, and buttons for a registry and for a bundle."""

    registry_wanted = Signal()
    bundle_chosen = Signal(str)  # path of the file

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(GAP)
        self.catalogue = CatalogueList(kit)
        column.addWidget(self.catalogue)
        row = QHBoxLayout()
        row.setSpacing(GAP)
        column.addLayout(row)
        self.registry_button = QPushButton(self.tr("From a &registry…"))
        self.registry_button.setToolTip(self.tr("Search a registry of MCP servers"))
        kit.icons.set_on(self.registry_button, "search")
        self.registry_button.clicked.connect(lambda _checked=False: self.registry_wanted.emit())
        self.bundle_button = QPushButton(self.tr("From a &bundle…"))
        self.bundle_button.setToolTip(self.tr("Open a file that ends in .mcpb; it can also be dropped on the window"))
        kit.icons.set_on(self.bundle_button, "import")
        self.bundle_button.clicked.connect(lambda _checked=False: self._choose())
        for button in (self.registry_button, self.bundle_button):
            button.setAutoDefault(False)
            row.addWidget(button)
        row.addStretch(1)

    def _choose(self) -> None:
        dialog = QFileDialog(self, self.tr("Open a bundle"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        endings = " ".join(f"*{ending}" for ending in ENDINGS)
        dialog.setNameFilters([self.tr("MCP bundles ({endings})").format(endings=endings), self.tr("All files (*)")])
        dialog.fileSelected.connect(self.bundle_chosen)
        dialog.open()
