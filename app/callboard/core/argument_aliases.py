"""Other names of arguments that belong together, offered under one name."""

from collections.abc import Mapping
from typing import Final

PRESETS: Final[Mapping[str, Mapping[str, str]]] = {
    "gaia": {"app_dir": "appPath", "directory": "appPath", "project_path": "appPath"},
}
