"""What the application itself is set to, tried in a process of its own."""

import os
import subprocess
import sys

LAST_DIALOG = """
import sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDialog
from callboard.ui.application import make_application

app = make_application()
dialog = QDialog()
app.quitAsked.connect(lambda: app.exit(3))  # this would come before the second timer
app.lastWindowClosed.connect(lambda: QTimer.singleShot(0, lambda: QTimer.singleShot(0, lambda: app.exit(7))))
QTimer.singleShot(0, dialog.close)
dialog.show()
sys.exit(app.exec())
"""


def test_closing_the_last_dialog_ends_nothing() -> None:
    """With the window hidden in the tray: the servers go on."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    ended = subprocess.run([sys.executable, "-c", LAST_DIALOG], env=environment, check=False, timeout=60)
    assert ended.returncode == 7
