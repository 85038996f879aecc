"""Where the program's own files lie: beside the package when installed, at the top of a checkout otherwise."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def resource(*parts: str) -> Path:
    """A file or folder of the resources, by its path below their root (``resource("icons", "copy.svg")``)."""
    installed = _PACKAGE / "_resources"
    root = installed if installed.is_dir() else _PACKAGE.parents[1] / "resources"
    return root.joinpath(*parts)
