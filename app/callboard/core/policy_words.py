"""The words of which policies are made, for whoever writes or shows them; see :mod:`callboard.core.policy_shapes`."""

from typing import Final, Literal, get_args

ItemKind = Literal["tool", "prompt", "resource"]
ITEM_KINDS: Final[tuple[ItemKind, ...]] = get_args(ItemKind)
DESTRUCTIVE: Final = "destructive"
UNDECLARED: Final = "undeclared"
ASK_WORDS: Final = (DESTRUCTIVE, UNDECLARED)


def split_kind(pattern: str) -> tuple[ItemKind | None, str]:
    """A pattern's kind (None: all of them), and the glob without it."""
    for kind in ITEM_KINDS:
        if pattern.startswith(f"{kind}:"):
            return kind, pattern[len(kind) + 1 :]
    return None, pattern
