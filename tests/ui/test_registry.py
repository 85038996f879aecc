"""Beginning a new server with one of a registry or of a bundle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit
from shiboken6 import isValid

from callboard.api.registry_schema import BundleRequest, BundleView, OfferPage, OfferView
from callboard.api.schema import NeedView
from callboard.core.bundle import Place, read_manifest
from callboard.core.errors import CallboardError
from callboard.core.registry_document import read_page
from callboard.ui.editor.dialog import EditorDialog
from callboard.ui.editor.editor import ServerEditor
from callboard.ui.editor.parts import CalmComboBox
from callboard.ui.icons import Icons
from callboard.ui.registry.flow import WaitPage
from callboard.ui.registry.offer_list import needs_text
from callboard.ui.registry.offer_page import OfferPage as PreviewPage
from callboard.ui.registry.search_page import SearchPage
from callboard.ui.theme import Theme
from tests.support.bundles import manifest
from tests.support.registry_server import package, server
from tests.ui.conftest import HandLink, until
from tests.ui.editor_fakes import MemoryEngine, enter, press

WEATHER = server(
    "io.github.somebody/weather",
    title="Weather",
    websiteUrl="https://weather.example.com/<x>",
    packages=[
        package(
            "npm",
            "@somebody/weather",
            version="1.2.0",
            packageArguments=[
                {"type": "named", "name": "--units", "choices": ["metric", "imperial"], "default": "metric"},
                {"type": "named", "name": "--key", "isSecret": True, "isRequired": True},
                {"type": "positional", "valueHint": "place", "isRequired": True, "description": "Where you are"},
            ],
            environmentVariables=[
                {"name": "API_KEY", "isSecret": True, "isRequired": True, "description": "From your account"},
                {"name": "LIMIT", "format": "number"},
            ],
        )
    ],
    remotes=[
        {
            "type": "streamable-http",
            "url": "https://weather.example.com/mcp",
            "headers": [
                {
                    "name": "Authorization",
                    "value": "Bearer {t}",
                    "isRequired": True,
                    "variables": {"t": {"isSecret": True}},
                }
            ],
        }
    ],
)
OLD = server("io.github.somebody/old", packages=[package("homebrew", "old")]) | {"status": "deprecated"}
BUNDLED = server(
    "io.github.somebody/shouter", packages=[package("mcpb", "https://example.com/s.mcpb", fileSha256="a" * 64)]
)
MISSING = NeedView(kind="program", state="missing", message="Node.js is not here.", fix="Install it.")
ASKING = manifest(
    user_config={
        "api_key": {"type": "string", "title": "API key", "sensitive": True, "required": True},
        "folders": {"type": "directory", "title": "Folders", "multiple": True, "required": True},
        "loud": {"type": "boolean", "title": "Loud"},
    }
)
ASKING["server"]["mcp_config"] = {
    "command": "python",
    "args": ["${__dirname}/server/main.py", "${user_config.folders}"],
    "env": {"API_KEY": "${user_config.api_key}", "LOUD": "${user_config.loud}"},
}


def offered(document: dict[str, Any], *needs: NeedView) -> OfferView:
    (offer,) = read_page(document).offers
    return OfferView(offer=offer, needs=[list(needs) for _ in offer.ways])


def bundle() -> BundleView:
    found = read_manifest(ASKING, Place("/data/shouter-00", "linux"))
    return BundleView(
        id="shouter-00",
        name=found.name,
        title=found.title,
        description=found.description,
        version=found.version,
        author=found.author,
        folder="/data/shouter-00",
        way=found.way,
        needs=[],
    )


class RegistryEngine(MemoryEngine):
    """Offers what the test says; bundles are opened by ``opened`` and released."""

    def __init__(self) -> None:
        super().__init__({"weather": {"command": "x"}})
        self.answers["/shipped"] = []
        self.pages: dict[str, OfferPage | CallboardError] = {}  # by cursor
        self.searched: list[tuple[str, str, str]] = []
        self.bundle: BundleView | CallboardError = bundle()
        self.requests: list[BundleRequest] = []
        self.released: list[str] = []

    async def search_registry(self, words: str, *, source: str = "", cursor: str = "") -> OfferPage:
        self.searched.append((words, source, cursor))
        page = self.pages[cursor]
        if isinstance(page, CallboardError):
            raise page
        return page

    async def open_bundle(self, request: BundleRequest) -> BundleView:
        self.requests.append(request)
        await self.gate.wait()
        if isinstance(self.bundle, CallboardError):
            raise self.bundle
        return self.bundle

    async def release_bundle(self, key: str) -> None:
        self.released.append(key)


@pytest.fixture
def engine(link: HandLink) -> RegistryEngine:
    """An engine whose registry has three servers on two pages."""
    engine = RegistryEngine()
    first = [offered(WEATHER, MISSING), offered(OLD)]
    engine.pages[""] = OfferPage(offers=first, cursor="2", source="https://registry.example.com")
    engine.pages["2"] = OfferPage(offers=[offered(BUNDLED)], source="https://registry.example.com")
    engine.join(link)
    return engine


@pytest.fixture
def editor(link: HandLink, theme: Theme, icons: Icons, engine: RegistryEngine) -> Iterator[ServerEditor]:
    """The editor of a window."""
    editor = ServerEditor(link, theme, icons)
    yield editor
    editor.deleteLater()


def search_page(dialog: EditorDialog) -> SearchPage:
    assert dialog.flow is not None
    page = dialog.flow.page
    assert isinstance(page, SearchPage)
    return page


def preview(dialog: EditorDialog) -> PreviewPage:
    assert dialog.flow is not None
    page = dialog.flow.page
    assert isinstance(page, PreviewPage)
    return page


async def searched(editor: ServerEditor, words: str = "weather") -> EditorDialog:
    """The dialog with what a search has found."""
    dialog = editor.search_registry()
    page = search_page(dialog)
    QTest.keyClicks(page.words, words)
    QTest.keyClick(page.words, Qt.Key.Key_Return)
    await until(lambda: page.model.rowCount() > 0, "the answer")
    return dialog


async def previewed(editor: ServerEditor, row: int = 0) -> EditorDialog:
    """The dialog with the preview of something found."""
    dialog = await searched(editor)
    page = search_page(dialog)
    page.list.setCurrentIndex(page.model.index(row))
    page.list.activated.emit(page.model.index(row))
    return dialog


def answer(page: PreviewPage, **answers: str) -> None:
    """Answer what is asked, as a person would."""
    for row in page.rows:
        text = answers.get(row.asked.key.replace("-", "_"), "")
        if not text:
            continue
        if isinstance(row.editor, CalmComboBox):
            row.editor.setCurrentIndex(row.editor.findText(text))
        elif isinstance(row.editor, QPlainTextEdit):
            row.editor.setPlainText(text)
        else:
            assert isinstance(row.editor, QLineEdit)
            enter(row.editor, text)


async def closed(dialog: EditorDialog) -> None:
    await until(lambda: not isValid(dialog), "deletion")


async def test_nothing_is_asked_before_the_person_searches(editor: ServerEditor, engine: RegistryEngine) -> None:
    dialog = editor.search_registry()
    page = search_page(dialog)
    assert page.words.hasFocus() or dialog.focusWidget() is page.words
    assert engine.searched == []
    dialog.reject()
    assert dialog.form.isVisibleTo(dialog)
    dialog.reject()
    await closed(dialog)


async def test_what_is_found_is_listed_page_by_page(editor: ServerEditor, engine: RegistryEngine) -> None:
    dialog = await searched(editor)
    page = search_page(dialog)
    assert [view.offer.title for view in page.model.offers] == ["Weather", "old"]
    assert page.status.text() == "2 shown of what there is in https://registry.example.com."
    assert page.model.index(0).data().startswith("Weather 1.0.0, io.github.somebody/weather, npx or HTTP, ")

    page.more_button.click()
    await until(lambda: page.model.rowCount() == 3, "the second page")
    assert page.status.text() == "3 found in https://registry.example.com."
    assert not page.more_button.isVisibleTo(page)
    assert engine.searched == [("weather", "", ""), ("weather", "", "2")]
    enter(page.place, "/some/where")
    page.search_button.click()
    await until(lambda: page.model.rowCount() == 2, "the new search")
    assert engine.searched[-1] == ("weather", "/some/where", "")
    dialog.reject()
    dialog.reject()
    await closed(dialog)


def test_what_an_offer_needs_is_said_in_few_words() -> None:
    assert needs_text(offered(WEATHER, MISSING)) == "npx or HTTP, secrets, an answer"
    assert needs_text(offered(OLD)) == "cannot be set up here"
    one = server("a/b", packages=[package("npm", "x", environmentVariables=[{"name": "T_TOKEN", "isRequired": True}])])
    assert needs_text(offered(one, MISSING)) == "npx, not here yet, a secret"


async def test_what_failed_is_told_with_its_fix(editor: ServerEditor, engine: RegistryEngine) -> None:
    engine.pages[""] = CallboardError("remote-dns", "The host's name cannot be found.")
    dialog = editor.search_registry()
    page = search_page(dialog)
    page.search()
    await until(lambda: page.notices.text("error"), "the failure")
    assert page.notices.text("error").startswith("The host's name cannot be found.\nCheck the host's name")
    assert page.search_button.isEnabled()
    dialog.reject()
    dialog.reject()
    await closed(dialog)


async def test_a_server_of_a_registry_is_filled_in_and_added(editor: ServerEditor, engine: RegistryEngine) -> None:
    dialog = await previewed(editor)
    page = preview(dialog)
    assert [page.ways.itemText(row) for row in range(2)] == [
        "npm package @somebody/weather, run by npx",
        "HTTP at https://weather.example.com/mcp",
    ]
    page.ways.setCurrentIndex(0)
    assert page.notices.text("lacks") == "Node.js is not here. Install it."
    assert page.command.text().startswith(
        "npx -y @somebody/weather@1.2.0 --units=metric '--key=${secret:weather-2-key}'"
    )
    assert page.footer.status == "Still needed: --key, place, API_KEY."
    assert [row.asked.key for row in page.rows] == ["API_KEY", "key", "place", "LIMIT", "units"]

    answer(page, API_KEY="k3y", key="0ther", place="Berlin", units="imperial")
    assert page.footer.status == ""
    assert "k3y" not in page.command.text()
    press(page.footer, "Continue")
    form = dialog.form
    assert form.fields.name == "weather-2"
    assert form.fields.kind == "local"
    assert form.notices.text("shipped").startswith("Filled in.")
    assert engine.edits == []
    await until(lambda: not form.is_checking, "validation")
    press(form.footer, "Add server")
    await closed(dialog)

    assert engine.servers["weather-2"] == {
        "display_name": "Weather",
        "description": "What io.github.somebody/weather does",
        "command": "npx",
        "args": ["-y", "@somebody/weather@1.2.0", "--units=imperial", "--key=${secret:weather-2-key}", "Berlin"],
        "env": {"API_KEY": "${secret:weather-2-api-key}"},
    }
    assert engine.secrets_kept == {"weather-2-api-key": "k3y", "weather-2-key": "0ther"}


async def test_what_is_still_needed_is_marked_in_the_editor(editor: ServerEditor, engine: RegistryEngine) -> None:
    dialog = await previewed(editor)
    page = preview(dialog)
    page.ways.setCurrentIndex(0)
    press(page.footer, "Continue")
    form = dialog.form
    await until(lambda: not form.is_checking, "validation")

    assert form.notices.text("shipped") == "Still needed: --key, place, API_KEY. It is marked below."
    assert not form.footer.save_button.isEnabled()
    problems = form.fields.local_problems()
    assert problems[("env",)] == {"API_KEY": "Needed: API_KEY: From your account."}
    assert problems[("args",)] == {"3": "Needed: --key.", "4": "Needed: place: Where you are."}
    key: Any = form.fields.rows[("env",)].field
    enter(key.rows[0].editor.edit, "k3y")
    args: Any = form.fields.rows[("args",)].field
    enter(args.rows[4].editor.edit, "Berlin")
    assert form.fields.local_problems() == {("args",): {"3": "Needed: --key."}}

    notice = form.notices.notice("shipped")
    assert notice is not None
    press(notice, "Back to the questions")
    page = preview(dialog)
    answer(page, API_KEY="new", key="0ther", place="Rome")
    press(page.footer, "Continue")
    question = dialog.form.notices.notice("shipped")
    assert question is not None
    assert question.text.startswith("Begin anew with weather-2?")
    press(question, "Begin anew")
    await until(lambda: not dialog.form.is_checking, "validation")
    press(dialog.form.footer, "Add server")
    await closed(dialog)
    assert engine.servers["weather-2"]["args"][-1] == "Rome"
    assert engine.secrets_kept == {"weather-2-api-key": "new", "weather-2-key": "0ther"}


async def test_a_remote_server_gets_its_token(editor: ServerEditor, engine: RegistryEngine) -> None:
    dialog = await previewed(editor)
    page = preview(dialog)
    page.ways.setCurrentIndex(1)
    assert page.command.text() == "https://weather.example.com/mcp"
    press(page.footer, "Continue")
    form = dialog.form
    assert form.fields.kind == "remote"
    assert form.fields.local_problems() == {("auth",): {"secret": "Needed: t."}}
    auth: Any = form.fields.rows[("auth",)].field
    enter(auth.secret.editor.edit, "t0ken")
    name: Any = form.fields.rows[("name",)].field
    enter(name.edit, "sky")
    name.edit.editingFinished.emit()
    await until(lambda: not form.is_checking, "validation")
    press(form.footer, "Add server")
    await closed(dialog)
    (secret,) = engine.secrets_kept
    assert engine.servers["sky"]["auth"] == {"type": "bearer", "secret": secret}
    assert engine.secrets_kept[secret] == "t0ken"


async def test_a_stored_secret_can_be_used(editor: ServerEditor, engine: RegistryEngine, link: HandLink) -> None:
    engine.secrets_kept["mine"] = "value"
    link.say("secrets", engine.secrets_view())
    dialog = await previewed(editor)
    page = preview(dialog)
    page.ways.setCurrentIndex(1)
    row: Any = page.rows[0]
    row.editor.chosen.emit("mine")
    assert page.footer.status == ""
    press(page.footer, "Continue")
    await until(lambda: not dialog.form.is_checking, "validation")
    press(dialog.form.footer, "Add server")
    await closed(dialog)
    assert engine.servers["weather-2"]["auth"] == {"type": "bearer", "secret": "mine"}
    assert engine.secrets_kept == {"mine": "value"}


async def test_answers_that_cannot_be_are_mended_first(editor: ServerEditor) -> None:
    dialog = await previewed(editor)
    page = preview(dialog)
    page.ways.setCurrentIndex(0)
    answer(page, LIMIT="many")
    press(page.footer, "Continue")
    assert preview(dialog) is page
    assert page.footer.status == "Something has to be mended."
    answer(page, LIMIT="5")
    press(page.footer, "Continue")
    assert dialog.form.fields.filled().entry["env"]["LIMIT"] == "5"
    dialog.form.notices.drop("leave")
    dialog.reject()
    leave = dialog.form.notices.notice("leave")
    assert leave is not None
    press(leave, "Discard")
    await closed(dialog)


async def test_what_cannot_be_set_up_says_so(editor: ServerEditor) -> None:
    dialog = await previewed(editor, 1)
    page = preview(dialog)
    assert page.notices.text("problem") == 'Callboard cannot run packages of the type "homebrew".'
    assert page.notices.text("warning").startswith("Its maker has marked it as deprecated.")
    assert not page.footer.save_button.isEnabled()
    press(page.footer, "Back")
    assert search_page(dialog).model.rowCount() == 2
    dialog.reject()
    dialog.reject()
    await closed(dialog)


async def test_a_bundle_of_a_registry_is_fetched_when_the_person_says_so(
    editor: ServerEditor, engine: RegistryEngine
) -> None:
    engine.pages[""] = OfferPage(offers=[offered(BUNDLED)], source="x")
    dialog = await previewed(editor)
    first = preview(dialog)
    assert first.notices.text("remarks") == "The bundle is fetched from example.com when you go on."
    assert engine.requests == []
    engine.bundle = CallboardError("bundle-refused", "The bundle is not the one that was promised.")
    press(first.footer, "Fetch")
    await until(lambda: first.notices.text("error"), "the refusal")
    engine.bundle = bundle()
    press(first.footer, "Fetch")
    await until(lambda: preview(dialog) is not first, "the bundle")
    assert engine.requests[-1] == BundleRequest(url="https://example.com/s.mcpb", sha256="a" * 64)
    page = preview(dialog)
    assert page.subject.origin == "bundle by Somebody"

    answer(page, api_key="k", folders="/a", loud="Yes")
    page.rows[1].add_path("/b")
    assert page.command.text() == "python3 /data/shouter-00/server/main.py /a /b"
    press(page.footer, "Continue")
    await until(lambda: not dialog.form.is_checking, "validation")
    press(dialog.form.footer, "Add server")
    await closed(dialog)
    assert engine.servers["shouter"] == {
        "display_name": "Shouter",
        "description": "Says it loudly",
        "command": "python3",
        "args": ["/data/shouter-00/server/main.py", "/a", "/b"],
        "env": {"API_KEY": "${secret:shouter-api-key}", "LOUD": "true"},
        "cwd": "/data/shouter-00",
    }
    await until(lambda: engine.released == ["shouter-00"], "the release")


async def test_the_file_of_a_bundle_is_dropped_on_the_dialog(editor: ServerEditor, engine: RegistryEngine) -> None:
    dialog = editor.add_server()
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile("/home/me/shouter.mcpb")])
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    entering = QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, mime, buttons, keys)
    dialog.dragEnterEvent(entering)
    assert entering.isAccepted()
    dialog.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, mime, buttons, keys))
    assert dialog.flow is not None
    await until(lambda: isinstance(dialog.flow and dialog.flow.page, PreviewPage), "the bundle")
    assert engine.requests == [BundleRequest(path="/home/me/shouter.mcpb")]
    dialog.reject()
    dialog.reject()
    await closed(dialog)
    await until(lambda: engine.released == ["shouter-00"], "the release")


async def test_a_bundle_that_is_not_waited_for_is_released(editor: ServerEditor, engine: RegistryEngine) -> None:
    engine.gate.clear()
    dialog = editor.open_bundle("/home/me/shouter.mcpb")
    assert dialog.flow is not None
    page = dialog.flow.page
    assert isinstance(page, WaitPage)
    await until(lambda: engine.requests, "the request")
    page.button.click()
    assert dialog.form.isVisibleTo(dialog)
    engine.gate.set()
    await until(lambda: engine.released == ["shouter-00"], "the release")
    engine.bundle = CallboardError("bundle-invalid", "This is no bundle.")
    dialog.open_bundle("/home/me/other.mcpb")
    page = dialog.flow.page
    assert isinstance(page, WaitPage)
    await until(lambda: page.notices.text("error"), "the refusal")
    assert page.button.text() == "Back"
    page.button.click()
    dialog.reject()
    await closed(dialog)
