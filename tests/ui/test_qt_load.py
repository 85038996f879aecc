"""How Qt is loaded: the import statement stays Python's own, and the window loads nothing that it does without."""

import json
import subprocess
import sys

PROGRAM = """
import builtins, importlib, json, linecache, pkgutil, sys
plain = builtins.__import__
from callboard.ui.qt_load import load_qt
load_qt()
import callboard.ui
for _, name, _ in pkgutil.walk_packages(callboard.ui.__path__, "callboard.ui."):
    importlib.import_module(name)
print(json.dumps({
    "qt": "PySide6.QtWidgets" in sys.modules,
    "import": builtins.__import__ is plain,
    "read": [name for name in linecache.cache if "callboard" in name],
    "loaded": [name for name in ("pydantic", "fastmcp", "keyring") if name in sys.modules],
}))
"""


def test_the_whole_window_is_imported_by_pythons_own_statement() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr

    assert json.loads(result.stdout) == {"qt": True, "import": True, "read": [], "loaded": []}
