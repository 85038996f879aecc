"""A gateway in front of the fixture server, in every combination of eras and transports."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.gateway import LegacyClient, ModernClient, TestGateway, gateway, http_fixture

ASKED = {"elicitation": {}, "sampling": {}, "roots": {}}


@contextlib.asynccontextmanager
async def serving(folder: Path, era: str, transport: str) -> AsyncIterator[TestGateway]:
    """A gateway whose only server, ``one``, is the fixture server of an era over a transport."""
    async with gateway(folder, "one") as front:
        if transport == "stdio":
            await front.start_fixture("one", era)
            yield front
            return
        with http_fixture(era, "one", *(["--sse"] if transport == "sse" else [])) as url:
            await front.reach("one", f"{url}/mcp")
            yield front
            await front.servers.ready["one"].close()


@pytest.fixture(params=["legacy-stdio", "modern-stdio", "legacy-http", "modern-http", "legacy-sse"])
async def front(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TestGateway]:
    """The gateway in front of the fixture server of either era, over each transport."""
    era, transport = request.param.split("-")
    async with serving(tmp_path, era, transport) as made:
        yield made


@pytest.fixture(params=["legacy", "modern"])
async def client(request: pytest.FixtureRequest, front: TestGateway) -> AsyncIterator[LegacyClient | ModernClient]:
    """A client of either era on the endpoint of that server, that can be asked for everything."""
    made = front.legacy("one", **ASKED) if request.param == "legacy" else front.modern("one", **ASKED)
    async with made:
        if isinstance(made, LegacyClient):
            await made.initialize()
        yield made


@pytest.fixture(params=["legacy", "modern"])
async def either(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TestGateway]:
    """A gateway in front of the fixture server of either era on stdio."""
    async with serving(tmp_path, request.param, "stdio") as front:
        yield front


@pytest.fixture
async def legacy(tmp_path: Path) -> AsyncIterator[TestGateway]:
    """A gateway in front of a legacy server on stdio."""
    async with serving(tmp_path, "legacy", "stdio") as front:
        yield front
