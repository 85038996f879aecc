"""The environment that servers get: the person's, without what belongs to this program alone."""

from collections.abc import Mapping

_PREFIXES = ("CALLBOARD_", "QT_", "QML", "QSG_", "PYSIDE", "_PYI_", "_MEIPASS", "LISTEN_")
_NAMES = frozenset(
    {
        "PYTHONHOME",
        "PYTHONEXECUTABLE",
        "__PYVENV_LAUNCHER__",
        # of the packed program
        "APPDIR",
        "APPIMAGE",
        "ARGV0",
        "OWD",
        # of the service or the click that started us
        "NOTIFY_SOCKET",
        "JOURNAL_STREAM",
        "INVOCATION_ID",
        "DESKTOP_STARTUP_ID",
        "XDG_ACTIVATION_TOKEN",
        "GIO_LAUNCHED_DESKTOP_FILE",
        "GIO_LAUNCHED_DESKTOP_FILE_PID",
    }
)
_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LIBPATH")


def child_environment(environ: Mapping[str, str], *, frozen: bool) -> dict[str, str]:
    """``environ`` for a child. ``frozen``: we are a packed program, whose library path is not the person's."""
    result = {name: value for name, value in environ.items() if name not in _NAMES and not name.startswith(_PREFIXES)}
    for name in _LIBRARY_PATHS:
        original = result.pop(f"{name}_ORIG", None)
        if frozen:
            result.pop(name, None)
            if original:
                result[name] = original
    return result
