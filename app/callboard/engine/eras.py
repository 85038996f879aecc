"""Which protocol era each server spoke last time, so that the next start need not probe."""

import json
import logging
from pathlib import Path

log = logging.getLogger(__name__)


class Eras:
    """Remembered per server and entry: another command is another server. Engine loop only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, tuple[str, bool]] = {}
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            self._known = {str(name): (str(mark), bool(modern)) for name, (mark, modern) in stored.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            pass  # nothing is known: servers are probed

    def modern(self, server: str, mark: str) -> bool | None:
        """True for the modern era, False for legacy, None if not known for this ``mark`` of the entry."""
        known = self._known.get(server)
        return known[1] if known is not None and known[0] == mark else None

    def learn(self, server: str, mark: str, modern: bool) -> None:
        """Remember a server's era."""
        if self._known.get(server) != (mark, modern):
            self._known[server] = (mark, modern)
            self._save()

    def forget(self, server: str) -> None:
        """What was remembered proved wrong."""
        if self._known.pop(server, None) is not None:
            self._save()

    def _save(self) -> None:
        try:
            temporary = self._path.with_suffix(".tmp")
            temporary.write_text(json.dumps(self._known), encoding="utf-8")
            temporary.replace(self._path)
        except OSError as error:
            log.info("the servers' eras could not be kept: %s", error)
