"""Shapes of the control API for registries and bundles."""

from callboard.api.schema import NeedView, View
from callboard.core.registry import Offer, Way


class OfferView(View, frozen=True, kw_only=True):
    """A server that a registry offers. ``needs`` has one list for each of the offer's ways, in their order."""

    offer: Offer
    needs: list[list[NeedView]]


class OfferPage(View, frozen=True, kw_only=True):
    """One page of a search. ``cursor`` asks for the next one, "" on the last; ``source`` is where it was looked."""

    offers: list[OfferView]
    cursor: str = ""
    source: str


class BundleRequest(View, frozen=True, kw_only=True):
    """POST /bundles: open the bundle at a full path on the engine's machine, or at an address.

    ``sha256`` is what the file must hash to, in hexadecimal; "" if nothing was promised.
    """

    path: str = ""
    url: str = ""
    sha256: str = ""


class BundleView(View, frozen=True, kw_only=True):
    """An unpacked bundle. It stays until it is released, and as long as a server of the roster uses it."""

    id: str
    name: str
    title: str
    description: str
    version: str
    author: str
    folder: str
    way: Way
    needs: list[NeedView]
