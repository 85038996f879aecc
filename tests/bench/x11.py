"""When a window appears on an X screen, seen from outside of the program: by the X server's own events."""

from __future__ import annotations

import ctypes
import ctypes.util
import time
from types import TracebackType
from typing import Self

SUBSTRUCTURE_NOTIFY = 1 << 19
MAP_NOTIFY = 19
Z_PIXMAP = 2
ALL_PLANES = ctypes.c_ulong(-1).value
SMALLEST = 200  # pixels; smaller windows are helpers


class _Map(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("event", ctypes.c_ulong),
        ("window", ctypes.c_ulong),
        ("override_redirect", ctypes.c_int),
    )


class _Event(ctypes.Union):
    _fields_ = (("type", ctypes.c_int), ("map", _Map), ("pad", ctypes.c_long * 24))


_Handler = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@_Handler
def _ignore(_display: int, _error: int) -> int:
    """Windows may be gone by the time that they are asked about; X's own handler would end the process."""
    return 0


class ScreenWatch:
    """Watches the top-level windows of a display. Raises OSError where libX11 or the display cannot be had."""

    def __init__(self, display: str) -> None:
        self._x = ctypes.CDLL(ctypes.util.find_library("X11") or "libX11.so.6")
        for name, result in (("XOpenDisplay", ctypes.c_void_p), ("XGetImage", ctypes.c_void_p)):
            getattr(self._x, name).restype = result
        self._x.XDefaultRootWindow.restype = self._x.XGetPixel.restype = ctypes.c_ulong
        self._x.XSetErrorHandler(_ignore)
        opened = self._x.XOpenDisplay(display.encode())
        if not opened:
            raise OSError(f"the display {display} does not answer")
        self._display = ctypes.c_void_p(opened)
        self._root = ctypes.c_ulong(self._x.XDefaultRootWindow(self._display))
        self._x.XSelectInput(self._display, self._root, ctypes.c_long(SUBSTRUCTURE_NOTIFY))
        self._x.XSync(self._display, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._x.XCloseDisplay(self._display)

    def wait_for_window(self, seconds: float) -> tuple[float, float]:
        """When the next real window is mapped, and when it is painted, both on the monotonic clock."""
        deadline = time.monotonic() + seconds
        event = _Event()
        while time.monotonic() < deadline:
            if not self._x.XPending(self._display):
                time.sleep(0.001)
                continue
            self._x.XNextEvent(self._display, ctypes.byref(event))
            if event.type == MAP_NOTIFY and not event.map.override_redirect:
                mapped = time.monotonic()
                size = self._size(event.map.window)
                if min(size) >= SMALLEST:
                    return mapped, self._wait_until_painted(event.map.window, size, deadline)
        raise TimeoutError(f"no window within {seconds:g} s")

    def _size(self, window: int) -> tuple[int, int]:
        root, number = ctypes.c_ulong(), ctypes.c_uint()
        x, y = ctypes.c_int(), ctypes.c_int()
        width, height = ctypes.c_uint(), ctypes.c_uint()
        places = (root, x, y, width, height, number, number)
        self._x.XGetGeometry(self._display, ctypes.c_ulong(window), *map(ctypes.byref, places))
        return width.value, height.value

    def _wait_until_painted(self, window: int, size: tuple[int, int], deadline: float) -> float:
        """A window is painted when not all of the points looked at have the colour of the empty one."""
        points = [(size[0] * part // 8, size[1] * other // 8) for part in (1, 4, 7) for other in (1, 4, 7)]
        while time.monotonic() < deadline:
            if len({self._colour(window, x, y) for x, y in points}) > 1 or any(
                self._colour(window, x, y) not in (0, 0xFFFFFF) for x, y in points
            ):
                return time.monotonic()
            time.sleep(0.002)
        raise TimeoutError("the window stayed empty")

    def _colour(self, window: int, x: int, y: int) -> int:
        """A pixel of the window, as it is on the screen."""
        image = self._x.XGetImage(
            self._display, ctypes.c_ulong(window), x, y, 1, 1, ctypes.c_ulong(ALL_PLANES), Z_PIXMAP
        )
        if not image:
            return 0
        pointer = ctypes.c_void_p(image)
        colour = self._x.XGetPixel(pointer, 0, 0) & 0xFFFFFF
        self._x.XDestroyImage(pointer)
        return int(colour)
