"""One server before it becomes an entry: what it is, what it would run, what it needs and asks for."""

from html import escape

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.core.registry import Way
from callboard.core.registry_fill import Filling, command_line, fill
from callboard.ui.editor.entry_model import free_name
from callboard.ui.editor.footer import FormFooter
from callboard.ui.editor.form_notices import FormNotices
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import CalmComboBox, ToneLabel, clear_margins, fixed_font, icon_button, take_out
from callboard.ui.editor.secret_desk import SecretDesk
from callboard.ui.registry.input_row import InputRow
from callboard.ui.registry.subject import Subject
from callboard.ui.theme import Token


class OfferPage(QWidget):
    """The preview. ``filled`` gives the editor what it begins with; a bundle must be fetched before that."""

    left = Signal()
    filled = Signal(str, object, object)  # name, Way, Filling
    wanted = Signal(object)  # BundleSource

    def __init__(self, kit: Kit, subject: Subject) -> None:
        super().__init__()
        self._kit = kit
        self.subject = subject
        self._desk = SecretDesk(kit.link, self)
        roster = kit.link.roster
        self.name = free_name(subject.short_name, roster.servers if roster is not None else ())
        self.rows: list[InputRow] = []
        self._was_tried = False
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(0)
        column.addWidget(self._make_head())
        self.notices = FormNotices(kit)
        column.addWidget(self.notices)
        column.addWidget(self._make_body(), 1)
        self.footer = FormFooter(kit, self.tr("Continue"), self.tr("Back"))
        self.footer.save_pressed.connect(self.go_on)
        self.footer.leave_pressed.connect(self.left)
        self.footer.show_pressed.connect(self._focus_open)
        column.addWidget(self.footer)
        self._take_way(self._first())

    @property
    def way(self) -> Way | None:
        """The way that is chosen."""
        index = self.ways.currentIndex()
        return self.subject.ways[index][0] if 0 <= index < len(self.subject.ways) else None

    def filling(self) -> Filling:
        """What the answers make of the way."""
        assert self.way is not None
        answers = {row.asked.key: row.answers for row in self.rows}
        stored = {row.asked.key: row.stored for row in self.rows if row.stored}
        secrets = self._kit.link.secrets
        taken = {secret.name for secret in secrets.secrets} if secrets is not None else set()
        return fill(self.way, self.name, answers, taken, stored)

    def go_on(self) -> None:
        """Hand over what there is; what is still needed is marked in the editor, what is wrong is mended first."""
        way = self.way
        if way is None or way.problem:
            return
        if way.bundle is not None:
            self.wait(self.tr("Fetching the bundle…"))
            self.wanted.emit(way.bundle)
            return
        filling = self.filling()
        self._was_tried = True
        self._refresh()
        if filling.wrong:
            self._focus_open()
        else:
            self.filled.emit(self.name, way, filling)

    def wait(self, text: str) -> None:
        """Something is under way."""
        self.notices.drop("error")
        self.footer.say(text)
        self.footer.save_button.setEnabled(False)

    def show_error(self, error: CallboardError) -> None:
        """What was wanted did not work."""
        self._refresh()
        self.notices.put_error("error", error)

    def begin(self) -> None:
        """Go to the first thing that is asked for."""
        self._focus_open()

    # building

    def _make_head(self) -> QWidget:
        head = QWidget()
        row = QHBoxLayout(head)
        row.setContentsMargins(16, 14, 16, 4)
        row.setSpacing(8)
        row.addWidget(icon_button(self._kit.icons, "chevron-left", self.tr("Back"), self.left.emit))
        title = QLabel(self.subject.title)
        title.setTextFormat(Qt.TextFormat.PlainText)
        title.setWordWrap(True)
        font = QFont(title.font())
        font.setPointSizeF(font.pointSizeF() * 1.25)
        font.setWeight(QFont.Weight.DemiBold)
        title.setFont(font)
        row.addWidget(title, 1)
        version = ToneLabel(self._kit.theme, Token.MUTED)
        version.setWordWrap(False)
        version.setText(self.subject.version)
        row.addWidget(version)
        return head

    def _make_body(self) -> QScrollArea:
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        page = QWidget()
        self._column = QVBoxLayout(page)
        self._column.setContentsMargins(16, 10, 16, 18)
        self._column.setSpacing(12)
        origin = self._plain(self.subject.origin, Token.MUTED)
        origin.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        if self.subject.description:
            self._plain(self.subject.description)
        if self.subject.links:
            self._add_links()
        self._add_ways()
        self.command_label = QLabel()
        self._column.addWidget(self.command_label)
        self.command = self._plain("")
        self.command.setFont(fixed_font())
        self.command.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._inputs = QVBoxLayout()
        self._inputs.setSpacing(12)
        self._column.addLayout(self._inputs)
        self._column.addStretch(1)
        area.setWidget(page)
        return area

    def _plain(self, text: str, token: Token = Token.TEXT) -> ToneLabel:
        label = ToneLabel(self._kit.theme, token)
        label.setText(text)
        self._column.addWidget(label)
        return label

    def _add_links(self) -> None:
        links = ToneLabel(self._kit.theme, Token.TEXT)
        links.setTextFormat(Qt.TextFormat.RichText)
        links.setOpenExternalLinks(True)
        parts = [f'<a href="{escape(address)}">{escape(words)}</a>' for words, address in self.subject.links]
        links.setText(" &nbsp; ".join(parts))
        links.setToolTip("\n".join(address for _, address in self.subject.links))
        self._column.addWidget(links)

    def _add_ways(self) -> None:
        label = QLabel(self.tr("&How to set it up"))
        self.ways = CalmComboBox()
        for way, _ in self.subject.ways:
            text = way.title
            self.ways.addItem(self.tr("{way} (not possible)").format(way=text) if way.problem else text)
        label.setBuddy(self.ways)
        only_one = len(self.subject.ways) < 2
        label.setVisible(not only_one)
        self.ways.setVisible(not only_one)
        box = QVBoxLayout()
        box.setSpacing(3)
        box.addWidget(label)
        box.addWidget(self.ways)
        self._column.addLayout(box)
        self.ways.currentIndexChanged.connect(self._take_way)

    # how it stands

    def _first(self) -> int:
        """The first way that can be gone here, else the first that can be gone at all."""
        ready = [not way.problem and all(need.state != "missing" for need in needs) for way, needs in self.subject.ways]
        whole = [not way.problem for way, _ in self.subject.ways]
        return ready.index(True) if True in ready else whole.index(True) if True in whole else 0

    def _take_way(self, index: int) -> None:
        if self.ways.currentIndex() != index:
            self.ways.setCurrentIndex(index)  # comes back here
            return
        for row in self.rows:
            take_out(self._inputs, row)
        self.rows = []
        self._was_tried = False
        way = self.way
        for asked in way.inputs if way is not None else ():
            row = InputRow(self._kit, self._desk, asked)
            row.changed.connect(self._refresh)
            self.rows.append(row)
            self._inputs.addWidget(row)
        self._say_standing()
        self._refresh()

    def _say_standing(self) -> None:
        """Warnings of the offer, what the way needs here, and what should be known of it."""
        lines: dict[str, tuple[str, Severity]] = {}
        if self.subject.warning:
            lines["warning"] = (self.subject.warning, Severity.ATTENTION)
        way = self.way
        if way is None:
            lines["problem"] = (self.tr("The registry does not say how it is set up."), Severity.FAILED)
        else:
            needs = self.subject.ways[self.ways.currentIndex()][1]
            lacks = [f"{need.message} {need.fix}".strip() for need in needs if need.state == "missing"]
            if way.problem:
                lines["problem"] = (way.problem, Severity.FAILED)
            if lacks:
                lines["lacks"] = ("\n".join(lacks), Severity.ATTENTION)
            if way.remarks:
                lines["remarks"] = ("\n".join(way.remarks), Severity.BUSY)
        for key in ("warning", "problem", "lacks", "remarks"):
            if key in lines:
                self.notices.put(key, *lines[key])
            else:
                self.notices.drop(key)

    def _refresh(self) -> None:
        way = self.way
        can_go = way is not None and not way.problem
        self.footer.save_button.setEnabled(can_go)
        self.footer.save_button.setText(
            self.tr("Fetch") if way is not None and way.bundle is not None else self.tr("Continue")
        )
        has_command = can_go and way is not None and way.bundle is None
        self.command.setVisible(has_command)
        self.command_label.setVisible(has_command)
        if not has_command or way is None:
            self.footer.say("")
            return
        filling = self.filling()
        reaches = way.kind == "remote"
        self.command_label.setText(self.tr("It will reach") if reaches else self.tr("It will run"))
        self.command.setText(command_line(filling.entry))
        for row in self.rows:
            row.show_problem(filling.wrong.get(row.asked.key, ""))
        missing = list(dict.fromkeys(need.input.title for need in filling.open))
        if filling.wrong and self._was_tried:
            self.footer.say(self.tr("Something has to be mended."), problem=True, can_show=True)
        elif missing:
            self.footer.say(self.tr("Still needed: {fields}.").format(fields=", ".join(missing)))
        else:
            self.footer.say("")

    def _focus_open(self) -> None:
        """The first input that is wrong or still needed, else the way on."""
        wrong = self.filling().wrong if self.way is not None else {}
        rows = [row for row in self.rows if row.asked.key in wrong]
        rows += [row for row in self.rows if row.asked.required and not row.is_given]
        target: QWidget = rows[0].editor if rows else self.footer.save_button
        target.setFocus(Qt.FocusReason.OtherFocusReason)
