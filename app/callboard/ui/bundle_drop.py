"""Files of bundles that are dragged onto a window."""

from PySide6.QtCore import QMimeData

ENDINGS = (".mcpb", ".dxt")


def bundle_in(mime: QMimeData) -> str:
    """The path of the only file that is dragged, if it is a bundle; "" otherwise."""
    urls = mime.urls() if mime.hasUrls() else []
    path = urls[0].toLocalFile() if len(urls) == 1 else ""
    return path if path.lower().endswith(ENDINGS) else ""
