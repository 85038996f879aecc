"""Colours: legible in both schemes, chosen by the person, followed by what is on the screen."""

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QRadioButton,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from callboard.core.health import Severity
from callboard.ui.icons import Icons
from callboard.ui.theme import DARK, LIGHT, SEVERITY_TOKENS, Theme, ThemeChoice, Token
from callboard.ui.tray_icons import ON_DARK, ON_LIGHT

TEXTS = (
    Token.TEXT,
    Token.MUTED,
    Token.LINK,
    Token.OFF,
    Token.BUSY,
    Token.FINE,
    Token.ATTENTION,
    Token.FAILED,
)
GROUNDS = (Token.WINDOW, Token.BASE, Token.ALTERNATE, Token.BUTTON, Token.ACCENT_SOFT)


def luminance(color: QColor) -> float:
    """Relative luminance, as WCAG 2 defines it."""

    def linear(part: float) -> float:
        return part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF())


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21."""
    dark, light = sorted((luminance(QColor(one)), luminance(QColor(other))))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("table", [LIGHT, DARK], ids=["light", "dark"])
class TestContrast:
    @pytest.mark.parametrize("text", TEXTS)
    @pytest.mark.parametrize("ground", GROUNDS)
    def test_text_is_legible_on_every_ground(self, table: dict[Token, str], text: Token, ground: Token) -> None:
        assert contrast(table[text], table[ground]) >= 4.5

    @pytest.mark.parametrize("severity", Severity)
    def test_severities_are_legible_on_their_soft_ground(self, table: dict[Token, str], severity: Severity) -> None:
        foreground, background = SEVERITY_TOKENS[severity]
        assert contrast(table[foreground], table[background]) >= 4.5

    def test_selected_text_is_legible(self, table: dict[Token, str]) -> None:
        assert contrast(table[Token.ON_ACCENT], table[Token.ACCENT]) >= 4.5

    @pytest.mark.parametrize("ground", [Token.WINDOW, Token.BASE])
    def test_outlines_can_be_seen(self, table: dict[Token, str], ground: Token) -> None:
        assert contrast(table[Token.OUTLINE], table[ground]) >= 3.0

    def test_disabled_text_can_still_be_read(self, table: dict[Token, str]) -> None:
        assert contrast(table[Token.DISABLED], table[Token.WINDOW]) >= 3.0

    def test_every_token_has_a_colour(self, table: dict[Token, str]) -> None:
        assert set(table) == set(Token)
        assert all(QColor(value).isValid() for value in table.values())


def test_tray_glyph_is_legible_on_both_kinds_of_panel() -> None:
    assert contrast(ON_LIGHT, "#e6e6e6") >= 4.5
    assert contrast(ON_DARK, "#303030") >= 4.5


def test_choice_changes_palette_and_colours_at_once(theme: Theme, qapp: QApplication) -> None:
    told = []
    theme.changed.connect(lambda: told.append(theme.dark))
    theme.set_choice(ThemeChoice.DARK)
    assert theme.dark
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(DARK[Token.WINDOW])
    assert theme.color(Token.TEXT) == QColor(DARK[Token.TEXT])
    theme.set_choice(ThemeChoice.LIGHT)
    assert not theme.dark
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(LIGHT[Token.WINDOW])
    assert told == [True, False]


@pytest.mark.parametrize("choice", [ThemeChoice.LIGHT, ThemeChoice.DARK])
@pytest.mark.parametrize("kind", [QCheckBox, QRadioButton, QLineEdit, QPlainTextEdit, QSpinBox, QComboBox])
def test_outlines_are_painted_so_that_they_can_be_seen(
    theme: Theme, qtbot: QtBot, choice: ThemeChoice, kind: type[QWidget]
) -> None:
    theme.set_choice(choice)
    page = QWidget()
    qtbot.addWidget(page)
    widget = kind()
    QVBoxLayout(page).addWidget(widget)
    page.resize(200, 120)
    image = page.grab().toImage()
    row = widget.geometry().center().y()
    left = [image.pixelColor(x, row).name() for x in range(widget.x() + 6)]
    table = DARK if choice is ThemeChoice.DARK else LIGHT
    assert left[0] == table[Token.WINDOW]
    assert max(contrast(color, table[Token.WINDOW]) for color in left) >= 3.0
    assert max(contrast(color, table[Token.BASE]) for color in left) >= 3.0


def test_choice_is_kept_for_the_next_start(theme: Theme, qapp: QApplication, settings: QSettings) -> None:
    theme.set_choice(ThemeChoice.DARK)
    settings.sync()
    again = Theme(qapp, settings)
    assert again.choice is ThemeChoice.DARK
    assert again.dark


def test_a_choice_that_nobody_knows_is_taken_as_the_system(qapp: QApplication, settings: QSettings) -> None:
    settings.setValue("theme", "purple")
    assert Theme(qapp, settings).choice is ThemeChoice.SYSTEM


def test_back_to_the_system_follows_the_system(theme: Theme) -> None:
    before = theme.dark
    theme.set_choice(ThemeChoice.LIGHT if before else ThemeChoice.DARK)
    theme.set_choice(ThemeChoice.SYSTEM)
    assert theme.dark is before


def test_icons_take_the_colour_of_the_theme(theme: Theme, icons: Icons) -> None:
    def ink() -> QColor:
        image = icons.pixmap("stop", 32).toImage()
        return image.pixelColor(max(range(32), key=lambda x: image.pixelColor(x, 16).alpha()), 16)

    theme.set_choice(ThemeChoice.LIGHT)
    assert ink().lightnessF() < 0.3
    theme.set_choice(ThemeChoice.DARK)
    assert ink().lightnessF() > 0.7


def test_icons_on_widgets_follow_the_theme(theme: Theme, icons: Icons, qtbot) -> None:  # type: ignore[no-untyped-def]
    button = QToolButton()
    qtbot.addWidget(button)
    theme.set_choice(ThemeChoice.LIGHT)
    icons.set_on(button, "stop")
    light = button.icon().pixmap(16, 16).toImage()
    theme.set_choice(ThemeChoice.DARK)
    assert button.icon().pixmap(16, 16).toImage() != light


def test_every_icon_can_be_drawn_and_uses_the_current_colour_alone(icons: Icons) -> None:
    from callboard.system.resources import resource

    drawings = sorted(resource("icons").glob("*.svg"))
    assert len(drawings) > 30
    for drawing in drawings:
        image = icons.pixmap(drawing.stem, 24).toImage()
        assert any(image.pixelColor(x, y).alpha() > 128 for x in range(24) for y in range(24)), drawing.name
        text = drawing.read_text(encoding="utf-8")
        assert "#" not in text, f"{drawing.name} has a colour of its own"
