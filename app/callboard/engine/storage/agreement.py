"""Values that all engines agree on, for those who keep them in a file where there is only one engine."""

from collections.abc import Callable
from typing import Protocol

Hear = Callable[[bytes], None]
Edit = Callable[[bytes | None], bytes | None]


class Agreement(Protocol):
    """Small values by name, the same at all engines. Engine loop only."""

    def follow(self, name: str, first: bytes, hear: Hear) -> None:
        """Tell ``hear`` the value ``name`` as soon as it is known, and after each change, whichever engine made it.

        ``first`` becomes the value where no engine has set one yet.
        """

    async def change(self, name: str, edit: Edit) -> None:
        """Replace a value by what ``edit`` makes of it, in another thread; it is told before this returns.

        ``edit`` may be called more than once; None leaves the value as it is. Raises ``storage-away``.
        """
