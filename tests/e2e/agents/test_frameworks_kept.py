"""Conversations of agents of real frameworks outlive the engine where the roster says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.agents.frameworks import CASES, Caller, Case, conversation_of, ready
from tests.support.agent_environments import AgentEnvironments
from tests.support.engine import EngineProcess
from tests.support.mcp_client import mcp_client, text_of

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.framework)
async def test_a_conversation_goes_on_after_a_restart(
    case: Case, agent_environments: AgentEnvironments, callboard_home: Path
) -> None:
    python = agent_environments.python(case.framework)
    engine = EngineProcess(callboard_home, {"dice": case.entry(python, persist=True)})
    async with engine:
        await ready(engine, "dice")
        async with mcp_client(engine, "dice") as client:
            dice = Caller(client, "dice")
            conversation = conversation_of(await dice("count"))
            await dice("roll", conversation=conversation)
            assert (await dice("boom", conversation=conversation)).is_error
    async with engine:
        await ready(engine, "dice")
        async with mcp_client(engine, "dice") as client:
            dice = Caller(client, "dice")
            assert text_of(await dice("count", conversation=conversation)) == "turn 3"
            assert text_of(await dice("count", conversation=conversation)) == "turn 4"
