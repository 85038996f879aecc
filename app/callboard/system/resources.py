"""Where the program's own data files lie: inside the wheel, or beside the sources they are run from."""

from pathlib import Path

import callboard

_PACKAGE = Path(callboard.__file__).parent
_FOLDERS = (_PACKAGE / "_resources", _PACKAGE.parent.parent / "resources")


def resource(name: str) -> Path:
    """The file or folder ``name`` of the project's resources. Raises FileNotFoundError naming where it looked."""
    for folder in _FOLDERS:
        if (path := folder / name).exists():
            return path
    raise FileNotFoundError(f"{name} is neither in {_FOLDERS[0]} nor in {_FOLDERS[1]}")
