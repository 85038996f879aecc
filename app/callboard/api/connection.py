"""How the control API is reached: HTTP on loopback with the engine's admin token, and its errors as ours."""

import asyncio
import importlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import msgspec

from callboard.api.schema import API_PREFIX, ErrorView
from callboard.core.errors import FIXES, CallboardError
from callboard.system.engine_file import EngineAddress, read_engine_file

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")


class EngineConnection:
    """Asks one running engine. Belongs to one asyncio loop; an async context manager, or to be closed.

    What it raises is a CallboardError: ``engine-not-running`` or ``engine-unreachable`` when the engine cannot be
    reached, otherwise the code that the engine answered.
    """

    def __init__(self, address: EngineAddress, *, timeout: float = 30.0) -> None:
        self.address = address
        self._timeout = timeout
        self._closed = False
        self._http: httpx2.AsyncClient | None = None

    @classmethod
    def from_file(cls, engine_file: Path, *, timeout: float = 30.0) -> Self:
        """A client for the engine that wrote ``engine_file``; raises ``engine-not-running``."""
        address = read_engine_file(engine_file)
        if address is None:
            raise CallboardError("engine-not-running", "No engine is running.")
        return cls(address, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. What is asked then, or still on its way, ends as ``engine-unreachable``."""
        self._closed = True
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def _lines(self, path: str, *, opened: Callable[[], None] | None = None) -> AsyncGenerator[str, None]:
        """The lines of a stream that are not empty."""
        import httpx2

        http = await self._client()
        try:
            async with http.stream("GET", API_PREFIX + path, timeout=httpx2.Timeout(10.0, read=60.0)) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    raise _error(answer)
                if opened is not None:
                    opened()
                async for line in answer.aiter_lines():
                    if line:
                        yield line
        except httpx2.HTTPError as error:
            raise _unreachable(error) from error

    async def _client(self) -> "httpx2.AsyncClient":
        if self._http is None:
            # in a thread: the imports take a tenth of a second, which a window would show as a stall
            made = await asyncio.to_thread(_make_http, self.address, self._timeout)
            if self._closed:
                raise _unreachable(RuntimeError("the client was closed"))
            if self._http is None:  # else another request was quicker
                self._http = made
        return self._http

    async def _get(self, path: str, kind: type[T]) -> T:
        return await self._send("GET", path, None, kind)

    async def _send(
        self, method: str, path: str, body: msgspec.Struct | None, kind: type[T], limit: float | None = -1.0
    ) -> T:
        content = await self._exchange(method, path, body, limit)
        return msgspec.json.decode(content or b"null", type=kind)

    async def _exchange(self, method: str, path: str, body: msgspec.Struct | None, limit: float | None = -1.0) -> bytes:
        import httpx2

        http = await self._client()
        content = None if body is None else msgspec.json.encode(body)
        try:
            answer = await http.request(
                method,
                API_PREFIX + path,
                content=content,
                headers={"content-type": "application/json"} if content else None,
                timeout=self._timeout if limit == -1.0 else limit,
            )
        except httpx2.HTTPError as error:
            raise _unreachable(error) from error
        except RuntimeError as error:
            if self._closed:
                raise _unreachable(error) from error
            raise
        if answer.status_code >= 400:
            raise _error(answer)
        return answer.content


def _make_http(address: EngineAddress, timeout: float) -> "httpx2.AsyncClient":
    import httpx2

    importlib.import_module("anyio._backends._asyncio")  # which the first connection would load
    return httpx2.AsyncClient(
        base_url=address.url,
        headers={"authorization": f"Bearer {address.admin_token}"},
        timeout=timeout,
        trust_env=False,
        verify=False,  # loopback over plain HTTP; spares the time of loading CA certificates
    )


def _unreachable(error: Exception) -> CallboardError:
    return CallboardError("engine-unreachable", f"The engine does not answer: {str(error) or type(error).__name__}.")


def _error(answer: "httpx2.Response") -> CallboardError:
    try:
        view = msgspec.json.decode(answer.content, type=ErrorView)
    except msgspec.DecodeError:
        return CallboardError("engine-unreachable", f"The engine answered HTTP {answer.status_code}.")
    code = view.code if view.code in FIXES else "internal"
    return CallboardError(code, view.message, fix=view.fix, data=view.data)
