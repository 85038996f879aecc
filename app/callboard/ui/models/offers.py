"""What one server offers of a kind (tools, resources or prompts) as a list model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from callboard.api.offer_schema import PromptView, ResourceView
from callboard.api.schema import ToolView
from callboard.ui.models.roles import Role

_Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class Offer:
    """One row. ``key`` tells it from the others; ``view`` is the API's own struct."""

    key: str
    name: str
    below: str  # what it is for, in a line
    view: Any
    title: str = ""
    description: str = ""
    problem: str = ""
    search: str = ""


def tool_offer(tool: ToolView) -> Offer:
    """A tool's row."""
    return Offer(
        key=tool.name,
        name=tool.name,
        below=tool.problem or " ".join(tool.description.split()) or tool.title,
        view=tool,
        title=tool.title,
        description=tool.description,
        problem=tool.problem,
        search=" ".join((tool.name, tool.wire_name, tool.title, tool.description)),
    )


def resource_offer(resource: ResourceView) -> Offer:
    """The row of a resource or a template."""
    return Offer(
        key=resource.uri,
        name=resource.title or resource.name or resource.uri,
        below=resource.uri,
        view=resource,
        title=" ".join(resource.description.split()),
        description=resource.uri,
        search=" ".join((resource.name, resource.uri, resource.title, resource.description, resource.mime_type)),
    )


def prompt_offer(prompt: PromptView) -> Offer:
    """A prompt's row."""
    return Offer(
        key=prompt.name,
        name=prompt.name,
        below=" ".join(prompt.description.split()) or prompt.title,
        view=prompt,
        title=prompt.title,
        description=prompt.description,
        search=" ".join((prompt.name, prompt.wire_name, prompt.title, prompt.description)),
    )


class OfferListModel(QAbstractListModel):
    """One row an offer, in the server's own order. GUI thread only."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._offers: list[Offer] = []

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._offers)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._offers):
            return None
        offer = self._offers[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return offer.name
            case Qt.ItemDataRole.ToolTipRole:
                return offer.problem or offer.title or None
            case Qt.ItemDataRole.AccessibleTextRole:
                said = (offer.name, offer.problem, offer.title, offer.description)
                return ", ".join(dict.fromkeys(part for part in said if part))
            case Role.VIEW:
                return offer.view
            case Role.OFFER:
                return offer
            case Role.SEARCH:
                return offer.search
        return None

    def reset(self, offers: Sequence[Offer]) -> None:
        """Show these; nothing happens if they are the ones already shown."""
        if list(offers) == self._offers:
            return
        self.beginResetModel()
        self._offers = list(offers)
        self.endResetModel()
