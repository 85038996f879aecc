"""Registries and bundles in the window, over a real engine and a registry on loopback."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from shiboken6 import isValid

from callboard.core.health import State
from callboard.ui.icons import Icons
from callboard.ui.registry.offer_page import OfferPage
from callboard.ui.registry.search_page import SearchPage
from callboard.ui.theme import Theme
from tests.support.bundles import manifest, write_bundle
from tests.support.registry_server import RegistryServer, package, server
from tests.support.site import Said
from tests.ui.conftest import until
from tests.ui.editor_fakes import press
from tests.ui.test_editor_engine import LIMIT, files_with, running
from tests.ui.test_registry import answer

pytestmark = pytest.mark.timeout(120)

SECRET = "correct-horse-battery-staple"
ASKING = manifest(
    user_config={"api_key": {"type": "string", "title": "API key", "sensitive": True, "required": True}},
)
ASKING["server"]["mcp_config"] = {
    "command": "python",
    "args": ["${__dirname}/server/main.py"],
    "env": {"API_KEY": "${user_config.api_key}"},
}


async def test_a_bundle_of_a_registry_becomes_a_server_that_runs_and_goes(
    callboard_home: Path, tmp_path: Path, theme: Theme, icons: Icons
) -> None:
    body = write_bundle(tmp_path / "b.mcpb", ASKING).read_bytes()
    async with RegistryServer([]) as site, running(callboard_home, theme, icons) as run:
        site.files["/shouter.mcpb"] = Said(200, body)
        digest = hashlib.sha256(body).hexdigest()
        site.servers = [
            server("com.example/shouter", packages=[package("mcpb", f"{site.url}/shouter.mcpb", fileSha256=digest)])
        ]
        bundles = run.engine.paths.bundles

        dialog = run.editor.search_registry()
        assert dialog.flow is not None
        search = dialog.flow.page
        assert isinstance(search, SearchPage)
        search.place.setText(site.url)
        search.words.setText("shouter")
        assert site.seen == []
        search.search()
        await until(lambda: search.model.rowCount() == 1, "the answer", seconds=LIMIT)
        search.list.activated.emit(search.model.index(0))
        offer = dialog.flow.page
        assert isinstance(offer, OfferPage)
        assert site.requests("/shouter.mcpb") == []
        press(offer.footer, "Fetch")
        await until(lambda: dialog.flow is not None and dialog.flow.page is not offer, "the bundle", seconds=LIMIT)
        preview = dialog.flow.page
        assert isinstance(preview, OfferPage)
        assert len(list(bundles.iterdir())) == 1
        answer(preview, api_key=SECRET)
        press(preview.footer, "Continue")
        assert "shouter" not in run.text
        await until(lambda: dialog.form.footer.save_button.isEnabled() and not dialog.form.is_checking, "validation")
        press(dialog.form.footer, "Add server")
        await until(lambda: not isValid(dialog), "saving", seconds=LIMIT)

        await until(lambda: "shouter" in run.link.servers, "the event", seconds=LIMIT)
        await until(lambda: run.link.servers["shouter"].state is State.READY, "its start", seconds=LIMIT)
        result = await run.engine.client.call_tool("shouter", "shout", {})
        assert "API_KEY" not in result["content"][0]["text"]
        assert files_with(run.engine.home, SECRET) == [], "the value stands in no file"
        assert len(list(bundles.iterdir())) == 1

        run.editor.remove_server("shouter")
        await until(lambda: "shouter" not in run.link.servers, "the removal", seconds=LIMIT)
        await until(lambda: run.editor.undo.can_undo, "undo", seconds=LIMIT)
        run.editor.undo.undo()
        await until(lambda: "shouter" in run.link.servers, "the event", seconds=LIMIT)
        await until(lambda: run.link.servers["shouter"].state is State.READY, "its start", seconds=LIMIT)
        run.editor.remove_server("shouter")
        await until(lambda: "shouter" not in run.link.servers, "the removal", seconds=LIMIT)
    assert list(bundles.iterdir()) == []


async def test_a_bundle_that_is_only_looked_at_goes(
    callboard_home: Path, tmp_path: Path, theme: Theme, icons: Icons
) -> None:
    async with running(callboard_home, theme, icons) as run:
        dialog = run.editor.open_bundle(str(write_bundle(tmp_path / "b.mcpb", ASKING)))
        assert dialog.flow is not None
        await until(lambda: dialog.flow is not None and isinstance(dialog.flow.page, OfferPage), "it", seconds=LIMIT)
        bundles = run.engine.paths.bundles
        assert len(list(bundles.iterdir())) == 1
        dialog.reject()
        dialog.reject()
        await until(lambda: not isValid(dialog), "the end", seconds=LIMIT)
        await until(lambda: list(bundles.iterdir()) == [], "the removal", seconds=LIMIT)
