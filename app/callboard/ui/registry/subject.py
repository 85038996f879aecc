"""What is looked at before it becomes a server: an offer of a registry, or a bundle."""

from dataclasses import dataclass, field

from PySide6.QtCore import QCoreApplication

from callboard.api.registry_schema import BundleView, OfferView
from callboard.api.schema import NeedView
from callboard.core.registry import Way

translate = QCoreApplication.translate


@dataclass(frozen=True)
class Subject:
    """``ways`` come with what each needs. ``origin`` says in a few words where it is from."""

    title: str
    version: str
    origin: str
    description: str
    short_name: str
    ways: list[tuple[Way, list[NeedView]]]
    links: list[tuple[str, str]] = field(default_factory=list)  # words and address
    warning: str = ""


def subject_of(view: OfferView) -> Subject:
    """An offer of a registry."""
    offer = view.offer
    links = [
        (translate("Subject", "Website"), offer.website),
        (translate("Subject", "Source code"), offer.repository),
    ]
    warning = ""
    if offer.status != "active":
        text = translate("Subject", "Its maker has marked it as {status}. {message}")
        warning = text.format(status=offer.status, message=offer.status_message).strip()
    return Subject(
        title=offer.title,
        version=offer.version,
        origin=offer.name,
        description=offer.description,
        short_name=offer.short_name,
        ways=list(zip(offer.ways, view.needs, strict=True)),
        links=[(words, address) for words, address in links if address],
        warning=warning,
    )


def subject_of_bundle(bundle: BundleView) -> Subject:
    """A bundle that has been unpacked."""
    by = translate("Subject", "bundle by {author}").format(author=bundle.author)
    return Subject(
        title=bundle.title,
        version=bundle.version,
        origin=by if bundle.author else translate("Subject", "bundle"),
        description=bundle.description,
        short_name=bundle.id.rpartition("-")[0],
        ways=[(bundle.way, bundle.needs)],
    )
