"""How serious a line of a server's output looks. A guess for the eye, never a reason to change a server's state."""

import re
from typing import Final, Literal

LogLevel = Literal["", "debug", "info", "warning", "error"]

_LOOK: Final = 160  # characters at a line's beginning; what a message is about stands there
_LEVELS: Final[dict[str, LogLevel]] = {
    "trace": "debug",
    "trce": "debug",
    "verbose": "debug",
    "silly": "debug",
    "debug": "debug",
    "dbug": "debug",
    "dbg": "debug",
    "info": "info",
    "information": "info",
    "inf": "info",
    "notice": "info",
    "log": "info",
    "warn": "warning",
    "warning": "warning",
    "wrn": "warning",
    "err": "error",
    "eror": "error",
    "error": "error",
    "fail": "error",
    "severe": "error",
    "crit": "error",
    "critical": "error",
    "alert": "error",
    "emerg": "error",
    "fatal": "error",
    "panic": "error",
}
_WORDS: Final = "|".join(sorted(_LEVELS, key=len, reverse=True))
_NUMBERS: Final[dict[str, LogLevel]] = {"10": "debug", "20": "debug", "30": "info", "40": "warning", "50": "error"}
_NUMBERS_OF_PINO: Final = re.compile(r'"level"\s*:\s*(10|20|30|40|50|60)\b')
# level=warn, "level":"warn", severity: ERROR
_FIELD: Final = re.compile(rf"\b(?:level|lvl|severity|levelname)\"?\s*[=:]\s*\"?({_WORDS})\b", re.IGNORECASE)
# [ERROR], <warn>, (info), |ERROR|
_BRACKETS: Final = re.compile(rf"[\[<(|]\s*({_WORDS})\s*[\]>)|:]", re.IGNORECASE)
# after a date, a name or nothing: "ERROR something", "error: something", "2025-01-01 12:00:00,123 - root - WARNING - x"
_CAPITALS: Final = re.compile(
    r"(?:^|[\s\-|:])(TRACE|VERBOSE|DEBUG|DBG|INFO|NOTICE|WARN|WARNING|ERR|ERROR|SEVERE|CRITICAL|FATAL|PANIC)(?=$|[\s\-|:,!])"
)
_BEGINNING: Final = re.compile(rf"^\W{{0,3}}(?:npm |\w{{1,20}}: )?({_WORDS})(?::|!| -|\s\d|$)", re.IGNORECASE)
_GLOG: Final = re.compile(r"^([DIWEF])\d{4} \d\d:\d\d:\d\d")
_LETTERS: Final[dict[str, LogLevel]] = {"D": "debug", "I": "info", "W": "warning", "E": "error", "F": "error"}
# Python's last line of a traceback, Node's and Java's first one
_EXCEPTION: Final = re.compile(
    r"^(?:Uncaught |Caused by: |Exception in thread .{1,80} )?"
    r"[\w.$]{0,100}(?:Error|Exception|Interrupt|Exit)(?: \[\w+\])?(?::|$)"
)
_NPM: Final = re.compile(r"^npm (error|warn|notice|info|http|verb)\b")
_OF_NPM: Final[dict[str, LogLevel]] = {"error": "error", "warn": "warning", "verb": "debug"}
_BEGINS_FAILURE: Final = (
    "Traceback (most recent call last):",
    "panic:",
    "fatal:",
    "thread '",
    "Segmentation fault",
    "npm ERR!",
    "Unhandled",
    "UnhandledPromiseRejection",
)


# What any of the above needs; most lines have none of it, and looking for these takes next to no time.
_STEMS: Final = (
    *(
        "err",
        "warn",
        "wrn",
        "inf",
        "deb",
        "dbg",
        "dbug",
        "trace",
        "trce",
        "notice",
        "verb",
        "silly",
        "log",
        "fail",
        "panic",
    ),
    *(
        "fatal",
        "crit",
        "sever",
        "alert",
        "emerg",
        "level",
        "lvl",
        "excep",
        "interrupt",
        "exit",
        "segm",
        "thread '",
        "unh",
    ),
    "npm ",
)


def guess_level(line: str) -> LogLevel:
    """The level that a line seems to have, "" if it does not look like any."""
    text = line[:_LOOK].lstrip()
    if not text:
        return ""
    if text[0] in _LETTERS and (found := _GLOG.match(text)):
        return _LETTERS[found[1]]
    lower = text.lower()
    if not any(stem in lower for stem in _STEMS):
        return ""
    if text[0] == "{" and (found := _NUMBERS_OF_PINO.search(text)):
        return _NUMBERS.get(found[1], "error")
    for pattern in (_FIELD, _BRACKETS, _CAPITALS, _BEGINNING):
        if found := pattern.search(text):
            return _LEVELS[found[1].lower()]
    if found := _NPM.match(text):
        return _OF_NPM.get(found[1], "info")
    if text.startswith(_BEGINS_FAILURE) or _EXCEPTION.match(text):
        return "error"
    return ""
