"""The way from a registry or a bundle to a form that is filled in."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QProgressBar, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from callboard.api.client import EngineClient
from callboard.api.registry_schema import BundleRequest, BundleView, OfferView
from callboard.core.errors import CallboardError
from callboard.core.registry import BundleSource
from callboard.ui.editor.form_notices import FormNotices
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import ToneLabel
from callboard.ui.registry.offer_page import OfferPage
from callboard.ui.registry.search_page import SearchPage
from callboard.ui.registry.subject import Subject, subject_of, subject_of_bundle
from callboard.ui.theme import Token


class RegistryFlow(QStackedWidget):
    """Search, preview, and the bundles that were opened on the way.

    Bundles are kept until :meth:`release`: the engine keeps those that became servers, and removes the others.
    """

    left = Signal()  # back to where it began
    filled = Signal(str, object, object)  # name, Way, Filling

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self._pages: list[QWidget] = []  # from where it began to what is shown
        self._search: SearchPage | None = None
        self._opening: _Opening | None = None
        self._bundles: list[str] = []

    @property
    def page(self) -> QWidget | None:
        """What is shown."""
        return self.currentWidget()

    def search(self) -> None:
        """Begin with a search; what was found before is still there."""
        self._leave_all()
        if self._search is None:
            self._search = SearchPage(self._kit)
            self._search.left.connect(self.back)
            self._search.chosen.connect(self._show_offer)
        self._push(self._search)
        self._search.begin()

    def open_bundle(self, path: str) -> None:
        """Begin with the file of a bundle."""
        self._leave_all()
        page = WaitPage(self._kit, self.tr("Unpacking the bundle…"))
        page.left.connect(self.back)
        self._push(page)
        self._open(BundleRequest(path=path), lambda view: self._replace(page, view), page.show_error)

    def resume(self) -> None:
        """Go back to the questions, which still have their answers."""
        if isinstance(self.page, OfferPage):
            self.page.begin()

    def back(self) -> None:
        """One page back, or out."""
        self._give_up()
        page = self._pages.pop()
        if page is not self._search:
            self.removeWidget(page)
            page.deleteLater()
        if self._pages:
            self.setCurrentWidget(self._pages[-1])
        else:
            self.left.emit()

    def release(self) -> None:
        """No bundle is needed any more, unless a server of the roster uses it."""
        self._give_up()
        keys, self._bundles = self._bundles, []

        async def tell(client: EngineClient) -> None:
            for key in keys:
                await client.release_bundle(key)

        if keys:  # an engine that is gone has forgotten them anyway
            self._kit.link.request(tell, on_error=_ignore, name="release bundles")

    # inside

    def _push(self, page: QWidget) -> None:
        if self.indexOf(page) < 0:
            self.addWidget(page)
        self._pages.append(page)
        self.setCurrentWidget(page)

    def _leave_all(self) -> None:
        for page in self._pages:
            if page is not self._search:
                self.removeWidget(page)
                page.deleteLater()
        self._pages = []

    def _show_offer(self, view: OfferView) -> None:
        self._show(subject_of(view))

    def _show(self, subject: Subject) -> OfferPage:
        page = OfferPage(self._kit, subject)
        page.left.connect(self.back)
        page.filled.connect(self.filled)
        page.wanted.connect(lambda source: self._fetch(page, source))
        self._push(page)
        page.begin()
        return page

    def _fetch(self, page: OfferPage, source: BundleSource) -> None:
        request = BundleRequest(url=source.url, sha256=source.sha256)

        def opened(view: BundleView) -> None:
            page.footer.say("")
            page.footer.save_button.setEnabled(True)
            self._show(subject_of_bundle(view))

        self._open(request, opened, page.show_error)

    def _replace(self, page: QWidget, view: BundleView) -> None:
        self._pages.remove(page)
        self.removeWidget(page)
        page.deleteLater()
        self._show(subject_of_bundle(view))

    def _open(
        self, request: BundleRequest, done: Callable[[BundleView], object], failed: Callable[[CallboardError], object]
    ) -> None:
        self._give_up()
        opening = self._opening = _Opening()

        async def ask(client: EngineClient) -> BundleView:
            view = await client.open_bundle(request)
            if not opening.is_wanted:
                await client.release_bundle(view.id)
            return view

        def opened(view: BundleView) -> None:
            if opening.is_wanted:
                self._opening = None
                self._bundles.append(view.id)
                done(view)

        def not_opened(error: CallboardError) -> None:
            if opening.is_wanted:
                self._opening = None
                failed(error)

        self._kit.link.request(ask, opened, not_opened, owner=self, name="open a bundle")

    def _give_up(self) -> None:
        """What is being opened is not wanted any more; the engine is told once it is open."""
        if self._opening is not None:
            self._opening.is_wanted = False
            self._opening = None


def _ignore(_error: CallboardError) -> None:
    """Nobody waits for it."""


class _Opening:
    """One bundle that is being opened."""

    is_wanted = True


class WaitPage(QWidget):
    """Something takes a moment; or it has failed."""

    left = Signal()

    def __init__(self, kit: Kit, text: str) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(10)
        self.notices = FormNotices(kit)
        column.addWidget(self.notices)
        self._text = ToneLabel(kit.theme, Token.MUTED)
        self._text.setText(text)
        self._text.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._bar = QProgressBar()
        self._bar.setRange(0, 0)
        self._bar.setTextVisible(False)
        column.addStretch(1)
        column.addWidget(self._text)
        column.addWidget(self._bar)
        self.button = QPushButton(self.tr("Cancel"))
        self.button.setAutoDefault(False)
        self.button.clicked.connect(lambda _checked=False: self.left.emit())
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(2)

    def show_error(self, error: CallboardError) -> None:
        """It has failed."""
        self._text.hide()
        self._bar.hide()
        self.button.setText(self.tr("Back"))
        self.notices.put_error("error", error)
