"""The fixture server and the engine in front of it, each in processes of its own that end with their context."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from callboard.api.schema import Check
from tests.support.engine import EngineProcess, entry

ROOT = Path(__file__).parents[2]
SERVER = "everything"
START_SECONDS = 30
END_SECONDS = 10
_FIXTURE = ("-m", "tests.conformance.fixture")


@asynccontextmanager
async def http_fixture(era: str) -> AsyncIterator[str]:
    """The fixture over HTTP; yields its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *_FIXTURE,
        *("--era", era, "--http"),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_SECONDS):
            port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


@asynccontextmanager
async def gateway(home: Path, fixture: dict[str, object]) -> AsyncIterator[str]:
    """An engine with an open gateway and one server; yields the server's endpoint there."""
    engine = EngineProcess(home)
    engine.write_roster({SERVER: fixture}, gateway={"port": 0, "auth": "open"})
    async with engine:
        await engine.wait_for(SERVER, "ready")
        assert names_open_gateway(await engine.client.doctor()), "doctor does not say that the gateway is open"
        view = await engine.client.engine()
        yield view.mcp_url.removesuffix("/mcp") + f"/servers/{SERVER}/mcp"


def names_open_gateway(checks: list[Check]) -> bool:
    """True if a warning says that anybody may use the gateway."""
    return any(check.code == "gateway-open" and check.status == "warn" for check in checks)


@asynccontextmanager
async def through_gateway(home: Path, era: str, transport: str) -> AsyncIterator[str]:
    """The fixture behind the gateway; yields the endpoint to test."""
    if transport == "stdio":
        async with gateway(home, entry(sys.executable, *_FIXTURE, "--era", era, cwd=str(ROOT))) as url:
            yield url
    else:
        async with http_fixture(era) as address, gateway(home, {"url": address}) as url:
            yield url
