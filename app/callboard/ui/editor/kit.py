"""What every part of the editor is built with."""

from dataclasses import dataclass

from callboard.ui.editor.drafts import Drafts
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme


@dataclass(frozen=True)
class Kit:
    """The engine, how things look, and the drafts: one per window, handed down to every widget of the editor."""

    link: EngineLink
    theme: Theme
    icons: Icons
    drafts: Drafts
