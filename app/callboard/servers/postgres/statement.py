"""What kind of statement a text of SQL begins: only those that ask are sent to the database at all.

This is not what keeps the database unchanged; a read-only transaction of a single prepared statement does that. It
keeps away what such a transaction lets through: COPY to a program or file, LISTEN, LOCK, SET, DO and the like.
"""

from __future__ import annotations

import re
from typing import Final

ASKING: Final = ("SELECT", "WITH", "VALUES", "TABLE", "EXPLAIN", "SHOW")

_SKIPPED: Final = re.compile(r"(?:\s+|--[^\r\n]*|\()+")
_COMMENT_PART: Final = re.compile(r"/\*|\*/")
_WORD: Final = re.compile(r"[A-Za-z_]+")


def first_word(sql: str) -> str:
    """The first word of a statement in capitals, after white space, comments and opening brackets; "" if none is."""
    at = 0
    while True:
        if found := _SKIPPED.match(sql, at):
            at = found.end()
        elif sql.startswith("/*", at):
            at = _end_of_comment(sql, at)
        else:
            break
    word = _WORD.match(sql, at)
    return word.group().upper() if word else ""


def objection(sql: str) -> str:
    """Why a statement is not sent, as a sentence; empty if it is one that asks."""
    if "\0" in sql:
        return "A query cannot contain a NUL character."
    word = first_word(sql)
    if word in ASKING:
        return ""
    if not word:
        return "The query is empty." if not sql.strip() else "The query does not begin with a word of SQL."
    return f"This server only answers queries ({', '.join(ASKING)}); it does not execute {word}."


def _end_of_comment(sql: str, at: int) -> int:
    """Where the comment ends that begins at ``at``; comments nest."""
    depth = 0
    for part in _COMMENT_PART.finditer(sql, at):
        depth += 1 if part.group() == "/*" else -1
        if depth == 0:
            return part.end()
    return len(sql)
