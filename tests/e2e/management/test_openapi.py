"""The control API as its own document has it: each route is tried with what is allowed there and with what is not."""

import asyncio
import json
import os
import sys
from pathlib import Path

import httpx2
import pytest

from callboard.api.schema import API_PREFIX
from tests.support.engine import EngineProcess, fixture_entry

# Routes that never end, the one that ends the engine, and the one that fetches whatever address it is given: they have
# tests of their own.
LEFT_OUT = ("/engine/quit", "/events", "/figures", "/bundles")
EXAMPLES = 12  # made up for each route; what its bounds and choices suggest comes in addition

SETTINGS = """\
headers = {{ Authorization = "Bearer {token}" }}

[dictionaries.names]  # things that are there, among those that are made up
values = ["one", "script", "echo"]
[parameters]
"path.name" = {{ dictionary = "names", probability = 0.7 }}
"path.client" = {{ dictionary = "names", probability = 0.7 }}
"query.server" = {{ dictionary = "names", probability = 0.5 }}
"body.tool" = {{ dictionary = "names", probability = 0.5 }}

[checks.positive_data_acceptance]  # 422: it has the right shape, and says what cannot be
expected-statuses = ["2xx", "401", "403", "404", "409", "422"]
"""


@pytest.mark.timeout(300)
async def test_every_route_keeps_to_the_document(tmp_path: Path) -> None:
    engine = EngineProcess(tmp_path / "home")
    registry = tmp_path / "registry.json"
    registry.write_text('{"servers": [{"name": "one", "description": "One"}]}')
    engine.write_roster({"one": fixture_entry("one")}, registry={"url": str(registry)})
    async with engine:
        address = engine.client.address
        settings = tmp_path / "schemathesis.toml"
        settings.write_text(SETTINGS.format(token=address.admin_token))
        left_out = [argument for path in LEFT_OUT for argument in ("--exclude-path", path)]
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("st"),
            *("--config-file", settings, "--no-color", "run", f"{address.url}{API_PREFIX}/openapi.json"),
            *("--max-examples", str(EXAMPLES), "--seed", "1", "--continue-on-failure", "--request-timeout", "60"),
            *left_out,
            cwd=tmp_path,
            env={**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path / "hypothesis")},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        log = (engine.paths.logs / "engine.log").read_text()
        assert " ERROR " not in log, log
        assert process.returncode == 0, output.decode()


async def test_the_document_is_for_whoever_has_the_engines_token(tmp_path: Path) -> None:
    async with EngineProcess(tmp_path / "home", {}) as engine:
        address = engine.client.address
        url = f"{address.url}{API_PREFIX}/openapi.json"
        async with httpx2.AsyncClient(trust_env=False) as http:
            assert (await http.get(url)).status_code == 401
            client = {"authorization": f"Bearer {await engine.token()}"}
            assert (await http.get(url, headers=client)).status_code == 401
            answer = await http.get(url, headers={"authorization": f"Bearer {address.admin_token}"})
            described = json.loads(answer.content)
            assert described["openapi"].startswith("3.1.")
            answer = await http.put(url, headers={"authorization": f"Bearer {address.admin_token}"})
            assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
            assert answer.json()["code"] == "method-not-allowed"
