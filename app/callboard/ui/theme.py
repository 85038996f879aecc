"""Light and dark: the choice, the palette, and the colours that have a meaning."""

from enum import StrEnum

from PySide6.QtCore import QObject, QSettings, Qt, Signal
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from callboard.core.health import Severity


class ThemeChoice(StrEnum):
    """What a person chose."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class Token(StrEnum):
    """Colours with a meaning. A ``…_SOFT`` one is the background on which the one before is legible."""

    WINDOW = "window"
    BASE = "base"  # lists, tables, editors
    ALTERNATE = "alternate"  # every other row
    BUTTON = "button"
    BORDER = "border"  # lines between things
    OUTLINE = "outline"  # around what can be filled in, checked or pressed
    TEXT = "text"
    MUTED = "muted"  # second lines, units, placeholders
    DISABLED = "disabled"
    ACCENT = "accent"  # selection, default button, focus
    ON_ACCENT = "on-accent"
    ACCENT_SOFT = "accent-soft"  # selected rows, chosen page
    LINK = "link"
    OFF = "off"
    OFF_SOFT = "off-soft"
    BUSY = "busy"
    BUSY_SOFT = "busy-soft"
    FINE = "fine"
    FINE_SOFT = "fine-soft"
    ATTENTION = "attention"
    ATTENTION_SOFT = "attention-soft"
    FAILED = "failed"
    FAILED_SOFT = "failed-soft"


LIGHT: dict[Token, str] = {
    Token.WINDOW: "#f5f5f7",
    Token.BASE: "#ffffff",
    Token.ALTERNATE: "#f9f9fb",
    Token.BUTTON: "#fdfdfe",
    Token.BORDER: "#d4d5dc",
    Token.OUTLINE: "#7a7d89",
    Token.TEXT: "#1d1f26",
    Token.MUTED: "#5a5e6b",
    Token.DISABLED: "#868a96",
    Token.ACCENT: "#4450c8",
    Token.ON_ACCENT: "#ffffff",
    Token.ACCENT_SOFT: "#e4e6fb",
    Token.LINK: "#3a46bd",
    Token.OFF: "#555a66",
    Token.OFF_SOFT: "#eaebef",
    Token.BUSY: "#1f5fa8",
    Token.BUSY_SOFT: "#e1eefb",
    Token.FINE: "#176c3a",
    Token.FINE_SOFT: "#dcf3e4",
    Token.ATTENTION: "#835000",
    Token.ATTENTION_SOFT: "#fcefd0",
    Token.FAILED: "#b3232f",
    Token.FAILED_SOFT: "#fde5e6",
}

DARK: dict[Token, str] = {
    Token.WINDOW: "#1d1e23",
    Token.BASE: "#25262c",
    Token.ALTERNATE: "#292a31",
    Token.BUTTON: "#33353d",
    Token.BORDER: "#41434d",
    Token.OUTLINE: "#7d818e",
    Token.TEXT: "#e9eaee",
    Token.MUTED: "#a6aab7",
    Token.DISABLED: "#80848f",
    Token.ACCENT: "#9aa5ff",
    Token.ON_ACCENT: "#14151c",
    Token.ACCENT_SOFT: "#353a5e",
    Token.LINK: "#a9b2ff",
    Token.OFF: "#b3b7c2",
    Token.OFF_SOFT: "#393b44",
    Token.BUSY: "#85bdf5",
    Token.BUSY_SOFT: "#1f3a57",
    Token.FINE: "#72d39b",
    Token.FINE_SOFT: "#1c3f2c",
    Token.ATTENTION: "#efbf62",
    Token.ATTENTION_SOFT: "#463714",
    Token.FAILED: "#ff9a9d",
    Token.FAILED_SOFT: "#522529",
}

SEVERITY_TOKENS: dict[Severity, tuple[Token, Token]] = {
    Severity.OFF: (Token.OFF, Token.OFF_SOFT),
    Severity.BUSY: (Token.BUSY, Token.BUSY_SOFT),
    Severity.FINE: (Token.FINE, Token.FINE_SOFT),
    Severity.ATTENTION: (Token.ATTENTION, Token.ATTENTION_SOFT),
    Severity.FAILED: (Token.FAILED, Token.FAILED_SOFT),
}


# Fusion takes an outline as a darker shade of the widget's own Window colour, whatever the other roles say. These
# classes never fill themselves with that colour, so it can be chosen for the sake of the outline.
_OUTLINED = (
    "QAbstractButton",
    "QAbstractItemView",
    "QAbstractSpinBox",
    "QComboBox",
    "QLineEdit",
    "QPlainTextEdit",
    "QTextEdit",
)
_FUSION_SHADE = 140  # percent, of QColor.darker()


class Theme(QObject):
    """The window's colours, in the chosen scheme.

    One per application, made after QApplication; widgets get it in their constructor, ask :meth:`color` when they
    paint, and repaint on :attr:`changed`. Where Qt draws with its own Fusion style (most Linux desktops) the
    palette is ours too, so that the contrast of every token is known; a native style keeps its own palette.
    """

    changed = Signal()

    def __init__(self, app: QApplication, settings: QSettings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._settings = settings
        self._applying = False
        stored = str(settings.value("theme", ThemeChoice.SYSTEM))
        self._choice = ThemeChoice(stored) if stored in set(ThemeChoice) else ThemeChoice.SYSTEM
        self._dark = False
        self._system_dark = False
        self._apply()
        app.styleHints().colorSchemeChanged.connect(self.follow_system)

    @property
    def choice(self) -> ThemeChoice:
        """What the person chose; stored for the next start."""
        return self._choice

    @property
    def dark(self) -> bool:
        """Whether the dark colours are in use."""
        return self._dark

    @property
    def system_dark(self) -> bool:
        """Whether the desktop is dark, whatever the person chose for this window."""
        return self._system_dark

    def set_choice(self, choice: ThemeChoice) -> None:
        """Change and store the choice; all of the window follows at once."""
        self._choice = choice
        self._settings.setValue("theme", str(choice))
        self._apply()
        self.changed.emit()

    def color(self, token: Token) -> QColor:
        """The colour of a token in the scheme in use."""
        return QColor((DARK if self._dark else LIGHT)[token])

    def severity(self, severity: Severity) -> tuple[QColor, QColor]:
        """Foreground and soft background for a severity."""
        foreground, background = SEVERITY_TOKENS[severity]
        return self.color(foreground), self.color(background)

    def follow_system(self, *_scheme: object) -> None:
        """Take up what the desktop has changed: the scheme, or a palette laid over ours."""
        if self._applying:
            return
        if self._choice is ThemeChoice.SYSTEM:
            self._system_dark = self._app.styleHints().colorScheme() == Qt.ColorScheme.Dark
        if self._settle():
            self.changed.emit()

    def _apply(self) -> None:
        """Tell Qt the choice, and see what the desktop would have chosen."""
        hints = self._app.styleHints()
        self._applying = True
        hints.unsetColorScheme()
        self._system_dark = hints.colorScheme() == Qt.ColorScheme.Dark
        if self._choice is not ThemeChoice.SYSTEM:
            dark = self._choice is ThemeChoice.DARK
            hints.setColorScheme(Qt.ColorScheme.Dark if dark else Qt.ColorScheme.Light)
        self._applying = False
        self._settle()

    def _settle(self) -> bool:
        """Make palette and style agree with the scheme; whether anything had to change."""
        before = (self._dark, self._app.palette().color(QPalette.ColorRole.Window))
        self._dark = self._system_dark if self._choice is ThemeChoice.SYSTEM else self._choice is ThemeChoice.DARK
        self._applying = True
        self._force_palette()
        self._applying = False
        return before != (self._dark, self._app.palette().color(QPalette.ColorRole.Window))

    def _force_palette(self) -> None:
        native = self._app.style().name().lower() != "fusion"
        if native and _is_dark(self._app.palette()) != self._dark:
            # no platform theme that follows setColorScheme: our own palette, on a style that uses it fully
            self._app.setStyle("Fusion")
            native = False
        if native:
            return
        wanted, present = build_palette(DARK if self._dark else LIGHT), self._app.palette()
        roles = (
            QPalette.ColorRole.Window,
            QPalette.ColorRole.Base,
            QPalette.ColorRole.Text,
            QPalette.ColorRole.Highlight,
        )
        if any(wanted.color(role) != present.color(role) for role in roles):
            self._app.setPalette(wanted)
        self._draw_outlines(wanted)  # a palette for the whole application takes those of its classes away

    def _draw_outlines(self, palette: QPalette) -> None:
        outlined = QPalette(palette)
        outlined.setColor(QPalette.ColorRole.Window, self.color(Token.OUTLINE).lighter(_FUSION_SHADE))
        present = QApplication.palette(_OUTLINED[0])  # type: ignore[call-overload]  # a name, as below
        if present.color(QPalette.ColorRole.Window) == outlined.color(QPalette.ColorRole.Window):
            return
        for name in _OUTLINED:
            self._app.setPalette(outlined, name)  # type: ignore[arg-type]  # takes the name as str, whatever the stub says
        self._app.setPalette(palette, "QHeaderView")  # type: ignore[arg-type]  # an item view that does fill itself


def build_palette(colors: dict[Token, str]) -> QPalette:
    """The whole palette that follows from a table of tokens."""
    c = {token: QColor(value) for token, value in colors.items()}
    role, group = QPalette.ColorRole, QPalette.ColorGroup
    palette = QPalette(c[Token.BUTTON], c[Token.WINDOW])
    for target, token in (
        (role.Window, Token.WINDOW),
        (role.WindowText, Token.TEXT),
        (role.Base, Token.BASE),
        (role.AlternateBase, Token.ALTERNATE),
        (role.Text, Token.TEXT),
        (role.PlaceholderText, Token.MUTED),
        (role.Button, Token.BUTTON),
        (role.ButtonText, Token.TEXT),
        (role.BrightText, Token.ON_ACCENT),
        (role.ToolTipBase, Token.BASE),
        (role.ToolTipText, Token.TEXT),
        (role.Highlight, Token.ACCENT),
        (role.HighlightedText, Token.ON_ACCENT),
        (role.Accent, Token.ACCENT),
        (role.Link, Token.LINK),
        (role.LinkVisited, Token.LINK),
        (role.Light, Token.BASE),
        (role.Midlight, Token.BORDER),
        (role.Mid, Token.BORDER),
        (role.Dark, Token.BORDER),
    ):
        palette.setColor(target, c[token])
    for target in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(group.Disabled, target, c[Token.DISABLED])
    palette.setColor(group.Disabled, role.Highlight, c[Token.BORDER])
    return palette


def _is_dark(palette: QPalette) -> bool:
    return palette.color(QPalette.ColorRole.Window).lightnessF() < 0.5
