"""What a server is called in the roster."""

from collections.abc import Callable

from callboard.ui.editor.entry_model import name_problem
from callboard.ui.editor.fields import TextField


class NameField(TextField):
    """Edits a server's name; judges it at once by the roster's rule and the names that ``taken`` returns."""

    def __init__(self, label: str, taken: Callable[[], list[str]]) -> None:
        super().__init__(label, placeholder="github", fixed=True)
        self._taken = taken

    def problems(self) -> dict[str, str]:
        """Whether the name may stand in the roster."""
        text = {
            "": "",
            "missing": self.tr("Enter a name."),
            "pattern": self.tr("Use up to 64 letters (a-z), digits, - and _; begin with a letter or a digit."),
            "taken": self.tr("There is a server of this name already."),
            "case": self.tr("There is a server whose name differs only by upper and lower case."),
        }[name_problem(self.state(), self._taken())]
        return {"": text} if text else {}
