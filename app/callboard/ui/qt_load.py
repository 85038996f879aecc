"""Loading Qt so that Python's import statement stays Python's."""

import builtins


def load_qt() -> None:
    """Load Qt's binding, and put the import statement back that it replaces. Before any other import of PySide6.

    The binding's own one is for its optional spelling of names (``from __feature__ import snake_case``), which is not
    used here. It reads the source of every module that is imported from then on, a fifth of the window's start and
    10 MiB, and asks half-loaded modules for attributes, which breaks imports in threads (pydantic's, now and then).
    """
    plain_import = builtins.__import__
    import PySide6.QtWidgets  # noqa: F401  for what it loads

    builtins.__import__ = plain_import
